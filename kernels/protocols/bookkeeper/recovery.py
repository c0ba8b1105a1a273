"""The nine actions of the clients that recover the ledger; the two that read are in `reading`.

Instances: the slot; of fence responses, (slot, bookie); of add responses and of ops sent again, those of an adding
client, of slot 1 OPS_OF_A_SLOT higher.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import lowest_bit, when, where
from quorisk.kernels.protocols.bookkeeper.adding import (
    can_change_ensemble,
    change_ensemble,
    new_bookies,
    publish_fragments,
    receivable_confirms,
    receive_add_confirmed,
    resend_pending_add_op,
    resendable_ops,
    send_requests,
)
from quorisk.kernels.protocols.bookkeeper.layout import (
    NO_LAC,
    STATUS_CLOSED,
    STATUS_IN_RECOVERY,
    STATUS_OPEN,
    current_ensemble,
    entry_of,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.messages import add_requests_by_entry, processed, reachable, send, surely_lost
from quorisk.kernels.protocols.bookkeeper.reading import with_recovery_ensemble
from quorisk.kernels.protocols.bookkeeper.slots import (
    each_slot,
    in_read_write_phase,
    in_recovery,
    recoverer,
    rows_of_slots,
    slot_field,
    slot_of,
    slot_row,
    with_recoverer,
)
from quorisk.kernels.protocols.bookkeeper.stripes import current_list, write_set

OPS_OF_A_SLOT = 24


def client_starts_recovery_enabled(state, params):
    recoverable = (state.meta_status == STATUS_OPEN) | (state.meta_status == STATUS_IN_RECOVERY)
    others = (1 << (params.clients - 1)) - 1
    return (where(recoverable, others & ~state.started, 0),)


def client_starts_recovery_sends(state, params, slot):
    return reachable(state, current_ensemble(state.meta_fragments))


@action(client_starts_recovery_enabled, sends=client_starts_recovery_sends, bounds=("clients",))
def client_starts_recovery(state, params, slot, lost):
    """Each client but the writer starts to recover the ledger, once."""
    ensemble = current_list(state.meta_fragments)
    version = state.meta_version + 1
    client = recoverer(state, slot)._replace(meta_version=version, fragments=state.meta_fragments)
    asked = slot_row(slot, ensemble.members)
    unheard = slot_row(slot, surely_lost(state, ensemble.members, lost))
    return with_recovery_ensemble(with_recoverer(state, slot, client), slot, ensemble)._replace(
        meta_status=STATUS_IN_RECOVERY,
        meta_version=version,
        started=state.started | (1 << slot),
        fence_requests=send(state.fence_requests, asked, unheard),
    )


def client_receives_fencing_read_lac_response_enabled(state, params):
    return (state.fence_responses.on_way & rows_of_slots(state.started & ~state.reading),)


@action(client_receives_fencing_read_lac_response_enabled, bounds=("clients",))
def client_receives_fencing_read_lac_response(state, params, instance, lost):
    """Each answer to a fencing request arrives at the client that recovers."""
    slot = slot_of(instance)
    client = recoverer(state, slot)
    known = slot_field(state.fence_lacs, instance)
    floor = where(params.recovery_lac_floor, (client.fragments.first_ids & 7) - 1, 0)
    said = known != NO_LAC
    lac = where(said, where(known > floor, known, floor), 0)
    client = client._replace(lac=where(lac > client.lac, lac, client.lac), lap=where(lac > client.lap, lac, client.lap))
    return with_recoverer(state, slot, client)._replace(
        fenced=state.fenced | where(said, 1 << instance, 0),
        fence_responses=processed(state.fence_responses, 1 << instance),
    )


def not_sent_writes(client):
    """NotSentWrite: bit 6(e - 1) of each pending op that no add request was sent for."""
    return client.pending & ~nonzero_rows(add_requests_by_entry(client.requests.sent))


def may_write_back(state, params, slot):
    """1 if ClientWritesBackEntry has something to do."""
    client = recoverer(state, slot)
    return where(when(client.pending != 0, not_sent_writes, client) != 0, 1, 0)


def client_writes_back_entry_enabled(state, params):
    return (each_slot(in_read_write_phase(state), 1, may_write_back, state, params),)


def first_write_back(params, client):
    """The entry that is written back next, and who gets it."""
    entry = entry_of(lowest_bit(not_sent_writes(client)))
    return entry, write_set(params, current_list(client.fragments), entry)


def client_writes_back_entry_sends(state, params, slot):
    _, bookies = first_write_back(params, recoverer(state, slot))
    return reachable(state, bookies)


@action(client_writes_back_entry_enabled, sends=client_writes_back_entry_sends, bounds=("clients",))
def client_writes_back_entry(state, params, slot, lost):
    """Each client that recovers writes back the next entry that it has read."""
    client = recoverer(state, slot)
    entry, bookies = first_write_back(params, client)
    requests = send_requests(state, params, client, entry, bookies, lost)
    return with_recoverer(state, slot, client._replace(requests=requests))


def receivable_confirms_of(state, params, slot):
    """The guard of ReceiveAddConfirmedResponse for one recovery client."""
    client = recoverer(state, slot)
    return when(client.responses.on_way != 0, receivable_confirms, client, current_ensemble(client.fragments))


def recovery_client_receives_add_confirmed_response_enabled(state, params):
    return (each_slot(in_recovery(state), OPS_OF_A_SLOT, receivable_confirms_of, state, params),)


@action(recovery_client_receives_add_confirmed_response_enabled, bounds=("clients",))
def recovery_client_receives_add_confirmed_response(state, params, instance, lost):
    """Each confirmation on its way to a client that recovers arrives."""
    slot = where(instance >= OPS_OF_A_SLOT, 1, 0)
    client = receive_add_confirmed(params, recoverer(state, slot), instance - OPS_OF_A_SLOT * slot)
    return with_recoverer(state, slot, client)


def recovery_can_change_ensemble(state, params, slot):
    """RecoveryClientChangesEnsemble of one client."""
    client = recoverer(state, slot)
    wanted = (client.requests.lost | client.responses.lost) != 0
    allowed = (params.defer_recovery_ensemble_change != 0) | (client.meta_version == state.meta_version)
    return when(wanted & allowed, can_change_ensemble, state, params, client)


def recovery_client_changes_ensemble_enabled(state, params):
    active = where(state.meta_status == STATUS_IN_RECOVERY, in_recovery(state), 0)
    return (each_slot(active, 1, recovery_can_change_ensemble, state, params),)


@action(recovery_client_changes_ensemble_enabled, bounds=("clients",))
def recovery_client_changes_ensemble(state, params, slot, lost):
    """Each client that recovers replaces the bookies whose requests or answers timed out."""
    client = change_ensemble(state, params, recoverer(state, slot))
    published, informed = publish_fragments(state, params, client)
    deferred = params.defer_recovery_ensemble_change != 0
    return with_recoverer(where(deferred, state, published), slot, where(deferred, client, informed))


def resendable_ops_of(state, params, slot):
    """The guard of ResendPendingAddOp for one recovery client."""
    client = recoverer(state, slot)
    return when(client.pending != 0, resendable_ops, params, client)


def recovery_client_sends_pending_add_op_enabled(state, params):
    return (each_slot(in_recovery(state), OPS_OF_A_SLOT, resendable_ops_of, state, params),)


def recovery_client_sends_pending_add_op_sends(state, params, instance):
    slot = where(instance >= OPS_OF_A_SLOT, 1, 0)
    return reachable(state, new_bookies(params, recoverer(state, slot), entry_of(instance - OPS_OF_A_SLOT * slot)))


@action(
    recovery_client_sends_pending_add_op_enabled, sends=recovery_client_sends_pending_add_op_sends, bounds=("clients",)
)
def recovery_client_sends_pending_add_op(state, params, instance, lost):
    """Each entry of a recovery that is due for a new ensemble is sent to its new bookies."""
    slot = where(instance >= OPS_OF_A_SLOT, 1, 0)
    entry = entry_of(instance - OPS_OF_A_SLOT * slot)
    return with_recoverer(state, slot, resend_pending_add_op(state, params, recoverer(state, slot), entry, lost))


def may_close(state, params, slot):
    """1 if every entry that this client read is written back, and the metadata is still the version it knows."""
    client = recoverer(state, slot)
    current = (client.meta_version == state.meta_version) | (params.close_checks_version == 0)
    return where(current & (client.pending == 0) & (slot_field(state.last_recoverable, slot) != 0), 1, 0)


def recovery_client_closes_ledger_enabled(state, params):
    active = where(state.meta_status == STATUS_IN_RECOVERY, in_read_write_phase(state), 0)
    return (each_slot(active, 1, may_close, state, params),)


@action(recovery_client_closes_ledger_enabled, bounds=("clients",))
def recovery_client_closes_ledger(state, params, slot, lost):
    """Each client that recovers closes the ledger, once all that it read is written back."""
    client = recoverer(state, slot)
    state, _ = publish_fragments(state, params, client)
    return with_recoverer(state, slot, client._replace(meta_version=client.meta_version + 1))._replace(
        closed=state.closed | (1 << slot),
        meta_status=STATUS_CLOSED,
        meta_last_entry=slot_field(state.last_recoverable, slot) - 1,
    )
