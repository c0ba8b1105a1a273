"""The eight actions of the client that created the ledger."""

from quorisk.kernels.model import action
from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.adding import (
    add_pending,
    can_change_ensemble,
    change_ensemble,
    counted,
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
    ROW,
    ROWS,
    STATUS_CLOSED,
    STATUS_NIL,
    STATUS_OPEN,
    current_ensemble,
    entry_of,
)
from quorisk.kernels.protocols.bookkeeper.messages import FENCED_RESPONSE, earliest_responses, processed, reachable
from quorisk.kernels.protocols.bookkeeper.stripes import NOBODY, append_fragment, current_list, write_set


def client_creates_ledger_enabled(state, params):
    return (where(state.meta_status == STATUS_NIL, (1 << params.clients) - 1, 0),)


@action(client_creates_ledger_enabled)
def client_creates_ledger(state, params, instance, lost):
    """Each client creates the ledger, while there is none."""
    fragments = append_fragment(state.meta_fragments, select_ensemble(state, params, NOBODY, 0), 1)
    state, writer = publish_fragments(state, params, state.writer._replace(fragments=fragments))
    return state._replace(meta_status=STATUS_OPEN, creator=instance + 1, writer_status=STATUS_OPEN, writer=writer)


def client_sends_add_entry_requests_enabled(state, params):
    # an entry that was never pushed was never sent, so SendMessagesToEnsemble adds no condition
    writer = state.writer
    room = (writer.lap - writer.lac < params.inflight) & (writer.lap < params.entries)
    return (where((state.writer_status == STATUS_OPEN) & room, 1, 0),)


def next_write_set(params, client):
    """The bookies that get the entry that the client adds next."""
    return write_set(params, current_list(client.fragments), client.lap + 1)


def client_sends_add_entry_requests_sends(state, params, instance):
    return reachable(state, next_write_set(params, state.writer))


@action(client_sends_add_entry_requests_enabled, sends=client_sends_add_entry_requests_sends)
def client_sends_add_entry_requests(state, params, instance, lost):
    """The writer sends its next entry, while it has one and may have another in flight."""
    writer = state.writer
    entry = writer.lap + 1
    requests = send_requests(state, params, writer, entry, next_write_set(params, writer), lost)
    return state._replace(writer=add_pending(params, writer, entry)._replace(lap=entry, requests=requests))


def heard(state):
    """The bookies that the writer listens to: of its ensemble and, while it is `changing`, of the one before."""
    writer = state.writer
    return current_ensemble(writer.fragments) | where(state.changing != 0, writer.left & ROW, 0)


def client_receives_add_confirmed_response_enabled(state, params):
    waiting = (state.writer_status == STATUS_OPEN) & (state.writer.responses.on_way != 0)
    return (when(waiting, receivable_confirms, state.writer, heard(state)),)


@action(client_receives_add_confirmed_response_enabled)
def client_receives_add_confirmed_response(state, params, instance, lost):
    """Each confirmation on its way to the writer arrives."""
    return state._replace(writer=receive_add_confirmed(params, state.writer, instance, state.changing))


def receivable_refusals(client, bookies):
    """Fenced responses of these bookies that the writer may take: bit 6(e - 1) + b."""
    return (earliest_responses(client.responses.on_way) >> FENCED_RESPONSE) & (bookies * EVERY_ROW)


def client_receives_add_fenced_response_enabled(state, params):
    waiting = (state.writer_status == STATUS_OPEN) & (state.writer.responses.on_way > ROWS)
    return (when(waiting, receivable_refusals, state.writer, heard(state)),)


@action(client_receives_add_fenced_response_enabled)
def client_receives_add_fenced_response(state, params, instance, lost):
    """Each refusal on its way to the writer arrives."""
    writer = state.writer
    refused = (1 << instance) & counted(params, writer, state.changing)
    return state._replace(
        writer=writer._replace(responses=processed(writer.responses, 1 << (FENCED_RESPONSE + instance))),
        writer_status=where(refused != 0, CLIENT_WITHDRAWN, state.writer_status),
    )


def client_changes_ensemble_enabled(state, params):
    writer = state.writer
    open_ledger = (state.writer_status == STATUS_OPEN) & (state.meta_status == STATUS_OPEN)
    wanted = ((writer.requests.lost | writer.responses.lost) != 0) & (state.changing == 0)
    current = writer.meta_version == state.meta_version
    return (when(open_ledger & wanted & current, can_change_ensemble, state, params, writer),)


@action(client_changes_ensemble_enabled)
def client_changes_ensemble(state, params, instance, lost):
    """The writer replaces the bookies whose requests or answers timed out."""
    unsets = (params.early_callbacks == 0) | (state.writer.pending == 0)
    changed = change_ensemble(state, params, state.writer, unsets)
    state, writer = publish_fragments(state, params, changed)
    return state._replace(writer=writer, changing=where(unsets, 0, 1))


def client_resends_pending_add_op_enabled(state, params):
    wanted = (state.writer_status == STATUS_OPEN) & (state.writer.pending != 0) & (state.changing == 0)
    return (when(wanted, resendable_ops, params, state.writer),)


def client_resends_pending_add_op_sends(state, params, instance):
    return reachable(state, new_bookies(params, state.writer, entry_of(instance)))


@action(client_resends_pending_add_op_enabled, sends=client_resends_pending_add_op_sends)
def client_resends_pending_add_op(state, params, instance, lost):
    """Each pending entry that is due for a new ensemble is sent to its new bookies."""
    return state._replace(writer=resend_pending_add_op(state, params, state.writer, entry_of(instance), lost))


def client_closes_ledger_success_enabled(state, params):
    open_ledger = (state.writer_status == STATUS_OPEN) & (state.meta_status == STATUS_OPEN)
    current = (params.close_checks_version == 0) | (state.writer.meta_version == state.meta_version)
    done = (params.guaranteed_write_quorum == 0) | (state.writer.pending == 0)
    return (where(open_ledger & current & done, 1, 0),)


@action(client_closes_ledger_success_enabled)
def client_closes_ledger_success(state, params, instance, lost):
    """The writer closes the ledger, while that is open."""
    return state._replace(
        writer=state.writer._replace(meta_version=state.writer.meta_version + 1),
        writer_status=STATUS_CLOSED,
        meta_status=STATUS_CLOSED,
        meta_last_entry=state.writer.lac,
        meta_version=state.meta_version + 1,
    )


def client_closes_ledger_fail_enabled(state, params):
    return (where((state.writer_status == STATUS_OPEN) & (state.meta_status != STATUS_OPEN), 1, 0),)


@action(client_closes_ledger_fail_enabled)
def client_closes_ledger_fail(state, params, instance, lost):
    """The writer fails to close the ledger, once another client recovers it or has closed it."""
    return state._replace(writer=state.writer._replace(meta_version=0), writer_status=CLIENT_WITHDRAWN)
