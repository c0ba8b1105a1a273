"""Reads of a recovery client: ClientSendsRecoveryReadRequests and ClientReceivesRecoveryReadResponse.

Instances: of sending, the slot; of receiving, (slot, bookie).
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import popcount, when, where
from quorisk.kernels.protocols.bookkeeper.adding import add_pending
from quorisk.kernels.protocols.bookkeeper.messages import (
    bookies_of_reads,
    processed,
    reachable,
    read_messages,
    reads_of_entry,
    reads_of_slot,
    send,
    surely_lost,
)
from quorisk.kernels.protocols.bookkeeper.slots import (
    ORDER,
    bookie_of,
    each_slot,
    in_read_write_phase,
    in_recovery,
    of_slot,
    order_of_slot,
    recoverer,
    rows_of_slots,
    slot_field,
    slot_of,
    slot_order,
    slot_row,
    with_recoverer,
    with_slot_field,
)
from quorisk.kernels.protocols.bookkeeper.stripes import Ensemble, current_list, has_quorum_coverage, write_set

NEED_MORE_RESPONSES, READ_UNKNOWN, NO_SUCH_ENTRY, READ_OK = range(4)
"""Values of ReadStatus."""


def recovery_ensemble(state, slot):
    """recovery_ensemble of the client of this slot."""
    return Ensemble(of_slot(state.recovery_ensembles, slot), order_of_slot(state.recovery_orders, slot))


def without_recovery_ensemble(state, slot):
    """The state with the recovery ensemble of this slot reset."""
    return state._replace(
        recovery_ensembles=state.recovery_ensembles & ~rows_of_slots(1 << slot),
        recovery_orders=state.recovery_orders & ~slot_order(slot, ORDER),
    )


def with_recovery_ensemble(state, slot, ensemble):
    """The state with another recovery ensemble of this slot."""
    rest = without_recovery_ensemble(state, slot)
    return rest._replace(
        recovery_ensembles=rest.recovery_ensembles | slot_row(slot, ensemble.members),
        recovery_orders=rest.recovery_orders | slot_order(slot, ensemble.order),
    )


def may_read(state, params, slot):
    """1 if the recovery client of this slot may send its first read or, the last one done, its next."""
    between_reads = (slot_field(state.last_recoverable, slot) | slot_field(state.curr_read_entries, slot)) == 0
    fenced = has_quorum_coverage(params, recovery_ensemble(state, slot), of_slot(state.fenced, slot))
    in_phase = ((state.reading >> slot) & 1) != 0
    return where((in_phase & between_reads) | ((in_phase ^ True) & fenced), 1, 0)


def client_sends_recovery_read_requests_enabled(state, params):
    # each entry is read once, so SendMessagesToEnsemble adds no condition
    return (each_slot(in_recovery(state), 1, may_read, state, params),)


def read_ensemble(state, params, slot):
    """The ensemble that the recovery reads of a slot go to."""
    current = current_list(recoverer(state, slot).fragments)
    return where(params.recovery_reads_initial_ensemble, recovery_ensemble(state, slot), current)


def read_set(state, params, slot):
    """The bookies to read this slot's next entry from."""
    return write_set(params, read_ensemble(state, params, slot), recoverer(state, slot).lap + 1)


def client_sends_recovery_read_requests_sends(state, params, slot):
    return reachable(state, read_set(state, params, slot))


@action(
    client_sends_recovery_read_requests_enabled, sends=client_sends_recovery_read_requests_sends, bounds=("clients",)
)
def client_sends_recovery_read_requests(state, params, slot, lost):
    """Each client that recovers asks for the next entry, with enough bookies fenced and no read under way."""
    entry = recoverer(state, slot).lap + 1
    asked = read_set(state, params, slot)
    return with_recovery_ensemble(state, slot, read_ensemble(state, params, slot))._replace(
        reading=state.reading | (1 << slot),
        curr_read_entries=with_slot_field(state.curr_read_entries, slot, entry),
        fenced=state.fenced & ~rows_of_slots(1 << slot),
        read_requests=send(
            state.read_requests,
            read_messages(entry, slot, asked),
            read_messages(entry, slot, surely_lost(state, asked, lost)),
        ),
    )


def read_timeout_count(state, params, slot):
    """ReadTimeoutCount: bookies of the write set being read from that lost any read message of this client."""
    lost = state.read_requests.lost | state.read_responses.lost
    asked = write_set(params, recovery_ensemble(state, slot), slot_field(state.curr_read_entries, slot))
    return popcount(bookies_of_reads(lost, slot) & asked)


def status_without_ok(state, params, slot, negative, unknown):
    """ReadStatus where no response is OK, once `negative` more bookies have answered NoSuchEntry and `unknown` more
    Unknown."""
    negatives = popcount(of_slot(state.negative_reads, slot)) + negative
    unknowns = popcount(of_slot(state.unknown_reads, slot)) + unknown
    needed = where(params.strict_negative_reads, params.write_quorum - params.ack_quorum + 1, 1)
    everybody = negatives + unknowns + read_timeout_count(state, params, slot) == params.write_quorum
    return where(negatives >= needed, NO_SUCH_ENTRY, where(everybody, READ_UNKNOWN, NEED_MORE_RESPONSES))


def reads_on_way(state, slot):
    """The read messages that IgnoreFurtherReadResponses takes out: of this client, with its recovery ensemble."""
    on_way = state.read_requests.on_way | state.read_responses.on_way
    return reads_of_slot(on_way, slot, of_slot(state.recovery_ensembles, slot))


def receivable_reads(state, params, slot):
    """The bookies whose read response this slot may take: those of the entry being read.

    Read literally, a response that decides the read is receivable only as the last one on its way.
    """
    entry = slot_field(state.curr_read_entries, slot)
    bookies = reads_of_entry(state.read_responses.on_way, entry, slot)
    return bookies & ~when(params.literal != 0, deciding_reads, state, params, slot, entry)


def deciding_reads(state, params, slot, entry):
    """The bookies whose response would decide the read while others are on their way."""
    found, unknown = reads_of_entry(state.read_found, entry, slot), reads_of_entry(state.read_unknown, entry, slot)
    undecided = where(status_without_ok(state, params, slot, 1, 0) == NEED_MORE_RESPONSES, ~(found | unknown), 0)
    undecided |= where(status_without_ok(state, params, slot, 0, 1) == NEED_MORE_RESPONSES, unknown, 0)
    return where(popcount(reads_on_way(state, slot)) == 1, 0, ~undecided)


def client_receives_recovery_read_response_enabled(state, params):
    first, second = slot_field(state.curr_read_entries, 0) != 0, slot_field(state.curr_read_entries, 1) != 0
    reads = where(first, 1, 0) | where(second, 2, 0)
    slots = where(state.read_responses.on_way != 0, in_read_write_phase(state) & reads, 0)
    return (each_slot(slots, 6, receivable_reads, state, params),)


def read_over(state, slot):
    """The common part of ReadPositive, ReadNegative and ReadUnknown: the read is reset, and further responses to it are
    ignored (IgnoreFurtherReadResponses)."""
    rows, ignored = rows_of_slots(1 << slot), reads_on_way(state, slot)
    return state._replace(
        curr_read_entries=with_slot_field(state.curr_read_entries, slot, 0),
        negative_reads=state.negative_reads & ~rows,
        unknown_reads=state.unknown_reads & ~rows,
        read_requests=processed(state.read_requests, ignored),
        read_responses=processed(state.read_responses, ignored),
    )


def read_positive(over, params, slot):
    """ReadPositive, once the read is over: the entry will be written back."""
    client = recoverer(over, slot)
    entry = client.lap + 1
    return with_recoverer(over, slot, add_pending(params, client, entry)._replace(lap=entry))


def read_negative(over, slot, entry):
    """ReadNegative, once the read is over: the entry before this one is the last that can be recovered."""
    last = with_slot_field(over.last_recoverable, slot, entry)
    return without_recovery_ensemble(over, slot)._replace(last_recoverable=last)


def read_unknown(over, slot):
    """ReadUnknown, once the read is over: recovery is aborted."""
    return without_recovery_ensemble(over, slot)._replace(aborted=over.aborted | (1 << slot))


@action(client_receives_recovery_read_response_enabled, bounds=("clients",))
def client_receives_recovery_read_response(state, params, instance, lost):
    """Each answer to a recovery read arrives at the client that recovers."""
    slot, response = slot_of(instance), 1 << instance
    entry = slot_field(state.curr_read_entries, slot)
    message = read_messages(entry, slot, 1 << bookie_of(instance))
    ok, unknown = (state.read_found & message) != 0, (state.read_unknown & message) != 0
    # NotEnoughReadResponses: all that happens unless the read is decided
    heard = state._replace(
        negative_reads=state.negative_reads | where(ok | unknown, 0, response),
        unknown_reads=state.unknown_reads | where(unknown, response, 0),
        read_responses=processed(state.read_responses, message),
    )
    status = where(ok, READ_OK, status_without_ok(heard, params, slot, 0, 0))
    over = read_over(heard, slot)
    missing = where(status == NO_SUCH_ENTRY, read_negative(over, slot, entry), read_unknown(over, slot))
    decided = where(status == READ_OK, read_positive(over, params, slot), missing)
    return where(status == NEED_MORE_RESPONSES, heard, decided)
