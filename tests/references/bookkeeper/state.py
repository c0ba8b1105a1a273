"""What the actions share: the constants, the initial state, the view of a state, and the specification's helpers.

An ensemble is a set, as in the spec, where it is a write quorum; else it is a tuple, of which an entry goes to a part.
"""

from collections.abc import Hashable, Iterable
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple, TypeVar

from quorisk.kernels.protocols.bookkeeper.describe import (
    ADD_REQUEST,
    FENCE_REQUEST,
    HANDLED,
    ON_ITS_WAY,
    READ_REQUEST,
    Bookies,
    ClientState,
    Disk,
    Ensemble,
    Entry,
    Fragment,
    Message,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State

T = TypeVar("T")
NOBODY: Bookies = frozenset()
REQUESTS = (ADD_REQUEST, FENCE_REQUEST, READ_REQUEST)


class Constants(NamedTuple):
    """Sizes, the reading of the spec, one switch a safety mechanism, and which faults there are."""

    bookies: int
    clients: int
    write_quorum: int
    ack_quorum: int
    entries: int
    inflight: int
    semantics: str = "intended"
    fence_recovery_reads: bool = True
    recovery_lac_floor: bool = True
    recovery_reads_initial_ensemble: bool = True
    defer_recovery_ensemble_change: bool = True
    fence_unknown_ledger: bool = True
    strict_negative_reads: bool = True
    close_checks_version: bool = True
    fence_on_unclean_shutdown: bool = True
    limbo_on_unclean_shutdown: bool = True
    rack_aware_placement: bool = True
    racks: int = 0
    max_lost: int = 0
    max_empty_restarts: int = 0
    writer_crash: bool = False
    auto_recovery: bool = False
    replacement: bool = False
    lost_together: bool = False
    max_outages: int = 0
    max_rack_outages: int = 0
    journal_write: bool = True
    journal_sync: bool = True
    damaged_reads_unknown: bool = True
    max_unclean_restarts: int = 0
    max_partial_losses: int = 0
    ensemble_size: int = 0
    callbacks_after_unset: bool = True
    ledger: str = "new"
    limbo_answers_fencing: bool = True
    delay_ensemble_change: bool = False
    guaranteed_write_quorum: bool = False
    min_racks_per_write_quorum: int = 2
    enforce_min_racks_per_write_quorum: bool = False
    enforce_min_fault_domains_for_write: bool = False
    repair_open_ledgers: bool = False
    fence_open_ledgers: bool = False

    @property
    def striped(self) -> bool:
        return self.ensemble_size > self.write_quorum

    @property
    def literal(self) -> bool:
        if self.semantics not in ("literal", "intended"):
            raise ValueError(f"semantics is {self.semantics!r}, not 'literal' or 'intended'")
        return self.semantics == "literal"


class View(NamedTuple):
    """What an action looks at: the state, the constants, and the messages as a dictionary."""

    state: State
    constants: Constants
    counts: dict[Message, int]

    def find(self, count: int, types: tuple[str, ...], **fields: object) -> list[Message]:
        """The messages of these types that have this delivery count and these values."""
        return [
            m
            for m, n in self.counts.items()
            if n == count and m.type in types and all(getattr(m, f) == value for f, value in fields.items())
        ]

    def arrived(self, kind: str, **fields: object) -> list[Message]:
        """The messages of a type that can be received now."""
        return self.find(ON_ITS_WAY, (kind,), **fields)


Effect = tuple[Hashable, State, Iterable[Message]]  # label, next state before the sends, messages to send


def nothing(constants: Constants) -> State:
    """Nothing created, nothing stored, nothing sent."""
    unconfirmed = (NOBODY,) * constants.entries
    return State(
        meta_status=None,
        meta_fragments=(),
        meta_last_entry=0,
        meta_version=0,
        b_entries=(frozenset(),) * constants.bookies,
        b_fenced=(False,) * constants.bookies,
        b_lac=(0,) * constants.bookies,
        b_limbo=(False,) * constants.bookies,
        b_down=NOBODY,
        amnesias=0,
        outages=0,
        rack_outages=0,
        unclean_restarts=0,
        partial_amnesias=0,
        disks=(Disk(),) * constants.bookies,
        clients=tuple(
            ClientState(cid, unconfirmed, recovery_ensemble=nobody(constants)) for cid in range(constants.clients)
        ),
        messages=frozenset(),
    )


# ---- Helpers ----


def put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def current(client: ClientState) -> Fragment:
    """The current fragment of a client that has one."""
    assert client.curr_fragment is not None
    return client.curr_fragment


def with_client(state: State, client: ClientState) -> State:
    return state._replace(clients=put(state.clients, client.id, client))


def handled(state: State, messages: Iterable[Message], count: int = ON_ITS_WAY) -> State:
    """The state in which these messages, which have this count, are done with."""
    old = frozenset((m, count) for m in messages)
    new = frozenset((m, HANDLED) for m, _ in old)
    return state._replace(messages=(state.messages - old) | new)


def is_earliest(v: View, msg: Message) -> bool:
    """No receivable message of the same type, flag, client and bookie is about an earlier entry."""
    alike = v.arrived(msg.type, recovery=msg.recovery, cid=msg.cid, bookie=msg.bookie)
    return all(msg.entry.id <= m.entry.id for m in alike)


def nobody(constants: Constants) -> Ensemble:
    """The ensemble of a client that has none."""
    return () if constants.striped else NOBODY


def write_set(entry_id: int, ensemble: Ensemble, write_quorum: int) -> Bookies:
    """Who gets an entry: positions are counted from 0, and entries from 1."""
    if isinstance(ensemble, frozenset):
        return ensemble
    return frozenset(ensemble[(entry_id - 1 + i) % len(ensemble)] for i in range(write_quorum))


def arrange(old: Ensemble, chosen: Bookies, constants: Constants) -> Ensemble:
    """The order of a set that takes the place of `old`: whoever stays keeps its position."""
    if not constants.striped:
        return chosen
    if not old:
        return tuple(sorted(chosen))
    newcomers = sorted(chosen - set(old))
    return tuple(bookie if bookie in chosen else newcomers.pop(0) for bookie in old)


def enough_negative(count: int, constants: Constants) -> bool:
    """Whether so many members of a write set leave no ack quorum to the others."""
    return count >= constants.write_quorum - constants.ack_quorum + 1


def covered(answered: Bookies, ensemble: Ensemble, constants: Constants) -> bool:
    """Whether every ack quorum of every write set has one that answered."""
    entries = range(1, len(ensemble) + 1)
    silent = [write_set(e, ensemble, constants.write_quorum) - answered for e in entries]
    return all(len(bookies) < constants.ack_quorum for bookies in silent)


def spans_enough_racks(bookies: Bookies, constants: Constants) -> bool:
    """Whether these bookies are in so many racks as a write quorum is to span."""
    wanted = min(constants.write_quorum, constants.min_racks_per_write_quorum)
    return len({bookie % constants.racks for bookie in bookies}) >= wanted


def is_well_placed(ensemble: Bookies, constants: Constants) -> bool:
    """Whether placement is content with an ensemble; without racks it is with any."""
    return constants.racks == 0 or not constants.rack_aware_placement or spans_enough_racks(ensemble, constants)


def acknowledged(confirmed_by: Bookies, constants: Constants) -> bool:
    """Whether an entry that these bookies have confirmed is acknowledged."""
    spans = not constants.enforce_min_fault_domains_for_write or spans_enough_racks(confirmed_by, constants)
    return len(confirmed_by) >= constants.ack_quorum and spans


def last_done(c: ClientState, k: Constants) -> int:
    """The last entry that a client is done with, as with all before it: it is acknowledged or, with a guaranteed write
    quorum, its write quorum has it. Entries that were pushed are pending until then."""
    return c.lap - len(c.pending_add_ops) if k.guaranteed_write_quorum else c.lac


def select_ensemble(v: View, old: Ensemble, failed: Bookies) -> Ensemble | None:
    """First valid ensemble, or None; if any span racks enough, the first of those. Sets are in the order of their bit
    masks, and those that are to be lists in lexicographic order."""
    used = frozenset(fragment.ensemble for fragment in v.state.meta_fragments)
    return selected(old, failed, v.state.b_down, used, v.constants)


@cache
def selected(old: Ensemble, failed: Bookies, down: Bookies, used: frozenset[Ensemble], k: Constants) -> Ensemble | None:
    valid = eligible_sets(old, failed, down, used, k)
    if not valid:
        return None
    first = min(valid, key=sorted) if k.striped else min(valid, key=lambda e: sum(1 << bookie for bookie in e))
    return arrange(old, first, k)


def eligible_sets(
    old: Ensemble, failed: Bookies, down: Bookies, used: frozenset[Ensemble], k: Constants
) -> list[Bookies]:
    """The sets of bookies that may take the place of `old`: those in racks enough, if there are any."""
    sized = (frozenset(e) for e in combinations(range(k.bookies), max(k.ensemble_size, k.write_quorum)))
    valid = [e for e in sized if not e & (failed | down) and set(old) - failed <= e]
    valid = [e for e in valid if arrange(old, e, k) not in used]
    spread = [e for e in valid if is_well_placed(e, k)]
    return spread if k.enforce_min_racks_per_write_quorum else spread or valid


def fragment_of_entry_id(entry_id: int, fragments: tuple[Fragment, ...]) -> Fragment:
    if len(fragments) == 1 or fragments[-1].first_entry_id <= entry_id:
        return fragments[-1]
    return next(f1 for f1, f2 in pairwise(fragments) if f1.first_entry_id <= entry_id < f2.first_entry_id)


def add_requests(v: View, c: ClientState, entry: Entry, bookies: Bookies, recovery: bool) -> list[Message]:
    return [Message(ADD_REQUEST, bookie, c.id, entry, last_done(c, v.constants), recovery) for bookie in bookies]
