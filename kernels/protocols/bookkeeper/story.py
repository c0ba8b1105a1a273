"""The story of a ledger, in words: writer and recovery clients are w1, w2, ..., bookies b1, b2, ..., the metadata
store zk, as in the diagrams of the specification's README. Entries count from 1, so a LAC of 0 says that there is none.

Messages of a step follow from the difference between two states of the spec's `messages`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from quorisk.kernels.protocols.bookkeeper import describe, layout
from quorisk.kernels.protocols.bookkeeper.describe import (
    ABORTED,
    HANDLED,
    LOST,
    ON_ITS_WAY,
    READ_RESPONSE,
    READ_WRITE_PHASE,
    UNKNOWN,
    WITHDRAWN,
    Bookies,
    ClientState,
    Entry,
    SpecState,
    num_bookies,
    spec_state,
    write_set,
)
from quorisk.kernels.protocols.bookkeeper.names import (
    ZK,
    bookie_name,
    bookie_names,
    client_name,
    ensemble_names,
    fragment_names,
    in_order,
    label_of,
    told_message,
)
from quorisk.kernels.protocols.bookkeeper.slots import bookie_of
from quorisk.kernels.protocols.bookkeeper.story_faults import STRUCK, tell_of_bookies
from quorisk.kernels.telling import Message, Note, Told, members, words_beside

WORDS = words_beside(__file__)["steps"]
"""Sentences on steps by action, with fields in braces."""
TO_METADATA = words_beside(__file__)["to_metadata"]
"""Labels of requests to the metadata store, by the actions that change the metadata."""


def participants(params: Any) -> tuple[str, ...]:
    """Clients, bookies, the metadata store."""
    clients, bookies = range(params.clients), range(num_bookies(params))
    return (*map(client_name, clients), *map(bookie_name, bookies), ZK)


def tell(state: layout.State, params: Any, action: str, instance: int, after: layout.State) -> Told:
    """The step from `state` to `after` that this action made."""
    before, then = spec_state(state, params), spec_state(after, params)
    if action in STRUCK:
        return tell_of_bookies(before, then, action, STRUCK[action](state, params, instance))
    old, new = dict(before.messages), dict(then.messages)
    fresh = [m for m in in_order(new) if m not in old]
    handled = [m for m in in_order(old) if old[m] == ON_ITS_WAY and new[m] == HANDLED]
    changed = [now.id for was, now in zip(before.clients, then.clients, strict=True) if was != now]
    cid = [*changed, *(m.cid for m in fresh + handled)][0]
    if action == "client_receives_recovery_read_response":  # the one received; a read that it decides ignores others
        reading = before.clients[cid].curr_read_entry
        received = (READ_RESPONSE, bookie_of(instance), reading)
        handled = [m for m in handled if (m.type, m.bookie, m.entry.id) == received]
    fields = _fields(then, cid, fresh, handled)
    if action == "client_receives_fencing_read_lac_response" and handled[0].code == UNKNOWN:
        action = "client_receives_recovery_read_response"
    words = WORDS[action].format(**fields)
    if action.startswith("bookie") and not fresh:
        words += " (sent before, so not again)"
    to_metadata = TO_METADATA[action] if then.meta_version > before.meta_version else None
    instant = [Message(client_name(cid), ZK, to_metadata.format(**fields))] if to_metadata else []
    if action == "client_completes_ensemble_change":
        instant.append(Message(ZK, client_name(cid), "ensemble {new_fragment} is written".format(**fields)))
    return Told(
        words=words,
        received=(*instant, *map(told_message, handled)),
        sent=tuple(told_message(m) for m in fresh if new[m] == ON_ITS_WAY),
        lost=tuple(told_message(m) for m in fresh if new[m] == LOST),
        notes=tuple(_notes(before, then, params)),
    )


def verdict(state: layout.State, params: Any, invariant: str) -> str:
    """Returns a sentence on how a state breaks an invariant."""
    return _VERDICTS[invariant](spec_state(state, params), params)


variables = spec_state
"""The spec's variables."""


def _fields(then: SpecState, cid: int, sent: list[describe.Message], handled: list[describe.Message]) -> dict[str, str]:
    """Returns the fields that the words of any action may name."""
    fields = {
        "client": client_name(cid),
        "ensemble": ensemble_names(then.meta_fragments[-1].ensemble),
        "new_fragment": fragment_names(then.clients[cid].fragments[-1:]),
        "end": f"at e{then.meta_last_entry}" if then.meta_last_entry else "as empty",
        "to": ", ".join(bookie_name(b) for b in sorted(m.bookie for m in sent)),
    }
    for message in (*handled, *sent):
        fields |= {"entry": f"e{message.entry.id}", "bookie": bookie_name(message.bookie), "answer": label_of(message)}
    return fields


def _notes(before: SpecState, then: SpecState, params: Any) -> Iterator[Note]:
    newly_fenced = [b for b, is_fenced in enumerate(then.b_fenced) if is_fenced and not before.b_fenced[b]]
    yield from (Note((bookie_name(b),), "fenced") for b in newly_fenced)
    for was, now in zip(before.clients, then.clients, strict=True):
        yield from (Note((client_name(now.id),), text) for text in _client_news(was, now))
        if now.recovery_phase > was.recovery_phase == READ_WRITE_PHASE - 1:
            yield Note(participants(params)[:: len(participants(params)) - 1], _recovery_begins(was, then))


def _client_news(was: ClientState, now: ClientState) -> Iterator[str]:
    """Yields the changes of a client, beyond messages that it sent and received."""
    recovers = now.recovery_phase > 0
    if now.lac > was.lac:
        entries = ", ".join(f"e{e}" for e in range(was.lac + 1, now.lac + 1))
        yield f"LAC {now.lac}" if recovers else f"acknowledges {entries} to its caller"
    if now.status == WITHDRAWN != was.status:
        yield "writes no more"
    if now.status == ABORTED != was.status:
        yield "recovery aborted: too few answers"
    if now.last_recoverable_entry is not None and was.last_recoverable_entry is None:
        yield f"e{now.last_recoverable_entry + 1} cannot be recovered"
    if now.changing and not was.changing:
        yield "calls nobody back for now"
    if was.fragments and now.fragments != was.fragments and now.meta_version == was.meta_version:
        yield f"ensembles {fragment_names(now.fragments)}; not yet in zk"


def _recovery_begins(client: ClientState, then: SpecState) -> str:
    """The state of the ledger as reading begins, as the README sums it up."""
    fenced = bookie_names(b for b, is_fenced in enumerate(then.b_fenced) if is_fenced)
    stored = (f"{bookie_name(b)}: {members(f'e{e.id}' for e in sorted(es))}" for b, es in enumerate(then.b_entries))
    return f"{bookie_names(client.fenced)} confirmed the fencing. LAC is {client.lac}.\nFenced: {fenced}. Entries: " + (
        ", ".join(stored)
    )


def _divergence(spec: SpecState, params: Any) -> str:
    last = spec.meta_last_entry
    ends = f"the ledger is closed {f'at e{last}' if last else 'as empty'}"
    beyond = [c for c in spec.clients if c.status in (describe.OPEN, describe.CLOSED, WITHDRAWN) and c.lac > last]
    if beyond:
        entries = ", ".join(f"e{e}" for e in range(last + 1, beyond[0].lac + 1))
        return f"{client_name(beyond[0].id)} has acknowledged {entries}, but {ends}: acknowledged data is truncated."
    closers = [client_name(c.id) for c in spec.clients if c.status == describe.CLOSED and c.lac == last]
    return f"{ends.capitalize()}, which {len(closers)} clients say they did: {members(closers)}, not exactly one."


def _held_by(spec: SpecState, params: Any, entry: int) -> tuple[Bookies, list[int]]:
    """An entry's write set in the fragment that the metadata has it in, and those bookies of it that store it.

    Of the fragments that fit between their neighbours the first counts, as in the spec.
    """
    fragments = spec.meta_fragments
    fitting = [f for f, g in pairwise(fragments) if f.first_entry_id <= entry < g.first_entry_id]
    fragment = fragments[-1] if fragments[-1].first_entry_id <= entry or not fitting else fitting[0]
    bookies = write_set(entry, fragment.ensemble, params)
    return bookies, [b for b in bookies if Entry(entry, entry) in spec.b_entries[b]]


def _short(spec: SpecState, params: Any, last: int, needed: int) -> str:
    entry = next(e for e in range(1, last + 1) if len(_held_by(spec, params, e)[1]) < needed)
    bookies, holders = _held_by(spec, params, entry)
    stored = f"but of these only {bookie_names(holders)} store it" if holders else "and none of these stores it"
    return f"e{entry} belongs on {bookie_names(bookies)}, {stored}."


def _unreadable(spec: SpecState, params: Any) -> str:
    last = max(c.lac for c in spec.clients if c.status in (describe.OPEN, describe.CLOSED))
    return "Acknowledged, but unreadable: " + _short(spec, params, last, 1)


def _lost(spec: SpecState, params: Any) -> str:
    last = max(c.lac for c in spec.clients if c.status in (describe.OPEN, describe.CLOSED, WITHDRAWN))
    return "Acknowledged, and lost: " + _short(spec, params, last, 1)


def _volatile(spec: SpecState, params: Any) -> str:
    on_disk = spec._replace(b_entries=tuple(disk.entries for disk in spec.disks))
    return _lost(on_disk, params).replace("Acknowledged, and lost", "Acknowledged, and on no disk")


def _below_quorum(spec: SpecState, params: Any) -> str:
    return f"Fewer than {params.ack_quorum}: " + _short(spec, params, spec.meta_last_entry, params.ack_quorum)


def _below_write_quorum(spec: SpecState, params: Any) -> str:
    return f"Fewer than {params.write_quorum}: " + _short(spec, params, spec.meta_last_entry, params.write_quorum)


def _unclosable(spec: SpecState, params: Any) -> str:
    ensemble = spec.meta_fragments[-1].ensemble
    cohort = f"every {params.write_quorum} neighbours in " if params.striped else ""
    return (
        f"Nobody can close the ledger: recovery has to fence {params.write_quorum - params.ack_quorum + 1} of {cohort}"
        f"{ensemble_names(ensemble)}, of which {bookie_names(spec.b_down.intersection(ensemble))} are lost."
    )


def _disordered(spec: SpecState, params: Any) -> str:
    return f"Invalid fragment: {fragment_names(spec.meta_fragments)} are not in order."


_VERDICTS = {
    "NoDivergenceBetweenClientAndMetaData": _divergence,
    "AllAckedEntriesAreReadable": _unreadable,
    "AllCommittedEntriesReachAckQuorum": _below_quorum,
    "OnlyValidFragments": _disordered,
    "AckedEntriesSurvive": _lost,
    "AllCommittedEntriesReachWriteQuorum": _below_write_quorum,
    "LedgerCanBeClosed": _unclosable,
    "AckedEntriesAreOnDisk": _volatile,
}
"""NoOutOfOrderEntries holds by construction."""
