"""What the actions share: the initial state, and the helpers that read and change a state. Brokers count from 1."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from quorisk.kernels.protocols.kraft.spec import (
    FENCED,
    FOLLOWER,
    LEADER,
    OFFLINE_CLEAN,
    OFFLINE_DIRTY,
    RUNNING,
    UNFENCED,
    BrokerState,
    Counters,
    Fetcher,
    FetchState,
    PartitionData,
    PartitionMetadata,
    PeerReplica,
    PendingAlter,
    Registration,
    ReplicaMetadata,
    SpecState,
)

Values = dict[str, Any]
Successors = Iterator[SpecState]

NOBODY: frozenset[int] = frozenset()
BLANK_FETCHER = Fetcher(None, False)
BLANK_PEER = PeerReplica(None, 0)
BLANK_METADATA = ReplicaMetadata(NOBODY, NOBODY, NOBODY, None, 0, 0)
NO_PENDING = PendingAlter(0, None)
EMPTY = PartitionData((), 1, 1)


def is_966(v: Values) -> bool:
    return v["version"] == "kip966"


def is_kafka(v: Values) -> bool:
    """What brokers and controllers of Apache Kafka do, where the specification has it otherwise."""
    return v["semantics"] == "kafka"


def elects_last_known_leader(v: Values) -> bool:
    """PartitionChangeBuilder.canElectLastKnownLeader may be true: with eligible leader replicas alone."""
    return is_kafka(v) and is_966(v) and v["last_known_leader"]


def brokers(v: Values) -> range:
    return range(1, v["brokers"] + 1)


def subsets(items) -> Iterator[frozenset[int]]:
    items = sorted(items)
    return (frozenset(chosen) for n in range(len(items) + 1) for chosen in combinations(items, n))


def put(items: tuple, b: int, item: Any) -> tuple:
    return items[: b - 1] + (item,) + items[b:]


def put2(rows: tuple, b: int, c: int, item: Any) -> tuple:
    return put(rows, b, put(rows[b - 1], c, item))


def initial(v: Values) -> SpecState:
    everyone = brokers(v)
    replicas = frozenset(range(1, v["replication_factor"] + 1))
    isr = frozenset(range(1, v["init_isr"] + 1))
    part_epoch = 1 if v["init_isr"] == v["replication_factor"] else 2
    md = PartitionMetadata(replicas, isr, NOBODY, NOBODY, 1, 1, part_epoch, NOBODY, NOBODY)
    unfenced = frozenset(everyone) - (replicas - isr)

    def local(b: int) -> ReplicaMetadata:
        if b not in replicas:
            return BLANK_METADATA
        if b in isr:
            return ReplicaMetadata(replicas, isr, isr, 1, 1, part_epoch)
        return ReplicaMetadata(replicas, replicas, replicas, 1, 1, 1)

    def fetcher(b: int, b1: int) -> Fetcher:
        return Fetcher(FetchState(1, 0, False), False) if b != 1 and b1 == 1 else BLANK_FETCHER

    return SpecState(
        con_unfenced=unfenced,
        con_broker_reg=tuple(Registration(UNFENCED if b in unfenced else FENCED, b, b) for b in everyone),
        con_partition_metadata=md,
        con_metadata_log=(md,),
        broker_state=tuple(BrokerState(RUNNING, b, b, True) for b in everyone),
        broker_fetchers=tuple(tuple(fetcher(b, b1) for b1 in everyone) for b in everyone),
        broker_metadata_log=tuple((md,) if b in unfenced else () for b in everyone),
        partition_status=tuple(LEADER if b == 1 else FOLLOWER if b in replicas else None for b in everyone),
        partition_metadata=tuple(map(local, everyone)),
        partition_data=(EMPTY,) * len(everyone),
        partition_flushed=(1,) * len(everyone),
        partition_leso=tuple(1 if b == 1 else None for b in everyone),
        partition_replica_state=((BLANK_PEER,) * len(everyone),) * len(everyone),
        partition_pending_ap=(NO_PENDING,) * len(everyone),
        messages=frozenset(),
        aux_broker_epoch=len(everyone),
        aux_ctrs=Counters(len(everyone) + 1, *[0] * 11),
        aux_flo=(None,) * len(everyone),
        inv_sent=frozenset(),
        inv_pos_acked=frozenset(),
        inv_neg_acked=frozenset(),
        inv_true_hwm=1,
        inv_consumed=(),
        stalled=NOBODY,
        to_restart=NOBODY,
        restarting=NOBODY,
        isolated=NOBODY,
    )


# ---- helpers


def log_of(s, b):
    return s.partition_data[b - 1].log


def leo_of(s, b):
    return s.partition_data[b - 1].leo


def hwm_of(s, b):
    return s.partition_data[b - 1].hwm


def md_of(s, b) -> ReplicaMetadata:
    return s.partition_metadata[b - 1]


def fetcher_of(s, b, b1) -> Fetcher:
    return s.broker_fetchers[b - 1][b1 - 1]


def peer(s, b, b1) -> PeerReplica:
    return s.partition_replica_state[b - 1][b1 - 1]


def running(s, b):
    return s.broker_state[b - 1].status == RUNNING


def is_leader(s, b):
    return s.partition_status[b - 1] == LEADER


def offline(s, b):
    return s.broker_state[b - 1].status in (OFFLINE_CLEAN, OFFLINE_DIRTY)


def received(s, kind):
    return sorted((m for m in s.messages if isinstance(m, kind)), key=repr)


def reply(s, m, answer):
    return s._replace(messages=s.messages - {m} | {answer})


def discard(s, m):
    return s._replace(messages=s.messages - {m})


def reset_all_follower_state(s, b):
    row = (BLANK_PEER,) * len(s.broker_state)
    return s._replace(partition_replica_state=put(s.partition_replica_state, b, row))


def reset_pending_alter_partition(s, b):
    return s._replace(partition_pending_ap=put(s.partition_pending_ap, b, NO_PENDING))


def reset_pending_acks(s, b):
    return s._replace(aux_flo=put(s.aux_flo, b, None))


def pending_alter_partition_response(s, b):
    return s.partition_pending_ap[b - 1].epoch > md_of(s, b).partition_epoch


def reassignment_in_progress(s):
    return bool(s.con_partition_metadata.adding or s.con_partition_metadata.removing)
