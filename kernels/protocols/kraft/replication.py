"""Fetching and writing.

Instances: of fetch requests and responses, row of the follower + leader; of writes, row of the leader + value.
"""

from quorisk.kernels.model import EVERYTHING, action
from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.kraft.invariants import several
from quorisk.kernels.protocols.kraft.layout import (
    ALL_VALUES,
    BODY_BITS,
    EVERY_BROKER,
    EVERY_OFFSET,
    FENCED_EPOCH,
    HEAD_BITS,
    MAX_BROKERS,
    MAX_VALUES,
    NOT_LEADER,
    OK,
    REACHED_BITS,
    UNKNOWN_EPOCH,
    forget,
    last_epoch,
    leo_of,
    peer_epoch,
    place_of,
    values_before,
    with_word,
    word_of,
)
from quorisk.kernels.protocols.kraft.watermark import commit_offset, maybe_advance_high_watermark
from quorisk.kernels.protocols.rows import WIDTH, gathered, nonempty, row, rows, with_row

_REACHED = (1 << REACHED_BITS) - 1


def with_peer(peers, b, p, leo, epoch):
    """The word `peers` of broker b once peer p has fetched from `leo` on."""
    shift = REACHED_BITS + 4 * place_of(b, p)
    old = EVERY_OFFSET << p | 15 << shift
    reached = (EVERY_OFFSET & ((1 << (WIDTH * leo)) - 1)) << p
    return (peers & ~old) | reached | epoch << shift


def acking_isr(state, params, b):
    """The members, but the leader b itself, whom a commit waits for."""
    return where(params.maximal_isr, row(state.local.maximal_isrs, b), row(state.local.isrs, b)) & ~(1 << b)


def with_exchange(state, f, t, head, body):
    """The state with the fetch exchange from f to t replaced: head and body of its message."""
    head_word, body_word = word_of(state.fetch_heads, f), word_of(state.fetch_bodies, f)
    head_mask, body_mask, place = (1 << HEAD_BITS) - 1, (1 << BODY_BITS) - 1, place_of(f, t)
    head_word = (head_word & ~(head_mask << (HEAD_BITS * place))) | head << (HEAD_BITS * place)
    body_word = (body_word & ~(body_mask << (BODY_BITS * place))) | body << (BODY_BITS * place)
    return state._replace(
        fetch_heads=with_word(state.fetch_heads, f, head_word), fetch_bodies=with_word(state.fetch_bodies, f, body_word)
    )


def commits_well(state, params, b):
    """Whether what leader b commits is acknowledged: NotEnoughReplicasAfterAppend if its ISR got too small."""
    return (params.kafka == 0) | (popcount(row(state.local.maximal_isrs, b)) >= params.min_isr)


def unconverged(state, f, leader):
    """1 unless Converged: follower f and its leader, a set, agree on the log's end and the high watermark."""
    t = lowest_bit(leader)
    leo, peers = leo_of(state, f), word_of(state.peers, t)
    known = ((row(peers, leo - 1) & ~row(peers & _REACHED, leo)) >> f) & 1
    same = (
        (leo_of(state, t) == leo)
        & (row(state.hwms, t) == row(state.hwms, f))
        & (known != 0)
        & (peer_epoch(peers, t, f) == row(state.broker_epochs, f))
    )
    return where(same, 0, leader)


def send_fetch_request_enabled(state, params):
    cut_off = rows(state.isolated) | state.isolated * EVERY_BROKER
    idle = state.fetchers & state.local.leaders & rows(state.running & ~state.stalled) & ~cut_off
    idle &= ~(state.fetch_requests | state.fetch_responses)
    wanted = 0
    for f in range(MAX_BROKERS):
        leader = row(idle, f)
        wanted |= when(leader != 0, unconverged, state, f, leader) << (WIDTH * f)
    return (wanted,)


@action(send_fetch_request_enabled)
def send_fetch_request(state, params, instance, lost):
    """Each follower without a fetch under way asks its leader for more."""
    f = instance // WIDTH
    head = row(state.local.leader_epochs, f) | leo_of(state, f) << 4
    state = with_exchange(state, f, instance - WIDTH * f, head, last_epoch(state, row(state.logs, f)) << MAX_VALUES)
    return state._replace(fetch_requests=state.fetch_requests | (1 << instance), delayed=state.delayed & ~(1 << f))


def epochs_up_to(state, log, epoch):
    """The values of a log with this leader epoch or an earlier one."""
    found = 0
    for v in range(MAX_VALUES):
        found |= where(row(state.value_epochs, v) <= epoch, 1 << v, 0)
    return log & found


def last_offset_for_epoch(state, b, epoch, own_epoch):
    """LastOffsetForEpoch: an epoch and the offset where it ends; `own_epoch` is the leader's, -1 at a follower.

    Epochs never fall along a log, so the records up to an epoch are its beginning.
    """
    log = row(state.logs, b)
    upto = epochs_up_to(state, log, epoch)
    given = (log == 0) | (last_epoch(state, log) == epoch) | (own_epoch == epoch)
    found = where(given | (upto == 0), epoch, last_epoch(state, upto))
    return found, where(given, popcount(log), popcount(upto)) + 1


def receive_fetch_request_enabled(state, params):
    return (state.fetch_requests & (state.running * EVERY_BROKER),)


@action(receive_fetch_request_enabled)
def receive_fetch_request(state, params, instance, lost):
    """Each fetch on its way to a running broker is answered."""
    f = instance // WIDTH
    b = instance - WIDTH * f
    place = place_of(f, b)
    head = word_of(state.fetch_heads, f) >> (HEAD_BITS * place)
    asked_epoch = head & 15
    offset = where(asked_epoch == 0, 1, (head >> 4) & 7)  # no epoch: it is refused whatever it says (`normal_form`)
    fetched_epoch = (word_of(state.fetch_bodies, f) >> (BODY_BITS * place + MAX_VALUES)) & 15
    epoch, log = row(state.local.leader_epochs, b), row(state.logs, b)

    behind, ahead = epoch < asked_epoch, epoch > asked_epoch
    error = where(behind, UNKNOWN_EPOCH, where(ahead, FENCED_EPOCH, NOT_LEADER))
    fenced = (state.leaders & (1 << b) == 0) | ((params.fence_fetches != 0) & (behind | ahead))

    end_epoch, end_offset = last_offset_for_epoch(state, b, fetched_epoch, epoch)
    diverges = (end_epoch < fetched_epoch) | (end_offset < offset)
    diverges &= (params.truncate_on_divergence != 0) & (fenced ^ True)
    good = (fenced | diverges) ^ True

    peers = with_peer(word_of(state.peers, b), b, f, offset, row(state.broker_epochs, f))
    leo = leo_of(state, b)
    new_hwm = commit_offset(peers, acking_isr(state, params, b), leo) + 1
    positive = commits_well(state, params, b)
    served = maybe_advance_high_watermark(state, params, b, row(state.local.isrs, b), new_hwm, positive)
    state = where(good, served._replace(peers=with_word(state.peers, b, peers)), state)
    here = where(params.continuous_writes, ~values_before(state, offset), row(state.offsets, offset - 1))
    record = where(good, log & here, 0)
    diverging = where(diverges, end_offset | end_epoch << MAX_VALUES, 0)
    answer = epoch | offset << 4 | row(state.hwms, b) << 7 | where(fenced, error, OK) << 10
    return with_exchange(state, f, b, answer, record | diverging)._replace(
        fetch_requests=state.fetch_requests & ~(1 << instance), fetch_responses=state.fetch_responses | (1 << instance)
    )


def receive_fetch_response_enabled(state, params):
    return (state.fetch_responses & rows(state.running),)


def truncation_point(state, b, epoch, offset):
    """FindTruncatePoint."""
    own_epoch, own_offset = last_offset_for_epoch(state, b, epoch, -1)
    return where((own_epoch != epoch) | (own_offset < offset), own_offset, offset)


@action(receive_fetch_response_enabled)
def receive_fetch_response(state, params, instance, lost):
    """Each answer to a fetch on its way to a running broker arrives."""
    b = instance // WIDTH
    t = instance - WIDTH * b
    place = place_of(b, t)
    head = word_of(state.fetch_heads, b) >> (HEAD_BITS * place)
    body = word_of(state.fetch_bodies, b) >> (BODY_BITS * place)
    epoch, offset, hwm, error = head & 15, (head >> 4) & 7, (head >> 7) & 7, (head >> 10) & 3
    end_epoch = (body >> MAX_VALUES) & 15
    record, end_offset = where(end_epoch == 0, body & ALL_VALUES, 0), where(end_epoch == 0, 0, body & 7)
    log = row(state.logs, b)

    expected = ((state.fetchers >> instance) & 1 != 0) & (offset == popcount(log) + 1)
    expected &= epoch == row(state.local.leader_epochs, b)
    good = expected & (error == OK)
    truncates = good & (end_offset != 0)
    good &= end_offset == 0

    kept = log & values_before(state, truncation_point(state, b, end_epoch, where(truncates, end_offset, 1)))
    log = where(truncates, kept, where(good, log | record, log))
    written = where(good & (params.flush_every_message == 0), record, 0)
    unflushed = (row(state.unflushed, b) | written) & log
    hwm = where(good & (hwm <= popcount(log) + 1), hwm, row(state.hwms, b))
    failed = where(expected & (error != OK), 1 << b, 0)
    settled = where(good | truncates, 1 << b, 0)
    state = with_exchange(state, b, t, 0, 0)
    return forget(
        state._replace(
            fetch_responses=state.fetch_responses & ~(1 << instance),
            logs=with_row(state.logs, b, log),
            unflushed=with_row(state.unflushed, b, unflushed),
            hwms=with_row(state.hwms, b, hwm),
            delayed=(state.delayed & ~settled) | failed,
        )
    )


def writable(state, params, ready):
    """Row b: the values not sent yet, for the brokers of `ready` that take writes: those whose maximal ISR is large
    enough; in Kafka their ISR, and with acks=1 any."""
    unsent = params.values & ~state.sent
    unsent = where(params.continuous_writes, unsent & -unsent, unsent)
    isrs = where(params.kafka, state.local.isrs, state.local.maximal_isrs)
    least = where((params.kafka != 0) & (params.ack_all == 0), 0, params.min_isr)
    found = 0
    for b in range(MAX_BROKERS):
        takes = ((ready >> b) & 1 != 0) & (popcount(row(isrs, b)) >= least)
        found |= where(takes, unsent << (WIDTH * b), 0)
    return found


def may_lose_power(state, params):
    """Whether a broker may still lose unflushed records."""
    together = (state.outages < params.max_outages) | (state.zone_outages < params.max_zone_outages)
    return together | (state.tail_losses < params.max_tail_losses)


def breakdowns_left(state, params):
    """The number of faults that take one broker, or one zone, and may still happen."""
    crashes = params.max_clean_shutdowns + params.max_lossy_shutdowns + params.max_tail_losses
    found = state.clean_shutdowns + state.lossy_shutdowns + state.tail_losses
    return crashes - found + params.max_zone_outages - state.zone_outages


def may_be_disturbed(state, params):
    """Whether any other fault may still happen, stalls left out."""
    found = (state.fencings < params.max_fencings) | (state.isr_shrinks < params.max_isr_shrinks)
    found |= state.reassignments < params.max_reassignments
    found |= (state.rolls < params.max_rolls) | (state.to_restart != 0)
    return found | (state.isolations < params.max_isolations) | (state.outages < params.max_outages)


def spares_a_copy(state, params):
    """Whether a fault of one broker, or one zone, leaves all that was acknowledged in the ISR: all replicas have it, no
    zone has two of them, and who joins the ISR is checked. With acks=1 a leader may have more than others."""
    con, b = state.con, lowest_bit(state.con.leader | 1 << (MAX_BROKERS - 1))
    checked = params.maximal_isr & params.check_broker_epochs
    checked &= params.catch_up_to_high_watermark & params.catch_up_to_epoch_start
    missing = ((state.pos_acked | state.consumed) * EVERY_BROKER) & rows(con.replicas) & ~state.logs
    agreed = (row(state.local.isrs, b) == con.isr) & (row(state.local.maximal_isrs, b) == con.isr)
    apart = several(params.zones & (con.replicas * EVERY_BROKER)) == 0
    several_replicas = con.replicas & (con.replicas - 1) != 0
    return (params.ack_all & checked != 0) & several_replicas & (missing == 0) & agreed & apart & (state.stalled == 0)


def is_led(state, params):
    """Whether all brokers are up and heard, and one of them leads and waits for nothing."""
    everyone, con = (1 << params.brokers) - 1, state.con
    up = (state.running == everyone) & (state.unfenced == everyone)
    return up & (con.leader != 0) & (state.leaders == con.leader) & (con.adding | con.removing | state.pending == 0)


def at_peace(state, params):
    """Whether nothing can be lost that was or will be written: all brokers are up, heard and in sync, and no fault may
    happen any more but one, of which a copy is spared.

    So nothing is written, until that fault happens, and runs of continuous writes end.
    """
    in_sync = (state.con.isr == state.con.replicas) & (state.isolated == 0)
    left = breakdowns_left(state, params)
    safe = (left == 0) | ((left == 1) & spares_a_copy(state, params))
    disturbed = may_be_disturbed(state, params) | (state.stalls < params.max_stalls)
    return is_led(state, params) & in_sync & safe & (where(disturbed, 1, 0) == 0)


def tells_nothing_new(state, params, b):
    """1 if the next record of leader b would soon be where its newest record is, and as acknowledged as that one is.

    The newest record is of b's epoch, on no disk, and nobody has it but those who fetch from b, or get it soon; with
    acks=1, where what is on its way to them may be lost, nobody but b.
    """
    log, epoch = row(state.logs, b), row(state.local.leader_epochs, b)
    newest = log & row(state.offsets << WIDTH, popcount(log))
    copies = newest * EVERY_BROKER
    fetching = (
        gathered(nonempty(state.fetchers & (EVERY_BROKER << b))) & state.running & ~(state.stalled | state.isolated)
    )
    reached = where(params.ack_all & ~(state.isolated >> b), fetching, 0) | 1 << b
    elsewhere = gathered(nonempty(state.logs & copies)) & ~reached
    known = row(word_of(state.peers, b), popcount(log))
    commits = commits_well(state, params, b) & (acking_isr(state, params, b) & ~known == 0)
    acked = (params.ack_all == 0) | commits
    in_cache = (params.flush_every_message == 0) & may_lose_power(state, params)
    on_disk = where(in_cache, state.logs & ~state.unflushed & copies, 0)
    same = (elsewhere | on_disk | newest & state.neg_acked == 0) & (acked == (newest & state.pos_acked != 0))
    return where(same & (last_epoch(state, log) == epoch), 1, 0)


def taking_writes(state, params):
    """The brokers that producers write to all the time, but for those where another record tells nothing new: so it is
    as if a producer had one request under way at a time."""
    leaders = where(at_peace(state, params), 0, state.leaders & state.running)
    quiet = 0
    for b in range(MAX_BROKERS):
        quiet |= when((leaders >> b) & params.kafka != 0, tells_nothing_new, state, params, b) << b
    return leaders & ~quiet


def write_record_to_leader_enabled(state, params):
    ready = state.leaders & state.running
    continuous = params.continuous_writes != 0
    ready = where(continuous, when(continuous, taking_writes, state, params), ready)
    ready = where(state.sent != params.values, ready, 0)
    return (when(ready != 0, writable, state, params, ready),)


@action(write_record_to_leader_enabled, shared=EVERYTHING)
def write_record_to_leader(state, params, instance, lost):
    """The producers write one of the records that are left to a broker that takes itself for the leader."""
    b = instance // WIDTH
    v = instance - WIDTH * b
    value, leo, flo = 1 << v, leo_of(state, b), row(state.flos, b)
    state = state._replace(
        sent=state.sent | value,
        pos_acked=state.pos_acked | where(params.ack_all, 0, value),
        logs=state.logs | (value << (WIDTH * b)),
        unflushed=state.unflushed | where(params.flush_every_message, 0, value << (WIDTH * b)),
        offsets=state.offsets | (value << (WIDTH * (leo - 1))),
        value_epochs=with_row(state.value_epochs, v, row(state.local.leader_epochs, b)),
        flos=with_row(state.flos, b, where(flo == 0, leo, flo)),
    )
    committed = commit_offset(word_of(state.peers, b), acking_isr(state, params, b), leo + 1)
    # the spec asks GetCommitOffset of the log before the write, which commits nothing if it was empty
    new_hwm = where((leo == 1) & (params.kafka == 0), 0, committed) + 1
    isr, positive = row(state.local.isrs, b), commits_well(state, params, b)
    return maybe_advance_high_watermark(state, params, b, isr, new_hwm, positive)
