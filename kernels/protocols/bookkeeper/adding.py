"""Steps that the writer and the recovery clients share: choose ensembles, add entries, resend them."""

from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_REQUEST_ROW,
    EVERY_ROW,
    MAX_BOOKIES,
    MAX_ENTRIES,
    MAX_FRAGMENTS,
    ROW,
    ROWS,
    any_row,
    current_ensemble,
    entries_up_to,
    entry_row,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.messages import (
    FENCED_RESPONSE,
    add_requests,
    add_requests_by_entry,
    add_requests_to,
    earliest_responses,
    forget_lost,
    processed,
    send,
    surely_lost,
    timed_out,
)
from quorisk.kernels.protocols.bookkeeper.stripes import (
    append_fragment,
    arrange,
    current_list,
    listed_ensembles,
    packed,
    with_ensemble_at,
    write_set,
    write_sets,
    write_sets_by_entry,
)

_CONTAINING = tuple(sum(1 << (s - 1) for s in range(1, 64) if s >> b & 1) for b in range(MAX_BOOKIES))


def sets_without(sets, bookies):
    """The sets of bookies among `sets` (bit S - 1 for the set S) that have none of `bookies`."""
    for b in range(MAX_BOOKIES):
        sets &= where((bookies >> b) & 1, ~_CONTAINING[b], -1)
    return sets


def valid_ensembles(state, params, old, failed):
    """ValidEnsemble for every set of bookies S at once, bit S - 1: those that may replace the ensemble `old` once its
    members `failed` are out. None has a bookie that is down."""
    kept = old.members & ~failed
    valid = sets_without(params.ensembles, failed | state.b_down)
    for b in range(MAX_BOOKIES):
        valid &= where((kept >> b) & 1, _CONTAINING[b], -1)
    listed = listed_ensembles(params, state.meta_fragments, old, failed)
    for i in range(MAX_FRAGMENTS):  # where there is no fragment, bit 63 is cleared, which is no set's
        ensemble = (listed >> (6 * i)) & ROW
        valid &= ~(1 << ((ensemble - 1) & 63))
    return valid


def first_of(sets):
    """The bit of the first in lexicographic order of these sets of bookies, which are all of a size."""
    for b in range(MAX_BOOKIES):
        containing = sets & _CONTAINING[b]
        sets = where(containing != 0, containing, sets)
    return sets


def select_ensemble(state, params, old, failed):
    """SelectEnsemble: the first of the valid ensembles that placement prefers, or of all. Sets with E = WQ come in the
    order of their bit masks, which is not TLC's where two of four spare bookies are needed."""
    valid = valid_ensembles(state, params, old, failed)
    spread = valid & params.spread_ensembles
    preferred = where(spread != 0, spread, valid)
    first = where(params.striped != 0, when(params.striped != 0, first_of, preferred), preferred)
    return arrange(params, old, lowest_bit(first) + 1)


def add_pending(params, client, entry):
    """The client with a pending add operation for its current fragment."""
    shift = 6 * (entry - 1)
    return client._replace(
        pending=client.pending | (1 << shift),
        op_fragments=client.op_fragments | (client.fragments.num << shift),
        op_ensembles=client.op_ensembles | (write_set(params, current_list(client.fragments), entry) << shift),
    )


def receivable_confirms(client, bookies):
    """Success responses of these bookies that ReceiveAddConfirmedResponse may take: bit 6(e - 1) + b."""
    return earliest_responses(client.responses.on_way) & ROWS & (bookies * EVERY_ROW)


def spread_entries(params, confirmed):
    """Bit e - 1: bookies of at least `ack_racks` racks confirmed entry e."""
    spread = 0
    for i in range(MAX_ENTRIES):
        racks = nonzero_rows(params.racks & ((confirmed >> (6 * i)) & ROW) * EVERY_REQUEST_ROW)
        spread |= where(popcount(racks) >= params.ack_racks, 1 << i, 0)
    return spread


def confirmed_entries(confirmed, quorum):
    """Entries that `quorum` bookies confirmed: bit e - 1 for entry e."""
    reached = 0
    for i in range(MAX_ENTRIES):
        reached |= where(popcount((confirmed >> (6 * i)) & ROW) >= quorum, 1 << i, 0)
    return reached


def reached_entries(params, confirmed):
    """Bit e - 1: AckQuorum bookies confirmed entry e, of at least `ack_racks` racks."""
    spread = when(params.ack_racks != 0, spread_entries, params, confirmed)
    return confirmed_entries(confirmed, params.ack_quorum) & where(params.ack_racks != 0, spread, -1)


def contiguous_entry(reached, start):
    """MaxContiguousConfirmedEntry, counted on from `start`."""
    contiguous = reached | ((1 << start) - 1)
    return popcount(contiguous & ~(contiguous + 1))  # trailing ones


def last_done(params, client):
    """The last entry that a client is done with, as with all before it: the LAC or, with `guaranteed_write_quorum`, the
    last add fully replicated. All that it pushed after that is pending then."""
    return where(params.guaranteed_write_quorum, client.lap - popcount(client.pending), client.lac)


def replicated_entries(params, client, confirmed):
    """The rows of the entries that WriteQuorum bookies confirmed, as they did all before."""
    start = where(params.literal, 0, last_done(params, client))
    return entries_up_to(contiguous_entry(confirmed_entries(confirmed, params.write_quorum), start))


def without_ops(params, client, rows):
    """The client without the pending add operations in these rows."""
    rest = client._replace(
        pending=client.pending & ~rows,
        op_fragments=client.op_fragments & ~rows,
        op_ensembles=client.op_ensembles & ~rows,
    )
    return with_left(params, rest)


def counted(params, client, changing):
    """Bit 6(e - 1) + b: an answer of bookie b about entry e counts, as it is in the entry's write set. While the client
    is `changing`, that is the one that its pending op was sent to."""
    return where(changing != 0, client.op_ensembles, write_sets(params, current_list(client.fragments)))


def receive_add_confirmed(params, client, response, changing=0):
    """ReceiveAddConfirmedResponse, with MayBeRemoveFromPending; nothing is acknowledged while `changing`."""
    confirmed = client.confirmed | ((1 << response) & counted(params, client, changing))
    reached = reached_entries(params, confirmed)
    lac = contiguous_entry(reached, where(params.literal, 0, client.lac))
    lac = where((lac > client.lac) & (changing == 0), lac, client.lac)
    done = 0
    for i in range(MAX_ENTRIES):
        done |= where(((reached >> i) & 1) & (i < lac), ROW << (6 * i), 0)
    guaranteed = params.guaranteed_write_quorum != 0
    done = where(guaranteed, when(guaranteed, replicated_entries, params, client, confirmed), done)
    return without_ops(params, client, done)._replace(
        confirmed=confirmed, lac=lac, responses=processed(client.responses, 1 << response)
    )


def needing_resend(params, client):
    """NeedsResend: bit 6(e - 1) of each pending op that is not of the current fragment and ensemble."""
    other_fragment = client.op_fragments ^ (client.fragments.num * EVERY_ROW)
    other_ensemble = (client.op_ensembles ^ write_sets(params, current_list(client.fragments))) & ROWS
    return nonzero_rows(other_fragment | other_ensemble) & client.pending


def with_left(params, client):
    """The client with `left` as its pending ops have it: 0 once none is to be sent again."""
    resend = when(client.left != 0, needing_resend, params, client)
    return client._replace(left=where(resend != 0, client.left, 0))


def blocking_bookies(params, client):
    """FailedBookies with `delay_ensemble_change`: of each pending entry that can no longer reach its ack quorum, those
    that it was lost with and that have not confirmed it."""
    lost = (
        add_requests_by_entry(client.requests.lost) | client.responses.lost | client.responses.lost >> FENCED_RESPONSE
    )
    lost &= write_sets(params, current_list(client.fragments)) & client.pending * ROW & ~client.confirmed
    failed = 0
    for entry in range(1, MAX_ENTRIES + 1):
        bookies = entry_row(lost, entry)
        failed |= where(popcount(bookies) > params.write_quorum - params.ack_quorum, bookies, 0)
    return failed


def pinned_bookies(params, client):
    """PinnedBookies: those that confirmed an entry which is acknowledged and still pending."""
    return any_row(client.confirmed & entries_up_to(client.lac) & ~entries_up_to(last_done(params, client)))


def failed_bookies(params, client):
    """FailedBookies: the bookies that an ensemble change replaces."""
    blocking = when(params.delay_ensemble_change != 0, blocking_bookies, params, client)
    failed = where(params.delay_ensemble_change != 0, blocking, timed_out(client))
    pinned = when(params.guaranteed_write_quorum != 0, pinned_bookies, params, client)
    return failed & current_ensemble(client.fragments) & ~pinned


def can_change_ensemble(state, params, client):
    """The guard of ChangeEnsemble."""
    ensemble, failed = current_list(client.fragments), failed_bookies(params, client)
    available = valid_ensembles(state, params, ensemble, failed) != 0
    return where((failed != 0) & (needing_resend(params, client) == 0) & available, 1, 0)


def untouched_ops(client, sets):
    """Bit 6(e - 1) of each pending op whose write set is the same in a new ensemble, which has these write sets."""
    return client.pending & ~nonzero_rows((client.op_ensembles ^ sets) & ROWS)


def change_ensemble(state, params, client, unsets=1):
    """ChangeEnsemble for the client alone: new fragments, time-outs of failed bookies forgotten and, if it `unsets`,
    their confirmations. An op whose write set stays the same is of the new fragment at once."""
    old, ensemble = client.fragments, current_list(client.fragments)
    failed = failed_bookies(params, client)
    new = select_ensemble(state, params, ensemble, failed)
    first = last_done(params, client) + 1
    in_place = first == (old.first_ids & 7)
    fragments = where(in_place, with_ensemble_at(old, 0, new), append_fragment(old, new, first))
    stay = when(params.striped != 0, untouched_ops, client, write_sets(params, new))
    leave = where(params.striped != 0, client.pending & ~stay, 0)
    return client._replace(
        fragments=fragments,
        confirmed=where(unsets, without_confirmations(client, failed), client.confirmed),
        op_fragments=(client.op_fragments & ~(stay * ROW)) | stay * fragments.num,
        left=where(leave != 0, packed(ensemble), 0),
        requests=forget_lost(client.requests, failed * EVERY_REQUEST_ROW),
        responses=forget_lost(client.responses, failed * (EVERY_ROW | EVERY_ROW << FENCED_RESPONSE)),
    )


def without_confirmations(client, bookies):
    """The confirmations without those of these bookies for entries that are not acknowledged."""
    return client.confirmed & (~(bookies * EVERY_ROW) | entries_up_to(client.lac))


def publish_fragments(state, params, client):
    """A client's fragments into the metadata. Returns the state and the client, who knows the new version."""
    version = state.meta_version + 1
    state = state._replace(
        meta_fragments=client.fragments,
        meta_write_sets=write_sets_by_entry(params, client.fragments),
        meta_version=version,
    )
    return state, client._replace(meta_version=version)


def resendable_ops(params, client):
    """The guard of ResendPendingAddOp: bit 6(e - 1) of the pending op that can be sent again. All that are to be are of
    one fragment and ensemble, as a client changes no ensemble before it has sent them, so the earliest goes first."""
    resend = needing_resend(params, client)
    return resend & -resend & ~when(resend != 0, sent_ops, params, client)


def sent_ops(params, client):
    """Pending ops that were sent with the same LAC to a bookie that they would go to again: bit 6(e - 1)."""
    sent, done = 0, last_done(params, client)
    for i in range(MAX_ENTRIES):
        again = add_requests_to(client.requests.sent, i + 1, done) & new_bookies(params, client, i + 1)
        sent |= where(again != 0, 1 << (6 * i), 0)
    return sent


def new_bookies(params, client, entry):
    """The bookies of an entry's write set in the current ensemble that its pending op was not sent to."""
    return write_set(params, current_list(client.fragments), entry) & ~entry_row(client.op_ensembles, entry)


def resend_pending_add_op(state, params, client, entry, lost):
    """ResendPendingAddOp: to the bookies that are new; the op then is of the current fragment."""
    requests = send_requests(state, params, client, entry, new_bookies(params, client, entry), lost)
    row = ROW << (6 * (entry - 1))
    rest = client._replace(op_fragments=client.op_fragments & ~row, op_ensembles=client.op_ensembles & ~row)
    return with_left(params, add_pending(params, rest, entry))._replace(requests=requests)


def send_requests(state, params, client, entry, bookies, lost):
    """SendMessagesToEnsemble of GetAddEntryRequests."""
    unheard, done = surely_lost(state, bookies, lost), last_done(params, client)
    return send(client.requests, add_requests(entry, done, bookies), add_requests(entry, done, unheard))
