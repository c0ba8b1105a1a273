"""The nine actions of the clients that recover the ledger."""

from quorisk.kernels.model import Action, sends_nothing
from quorisk.kernels.ops import jitable, lowest_bit, popcount, when, where
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
    send_requests,
)
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_SLOT_ROW,
    ROW,
    STATUS_CLOSED,
    STATUS_IN_RECOVERY,
    STATUS_OPEN,
    current_ensemble,
    has_quorum_coverage,
    nonzero_rows,
    processed,
    reachable,
    request_entries,
    send,
    surely_lost,
)
from quorisk.kernels.protocols.bookkeeper.slots import (
    in_recovery,
    recoverer,
    slot_field,
    slot_lanes,
    with_recoverer,
    with_slot_field,
)


@jitable
def client_starts_recovery_enabled(state, params):
    recoverable = (state.meta_status == STATUS_OPEN) | (state.meta_status == STATUS_IN_RECOVERY)
    others = (1 << (params.clients - 1)) - 1
    return (where(recoverable, others & ~state.started, 0),)


@jitable
def client_starts_recovery_sends(state, params, slot):
    return reachable(state, current_ensemble(state.meta_fragments))


@jitable
def client_starts_recovery(state, params, slot, lost):
    ensemble = current_ensemble(state.meta_fragments)
    version = state.meta_version + 1
    client = recoverer(state, slot)._replace(meta_version=version, fragments=state.meta_fragments)
    return with_recoverer(state, slot, client)._replace(
        meta_status=STATUS_IN_RECOVERY,
        meta_version=version,
        started=state.started | (1 << slot),
        recovery_ensembles=state.recovery_ensembles | (ensemble << (6 * slot)),
        fence_requests=send(
            state.fence_requests, ensemble << (6 * slot), surely_lost(state, ensemble, lost) << (6 * slot)
        ),
    )


@jitable
def client_receives_fencing_read_lac_response_enabled(state, params):
    return (state.fence_responses.on_way & slot_lanes(state.started & ~state.reading),)


@jitable
def client_receives_fencing_read_lac_response(state, params, instance, lost):
    slot = instance // 6
    client = recoverer(state, slot)
    known = slot_field(state.fence_lacs, instance)
    floor = where(params.recovery_lac_floor, (client.fragments.first_ids & 7) - 1, 0)
    lac = where(known > floor, known, floor)
    client = client._replace(lac=where(lac > client.lac, lac, client.lac), lap=where(lac > client.lap, lac, client.lap))
    return with_recoverer(state, slot, client)._replace(
        fenced=state.fenced | (1 << instance), fence_responses=processed(state.fence_responses, 1 << instance)
    )


@jitable
def covered_slots(state, params):
    """Bit slot: enough bookies of the recovery ensemble confirmed that they are fenced."""
    first = has_quorum_coverage(state.fenced & ROW, popcount(state.recovery_ensembles & ROW), params)
    second = has_quorum_coverage(state.fenced >> 6, popcount(state.recovery_ensembles >> 6), params)
    return where(first, 1, 0) | where(second, 2, 0)


@jitable
def readable_slots(state, params):
    """Bit slot: a recovery client that may send its first or next read."""
    idle = (state.last_recoverable | state.curr_read_entries) & 0b111111
    idle = ~(idle | (idle >> 1) | (idle >> 2))
    next_read = state.reading & ((idle & 1) | ((idle >> 2) & 2))
    first_read = ~state.reading & covered_slots(state, params)
    return in_recovery(state) & (next_read | first_read)


@jitable
def client_sends_recovery_read_requests_enabled(state, params):
    # each entry is read once, so SendMessagesToEnsemble adds no condition
    return (when(state.started != 0, readable_slots, state, params),)


@jitable
def read_ensemble(state, params, slot):
    """Where the recovery reads of a slot go."""
    initial = (state.recovery_ensembles >> (6 * slot)) & ROW
    return where(params.recovery_reads_initial_ensemble, initial, current_ensemble(recoverer(state, slot).fragments))


@jitable
def client_sends_recovery_read_requests_sends(state, params, slot):
    return reachable(state, read_ensemble(state, params, slot))


@jitable
def client_sends_recovery_read_requests(state, params, slot, lost):
    entry = recoverer(state, slot).lap + 1
    ensemble = read_ensemble(state, params, slot)
    lanes = slot_lanes(1 << slot)
    first = 12 * (entry - 1) + 6 * slot
    return state._replace(
        reading=state.reading | (1 << slot),
        curr_read_entries=with_slot_field(state.curr_read_entries, slot, entry),
        fenced=state.fenced & ~lanes,
        recovery_ensembles=(state.recovery_ensembles & ~lanes) | (ensemble << (6 * slot)),
        read_requests=send(state.read_requests, ensemble << first, surely_lost(state, ensemble, lost) << first),
    )


@jitable
def read_time_outs(state, slot):
    """ReadTimeoutCount: bookies of the recovery ensemble that lost any read message of this client."""
    lost = state.read_requests.lost | state.read_responses.lost
    lost |= (lost >> 12) | (lost >> 24)
    lost |= lost >> 24
    return popcount((lost >> (6 * slot)) & (state.recovery_ensembles >> (6 * slot)) & ROW)


NEED_MORE_RESPONSES, READ_UNKNOWN, NO_SUCH_ENTRY, READ_OK = range(4)


@jitable
def undecided_status(state, params, slot, negative, unknown):
    """ReadStatus where no response is OK, once these numbers of bookies more have answered NoSuchEntry and Unknown."""
    negatives = popcount((state.negative_reads >> (6 * slot)) & ROW) + negative
    unknowns = popcount((state.unknown_reads >> (6 * slot)) & ROW) + unknown
    needed = where(params.strict_negative_reads, params.write_quorum - params.ack_quorum + 1, 1)
    everybody = negatives + unknowns + read_time_outs(state, slot) == params.write_quorum
    return where(negatives >= needed, NO_SUCH_ENTRY, where(everybody, READ_UNKNOWN, NEED_MORE_RESPONSES))


@jitable
def reads_on_way(state, slot):
    """The read messages that IgnoreFurtherReadResponses takes out: of this client, with its recovery ensemble."""
    ensemble = state.recovery_ensembles & slot_lanes(1 << slot)
    return (state.read_requests.on_way | state.read_responses.on_way) & (ensemble * EVERY_SLOT_ROW)


@jitable
def receivable_reads(state, params, slot):
    """Read responses that this slot may take, as (slot, bookie) bits: those of the entry being read.

    Read literally, a response that decides the read is receivable only as the last one on its way.
    """
    shift = 12 * (slot_field(state.curr_read_entries, slot) - 1)
    lanes = (state.read_responses.on_way >> shift) & slot_lanes(1 << slot)
    return lanes & ~when(params.literal != 0, deciding_reads, state, params, slot, shift)


@jitable
def deciding_reads(state, params, slot, shift):
    """Read responses that would decide the read while others are on their way, as (slot, bookie) bits."""
    found, unknown = state.read_found >> shift, state.read_unknown >> shift
    undecided = where(undecided_status(state, params, slot, 1, 0) == NEED_MORE_RESPONSES, ~(found | unknown), 0)
    undecided |= where(undecided_status(state, params, slot, 0, 1) == NEED_MORE_RESPONSES, unknown, 0)
    return where(popcount(reads_on_way(state, slot)) == 1, 0, ~undecided)


@jitable
def client_receives_recovery_read_response_enabled(state, params):
    on_way = state.read_responses.on_way
    active = in_recovery(state) & state.reading
    first = ((active & 1) != 0) & (on_way != 0) & ((state.curr_read_entries & 7) != 0)
    second = ((active & 2) != 0) & (on_way != 0) & ((state.curr_read_entries >> 3) != 0)
    return (when(first, receivable_reads, state, params, 0) | when(second, receivable_reads, state, params, 1),)


@jitable
def client_receives_recovery_read_response(state, params, instance, lost):
    slot = instance // 6
    lanes = slot_lanes(1 << slot)
    entry = slot_field(state.curr_read_entries, slot)
    message = 1 << (12 * (entry - 1) + instance)
    found, unsure = (state.read_found & message) != 0, where((state.read_unknown & message) != 0, 1, 0)
    status = where(found, READ_OK, undecided_status(state, params, slot, 1 - unsure, unsure))
    decided = status != NEED_MORE_RESPONSES
    positive, negative, unknown = status == READ_OK, status == NO_SUCH_ENTRY, status == READ_UNKNOWN
    client = recoverer(state, slot)
    read = add_pending(client, entry)._replace(lap=client.lap + 1)
    ignored = where(decided, reads_on_way(state, slot), 0) | message
    return with_recoverer(state, slot, where(positive, read, client))._replace(
        curr_read_entries=where(decided, with_slot_field(state.curr_read_entries, slot, 0), state.curr_read_entries),
        negative_reads=where(decided, state.negative_reads & ~lanes, state.negative_reads | ((1 - unsure) << instance)),
        unknown_reads=where(decided, state.unknown_reads & ~lanes, state.unknown_reads | (unsure << instance)),
        recovery_ensembles=where(negative | unknown, state.recovery_ensembles & ~lanes, state.recovery_ensembles),
        last_recoverable=where(negative, with_slot_field(state.last_recoverable, slot, entry), state.last_recoverable),
        aborted=state.aborted | where(unknown, 1 << slot, 0),
        read_requests=processed(state.read_requests, ignored & ~message),
        read_responses=processed(state.read_responses, ignored),
    )


@jitable
def unwritten_entries(client):
    """NotSentWrite: bit 6(e - 1) of each pending op that no add request was sent for."""
    return client.pending & ~nonzero_rows(request_entries(client.requests.sent))


@jitable
def reading_slots(state):
    """Bit slot: in recovery, in the ReadWritePhase."""
    return in_recovery(state) & state.reading


@jitable
def client_writes_back_entry_enabled(state, params):
    first = when(state.recoverer_0.pending != 0, unwritten_entries, state.recoverer_0)
    second = when(state.recoverer_1.pending != 0, unwritten_entries, state.recoverer_1)
    return ((where(first != 0, 1, 0) | where(second != 0, 2, 0)) & reading_slots(state),)


@jitable
def client_writes_back_entry_sends(state, params, slot):
    return reachable(state, current_ensemble(recoverer(state, slot).fragments))


@jitable
def client_writes_back_entry(state, params, slot, lost):
    client = recoverer(state, slot)
    entry = lowest_bit(unwritten_entries(client)) // 6 + 1
    requests = send_requests(state, client, entry, current_ensemble(client.fragments), lost)
    return with_recoverer(state, slot, client._replace(requests=requests))


@jitable
def recovery_client_receives_add_confirmed_response_enabled(state, params):
    active = in_recovery(state)
    first = ((active & 1) != 0) & (state.recoverer_0.responses.on_way != 0)
    second = ((active & 2) != 0) & (state.recoverer_1.responses.on_way != 0)
    confirms = when(second, receivable_confirms, state.recoverer_1)
    return (when(first, receivable_confirms, state.recoverer_0) | (confirms << 24),)


@jitable
def recovery_client_receives_add_confirmed_response(state, params, instance, lost):
    slot = where(instance >= 24, 1, 0)
    client = receive_add_confirmed(recoverer(state, slot), params, instance - 24 * slot)
    return with_recoverer(state, slot, client)


@jitable
def recovery_can_change_ensemble(state, params, client):
    """RecoveryClientChangesEnsemble of one client."""
    wanted = (client.requests.lost | client.responses.lost) != 0
    allowed = (params.defer_recovery_ensemble_change != 0) | (client.meta_version == state.meta_version)
    return when(wanted & allowed, can_change_ensemble, state, params, client)


@jitable
def recovery_client_changes_ensemble_enabled(state, params):
    active = where(state.meta_status == STATUS_IN_RECOVERY, in_recovery(state), 0)
    first = when((active & 1) != 0, recovery_can_change_ensemble, state, params, state.recoverer_0)
    second = when((active & 2) != 0, recovery_can_change_ensemble, state, params, state.recoverer_1)
    return (first | (second << 1),)


@jitable
def recovery_client_changes_ensemble(state, params, slot, lost):
    client = change_ensemble(state, params, recoverer(state, slot))
    published, informed = publish_fragments(state, client)
    deferred = params.defer_recovery_ensemble_change != 0
    return with_recoverer(where(deferred, state, published), slot, where(deferred, client, informed))


@jitable
def recovery_client_sends_pending_add_op_enabled(state, params):
    active = in_recovery(state)
    first = ((active & 1) != 0) & (state.recoverer_0.pending != 0)
    second = ((active & 2) != 0) & (state.recoverer_1.pending != 0)
    return (when(first, resendable_ops, state.recoverer_0) | (when(second, resendable_ops, state.recoverer_1) << 24),)


@jitable
def recovery_client_sends_pending_add_op_sends(state, params, instance):
    slot = where(instance >= 24, 1, 0)
    return reachable(state, new_bookies(recoverer(state, slot), (instance - 24 * slot) // 6 + 1))


@jitable
def recovery_client_sends_pending_add_op(state, params, instance, lost):
    slot = where(instance >= 24, 1, 0)
    client = resend_pending_add_op(state, recoverer(state, slot), (instance - 24 * slot) // 6 + 1, lost)
    return with_recoverer(state, slot, client)


@jitable
def closable_slots(state, params):
    """Bit slot: a recovery client that may close the ledger."""
    checked = params.close_checks_version != 0
    first = (state.recoverer_0.pending == 0) & (
        (state.recoverer_0.meta_version == state.meta_version) | (checked ^ True)
    )
    second = (state.recoverer_1.pending == 0) & (
        (state.recoverer_1.meta_version == state.meta_version) | (checked ^ True)
    )
    known = where((state.last_recoverable & 7) != 0, 1, 0) | where((state.last_recoverable >> 3) != 0, 2, 0)
    closable = (where(first, 1, 0) | where(second, 2, 0)) & known & reading_slots(state)
    return closable


@jitable
def recovery_client_closes_ledger_enabled(state, params):
    waiting = (state.meta_status == STATUS_IN_RECOVERY) & (state.last_recoverable != 0)
    return (when(waiting, closable_slots, state, params),)


@jitable
def recovery_client_closes_ledger(state, params, slot, lost):
    client = recoverer(state, slot)
    state, _ = publish_fragments(state, client)
    return with_recoverer(state, slot, client._replace(meta_version=client.meta_version + 1))._replace(
        closed=state.closed | (1 << slot),
        meta_status=STATUS_CLOSED,
        meta_last_entry=slot_field(state.last_recoverable, slot) - 1,
    )


ACTIONS = (
    Action(
        "client_starts_recovery",
        client_starts_recovery_enabled,
        client_starts_recovery_sends,
        client_starts_recovery,
    ),
    Action(
        "client_receives_fencing_read_lac_response",
        client_receives_fencing_read_lac_response_enabled,
        sends_nothing,
        client_receives_fencing_read_lac_response,
    ),
    Action(
        "client_sends_recovery_read_requests",
        client_sends_recovery_read_requests_enabled,
        client_sends_recovery_read_requests_sends,
        client_sends_recovery_read_requests,
    ),
    Action(
        "client_receives_recovery_read_response",
        client_receives_recovery_read_response_enabled,
        sends_nothing,
        client_receives_recovery_read_response,
    ),
    Action(
        "client_writes_back_entry",
        client_writes_back_entry_enabled,
        client_writes_back_entry_sends,
        client_writes_back_entry,
    ),
    Action(
        "recovery_client_receives_add_confirmed_response",
        recovery_client_receives_add_confirmed_response_enabled,
        sends_nothing,
        recovery_client_receives_add_confirmed_response,
    ),
    Action(
        "recovery_client_changes_ensemble",
        recovery_client_changes_ensemble_enabled,
        sends_nothing,
        recovery_client_changes_ensemble,
    ),
    Action(
        "recovery_client_sends_pending_add_op",
        recovery_client_sends_pending_add_op_enabled,
        recovery_client_sends_pending_add_op_sends,
        recovery_client_sends_pending_add_op,
    ),
    Action(
        "recovery_client_closes_ledger",
        recovery_client_closes_ledger_enabled,
        sends_nothing,
        recovery_client_closes_ledger,
    ),
)
