"""ReceiveMetadataUpdate: a broker hears of a change of the partition.

Instances: row of the record's partition epoch (ten a word) + broker.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.kraft.layout import (
    EVERY_LOW,
    EVERY_OFFSET,
    LOW_ROWS,
    MAX_BROKERS,
    REACHED_BITS,
    Wide,
    forget,
    leader_epoch_of,
    leo_of,
    place_of,
    rows_before,
    wide_row,
    with_local,
    with_word,
    word_of,
)
from quorisk.kernels.protocols.kraft.watermark import ackable, maybe_update_hwm_on_partition_change
from quorisk.kernels.protocols.rows import WIDTH, gathered, nonempty, row, with_row


def hosts(state):
    """The brokers that take themselves for replicas: the others have no replicas of their own to tell."""
    return gathered(nonempty(state.local.replicas))


def newer_epochs(state, brokers, word):
    """IsLeaderEpochBump: bit b of the rows of all records with a later leader epoch than broker b has heard of, in the
    low word (0) or the high one (1)."""
    low, high = 0, 0
    for b in range(MAX_BROKERS):
        seen = rows_before(row(state.local.partition_epochs, b))
        next_low, next_high = state.log.bumps.low & ~seen.low, state.log.bumps.high & ~seen.high
        column = where((brokers >> b) & 1, EVERY_LOW << b, 0)
        # minus the lowest bit of a word: that bit and all above it
        low |= -(next_low & -next_low) & column
        high |= where(next_low != 0, column, -(next_high & -next_high) & column)
    return (low, high)[word]


def receive_metadata_update_enabled(state, params):
    written = rows_before(state.con.partition_epoch)
    up = (state.running & ~state.isolated) * EVERY_LOW
    low, high = written.low & ~state.replicated.low & up, written.high & ~state.replicated.high & up
    leaders, local = state.leaders * EVERY_LOW, hosts(state)
    waiting = local & ~state.leaders
    low_bumps = when(low & (waiting * EVERY_LOW) != 0, newer_epochs, state, waiting, 0)
    high_bumps = when(high & (waiting * EVERY_LOW) != 0, newer_epochs, state, waiting, 1)
    new_low = state.log.replicas.low & ~(local * EVERY_LOW)
    new_high = state.log.replicas.high & ~(local * EVERY_LOW)
    return low & (leaders | low_bumps | new_low), high & (leaders | high_bumps | new_high)


@action(receive_metadata_update_enabled)
def receive_metadata_update(state, params, instance, lost):
    """Each change of the partition that a running broker may hear of next reaches it."""
    word = instance // 64
    place = (instance - 64 * word) // WIDTH
    i, b = place + LOW_ROWS * word, instance - 64 * word - WIDTH * place
    upto, column = rows_before(i + 1), EVERY_LOW << b
    changed = partition_change(state, params, i, b)
    newer = i + 1 > row(state.local.partition_epochs, b)
    return where(newer, changed, state)._replace(
        replicated=Wide(state.replicated.low | (upto.low & column), state.replicated.high | (upto.high & column))
    )


def partition_change(state, params, i, b):
    """The state once broker b has applied the record of row i, which is news to it."""
    broker = 1 << b
    log, old = state.log, state.local
    replicas, isr, leader = wide_row(log.replicas, i), wide_row(log.isrs, i), wide_row(log.leaders, i)
    epoch = leader_epoch_of(log, i)
    was_leader, leads = row(old.leaders, b) == broker, leader == broker
    same_epoch = row(old.leader_epochs, b) == epoch
    deletes = (row(old.replicas, b) & broker != 0) & (replicas & broker == 0)
    remains_leader = was_leader & leads & same_epoch
    follows = (replicas & broker != 0) & (leader != 0) & (leads ^ True)
    remains_follower = follows & same_epoch & (was_leader ^ True)

    led = lead(state, params, b, isr, remains_leader)
    renounced = renounce(state, b, where(deletes, 0, where(follows, leader, 0)), epoch, deletes)
    after = where(leads, led, where(remains_follower, state, renounced))
    host = replicas & broker != 0
    known = (where(host, value, 0) for value in (replicas, isr, leader, epoch, i + 1))
    return after._replace(local=with_local(old, b, *known))


def lead(state, params, b, isr, remains_leader):
    """RemainLeader and BecomeLeaderInNewEpoch."""
    broker = 1 << b
    peers = word_of(state.peers, b)
    # a reelected leader keeps what it knows of the members of the ISR, a new leader knows nothing
    members = where(state.leaders & broker != 0, isr & ~broker, 0)
    epochs = 0
    for p in range(MAX_BROKERS):
        epochs |= where((members >> p) & 1, 15 << (4 * place_of(b, p)), 0)
    kept = peers & ((members * EVERY_OFFSET) | (epochs << REACHED_BITS))
    state = maybe_update_hwm_on_partition_change(state, params, b, peers, isr)
    return state._replace(
        leaders=state.leaders | broker,
        followers=state.followers & ~broker,
        lesos=where(remains_leader, state.lesos, with_row(state.lesos, b, leo_of(state, b))),
        peers=with_word(state.peers, b, where(remains_leader, peers, kept)),
        pending=state.pending & ~broker,
        fetchers=where(remains_leader, state.fetchers, with_row(state.fetchers, b, 0)),
        delayed=where(remains_leader, state.delayed, state.delayed & ~broker),
    )


def renounce(state, b, leader, epoch, deletes):
    """BecomeFollowerInNewEpoch if there is a `leader`, else WaitForLeaderChange, or DeletePartition."""
    broker = 1 << b
    follows = leader != 0
    fetcher = row(state.fetchers, b)
    added = (epoch > row(state.local.leader_epochs, b)) | (fetcher & leader == 0)
    restarts = added | (follows ^ True)
    hwm, leo = row(state.hwms, b), leo_of(state, b)
    state = state._replace(
        leaders=state.leaders & ~broker,
        followers=where(follows, state.followers | broker, state.followers & ~broker),
        lesos=with_row(state.lesos, b, 0),
        fetchers=where(restarts, with_row(state.fetchers, b, leader), state.fetchers),
        delayed=where(restarts, state.delayed & ~broker, state.delayed),
        neg_acked=state.neg_acked | ackable(state, b, hwm, leo),
        peers=with_word(state.peers, b, 0),
        pending=state.pending & ~broker,
        flos=with_row(state.flos, b, 0),
    )
    logs, unflushed = with_row(state.logs, b, 0), with_row(state.unflushed, b, 0)
    deleted = forget(state._replace(logs=logs, unflushed=unflushed, hwms=with_row(state.hwms, b, 1)))
    return where(deletes, deleted, state)
