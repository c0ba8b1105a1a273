"""Names of clients, bookies, messages and fragments in print."""

from collections.abc import Iterable

from quorisk.kernels.protocols.bookkeeper import describe
from quorisk.kernels.protocols.bookkeeper.describe import (
    ADD_REQUEST,
    ADD_RESPONSE,
    FENCE_REQUEST,
    FENCE_RESPONSE,
    NO_SUCH_ENTRY,
    READ_REQUEST,
    READ_RESPONSE,
    UNKNOWN,
    Ensemble,
    Fragment,
)
from quorisk.kernels.telling import Message, members

ZK = "zk"
LABELS = {
    ADD_REQUEST: "{entry}, LAC {lac}",
    ADD_RESPONSE: "{entry} written",
    FENCE_REQUEST: "fence",
    FENCE_RESPONSE: "fenced, LAC {lac}",
    READ_REQUEST: "read {entry}",
    READ_RESPONSE: "{entry}",
}


def client_name(cid: int) -> str:
    return f"w{cid + 1}"


def bookie_name(bookie: int) -> str:
    return f"b{bookie + 1}"


def bookie_names(bookies: Iterable[int]) -> str:
    return members(map(bookie_name, sorted(bookies)))


def ensemble_names(ensemble: Ensemble) -> str:
    """A set, or a list: [b4, b2, b3]."""
    if isinstance(ensemble, frozenset):
        return bookie_names(ensemble)
    return f"[{', '.join(map(bookie_name, ensemble))}]"


def in_order(messages: Iterable[describe.Message]) -> list[describe.Message]:
    return sorted(messages, key=lambda m: (m.type, m.cid, m.entry.id, m.lac, m.bookie, m.success))


def label_of(message: describe.Message) -> str:
    if message.type == ADD_RESPONSE and not message.success:
        return f"e{message.entry.id} refused: fenced"
    if message.type == FENCE_RESPONSE and message.code == UNKNOWN:
        return UNKNOWN
    if message.code in (NO_SUCH_ENTRY, UNKNOWN):
        return f"{message.code} e{message.entry.id}"
    return LABELS[message.type].format(entry=f"e{message.entry.id}", lac=message.lac)


def told_message(message: describe.Message) -> Message:
    ends = client_name(message.cid), bookie_name(message.bookie)
    to_client = message.type in (ADD_RESPONSE, FENCE_RESPONSE, READ_RESPONSE)
    sender, receiver = reversed(ends) if to_client else ends
    return Message(sender, receiver, label_of(message))


def fragment_names(fragments: Iterable[Fragment]) -> str:
    return ", ".join(f"e{f.first_entry_id}: {ensemble_names(f.ensemble)}" for f in fragments)
