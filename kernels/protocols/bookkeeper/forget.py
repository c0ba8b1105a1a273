"""Parts of a state that nothing reads any more: states that differ in nothing else go on alike, and are one to a head.

Every rule names the last reader. A rule may also take out an enabled action that changes nothing that is read: all else
is then as likely as before.
"""

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.bookkeeper.adding import last_done
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_SLOT_ROW,
    NO_FRAGMENTS,
    NO_MESSAGES,
    ROW,
    STATUS_CLOSED,
    STATUS_NIL,
    STATUS_OPEN,
    Messages,
    any_row,
    entries_up_to,
)
from quorisk.kernels.protocols.bookkeeper.slots import (
    orders_of_slots,
    rows_of_slots,
    slot_field,
    slot_row,
    with_clients,
)


def forget(state, params):
    """The state without the parts that no step and no invariant reads any more."""
    state = compare_versions(state)
    writes = (state.writer_status == STATUS_NIL) | (state.writer_status == STATUS_OPEN)
    done = state.closed | state.aborted
    # the writer changes the ensemble of an open ledger, a recovering client that of one in recovery
    is_open, is_closed = state.meta_status <= STATUS_OPEN, state.meta_status == STATUS_CLOSED
    state = state._replace(
        creator=where(state.creator == 0, 0, 1),
        changing=where(writes, state.changing, 0),
        writer=client_without(state.writer, params, writes, is_open, state.changing),
        recoverer_0=client_without(state.recoverer_0, params, (done & 1) == 0, is_closed ^ True),
        recoverer_1=client_without(state.recoverer_1, params, (done & 2) == 0, is_closed ^ True),
    )
    # a fenced bookie refuses the writer's requests, and it alone: after the last of them nobody knows
    refusing = where(writes, ROW, any_row(state.writer.requests.on_way))
    return without_reads(without_fencing(state, refusing), refusing)


def compare_versions(state):
    """Versions of the metadata are only compared, and a client that is behind stays behind until it takes part anew."""
    now = state.meta_version

    def compared(client):
        return client._replace(meta_version=where((now != 0) & (client.meta_version == now), 1, 0))

    return with_clients(state, compared)._replace(meta_version=where(now == 0, 0, 1))


def client_without(client, params, goes_on, times_out, changing=0):
    """A client that goes on, or only has its requests on their way and its LAC; its losses count if it `times_out`, and
    who was where in the ensemble before if it is `changing`."""
    intended = params.literal == 0
    # a bookie that read the spec to the letter answers nobody twice, even if the answer is lost
    answered = where(intended, 0, client.responses.sent)
    gone = client._replace(
        meta_version=0,
        fragments=NO_FRAGMENTS,
        lap=0,
        confirmed=0,
        pending=0,
        op_fragments=0,
        op_ensembles=0,
        left=0,
        requests=NO_MESSAGES._replace(on_way=client.requests.on_way),
        responses=NO_MESSAGES._replace(sent=where(client.requests.on_way == 0, 0, answered)),
    )
    # an entry that is done with needs no more confirmations; those of the last entry hold up no other's either
    acknowledged = where(intended, entries_up_to(last_done(params, client)), 0)
    last = ROW << (6 * (params.entries - 1))
    waits = where(times_out, -1, 0)
    confirmed = client._replace(
        confirmed=client.confirmed & ~acknowledged,
        left=where(changing, client.left, 0),
        requests=client.requests._replace(lost=client.requests.lost & waits),
        responses=client.responses._replace(
            on_way=client.responses.on_way & ~(acknowledged & last), lost=client.responses.lost & waits
        ),
    )
    return where(goes_on, confirmed, gone)


def without_fencing(state, refusing):
    """A client that reads, or is done, waits for no bookie to be fenced; a fence matters where a bookie may refuse."""
    over = rows_of_slots(state.reading | state.closed | state.aborted)
    requests = state.fence_requests.on_way & (~over | slot_row(0, refusing) | slot_row(1, refusing))
    responses = state.fence_responses.on_way & ~over
    lacs = 0
    for i in range(12):
        lacs |= where((responses >> i) & 1, 7 << (3 * i), 0)
    return state._replace(
        b_fenced=state.b_fenced & refusing,
        b_unflushed_fences=state.b_unflushed_fences & refusing,
        fenced=state.fenced & ~over,
        fence_requests=Messages(0, requests, 0),
        fence_responses=Messages(0, responses, 0),
        fence_lacs=state.fence_lacs & lacs,
    )


def without_reads(state, refusing):
    """A client that found the last entry, or is done, waits for no answer to its reads."""
    found = where(slot_field(state.last_recoverable, 0) == 0, 0, 1) | where(
        slot_field(state.last_recoverable, 1) == 0, 0, 2
    )
    done = state.closed | state.aborted | found
    over = rows_of_slots(done)
    waited = ~(over * EVERY_SLOT_ROW)
    fencing = (slot_row(0, refusing) | slot_row(1, refusing)) * EVERY_SLOT_ROW
    answers = state.read_responses.on_way & waited
    return state._replace(
        recovery_ensembles=state.recovery_ensembles & ~over,
        recovery_orders=state.recovery_orders & ~orders_of_slots(done),
        negative_reads=state.negative_reads & ~over,
        unknown_reads=state.unknown_reads & ~over,
        read_requests=Messages(0, state.read_requests.on_way & (waited | fencing), state.read_requests.lost & waited),
        read_responses=Messages(0, answers, state.read_responses.lost & waited),
        read_found=state.read_found & answers,
        read_unknown=state.read_unknown & answers,
    )
