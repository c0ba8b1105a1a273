"""The eight actions of the client that created the ledger."""

from quorisk.kernels.model import Action, sends_nothing
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.adding import (
    add_pending,
    can_change_ensemble,
    change_ensemble,
    new_bookies,
    publish_fragments,
    receivable_confirms,
    receive_add_confirmed,
    resend_pending_add_op,
    resendable_ops,
    select_ensemble,
    send_requests,
)
from quorisk.kernels.protocols.bookkeeper.layout import (
    CLIENT_WITHDRAWN,
    EVERY_ROW,
    ROWS,
    STATUS_CLOSED,
    STATUS_NIL,
    STATUS_OPEN,
    append_fragment,
    current_ensemble,
    entry_of,
)
from quorisk.kernels.protocols.bookkeeper.messages import (
    FENCED_RESPONSE,
    earliest_responses,
    processed,
    reachable,
)


def client_creates_ledger_enabled(state, params):
    return (where(state.meta_status == STATUS_NIL, (1 << params.clients) - 1, 0),)


def client_creates_ledger(state, params, instance, lost):
    ensemble = select_ensemble(state, params, 0, 0)
    fragments = append_fragment(state.meta_fragments, ensemble, 1)
    state, writer = publish_fragments(state, state.writer._replace(fragments=fragments))
    return state._replace(meta_status=STATUS_OPEN, creator=instance + 1, writer_status=STATUS_OPEN, writer=writer)


def client_sends_add_entry_requests_enabled(state, params):
    # an entry that was never pushed was never sent, so SendMessagesToEnsemble adds no condition
    writer = state.writer
    room = (writer.lap - writer.lac < params.inflight) & (writer.lap < params.entries)
    return (where((state.writer_status == STATUS_OPEN) & room, 1, 0),)


def to_writer_ensemble(state, params, instance):
    return reachable(state, current_ensemble(state.writer.fragments))


def client_sends_add_entry_requests(state, params, instance, lost):
    writer = state.writer
    entry = writer.lap + 1
    requests = send_requests(state, writer, entry, current_ensemble(writer.fragments), lost)
    return state._replace(writer=add_pending(writer, entry)._replace(lap=entry, requests=requests))


def client_receives_add_confirmed_response_enabled(state, params):
    waiting = (state.writer_status == STATUS_OPEN) & (state.writer.responses.on_way != 0)
    return (when(waiting, receivable_confirms, state.writer),)


def client_receives_add_confirmed_response(state, params, instance, lost):
    return state._replace(writer=receive_add_confirmed(state.writer, params, instance))


def receivable_refusals(client):
    """Fenced responses that the writer may take: bit 6(e - 1) + b."""
    return (earliest_responses(client.responses.on_way) >> FENCED_RESPONSE) & (
        current_ensemble(client.fragments) * EVERY_ROW
    )


def client_receives_add_fenced_response_enabled(state, params):
    waiting = (state.writer_status == STATUS_OPEN) & (state.writer.responses.on_way > ROWS)
    return (when(waiting, receivable_refusals, state.writer),)


def client_receives_add_fenced_response(state, params, instance, lost):
    writer = state.writer._replace(responses=processed(state.writer.responses, 1 << (FENCED_RESPONSE + instance)))
    return state._replace(writer=writer, writer_status=CLIENT_WITHDRAWN)


def client_changes_ensemble_enabled(state, params):
    writer = state.writer
    open_ledger = (state.writer_status == STATUS_OPEN) & (state.meta_status == STATUS_OPEN)
    wanted = (writer.requests.lost | writer.responses.lost) != 0
    current = writer.meta_version == state.meta_version
    return (when(open_ledger & wanted & current, can_change_ensemble, state, params, writer),)


def client_changes_ensemble(state, params, instance, lost):
    state, writer = publish_fragments(state, change_ensemble(state, params, state.writer))
    return state._replace(writer=writer)


def client_resends_pending_add_op_enabled(state, params):
    wanted = (state.writer_status == STATUS_OPEN) & (state.writer.pending != 0)
    return (when(wanted, resendable_ops, state.writer),)


def client_resends_pending_add_op_sends(state, params, instance):
    return reachable(state, new_bookies(state.writer, entry_of(instance)))


def client_resends_pending_add_op(state, params, instance, lost):
    return state._replace(writer=resend_pending_add_op(state, state.writer, entry_of(instance), lost))


def client_closes_ledger_success_enabled(state, params):
    open_ledger = (state.writer_status == STATUS_OPEN) & (state.meta_status == STATUS_OPEN)
    current = (params.close_checks_version == 0) | (state.writer.meta_version == state.meta_version)
    return (where(open_ledger & current, 1, 0),)


def client_closes_ledger_success(state, params, instance, lost):
    return state._replace(
        writer=state.writer._replace(meta_version=state.writer.meta_version + 1),
        writer_status=STATUS_CLOSED,
        meta_status=STATUS_CLOSED,
        meta_last_entry=state.writer.lac,
        meta_version=state.meta_version + 1,
    )


def client_closes_ledger_fail_enabled(state, params):
    return (where((state.writer_status == STATUS_OPEN) & (state.meta_status != STATUS_OPEN), 1, 0),)


def client_closes_ledger_fail(state, params, instance, lost):
    return state._replace(writer=state.writer._replace(meta_version=0), writer_status=CLIENT_WITHDRAWN)


ACTIONS = (
    Action(
        "client_creates_ledger",
        client_creates_ledger_enabled,
        sends_nothing,
        client_creates_ledger,
        counts="Each client creates the ledger, while there is none.",
    ),
    Action(
        "client_sends_add_entry_requests",
        client_sends_add_entry_requests_enabled,
        to_writer_ensemble,
        client_sends_add_entry_requests,
        counts="The writer sends its next entry, while it has one and may have another in flight.",
    ),
    Action(
        "client_receives_add_confirmed_response",
        client_receives_add_confirmed_response_enabled,
        sends_nothing,
        client_receives_add_confirmed_response,
        counts="Each confirmation on its way to the writer arrives.",
    ),
    Action(
        "client_receives_add_fenced_response",
        client_receives_add_fenced_response_enabled,
        sends_nothing,
        client_receives_add_fenced_response,
        counts="Each refusal on its way to the writer arrives.",
    ),
    Action(
        "client_changes_ensemble",
        client_changes_ensemble_enabled,
        sends_nothing,
        client_changes_ensemble,
        counts="The writer replaces the bookies whose requests or answers timed out.",
    ),
    Action(
        "client_resends_pending_add_op",
        client_resends_pending_add_op_enabled,
        client_resends_pending_add_op_sends,
        client_resends_pending_add_op,
        counts="Each pending entry that is due for a new ensemble is sent to its new bookies.",
    ),
    Action(
        "client_closes_ledger_success",
        client_closes_ledger_success_enabled,
        sends_nothing,
        client_closes_ledger_success,
        counts="The writer closes the ledger, while that is open.",
    ),
    Action(
        "client_closes_ledger_fail",
        client_closes_ledger_fail_enabled,
        sends_nothing,
        client_closes_ledger_fail,
        counts="The writer fails to close the ledger, once another client recovers it or has closed it.",
    ),
)
