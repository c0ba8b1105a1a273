"""The controller: who leads, who is in sync, who may be elected. Registration, fencing, AlterPartition, reassignment.

A choice among new leaders is part of an instance: the broker chosen, or 0 where there is nothing to choose. Instances:
of registration, row k + broker; of fencing, row of the broker + new leader; of AlterPartition, row of its partition
epoch (ten a word) + new leader; of reassignment, a word for each new leader, bit: the set of brokers added and
removed, that of all six at bit 0, as there is no empty one.
"""

from quorisk.kernels.model import EVERYTHING, action
from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.kraft.layout import (
    ACCEPTED,
    ALL_BROKERS,
    DIAGONAL,
    EVERY_BROKER,
    EVERY_LOW,
    EVERY_START,
    FENCED,
    INELIGIBLE,
    LOW_ROWS,
    MAX_BROKERS,
    REQUESTED,
    wide_row,
    with_wide_row,
)
from quorisk.kernels.protocols.rows import WIDTH, nonempty, row, rows, spread, with_row

_EVERY_SET = (1 << ALL_BROKERS) - 1
_CONTAINING = tuple(sum(1 << s % ALL_BROKERS for s in range(ALL_BROKERS + 1) if s >> b & 1) for b in range(MAX_BROKERS))
"""Bit S (0 for all brokers) for every set of brokers S that has broker b."""


def last_known_elr(old, params, partition):
    """The brokers that left the ELR while the ISR is too small; as Kafka has it, the last leader while nobody leads."""
    removed = partition.replicas & old.elr & ~partition.elr
    short = (params.kip966 != 0) & (popcount(partition.isr) < params.min_isr)
    leaderless = (params.last_known_leader != 0) & (partition.leader == 0)
    last_leader = where(leaderless, where(old.leader != 0, old.leader, old.last_known_elr), 0)
    return where(params.kafka, last_leader, where(short, old.last_known_elr | removed, 0))


def apply_partition_change(state, params, partition):
    """ApplyPartitionChange: `partition` with the next partition epoch, but for its `last_known_elr`."""
    old = state.con
    i = old.partition_epoch
    log = state.log
    return state._replace(
        con=partition._replace(partition_epoch=i + 1, last_known_elr=last_known_elr(old, params, partition)),
        log=log._replace(
            replicas=with_wide_row(log.replicas, i, partition.replicas),
            isrs=with_wide_row(log.isrs, i, partition.isr),
            elrs=with_wide_row(log.elrs, i, partition.elr),
            leaders=with_wide_row(log.leaders, i, partition.leader),
            bumps=with_wide_row(log.bumps, i, partition.leader_epoch - old.leader_epoch),
            adding=with_wide_row(log.adding, i, partition.adding),
            removing=with_wide_row(log.removing, i, partition.removing),
        ),
    )


def update_elr(state, params, isr, replicas):
    """UpdateElrOnIsrOrReplicaChange."""
    elr = (state.con.elr & replicas) | (state.con.isr & replicas & ~isr)
    return where((params.kip966 != 0) & (popcount(isr) < params.min_isr), elr, 0)


def candidates(state, params, isr, elr, unfenced):
    """The brokers that may be elected from this ISR and ELR."""
    live = where(params.kip966, isr, isr & unfenced)
    live = where((params.kip966 != 0) & (live == 0), elr & unfenced, live)
    # last_known_elr is empty while somebody leads
    known = where((params.last_known_leader != 0) & (isr | elr == 0), state.con.last_known_elr & unfenced, 0)
    unclean = where(params.unclean_leader_election, state.con.replicas & unfenced, 0)
    return where(live != 0, live, where(known != 0, known, unclean))


def keeps_leader(state, params, isr, elr, unfenced):
    """NoLeaderChange."""
    leader = state.con.leader
    stays = leader & isr & where(params.kip966, ALL_BROKERS, unfenced)
    return where(leader == 0, candidates(state, params, isr, elr, unfenced) == 0, stays != 0)


def update_partition_on_broker_change(state, params, isr, elr, unfenced, elected):
    """MaybeUpdatePartitionOnBrokerChange; `elected` is the new leader as a set, empty if there is no candidate."""
    old = state.con
    keeps = keeps_leader(state, params, isr, elr, unfenced)
    clean = elected & (isr | elr) != 0
    new_isr = where(keeps | (elected == 0), isr, where(clean, isr | elected, elected))
    new_elr = where(keeps | (elected == 0), elr, where(clean, elr & ~elected, 0))
    changed = apply_partition_change(
        state,
        params,
        old._replace(
            isr=new_isr,
            elr=new_elr,
            leader=where(keeps, old.leader, elected),
            leader_epoch=where(keeps, old.leader_epoch, old.leader_epoch + 1),
        ),
    )
    unchanged = keeps & (isr == old.isr) & (elr == old.elr)
    return where(unchanged, state, changed)._replace(unfenced=unfenced)


def isr_without(state, params, broker):
    """RemoveBrokerFromISR, or as of 3.5 MaybeRemoveBrokerFromISR, which leaves one member."""
    rest = state.con.isr & ~broker
    return where((params.kip966 != 0) | (rest != 0), rest, state.con.isr)


def next_leaders(state, params):
    """The candidates that may be elected when the leader is fenced: row of the leader + candidate; + 0 if none may."""
    leader = state.con.leader
    isr = isr_without(state, params, leader)
    elr = update_elr(state, params, isr, state.con.replicas)
    found = candidates(state, params, isr, elr, state.unfenced & ~leader)
    return where(found == 0, 1, found) << (WIDTH * lowest_bit(leader))


def fence_instances(state, params, brokers):
    """Instances of fencing these brokers: an election is due for the leader alone.

    But as of 3.5 a reassignment may name a leader that is fenced; then the next fencing causes an unclean election.
    """
    leader = state.con.leader
    overdue = (leader & ~state.unfenced != 0) & (params.unclean_leader_election != 0)
    pool = where(overdue, state.con.replicas & state.unfenced, 0)
    others = brokers & ~leader
    choices = rows(others) & (pool * EVERY_BROKER) & ~DIAGONAL
    found = choices | (spread(others) & ~nonempty(choices))
    return found | when(brokers & leader != 0, next_leaders, state, params)


def handle_broker_fenced(state, params, b, preferred):
    """HandleBrokerFenced; it elects one of `preferred`, a set, if it can, else the first candidate."""
    broker = 1 << b
    isr = isr_without(state, params, broker)
    elr = update_elr(state, params, isr, state.con.replicas)
    unfenced = state.unfenced & ~broker
    found = candidates(state, params, isr, elr, unfenced)
    elected = where(found & preferred != 0, found & preferred, found & -found)
    return update_partition_on_broker_change(state, params, isr, elr, unfenced, elected)


def handle_broker_unfenced(state, params, broker, excluded):
    """HandleBrokerUnfenced; with the broker excluded from ISR and ELR, ProcessUncleanBroker.

    While nobody leads there is no candidate, so the only one can be this broker, or the last known leader, which waited
    for the ELR to become empty.
    """
    isr, elr, unfenced = state.con.isr & ~excluded, state.con.elr & ~excluded, state.unfenced | broker
    elected = candidates(state, params, isr, elr, unfenced)
    change = update_partition_on_broker_change(state, params, isr, elr, unfenced, elected)
    due = (state.con.leader == 0) | (excluded != 0)
    return where(due, change, state._replace(unfenced=unfenced))


def receive_broker_reg_request_enabled(state, params):
    # an incarnation id registers once, so no broker that is not fenced is registered under the request's
    return (state.register_requests & ((ALL_BROKERS & ~state.unfenced) * EVERY_START),)


@action(receive_broker_reg_request_enabled)
def receive_broker_reg_request(state, params, instance, lost):
    """Each registration on its way to the controller is handled."""
    k = instance // WIDTH
    b = instance - WIDTH * k
    broker = 1 << b
    unclean = (params.exclude_unclean_brokers != 0) & (row(state.register_epochs, k) == 0)
    epoch = params.brokers + state.registrations + 1
    offset = state.con.partition_epoch
    state = handle_broker_unfenced(state, params, broker, where(unclean, broker, 0))
    return state._replace(
        reg_epochs=with_row(state.reg_epochs, b, epoch),
        reg_incarnations=with_row(state.reg_incarnations, b, params.brokers + 1 + k),
        registrations=state.registrations + 1,
        register_requests=state.register_requests & ~(1 << instance),
        register_responses=state.register_responses | (1 << instance),
        register_epochs=with_row(state.register_epochs, k, epoch),
        register_records=with_row(state.register_records, k, offset),
    )


def valid(state, params, i):
    """ValidateAlterPartitionRequest for the request of row i: ACCEPTED, INELIGIBLE or FENCED."""
    isr = wide_row(state.alters.isrs, i)
    leader = wide_row(state.log.leaders, i)
    epochs = state.alters.epochs[i]
    other_epoch = 0
    for b in range(MAX_BROKERS):
        epoch = (epochs >> (4 * b)) & 15
        other_epoch |= where((epoch != 0) & (epoch != row(state.reg_epochs, b)), 1 << b, 0)
    other_epoch = where(params.check_broker_epochs, other_epoch & isr, 0)
    eligible = (isr & ~state.unfenced) | other_epoch == 0
    current = (leader == state.con.leader) & (leader & other_epoch == 0) & (i + 1 == state.con.partition_epoch)
    return where(current, where(eligible, ACCEPTED, INELIGIBLE), FENCED)


def reassigned(state, params, isr):
    """Whether this ISR would complete a reassignment."""
    con = state.con
    final_isr = isr & ~con.removing
    complete = ((con.adding | con.removing) != 0) & (con.adding & ~final_isr == 0)
    return complete & (popcount(final_isr) >= params.min_isr)


def completing_leaders(state, params):
    """The brokers that the request of the current partition epoch may make leader; broker 0 if there is no choice."""
    i = state.con.partition_epoch - 1
    isr = wide_row(state.alters.isrs, i)
    final_isr = isr & ~state.con.removing
    leaves = reassigned(state, params, isr) & (state.con.leader & final_isr == 0)
    leaves &= valid(state, params, i) == ACCEPTED
    return where(leaves, final_isr, 1)


def receive_alter_partition_request_enabled(state, params):
    low, high = state.alters.kinds.low & EVERY_LOW, state.alters.kinds.high & EVERY_LOW
    # only a request of the current partition epoch is accepted, and only a reassignment takes its leader away
    i = state.con.partition_epoch - 1
    leaves = (state.con.leader & state.con.removing != 0) & (wide_row(state.alters.kinds, i) == REQUESTED)
    choices = when(leaves, completing_leaders, state, params)
    upper = i >= LOW_ROWS
    shift = WIDTH * where(upper, i - LOW_ROWS, i)
    other = ~where(leaves, 1 << shift, 0)
    return (
        where(upper, low, (low & other) | (choices << shift)),
        where(upper, (high & other) | (choices << shift), high),
    )


@action(receive_alter_partition_request_enabled, shared=WIDTH)
def receive_alter_partition_request(state, params, instance, lost):
    """Each leader's request about the ISR is handled by the controller, whoever leads next."""
    word = instance // 64
    place = (instance - 64 * word) // WIDTH
    i = place + LOW_ROWS * word
    con = state.con
    isr = wide_row(state.alters.isrs, i)
    answer = valid(state, params, i)
    complete = reassigned(state, params, isr)
    new_isr = where(complete, isr & ~con.removing, isr)
    replicas = where(complete, con.replicas & ~con.removing, con.replicas)
    chosen = 1 << (instance - 64 * word - WIDTH * place)
    accepted = apply_partition_change(
        state,
        params,
        con._replace(
            replicas=replicas,
            isr=new_isr,
            elr=update_elr(state, params, new_isr, replicas),
            leader=where(con.leader & new_isr != 0, con.leader, chosen),
            leader_epoch=where(complete, con.leader_epoch + 1, con.leader_epoch),
            adding=where(complete, 0, con.adding),
            removing=where(complete, 0, con.removing),
        ),
    )
    state = where(answer == ACCEPTED, accepted, state)
    return state._replace(alters=state.alters._replace(kinds=with_wide_row(state.alters.kinds, i, answer)))


def fence_broker_enabled(state, params):
    wanted = where(state.fencings < params.max_fencings, state.unfenced, 0)
    return (when(wanted != 0, fence_instances, state, params, wanted),)


@action(fence_broker_enabled, "fencing", shared=WIDTH, bounds=("max_fencings",))
def fence_broker(state, params, instance, lost):
    """Each broker that the controller takes for up is fenced, whoever leads next."""
    b = instance // WIDTH
    chosen = 1 << (instance - WIDTH * b)
    return handle_broker_fenced(state, params, b, chosen)._replace(fencings=state.fencings + 1)


def unfence_broker_enabled(state, params):
    return (state.running & ~(state.unfenced | state.isolated),)


@action(unfence_broker_enabled, interval_ms=("broker.heartbeat.interval.ms",))
def unfence_broker(state, params, b, lost):
    """Each running broker that is fenced is unfenced."""
    return handle_broker_unfenced(state, params, 1 << b, 0)


def reassignment_of(state, params, brokers):
    """The partition after the reassignment that adds those of `brokers` that are no replicas and removes the others;
    before a leader is chosen."""
    con = state.con
    adding, removing = brokers & ~con.replicas, brokers & con.replicas
    final_isr, final_replicas = con.isr & ~removing, (con.replicas | adding) & ~removing
    complete = (adding == 0) & (popcount(final_isr) >= params.min_isr)
    return con._replace(
        replicas=where(complete, final_replicas, con.replicas | adding),
        isr=where(complete, final_isr, con.isr),
        elr=where(complete, update_elr(state, params, final_isr, final_replicas), con.elr),
        leader_epoch=where(complete, con.leader_epoch + 1, con.leader_epoch),
        adding=where(complete, 0, adding),
        removing=where(complete, 0, removing),
    )


def sets_within(members):
    """Bit S for every set of brokers S that has none but these."""
    found = _EVERY_SET
    for b in range(MAX_BROKERS):
        found &= where((members >> b) & 1, _EVERY_SET, ~_CONTAINING[b])
    return found


def sets_leaving(least, flipped, among):
    """Bit S for every set of brokers S for which (S ^ flipped) & among has `least` members or more, 1 to 6."""
    ones, twos, fours = 0, 0, 0  # the number of members, in binary, of all sets at once
    for b in range(MAX_BROKERS):
        has = where((flipped >> b) & 1, ~_CONTAINING[b], _CONTAINING[b])
        has = where((among >> b) & 1, has, 0)
        fours |= twos & ones & has
        twos ^= ones & has
        ones ^= has
    five_or_more = where(least == 5, fours & (ones | twos), fours & twos)
    three_or_more = where(least == 3, fours | (twos & ones), where(least == 4, fours, five_or_more))
    return where(least == 1, ones | twos | fours, where(least == 2, twos | fours, three_or_more))


def reassignments(state, params):
    """Bit S: the set of brokers S may be added and removed."""
    brokers = (1 << params.brokers) - 1
    return sets_within(brokers) & sets_leaving(params.min_isr, state.con.replicas, brokers)


def instant_reassignments(state, params):
    """Bit S: to remove the brokers S is complete at once (`reassignment_of`)."""
    return sets_within(state.con.replicas) & sets_leaving(params.min_isr, ALL_BROKERS, state.con.isr)


def keeping(sets, instant, members, b):
    """The reassignments among `sets` after which broker b still is one of `members`."""
    return where((members >> b) & 1, sets & ~(instant & _CONTAINING[b]), 0)


def keeping_leader(sets, instant, leader):
    """The reassignments among `sets` after which `leader`, a set of one broker or none, still leads."""
    stays = 0
    for b in range(MAX_BROKERS):
        stays |= keeping(sets, instant, leader, b)
    return stays


def perform_partition_reassignment_enabled(state, params):
    con = state.con
    allowed = (state.reassignments < params.max_reassignments) & (con.adding | con.removing == 0)
    sets = when(allowed, reassignments, state, params)
    instant = when(sets != 0, instant_reassignments, state, params)
    stays = when(sets != 0, keeping_leader, sets, instant, con.leader & con.isr)
    moved = sets & ~stays
    first, *others = (when(moved != 0, keeping, moved, instant, con.isr, b) for b in range(MAX_BROKERS))
    return (stays | first, *others)


@action(perform_partition_reassignment_enabled, "reassignment", shared=EVERYTHING, bounds=("max_reassignments",))
def perform_partition_reassignment(state, params, instance, lost):
    """An operator adds and removes replicas: any set of them, with any leader it leaves, alike."""
    c = instance // 64
    brokers = instance - 64 * c
    partition = reassignment_of(state, params, where(brokers == 0, ALL_BROKERS, brokers))
    stays = state.con.leader & partition.isr != 0
    partition = partition._replace(leader=where(stays, state.con.leader, 1 << c))
    return apply_partition_change(state, params, partition)._replace(reassignments=state.reassignments + 1)
