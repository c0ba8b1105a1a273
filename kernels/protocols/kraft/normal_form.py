"""The normal form of a state whose log is written to all the time: as few records as tell all that may happen.

Two neighbouring records are alike if every broker has both or neither, on disk or not, both are acknowledged, refused,
read or on their way to the same brokers, no offset that anybody keeps is between them, and they are of one epoch. Both
have the same fate, so the second stands for both. Where all logs are parts of one, their epochs may differ: a broker
with the last record of an epoch has all records before it, too. Values that nothing has any longer are forgotten.
Offsets count the records that are left, and values are numbered as they were written.
"""

from typing import Any, NamedTuple

from quorisk.kernels.ops import lowest_bit, when, where
from quorisk.kernels.protocols.kraft.invariants import several
from quorisk.kernels.protocols.kraft.layout import (
    ALL_VALUES,
    BODY_BITS,
    HEAD_BITS,
    MAX_BROKERS,
    MAX_VALUES,
    OK,
    REACHED_BITS,
    ByBroker,
    place_of,
)
from quorisk.kernels.protocols.kraft.replication import may_lose_power
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, gathered, nonempty, row, row_of, rows, spread, union

_REACHED = (1 << REACHED_BITS) - 1
_REST_OF_HEAD = 15 | 3 << 10
_REST_OF_BODY = 15 << MAX_VALUES


class Fetches(NamedTuple):
    """The fetch exchange between each follower and its leader, as rows of the followers; 0 where there is none."""

    kept: Any  # the lowest bit of the row of each follower that has one; all others change nothing when they arrive
    offsets: Any
    hwms: Any
    records: Any  # of a response: sets of values
    ends: Any  # of a response: the offset of diverging_epoch
    late: Any  # whether a request may be answered by somebody else, or is of an earlier epoch


def normal_form(state, params):
    """The state with one record for all that are alike, without values that nothing has; as it is while a request to a
    former leader is on its way, who may not know. What is on disk matters no longer once nothing may lose power."""
    given, state, fetches, (ones, twos, gone) = classified(state, params)
    merged = ones | twos
    for v in reversed(range(MAX_VALUES)):
        is_removed = ((merged | gone) >> v) & 1
        less, fewer = without(state, fetches, v, (merged >> v) & 1)
        state, fetches = where(is_removed, less, state), where(is_removed, fewer, fetches)
    return where(fetches.late, given, with_fetches(state, fetches))


def classified(state, params):
    """The state without parts that matter no longer, and without parts on values that nothing has; its fetches; the
    values for which the next one may stand, those for which the one after that may, and those that nothing has."""
    given = state = state._replace(
        delayed=0,
        unflushed=where(may_lose_power(state, params), state.unflushed, 0),
        lesos=where(params.catch_up_to_high_watermark, settled(state.lesos, state.hwms), state.lesos),
        flos=settled(state.flos, state.hwms),
    )
    fetches = fetches_under_way(state)
    known = union(state.logs | fetches.records)
    state = state._replace(offsets=state.offsets & (known * EVERY_ROW), value_epochs=state.value_epochs & rows(known))
    gone = state.sent & ~(known | state.consumed | state.pos_acked)
    ones, twos = alike(state, fetches, 1), alike(state, fetches, 2)
    is_full = (state.sent == params.values) & (ones | twos | gone == 0)
    one = when(is_full, alike_but_for_a_flush, state, fetches, 1)
    two = when(is_full & (one == 0), alike_but_for_a_flush, state, fetches, 2)
    return given, state, fetches, (ones | one, twos | two, gone)


def settled(offsets, hwms):
    """Offsets, a row for each broker, that may be replaced by 1 unless beyond the broker's high watermark."""
    found = offsets
    for b in range(MAX_BROKERS):
        offset = row(offsets, b)
        found ^= where((offset != 0) & (offset <= row(hwms, b)), offset ^ 1, 0) << (WIDTH * b)
    return found


def fetches_under_way(state):
    """The fetch exchanges of each follower with the leader that it knows, in its epoch. A broker that is down leads
    again in a later epoch, if ever, so that a request to it is refused, whatever it says."""
    current = (state.fetch_requests | state.fetch_responses) & state.fetchers
    kept, offsets, hwms, records, ends, requests = 0, 0, 0, 0, 0, 0
    for f in range(MAX_BROKERS):
        leader = row(current, f)
        place = place_of(f, lowest_bit(leader | 1 << (MAX_BROKERS - 1)))
        head = state.fetch_heads[f] >> (HEAD_BITS * place)
        asks = leader & row(state.fetch_requests, f)
        same_epoch = (leader != 0) & (head & 15 == row(state.local.leader_epochs, f))
        is_kept = where(same_epoch & ((asks != 0) | ((head >> 10) & 3 == OK)), 1, 0)
        body = where(is_kept & (asks == 0), state.fetch_bodies[f] >> (BODY_BITS * place), 0)
        head, diverges = where(is_kept, head, 0), (body >> MAX_VALUES) & 15 != 0
        requests |= where(same_epoch, asks, 0) << (WIDTH * f)
        kept |= is_kept << (WIDTH * f)
        offsets |= ((head >> 4) & 7) << (WIDTH * f)
        hwms |= where(diverges, 0, (head >> 7) & 7) << (WIDTH * f)
        records |= where(diverges, 0, body & ALL_VALUES) << (WIDTH * f)
        ends |= where(diverges, body & 7, 0) << (WIDTH * f)
    late = state.fetch_requests & ~requests & (state.running * EVERY_ROW)
    return Fetches(kept, offsets, hwms, records, ends, late != 0)


def first_after_kept_offsets(state, fetches):
    """The values at offsets that somebody keeps: records of that log before such an offset are unlike the others."""
    ends, found = 0, 0
    for b in range(MAX_BROKERS):
        ends |= 1 << row(fetches.ends, b)
        kept, known = 0, state.peers[b] & _REACHED
        for offsets in (state.hwms, state.lesos, state.flos, fetches.hwms):
            kept |= 1 << row(offsets, b)
        at = spread((kept >> 1) & ROW) | nonempty(known & ~(known >> WIDTH))
        found |= union(state.offsets & (at * ROW)) & row(state.logs | fetches.records, b)
    return found | union(state.offsets & (spread((ends >> 1) & ROW) * ROW))


def told_values(state):
    """The sets of acknowledged, refused, consumed and sent values, a row each, in this order."""
    return state.pos_acked | state.neg_acked << WIDTH | state.consumed << (2 * WIDTH) | state.sent << (3 * WIDTH)


def alike(state, fetches, later):
    """The values for which the next one of the log may stand: the next one that was written (later: 1), or with another
    leader at work at the same time the one after that (2)."""
    first = first_after_kept_offsets(state, fetches)
    branches = several(state.offsets) != 0
    differing = state.value_epochs ^ (state.value_epochs >> (WIDTH * later))
    apart = (first >> later) | where(branches, gathered(nonempty(differing)), 0)
    for values in (state.logs, state.unflushed, fetches.records, told_values(state)):
        apart |= union(values ^ (values >> later))
    adjoining = union(state.offsets & (state.offsets >> (WIDTH + later)))
    return adjoining & ~apart & (ALL_VALUES >> later)


def alike_but_for_a_flush(state, fetches, later):
    """The newest value that only flushes tell from the next one: with this in its place, less is on disk."""
    found = alike(state._replace(unflushed=0), fetches, later)
    return found & ~(found >> 1 | found >> 2 | found >> 3 | found >> 4)


def without_column(matrix, v):
    """Sets of values without value v, later ones renumbered."""
    before, after = (1 << v) - 1, (ROW >> 1) & ~((1 << v) - 1)
    return (matrix & (before * EVERY_ROW)) | ((matrix >> 1) & (after * EVERY_ROW))


def without_row(matrix, i):
    """A matrix without row i, later ones moved."""
    before = (1 << (WIDTH * i)) - 1
    return (matrix & before) | ((matrix >> WIDTH) & ~before)


def counted_anew(offsets, o, brokers):
    """Rows of offsets once the record at offset o is gone from the logs of these brokers, a spread set."""
    return offsets - (((offsets + (7 - o) * brokers) >> 3) & brokers)  # 8 or more beyond o


def without(state, fetches, v, merged):
    """The state without value v. If it is `merged`, later records of the logs that have it move down by an offset."""
    holders = where(merged, (state.logs >> v) & EVERY_ROW, 0)
    receivers = holders | where(merged, (fetches.records >> v) & EVERY_ROW, 0)
    later = union((state.logs | fetches.records) & (receivers * ROW)) & (ROW & -(2 << v))
    moved = state.offsets & (later * EVERY_ROW)
    o = row_of((state.offsets >> v) & EVERY_ROW | 1 << (WIDTH * MAX_VALUES)) + 1
    peers = []
    for b, word in enumerate(state.peers):
        known = word & _REACHED
        peers.append(where((holders >> (WIDTH * b)) & 1, word ^ known ^ without_row(known, o), word))
    leading = state.fetchers & ((state.leaders & gathered(holders)) * EVERY_ROW)
    sets = without_column(told_values(state), v)
    state = state._replace(
        logs=without_column(state.logs, v),
        unflushed=without_column(state.unflushed, v),
        hwms=counted_anew(state.hwms, o, holders),
        lesos=counted_anew(state.lesos, o, holders),
        flos=counted_anew(state.flos, o, holders),
        peers=ByBroker(*peers),
        pos_acked=row(sets, 0),
        neg_acked=row(sets, 1),
        consumed=row(sets, 2),
        sent=row(sets, 3),
        offsets=without_column((state.offsets & ~moved) | (moved >> WIDTH), v),
        value_epochs=without_row(state.value_epochs, v),
    )
    fetches = fetches._replace(
        offsets=counted_anew(fetches.offsets, o, holders),
        hwms=counted_anew(fetches.hwms, o, receivers),
        records=without_column(fetches.records, v),
        ends=counted_anew(fetches.ends, o, holders | nonempty(leading)),
    )
    return state, fetches


def with_fetches(state, fetches):
    """The state with these fetch exchanges. Of the others only that they are under way is left."""
    current = (state.fetch_requests | state.fetch_responses) & state.fetchers
    heads, bodies = [], []
    for f in range(MAX_BROKERS):
        place = place_of(f, lowest_bit(row(current, f) | 1 << (MAX_BROKERS - 1)))
        is_kept = (fetches.kept >> (WIDTH * f)) & 1
        answers = row(state.fetch_responses & current, f)
        head = (state.fetch_heads[f] >> (HEAD_BITS * place)) & _REST_OF_HEAD
        head |= row(fetches.offsets, f) << 4 | row(fetches.hwms, f) << 7
        body = (state.fetch_bodies[f] >> (BODY_BITS * place)) & where(answers, _REST_OF_BODY, (1 << BODY_BITS) - 1)
        body |= row(fetches.records, f) | row(fetches.ends, f)
        heads.append(where(is_kept, head, 0) << (HEAD_BITS * place))
        bodies.append(where(is_kept, body, 0) << (BODY_BITS * place))
    return state._replace(fetch_heads=ByBroker(*heads), fetch_bodies=ByBroker(*bodies))
