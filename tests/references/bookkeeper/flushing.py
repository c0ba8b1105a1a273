"""What a bookie has on disk, and how it loses the rest: written from tests/data/tla/FLUSH.md.

Every action of the interpreter goes on as it is, on what bookies have in memory; here stands what it leaves on disks.
`k` stands for the constants.
"""

from collections.abc import Hashable, Iterable, Iterator

from quorisk.kernels.protocols.bookkeeper.describe import NO_SUCH_ENTRY, READ_RESPONSE, UNKNOWN, Disk, Entry, Message
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.faults import break_requests, running, subsets
from tests.references.bookkeeper.state import Constants, put

Fates = tuple[Hashable, list[State]]
"""Label, and the next states by the lost subset, the smaller ones first."""


def entries_are_durable(k: Constants) -> bool:
    return k.journal_write and k.journal_sync


def fences_are_durable(k: Constants) -> bool:
    return k.journal_sync


def unclean_is_noticed(k: Constants) -> bool:
    return not k.journal_write


# ---- What other actions leave on disk


def emptied(action: str, label: Hashable, before: State, after: State, k: Constants) -> set[int]:
    """The bookies whose disk an action takes."""
    if action == "bookie_restarts_empty":
        return {b for b in running(before, k) if b == label}
    if action == "rack_restarts_empty":
        return {b for b in running(before, k) if b % k.racks == label}
    return set(after.b_down - before.b_down)


def written(disk: Disk, b: int, after: State, k: Constants) -> Disk:
    """A bookie's disk, once its memory is as it is after a step."""
    entries, lac = (after.b_entries[b], after.b_lac[b]) if entries_are_durable(k) else (disk.entries, disk.lac)
    fenced = after.b_fenced[b] if fences_are_durable(k) else disk.fenced
    return Disk(entries, lac, fenced, disk.damaged - {entry.id for entry in entries})


def with_disks(s: State, action: str, label: Hashable, after: State, k: Constants) -> State:
    lost = emptied(action, label, s, after, k)
    disks = (Disk(fenced=after.b_fenced[b]) if b in lost else written(d, b, after, k) for b, d in enumerate(s.disks))
    return after._replace(disks=tuple(disks))


def answer(message: Message, s: State) -> Message:
    """The answer to a read of an entry that the bookie knows of and cannot read is Unknown."""
    missed = message.type == READ_RESPONSE and message.code == NO_SUCH_ENTRY
    unreadable = missed and message.entry.id in s.disks[message.bookie].damaged
    return message._replace(code=UNKNOWN) if unreadable else message


def after_power(s: State, up: Iterable[int], gone: frozenset[int], k: Constants) -> State:
    """After an outage of these bookies: those that are not gone have what was on disk."""
    for b in up:
        s = s._replace(disks=put(s.disks, b, Disk())) if b in gone else back_from_disk(s, b, k)
    return s


# ---- Flushes, and faults that take a part


def bookie_flushes(s: State, k: Constants) -> Iterator[Fates]:
    for b, disk in enumerate(s.disks):
        entries = s.b_entries[b]
        flushed = Disk(entries, s.b_lac[b], s.b_fenced[b], disk.damaged - {e.id for e in entries})
        if flushed[:3] != disk[:3]:
            yield b, [s._replace(disks=put(s.disks, b, flushed))]


def back_from_disk(s: State, b: int, k: Constants) -> State:
    """A bookie is back with what it had on disk."""
    disk = s.disks[b]
    fenced = disk.fenced or (unclean_is_noticed(k) and k.fence_on_unclean_shutdown)
    limbo = s.b_limbo[b] or (unclean_is_noticed(k) and k.limbo_on_unclean_shutdown)
    s = s._replace(b_entries=put(s.b_entries, b, disk.entries), b_lac=put(s.b_lac, b, disk.lac))
    s = s._replace(b_fenced=put(s.b_fenced, b, fenced), b_limbo=put(s.b_limbo, b, limbo))
    return break_requests(s._replace(disks=put(s.disks, b, disk._replace(fenced=fenced))), b)


def bookie_restarts_unclean(s: State, k: Constants) -> Iterator[Fates]:
    for b in running(s, k):
        if s.unclean_restarts < k.max_unclean_restarts:
            yield b, [back_from_disk(s, b, k)._replace(unclean_restarts=s.unclean_restarts + 1)]


def bookie_loses_some(s: State, k: Constants) -> Iterator[Fates]:
    """The lost subset is one of the entries on disk."""
    for b in running(s, k):
        if s.partial_amnesias < k.max_partial_losses:
            counted = s._replace(partial_amnesias=s.partial_amnesias + 1)
            yield b, [without(counted, b, gone, k) for gone in subsets(s.disks[b].entries)]


def without(s: State, b: int, gone: frozenset[Entry], k: Constants) -> State:
    disk = s.disks[b]
    known = {entry.id for entry in gone} if k.damaged_reads_unknown else set()
    disk = disk._replace(entries=disk.entries - gone, damaged=disk.damaged | known)
    return s._replace(b_entries=put(s.b_entries, b, s.b_entries[b] - gone), disks=put(s.disks, b, disk))


DISK_ACTIONS = (bookie_flushes, bookie_restarts_unclean, bookie_loses_some)
