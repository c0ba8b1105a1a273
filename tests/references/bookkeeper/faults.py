"""Bookies and writers that fail, written from the statement of these faults as actions.

A fault sends nothing: each function yields (label, next state) for every instance that is enabled. `k` stands for
the constants. Power outages have a next state for each set of bookies that do not come back: of these every function
yields (label, bookies that may be lost, next state by the set of those that are).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import combinations

from quorisk.kernels.protocols.bookkeeper.describe import (
    CLOSED,
    LOST,
    ON_ITS_WAY,
    OPEN,
    WITHDRAWN,
    ClientState,
    Fragment,
    Message,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.state import REQUESTS, Constants, arrange, is_well_placed, put, write_set

Change = tuple[Hashable, State]


def break_requests(s: State, b: int) -> State:
    """Requests on their way to b are lost."""

    def fate(message: Message, count: int) -> int:
        return LOST if message.type in REQUESTS and message.bookie == b and count == ON_ITS_WAY else count

    return s._replace(messages=frozenset((m, fate(m, count)) for m, count in s.messages))


def without_data(s: State, b: int, fenced: bool, limbo: bool) -> State:
    s = s._replace(b_entries=put(s.b_entries, b, frozenset()), b_lac=put(s.b_lac, b, 0))
    s = s._replace(b_fenced=put(s.b_fenced, b, fenced), b_limbo=put(s.b_limbo, b, limbo))
    return break_requests(s, b)


def restart_empty(s: State, b: int, k: Constants) -> State:
    s = without_data(s, b, k.fence_on_unclean_shutdown, k.limbo_on_unclean_shutdown)
    return s._replace(amnesias=s.amnesias + 1)


def lose(s: State, b: int) -> State:
    return without_data(s, b, False, False)._replace(b_down=s.b_down | {b})


def running(s: State, k: Constants) -> list[int]:
    """The bookies that something may happen to."""
    return [b for b in range(k.bookies) if s.meta_status is not None and b not in s.b_down]


def bookie_restarts_empty(s: State, k: Constants) -> Iterator[Change]:
    for b in running(s, k):
        if s.amnesias < k.max_empty_restarts:
            yield b, restart_empty(s, b, k)


def bookie_is_lost(s: State, k: Constants) -> Iterator[Change]:
    for b in running(s, k):
        if len(s.b_down) < k.max_lost:
            yield b, lose(s, b)


def bookie_is_replaced(s: State, k: Constants) -> Iterator[Change]:
    needed = {bookie for fragment in s.meta_fragments for bookie in fragment.ensemble}
    for b in s.b_down - needed:
        if k.replacement and s.meta_status == CLOSED:
            yield b, s._replace(b_down=s.b_down - {b})


def writer_crashes(s: State, k: Constants) -> Iterator[Change]:
    for c in s.clients:
        if k.writer_crash and c.status == OPEN:
            yield c.id, s._replace(clients=put(s.clients, c.id, c._replace(status=WITHDRAWN, meta_version=None)))


def range_of(s: State, i: int) -> range:
    """The entries of fragment i."""
    following = s.meta_fragments[i + 1 :]
    end = following[0].first_entry_id if following else s.meta_last_entry + 1
    return range(s.meta_fragments[i].first_entry_id, end)


def substitute(s: State, k: Constants, fragment: Fragment, b: int) -> int | None:
    """Who takes the place of b."""
    members = frozenset(fragment.ensemble)
    spare = [r for r in range(k.bookies) if r not in members | s.b_down]
    well_placed = [r for r in spare if is_well_placed((members - {b}) | {r}, k)]
    return min(well_placed or spare, default=None)


def informed(c: ClientState, old: Fragment, new: Fragment) -> ClientState:
    """A client that has a fragment of that id and ensemble has it as it is now."""
    fragments = tuple(
        f._replace(ensemble=new.ensemble) if (f.id, f.ensemble) == (old.id, old.ensemble) else f for f in c.fragments
    )
    return c._replace(fragments=fragments, curr_fragment=fragments[-1] if fragments else None)


def auditor_replicates_fragment(s: State, k: Constants) -> Iterator[Change]:
    closed = s.meta_status == CLOSED
    if not k.auto_recovery or not (closed or k.repair_open_ledgers):
        return
    for i, fragment in enumerate(s.meta_fragments if closed else s.meta_fragments[:-1]):
        for b in s.b_down.intersection(fragment.ensemble):
            r = substitute(s, k, fragment, b)
            if r is None:
                continue
            copied = set()
            for entry_id in range_of(s, i):
                holders = write_set(entry_id, fragment.ensemble, k.write_quorum)
                if b in holders:
                    others = (entry for other in holders - {b} for entry in s.b_entries[other])
                    copied |= {entry for entry in others if entry.id == entry_id}
            members = (frozenset(fragment.ensemble) - {b}) | {r}
            repaired = fragment._replace(ensemble=arrange(fragment.ensemble, members, k))
            after = s._replace(b_entries=put(s.b_entries, r, s.b_entries[r] | copied))
            if not closed:
                after = after._replace(clients=tuple(informed(c, fragment, repaired) for c in s.clients))
            yield (i, b), after._replace(meta_fragments=put(s.meta_fragments, i, repaired))


def lost_together(s: State, k: Constants, size: int) -> Iterator[Change]:
    for bookies in combinations(running(s, k), size):
        if k.lost_together and len(s.b_down) + size <= k.max_lost:
            after = s
            for b in bookies:
                after = lose(after, b)
            yield bookies, after


def two_bookies_are_lost_together(s: State, k: Constants) -> Iterator[Change]:
    return lost_together(s, k, 2)


def three_bookies_are_lost_together(s: State, k: Constants) -> Iterator[Change]:
    return lost_together(s, k, 3)


def rack_restarts_empty(s: State, k: Constants) -> Iterator[Change]:
    for rack in range(k.racks):
        bookies = [b for b in running(s, k) if b % k.racks == rack]
        if bookies and s.amnesias + len(bookies) <= k.max_empty_restarts:
            after = s
            for b in bookies:
                after = restart_empty(after, b, k)
            yield rack, after


def subsets(items: Iterable) -> list[frozenset]:
    """Smaller ones first."""
    ordered = sorted(items)
    return [frozenset(chosen) for n in range(len(ordered) + 1) for chosen in combinations(ordered, n)]


Outage = tuple[Hashable, list[int], Callable[[frozenset[int]], State]]


def lose_power(s: State, bookies: Iterable[int], gone: frozenset[int]) -> State:
    """All of these bookies are back at once as they were, but for those that are gone."""
    for b in bookies:
        s = lose(s, b) if b in gone else break_requests(s, b)
    return s


def cluster_loses_power(s: State, k: Constants) -> Iterator[Outage]:
    if s.meta_status is not None and s.outages < k.max_outages:
        after = s._replace(outages=s.outages + 1)
        yield "cluster", running(s, k), partial(lose_power, after, range(k.bookies))


def rack_loses_power(s: State, k: Constants) -> Iterator[Outage]:
    for rack in range(min(k.racks, k.bookies)):
        bookies = [b for b in range(k.bookies) if b % k.racks == rack]
        if s.meta_status is not None and s.rack_outages < k.max_rack_outages:
            after = s._replace(rack_outages=s.rack_outages + 1)
            up = [b for b in bookies if b not in s.b_down]
            yield rack, up, partial(lose_power, after, bookies)


OUTAGE_ACTIONS = (cluster_loses_power, rack_loses_power)
FAULT_ACTIONS = (
    bookie_restarts_empty,
    bookie_is_lost,
    bookie_is_replaced,
    writer_crashes,
    auditor_replicates_fragment,
    two_bookies_are_lost_together,
    three_bookies_are_lost_together,
    rack_restarts_empty,
)
