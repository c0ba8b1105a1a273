"""The invariants, and which of them mean that data is lost."""

from collections.abc import Callable
from itertools import pairwise

from quorisk.kernels.protocols.bookkeeper.describe import (
    ABORTED,
    CLOSED,
    FENCE_RESPONSE,
    IN_RECOVERY,
    ON_ITS_WAY,
    OPEN,
    READ_WRITE_PHASE,
    UNKNOWN,
    WITHDRAWN,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.state import Constants, covered, fragment_of_entry_id, write_set


def stores(state: State, bookie: int, entry_id: int) -> bool:
    return any(entry.id == entry_id for entry in state.b_entries[bookie])


def copies(state: State, entry_id: int, k: Constants) -> int:
    """How many bookies of the entry's write set, by the metadata, store it."""
    ensemble = fragment_of_entry_id(entry_id, state.meta_fragments).ensemble
    return sum(stores(state, bookie, entry_id) for bookie in write_set(entry_id, ensemble, k.write_quorum))


def no_divergence_between_client_and_meta_data(s: State, _: Constants) -> bool:
    if s.meta_status != CLOSED:
        return True
    closers = sum(c.status == CLOSED and c.lac == s.meta_last_entry for c in s.clients)
    bystander = (None, IN_RECOVERY, ABORTED)
    return closers == 1 and all(c.status in bystander or c.lac <= s.meta_last_entry for c in s.clients)


def all_acked_entries_are_readable(s: State, k: Constants) -> bool:
    return all(
        copies(s, entry_id, k) >= 1 for c in s.clients if c.status in (OPEN, CLOSED) for entry_id in range(1, c.lac + 1)
    )


def acked_entries_survive(s: State, k: Constants) -> bool:
    acknowledged = {e for c in s.clients if c.status in (OPEN, CLOSED, WITHDRAWN) for e in range(1, c.lac + 1)}
    return all(copies(s, entry_id, k) > 0 for entry_id in acknowledged)


def acked_entries_are_on_disk(s: State, constants: Constants) -> bool:
    """The same of what bookies have on disk."""
    return acked_entries_survive(s._replace(b_entries=tuple(disk.entries for disk in s.disks)), constants)


def all_committed_entries_reach_ack_quorum(s: State, constants: Constants) -> bool:
    committed = range(1, s.meta_last_entry + 1) if s.meta_status == CLOSED else ()
    return all(copies(s, entry_id, constants) >= constants.ack_quorum for entry_id in committed)


def all_committed_entries_reach_write_quorum(s: State, constants: Constants) -> bool:
    committed = range(1, s.meta_last_entry + 1) if s.meta_status == CLOSED else ()
    return all(copies(s, entry_id, constants) >= constants.write_quorum for entry_id in committed)


def earlier_fragments_reach_write_quorum(s: State, constants: Constants) -> bool:
    """Entries of all fragments but the last have their write quorum. The model has no such invariant: with a guaranteed
    write quorum it holds while nothing fails."""
    first = s.meta_fragments[-1].first_entry_id if s.meta_fragments else 1
    return all(copies(s, entry_id, constants) >= constants.write_quorum for entry_id in range(1, first))


def ledger_can_be_closed(s: State, constants: Constants) -> bool:
    """By its writer; by a recovery that reads already; or by one that can still have enough bookies fenced."""
    silent = s.b_down
    if not constants.limbo_answers_fencing:
        silent |= {b for b, limbo in enumerate(s.b_limbo) if limbo}
    if not silent or s.meta_status == CLOSED:
        return True
    if s.meta_status == OPEN and any(c.status == OPEN for c in s.clients):
        return True
    recovering = [c for c in s.clients if c.status == IN_RECOVERY]
    on_way = {m for m, count in s.messages if m.type == FENCE_RESPONSE and count == ON_ITS_WAY}
    answers = {(m.cid, m.bookie) for m in on_way if m.code != UNKNOWN}
    last = s.meta_fragments[-1].ensemble
    within_reach = [(frozenset(last) - silent, last)]
    for c in recovering:
        if c.recovery_phase == READ_WRITE_PHASE:
            return True
        reachable = {b for b in c.recovery_ensemble if b not in silent or (c.id, b) in answers}
        within_reach.append((c.fenced | reachable, c.recovery_ensemble))
    return any(covered(bookies, ensemble, constants) for bookies, ensemble in within_reach)


def no_out_of_order_entries(s: State, _: Constants) -> bool:
    return all(entry.id == entry.data for entries in s.b_entries for entry in entries)


def only_valid_fragments(s: State, _: Constants) -> bool:
    firsts = [fragment.first_entry_id for fragment in s.meta_fragments]
    return all(a < b for a, b in pairwise(firsts))


INVARIANTS: dict[str, Callable[[State, Constants], bool]] = {
    "NoDivergenceBetweenClientAndMetaData": no_divergence_between_client_and_meta_data,
    "AllAckedEntriesAreReadable": all_acked_entries_are_readable,
    "AllCommittedEntriesReachAckQuorum": all_committed_entries_reach_ack_quorum,
    "NoOutOfOrderEntries": no_out_of_order_entries,
    "OnlyValidFragments": only_valid_fragments,
    "AckedEntriesSurvive": acked_entries_survive,
    "AllCommittedEntriesReachWriteQuorum": all_committed_entries_reach_write_quorum,
    "LedgerCanBeClosed": ledger_can_be_closed,
    "AckedEntriesAreOnDisk": acked_entries_are_on_disk,
}
DATA_LOSS = ("NoDivergenceBetweenClientAndMetaData", "AllAckedEntriesAreReadable", "AckedEntriesSurvive")


def invariants(state: State, constants: Constants) -> dict[str, bool]:
    """Whether each invariant holds."""
    return {name: holds(state, constants) for name, holds in INVARIANTS.items()}
