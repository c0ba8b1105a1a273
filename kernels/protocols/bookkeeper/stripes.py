"""Ensembles that are larger than a write quorum (E > WQ): lists of bookies, of which every entry goes to WQ in turn.

Not in the spec, where an ensemble is the write set (E = WQ): order means nothing there, so that an ensemble is known by
who is in it, and its order is 0. What lists take is skipped then.
"""

from typing import Any, NamedTuple

from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_FRAGMENT_ROW,
    EVERY_ROW,
    MAX_ENTRIES,
    MAX_FRAGMENTS,
    ROW,
    ROWS,
    Fragments,
    any_row,
    entry_row,
    nonzero_rows,
    rows_from,
)

EVERY_READ_ROW = EVERY_ROW | 1 << 24
"""Times a row: that row for each of the entries 1 to 5 that a recovery may read; also for each of five positions."""
_LISTED = 4
"""Positions that an order tells of, from 0 on; who is left of the members is at the fifth, if there is one."""
_DIGIT, _ORDER = 0b111, 0o7777
_ABOVE_DIGIT = 0b1000


class Ensemble(NamedTuple):
    """An ensemble: who is in it and, if it is larger than a write quorum, who is where."""

    members: Any
    order: Any  # the bookies at the positions 0 to 3, 3 bits each


NOBODY = Ensemble(0, 0)


def packed(ensemble):
    """An ensemble as one number."""
    return ensemble.members | ensemble.order << 6


def unpacked(number):
    """The inverse of `packed`."""
    return Ensemble(number & ROW, number >> 6)


def ensemble_at(fragments, place):
    """The ensemble of the fragment at this place, counted from the current one."""
    shift = 6 * place
    order = ((fragments.order_01 >> shift) & ROW) | ((fragments.order_23 >> shift) & ROW) << 6
    return Ensemble((fragments.ensembles >> shift) & ROW, order)


def current_list(fragments):
    """The ensemble of the current fragment."""
    return ensemble_at(fragments, 0)


def with_ensemble_at(fragments, place, ensemble):
    """The fragments with the ensemble at this place replaced."""
    old, shift = ensemble_at(fragments, place), 6 * place
    order = old.order ^ ensemble.order
    return fragments._replace(
        ensembles=fragments.ensembles ^ ((old.members ^ ensemble.members) << shift),
        order_01=fragments.order_01 ^ ((order & ROW) << shift),
        order_23=fragments.order_23 ^ ((order >> 6) << shift),
    )


def append_fragment(fragments, ensemble, first_entry_id):
    """The fragments with one more, now the current one."""
    return Fragments(
        (fragments.ensembles << 6) | ensemble.members,
        (fragments.order_01 << 6) | (ensemble.order & ROW),
        (fragments.order_23 << 6) | (ensemble.order >> 6),
        (fragments.first_ids << 3) | first_entry_id,
        fragments.num + 1,
    )


# ---- Write sets


def positions(params, ensemble):
    """The bookies by position: bit 6 p + b for bookie b at position p."""
    rows = 0
    for p in range(_LISTED):
        rows |= 1 << (6 * p + ((ensemble.order >> (3 * p)) & _DIGIT))
    rows &= params.listed
    return rows | (ensemble.members & ~any_row(rows)) << (6 * _LISTED)


def striped_write_sets(params, ensemble):
    """`write_sets` where E > WQ."""
    turns = positions(params, ensemble) * params.turns  # the list over and over again
    rows = turns
    for i in range(1, _LISTED):  # WQ positions in a row, from the entry's own
        rows |= where(i < params.write_quorum, turns >> (6 * i), 0)
    return rows & (ROWS << 6 | ROW)


def write_sets(params, ensemble):
    """WriteSet of each of the entries 1 to 5, 6 bits an entry."""
    striped = when(params.striped != 0, striped_write_sets, params, ensemble)
    return where(params.striped != 0, striped, ensemble.members * EVERY_READ_ROW)


def write_set(params, ensemble, entry):
    """WriteSet: the bookies that get this entry."""
    striped = entry_row(when(params.striped != 0, striped_write_sets, params, ensemble), entry)
    return where(params.striped != 0, striped, ensemble.members)


def places_by_entry(fragments):
    """The place of each entry's FragmentOfEntryId, counted from the current one, 6 bits an entry.

    An entry is in the current fragment if that begins at or before it, else in the one that does so while the next does
    not. Where several do, the first counts; where none does, the current one.
    """
    places = 0
    in_current = in_next = rows_from(fragments.first_ids & 7)
    for i in range(1, MAX_FRAGMENTS):
        here = rows_from((fragments.first_ids >> (3 * i)) & 7)
        fits = where(i < fragments.num, here & ~in_next, 0)
        places = (places & ~fits) | (i * EVERY_ROW & fits)
        in_next = here
    return places & ~in_current


def write_sets_by_entry(params, fragments):
    """`meta_write_sets` of these fragments: WriteSet(id, FragmentOfEntryId(id).ensemble) of every entry."""
    places, found = places_by_entry(fragments), 0
    for entry in range(1, MAX_ENTRIES + 1):
        ensemble = ensemble_at(fragments, entry_row(places, entry))
        found |= write_set(params, ensemble, entry) << (6 * (entry - 1))
    return found


# ---- Coverage


def every_write_set_is_covered(params, ensemble, bookies):
    """`has_quorum_coverage` where E > WQ."""
    missing = striped_write_sets(params, ensemble) & ~(bookies * EVERY_READ_ROW)
    covered = 1
    for i in range(MAX_ENTRIES + 1):
        covered &= where(popcount((missing >> (6 * i)) & ROW) < params.ack_quorum, 1, 0)
    return covered


def has_quorum_coverage(params, ensemble, bookies):
    """HasQuorumCoverage: no ack quorum of a write set lies wholly outside `bookies`."""
    plain = where(popcount(ensemble.members & ~bookies) < params.ack_quorum, 1, 0)
    striped = when(params.striped != 0, every_write_set_is_covered, params, ensemble, bookies)
    return where(params.striped != 0, striped, plain) != 0


# ---- Ensemble changes


def arranged(params, old, members):
    """The order of `arrange` where E > WQ: who was in `old` stays; others take the free positions, both ascending."""
    order, newcomers = 0, members & ~old.members
    for p in range(_LISTED):
        here = (old.order >> (3 * p)) & _DIGIT
        stays = ((members & old.members) >> here) & 1
        # where there is nobody any more, whoever is left is at the fifth position, which the order does not tell of
        newcomer = lowest_bit(newcomers | 1 << 6)
        order |= where(stays != 0, here, newcomer) << (3 * p)
        newcomers &= where(stays != 0, -1, newcomers - 1)
    return order & params.digits


def arrange(params, old, members):
    """Arrange: these members in the order that follows the ensemble `old`."""
    return Ensemble(members, when(params.striped != 0, arranged, params, old, members))


def arrangeable(params, fragments, old, failed):
    """All bits of the fragments whose ensemble `arrange` would give for its members if `failed` of `old` are replaced:
    who stays is where it was, and the others are in ascending order."""
    kept = _ORDER & ~params.digits
    for p in range(_LISTED):
        kept |= where((failed >> ((old.order >> (3 * p)) & _DIGIT)) & 1, 0, _DIGIT << (3 * p))
    stacks = fragments.order_01, fragments.order_23
    moved, digits = 0, []
    for i, stack in enumerate(stacks):
        was, stays = (old.order >> (6 * i)) & ROW, (kept >> (6 * i)) & ROW
        moved |= (stack ^ was * EVERY_FRAGMENT_ROW) & (stays * EVERY_FRAGMENT_ROW)
        digits += [(stack >> shift) & (_DIGIT * EVERY_FRAGMENT_ROW) for shift in (0, 3)]
    for q in range(1, _LISTED):
        for p in range(q):
            # a digit and the bit above it, minus a larger digit, has that bit no more
            ascends = (digits[q] | _ABOVE_DIGIT * EVERY_FRAGMENT_ROW) - digits[p]
            both_free = ((kept >> (3 * p)) | (kept >> (3 * q))) & 1 == 0
            moved |= where(both_free, ~ascends & (_ABOVE_DIGIT * EVERY_FRAGMENT_ROW), 0)
    return ~(nonzero_rows(moved) * ROW)


def listed_ensembles(params, fragments, old, failed):
    """The ensembles of these fragments that one that replaces `failed` in `old` may not be, 6 bits a fragment."""
    known = when(params.striped != 0, arrangeable, params, fragments, old, failed)
    return fragments.ensembles & where(params.striped != 0, known, -1)
