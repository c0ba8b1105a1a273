"""How a broker follows the controller's metadata: it leads, follows, waits for a leader or deletes the partition."""

from quorisk.kernels.protocols.kraft.spec import FOLLOWER, LEADER, FetchState, ReplicaMetadata
from tests.references.kraft.leader import maybe_fail_pending_writes, maybe_update_hwm_and_ack_on_partition_change
from tests.references.kraft.state import (
    BLANK_METADATA,
    BLANK_PEER,
    EMPTY,
    Successors,
    brokers,
    fetcher_of,
    is_leader,
    leo_of,
    log_of,
    md_of,
    offline,
    put,
    reset_all_follower_state,
    reset_pending_acks,
    reset_pending_alter_partition,
)


def partition_needs_action(s, b, offset):
    record = s.con_metadata_log[offset - 1]
    replicas = md_of(s, b).replicas
    return (
        is_leader(s, b)
        or (b in replicas and record.leader_epoch > md_of(s, b).leader_epoch)
        or (b not in replicas and b in record.replicas)
    )


def add_partition_to_fetcher(s, b, leader, leader_epoch):
    if leader_epoch > md_of(s, b).leader_epoch or fetcher_of(s, b, leader).partition is None:
        log = log_of(s, b)
        added = FetchState(leo_of(s, b), log[-1].epoch if log else 0, False)
        row = tuple(
            f._replace(partition=added if b1 == leader else None) for b1, f in enumerate(s.broker_fetchers[b - 1], 1)
        )
        return s._replace(broker_fetchers=put(s.broker_fetchers, b, row))
    return s


def remove_partition_from_fetchers(s, b):
    row = tuple(f._replace(partition=None) for f in s.broker_fetchers[b - 1])
    return s._replace(broker_fetchers=put(s.broker_fetchers, b, row))


def ensure_leadership_renounced(s, v, b, new):
    s = maybe_fail_pending_writes(s, v, b, new)
    return reset_pending_acks(reset_pending_alter_partition(reset_all_follower_state(s, b), b), b)


def with_status(s, b, status, leso):
    return s._replace(
        partition_status=put(s.partition_status, b, status), partition_leso=put(s.partition_leso, b, leso)
    )


def remain_leader(s, v, b, new):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    if new.partition_epoch >= s.partition_pending_ap[b - 1].epoch:
        return reset_pending_alter_partition(s, b)
    return s


def become_leader_in_new_epoch(s, v, b, new, is_new_leader):
    s = maybe_update_hwm_and_ack_on_partition_change(s, v, b, new)
    s = with_status(s, b, LEADER, leo_of(s, b))
    if is_new_leader:
        s = reset_all_follower_state(s, b)
    else:
        row = tuple(p if b1 in new.isr else BLANK_PEER for b1, p in enumerate(s.partition_replica_state[b - 1], 1))
        s = s._replace(partition_replica_state=put(s.partition_replica_state, b, row))
    return remove_partition_from_fetchers(reset_pending_alter_partition(s, b), b)


def become_follower_in_new_epoch(s, v, b, new):
    s = add_partition_to_fetcher(s, b, new.leader, new.leader_epoch)
    return with_status(ensure_leadership_renounced(s, v, b, new), b, FOLLOWER, None)


def wait_for_leader_change(s, v, b, new):
    s = remove_partition_from_fetchers(s, b)
    return with_status(ensure_leadership_renounced(s, v, b, new), b, None, None)


def delete_partition(s, v, b, new):
    s = with_status(ensure_leadership_renounced(remove_partition_from_fetchers(s, b), v, b, new), b, None, None)
    return s._replace(partition_data=put(s.partition_data, b, EMPTY))


def partition_change(s, v, b, new):
    """ReceiveMetadataUpdate's CASE; `s` still has the old partition_metadata."""
    old = md_of(s, b)
    if b in old.replicas and b not in new.replicas:
        return delete_partition(s, v, b, new)
    is_new_leader = not is_leader(s, b) and new.leader == b
    if old.leader == b and new.leader == b:
        if old.leader_epoch == new.leader_epoch:
            return remain_leader(s, v, b, new)
        return become_leader_in_new_epoch(s, v, b, new, is_new_leader)
    if new.leader == b:
        return become_leader_in_new_epoch(s, v, b, new, is_new_leader)
    if b in new.replicas and new.leader is not None:
        if new.leader_epoch == old.leader_epoch and old.leader != b:
            return s
        return become_follower_in_new_epoch(s, v, b, new)
    assert b in new.replicas
    return wait_for_leader_change(s, v, b, new)


def receive_metadata_update(s, v) -> Successors:
    for b in brokers(v):
        if offline(s, b) or not s.broker_state[b - 1].registered or b in s.isolated:
            continue
        for offset in range(len(s.broker_metadata_log[b - 1]) + 1, len(s.con_metadata_log) + 1):
            if not partition_needs_action(s, b, offset):
                continue
            record = s.con_metadata_log[offset - 1]
            new = ReplicaMetadata(
                record.replicas, record.isr, record.isr, record.leader, record.leader_epoch, record.partition_epoch
            )
            after = s._replace(broker_metadata_log=put(s.broker_metadata_log, b, s.con_metadata_log[:offset]))
            if new.partition_epoch > md_of(s, b).partition_epoch:
                after = partition_change(after, v, b, new)
                md = new if b in new.replicas else BLANK_METADATA
                after = after._replace(partition_metadata=put(s.partition_metadata, b, md))
            yield after
