"""What a bookie has on disk, and how it loses the rest: written from tests/data/tla/FLUSH.md.

A state is the interpreter's own, which says what bookies have in memory, with a disk for each bookie beside it. Every
action of the interpreter goes on as it is; here stands what it leaves on the disks.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from quorisk.kernels.protocols.bookkeeper.describe import (
    CLOSED,
    NO_SUCH_ENTRY,
    OPEN,
    READ_RESPONSE,
    UNKNOWN,
    WITHDRAWN,
    Entry,
    Message,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as Memory
from tests.references.bookkeeper.actions import delivered, effects, subsets
from tests.references.bookkeeper.faults import OUTAGE_ACTIONS, break_requests, running
from tests.references.bookkeeper.properties import invariants as invariants_of_memory
from tests.references.bookkeeper.state import Constants, View, fragment_of_entry_id, initial, put

ACKNOWLEDGING = (OPEN, CLOSED, WITHDRAWN)


class Disk(NamedTuple):
    """What a bookie has after a power failure."""

    entries: frozenset[Entry] = frozenset()
    lac: int = 0
    fenced: bool = False
    damaged: frozenset[int] = frozenset()  # ids of entries that it knows of and cannot read


class State(NamedTuple):
    """What all have in memory, what bookies have on disk, and the faults so far."""

    memory: Memory
    disks: tuple[Disk, ...]
    unclean_restarts: int = 0
    partial_amnesias: int = 0


class Settings(NamedTuple):
    """The constants, and those of FLUSH.md."""

    constants: Constants
    journal_write: bool = True
    journal_sync: bool = True
    damaged_reads_unknown: bool = True
    max_unclean_restarts: int = 0
    max_partial_amnesias: int = 0

    @property
    def entries_are_durable(self) -> bool:
        return self.journal_write and self.journal_sync

    @property
    def fences_are_durable(self) -> bool:
        return self.journal_sync

    @property
    def fences_when_unclean(self) -> bool:
        return not self.journal_write and self.constants.fence_on_unclean_shutdown

    @property
    def limbo_when_unclean(self) -> bool:
        return not self.journal_write and self.constants.limbo_on_unclean_shutdown


class Instance(NamedTuple):
    """One enabled way to take an action; an outcome is (what may be lost, what is lost, next state)."""

    action: str
    label: Hashable
    outcomes: list[tuple[int, int, State]]


Fates = tuple[Hashable, list[State]]  # label, and the next states by the lost subset, the empty one first


def first_state(k: Settings) -> State:
    return State(initial(k.constants), (Disk(),) * k.constants.bookies)


# ---- The interpreter's own actions


def emptied(action: str, label: Hashable, before: Memory, after: Memory, k: Constants) -> set[int]:
    """The bookies whose disk an action takes."""
    if action == "bookie_restarts_empty":
        return {b for b in running(before, k) if b == label}
    if action == "rack_restarts_empty":
        return {b for b in running(before, k) if b % k.racks == label}
    return set(after.b_down - before.b_down)


def written(disk: Disk, b: int, after: Memory, k: Settings) -> Disk:
    """A bookie's disk, once its memory is as it is after a step."""
    if k.entries_are_durable:
        disk = disk._replace(entries=after.b_entries[b], lac=after.b_lac[b])
    if k.fences_are_durable:
        disk = disk._replace(fenced=after.b_fenced[b])
    return disk._replace(damaged=disk.damaged - {entry.id for entry in disk.entries})


def disks_after(s: State, action: str, label: Hashable, after: Memory, k: Settings) -> tuple[Disk, ...]:
    lost = emptied(action, label, s.memory, after, k.constants)
    return tuple(
        Disk(fenced=after.b_fenced[b]) if b in lost else written(disk, b, after, k) for b, disk in enumerate(s.disks)
    )


def answer(message: Message, s: State) -> Message:
    """The answer to a read of an entry that the bookie knows of and cannot read is Unknown."""
    missed = message.type == READ_RESPONSE and message.code == NO_SUCH_ENTRY
    unreadable = missed and message.entry.id in s.disks[message.bookie].damaged
    return message._replace(code=UNKNOWN) if unreadable else message


# ---- Flushes, and faults that take a part


def bookie_flushes(s: State, k: Settings) -> Iterator[Fates]:
    for b, disk in enumerate(s.disks):
        entries = s.memory.b_entries[b]
        flushed = Disk(entries, s.memory.b_lac[b], s.memory.b_fenced[b], disk.damaged - {e.id for e in entries})
        if flushed[:3] != disk[:3]:
            yield b, [s._replace(disks=put(s.disks, b, flushed))]


def back_from_disk(s: State, b: int, k: Settings) -> State:
    """A bookie is back with what it had on disk."""
    disk, m = s.disks[b], s.memory
    fenced = disk.fenced or k.fences_when_unclean
    m = m._replace(b_entries=put(m.b_entries, b, disk.entries), b_lac=put(m.b_lac, b, disk.lac))
    m = m._replace(b_fenced=put(m.b_fenced, b, fenced), b_limbo=put(m.b_limbo, b, m.b_limbo[b] or k.limbo_when_unclean))
    return s._replace(memory=break_requests(m, b), disks=put(s.disks, b, disk._replace(fenced=fenced)))


def bookie_restarts_unclean(s: State, k: Settings) -> Iterator[Fates]:
    for b in running(s.memory, k.constants):
        if s.unclean_restarts < k.max_unclean_restarts:
            yield b, [back_from_disk(s, b, k)._replace(unclean_restarts=s.unclean_restarts + 1)]


def bookie_loses_some(s: State, k: Settings) -> Iterator[Fates]:
    """The lost subset is one of the entries on disk."""
    for b in running(s.memory, k.constants):
        if s.partial_amnesias < k.max_partial_amnesias:
            counted = s._replace(partial_amnesias=s.partial_amnesias + 1)
            yield b, [without(counted, b, gone, k) for gone in subsets(s.disks[b].entries)]


def without(s: State, b: int, gone: frozenset[Entry], k: Settings) -> State:
    disk, stored = s.disks[b], s.memory.b_entries[b]
    known = {entry.id for entry in gone} if k.damaged_reads_unknown else set()
    disk = disk._replace(entries=disk.entries - gone, damaged=disk.damaged | known)
    memory = s.memory._replace(b_entries=put(s.memory.b_entries, b, stored - gone))
    return s._replace(memory=memory, disks=put(s.disks, b, disk))


def after_power(s: State, up: Iterable[int], gone: frozenset[int], memory: Memory, k: Settings) -> State:
    """All of these bookies at one instant, those that are gone for good; `memory`: what the outage itself leaves."""
    s = s._replace(memory=memory)
    for b in up:
        s = s._replace(disks=put(s.disks, b, Disk())) if b in gone else back_from_disk(s, b, k)
    return s


OWN_ACTIONS = (bookie_flushes, bookie_restarts_unclean, bookie_loses_some)


# ---- All of it


def instances(s: State, k: Settings) -> list[Instance]:
    """The enabled instances of a state."""
    view = View(s.memory, k.constants, dict(s.memory.messages))
    found = []
    for action, (label, memory, to_send) in effects(view):
        outcomes = delivered(view, memory, [answer(message, s) for message in to_send])
        disks = disks_after(s, action, label, memory, k)
        after = [(coins, lost, s._replace(memory=m, disks=disks)) for coins, lost, m in outcomes]
        found += [Instance(action, label, after)] if after else []
    for own in OWN_ACTIONS:
        for label, states in own(s, k):
            members = len(states).bit_length() - 1
            sizes = [len(lost) for lost in subsets(range(members))]
            found.append(Instance(own.__name__, label, [(members, *x) for x in zip(sizes, states, strict=True)]))
    for outage in OUTAGE_ACTIONS:
        for label, up, after_losing in outage(s.memory, k.constants):
            fates = [(len(up), len(gone), after_power(s, up, gone, after_losing(gone), k)) for gone in subsets(up)]
            found.append(Instance(outage.__name__, label, fates))
    return found


def acked_entries_are_on_disk(s: State) -> bool:
    """Every acknowledged entry is on the disk of some bookie of its write set."""
    for client in s.memory.clients:
        for entry_id in range(1, client.lac + 1) if client.status in ACKNOWLEDGING else ():
            ensemble = fragment_of_entry_id(entry_id, s.memory.meta_fragments).ensemble
            if not any(entry.id == entry_id for b in ensemble for entry in s.disks[b].entries):
                return False
    return True


def invariants(s: State, k: Settings) -> dict[str, bool]:
    """Whether each invariant holds."""
    return invariants_of_memory(s.memory, k.constants) | {"AckedEntriesAreOnDisk": acked_entries_are_on_disk(s)}
