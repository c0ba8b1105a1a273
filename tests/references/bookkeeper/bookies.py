"""What bookies do: they store entries, fence ledgers and answer."""

from collections.abc import Iterator

from quorisk.kernels.protocols.bookkeeper.describe import (
    ADD_REQUEST,
    ADD_RESPONSE,
    FENCE_REQUEST,
    FENCE_RESPONSE,
    NO_SUCH_ENTRY,
    OK,
    READ_REQUEST,
    READ_RESPONSE,
    UNKNOWN,
    Message,
)
from quorisk.kernels.protocols.bookkeeper.describe import SpecState as State
from tests.references.bookkeeper.state import Effect, View, handled, is_earliest, put


def add_response(v: View, request: Message, after: State, success: bool) -> Effect:
    """Process an add request; as intended, even one whose answer was sent before, then without an answer."""
    answer = request._replace(type=ADD_RESPONSE, lac=0, success=success)
    silent = answer in v.counts and not v.constants.literal
    return request, handled(after, [request]), [] if silent else [answer]


def fenced_flags(v: View, bookie: int) -> tuple[bool, ...]:
    """The fenced flags after a bookie was told to fence."""
    obeys = v.constants.fence_unknown_ledger or len(v.state.b_entries[bookie]) > 0
    return put(v.state.b_fenced, bookie, True) if obeys else v.state.b_fenced


def bookie_sends_add_confirmed_response(v: View) -> Iterator[Effect]:
    s = v.state
    for msg in v.arrived(ADD_REQUEST):
        if is_earliest(v, msg) and (not s.b_fenced[msg.bookie] or msg.recovery):
            lac = max(msg.lac, s.b_lac[msg.bookie]) if v.constants.guaranteed_write_quorum else msg.lac
            after = s._replace(
                b_entries=put(s.b_entries, msg.bookie, s.b_entries[msg.bookie] | {msg.entry}),
                b_lac=put(s.b_lac, msg.bookie, lac),
            )
            yield add_response(v, msg, after, True)


def bookie_sends_add_fenced_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(ADD_REQUEST):
        if not msg.recovery and v.state.b_fenced[msg.bookie] and is_earliest(v, msg):
            yield add_response(v, msg, v.state, False)


def bookie_sends_fencing_read_lac_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(FENCE_REQUEST):
        after = handled(v.state._replace(b_fenced=fenced_flags(v, msg.bookie)), [msg])
        response = Message(FENCE_RESPONSE, msg.bookie, msg.cid, lac=v.state.b_lac[msg.bookie])
        if v.state.b_limbo[msg.bookie] and not v.constants.limbo_answers_fencing:
            response = Message(FENCE_RESPONSE, msg.bookie, msg.cid, code=UNKNOWN)
        yield msg, after, [response]


def bookie_sends_read_response(v: View) -> Iterator[Effect]:
    for msg in v.arrived(READ_REQUEST):
        after = handled(v.state, [msg])
        if msg.fence:
            after = after._replace(b_fenced=fenced_flags(v, msg.bookie))
        stored = sorted(entry for entry in v.state.b_entries[msg.bookie] if entry.id == msg.entry.id)
        missing = UNKNOWN if v.state.b_limbo[msg.bookie] else NO_SUCH_ENTRY
        entry, code = (stored[0], OK) if stored else (msg.entry, missing)
        yield msg, after, [msg._replace(type=READ_RESPONSE, entry=entry, code=code)]
