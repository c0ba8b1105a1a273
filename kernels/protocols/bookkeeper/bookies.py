"""The bookies' four actions."""

from quorisk.kernels.model import action, sends_one
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.disks import fence, note_lac, store
from quorisk.kernels.protocols.bookkeeper.layout import EVERY_REQUEST_ROW, EVERY_ROW, NO_LAC, ROW, ROWS, entry_row
from quorisk.kernels.protocols.bookkeeper.messages import (
    FENCED_RESPONSE,
    add_request_bookie,
    add_request_lac,
    add_requests_of,
    answer_to,
    earliest_requests,
    processed,
    read_entry,
    send,
)
from quorisk.kernels.protocols.bookkeeper.slots import bookie_of, recoverer, slot_field, with_recoverer


def answerable(client, bookies, answered, params):
    """Earliest add requests to these bookies; read literally, not those whose answer is in the message map."""
    requests = earliest_requests(client.requests.on_way) & (bookies * EVERY_REQUEST_ROW)
    return requests & ~when(params.literal != 0, add_requests_of, answered & ROWS)


def confirmable(client, bookies, params):
    """The add requests that these bookies may confirm."""
    return answerable(client, bookies, client.responses.sent, params)


def bookie_sends_add_confirmed_response_enabled(state, params):
    return (
        when(state.writer.requests.on_way != 0, confirmable, state.writer, ~state.b_fenced & ROW, params),
        when(state.recoverer_0.requests.on_way != 0, confirmable, state.recoverer_0, ROW, params),
        when(state.recoverer_1.requests.on_way != 0, confirmable, state.recoverer_1, ROW, params),
    )


def requester(state, word):
    """The client whose add requests are that word of instances."""
    return where(word == 0, state.writer, recoverer(state, word - 1))


def bookie_sends_add_confirmed_response_sends(state, params, instance):
    answered = requester(state, instance >> 6).responses.sent
    return 1 - ((answered >> answer_to(instance & 63)) & 1)


@action(bookie_sends_add_confirmed_response_enabled, sends=bookie_sends_add_confirmed_response_sends)
def bookie_sends_add_confirmed_response(state, params, instance, lost):
    """Each add request on its way to a bookie is stored there and confirmed."""
    word, request = instance >> 6, instance & 63
    bookie, lac = add_request_bookie(request), add_request_lac(request)
    client = requester(state, word)
    response = 1 << answer_to(request)
    client = client._replace(
        requests=processed(client.requests, 1 << request),
        responses=send(client.responses, response & ~client.responses.sent, lost * response),
    )
    state = note_lac(store(state, params, response), params, bookie, lac)
    recovered = with_recoverer(state, word - 1, client)
    return where(word == 0, state._replace(writer=client), recovered)


def refusable(client, bookies, params):
    """The add requests that these fenced bookies may refuse."""
    return answerable(client, bookies, client.responses.sent >> FENCED_RESPONSE, params)


def bookie_sends_add_fenced_response_enabled(state, params):
    waiting = (state.writer.requests.on_way != 0) & (state.b_fenced != 0)
    return (when(waiting, refusable, state.writer, state.b_fenced, params),)


def bookie_sends_add_fenced_response_sends(state, params, instance):
    return 1 - ((state.writer.responses.sent >> (FENCED_RESPONSE + answer_to(instance))) & 1)


@action(bookie_sends_add_fenced_response_enabled, sends=bookie_sends_add_fenced_response_sends)
def bookie_sends_add_fenced_response(state, params, instance, lost):
    """Each add request of the writer on its way to a fenced bookie is refused."""
    response = 1 << (FENCED_RESPONSE + answer_to(instance))
    writer = state.writer
    writer = writer._replace(
        requests=processed(writer.requests, 1 << instance),
        responses=send(writer.responses, response & ~writer.responses.sent, lost * response),
    )
    return state._replace(writer=writer)


def asked_to_fence(state, params, bookie):
    """The state once a fencing request reached this bookie."""
    known = (state.b_entries >> bookie) & EVERY_ROW
    return fence(state, params, where((params.fence_unknown_ledger != 0) | (known != 0), 1 << bookie, 0))


def bookie_sends_fencing_read_lac_response_enabled(state, params):
    return (state.fence_requests.on_way,)


@action(bookie_sends_fencing_read_lac_response_enabled, sends=sends_one, bounds=("clients",))
def bookie_sends_fencing_read_lac_response(state, params, instance, lost):
    """Each fencing request on its way to a bookie fences it and is answered."""
    bookie = bookie_of(instance)
    # BookKeeper's bookie fences the ledger, and then has only DataUnknown to say
    unknown = (params.limbo_answers_fencing == 0) & (((state.b_limbo >> bookie) & 1) != 0)
    lac = where(unknown, NO_LAC, slot_field(state.b_lac, bookie))
    return asked_to_fence(state, params, bookie)._replace(
        fence_lacs=state.fence_lacs | (lac << (3 * instance)),
        fence_requests=processed(state.fence_requests, 1 << instance),
        fence_responses=send(state.fence_responses, 1 << instance, lost << instance),
    )


def bookie_sends_read_response_enabled(state, params):
    return (state.read_requests.on_way,)


@action(bookie_sends_read_response_enabled, sends=sends_one, bounds=("clients",))
def bookie_sends_read_response(state, params, instance, lost):
    """Each recovery read on its way to a bookie is answered."""
    bookie = bookie_of(instance)
    entry = read_entry(instance)
    found = (entry_row(state.b_entries, entry) >> bookie) & 1
    unsure = ((state.b_limbo | entry_row(state.b_damaged, entry)) >> bookie) & (1 - found)
    state = where(params.fence_recovery_reads, asked_to_fence(state, params, bookie), state)
    return state._replace(
        read_found=state.read_found | (found << instance),
        read_unknown=state.read_unknown | (unsure << instance),
        read_requests=processed(state.read_requests, 1 << instance),
        read_responses=send(state.read_responses, 1 << instance, lost << instance),
    )
