"""What the writer and the recovery clients do alike: choose ensembles, add entries, resend them."""

from quorisk.kernels.ops import lowest_bit, popcount, when, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_REQUEST_ROW,
    EVERY_ROW,
    MAX_BOOKIES,
    MAX_ENTRIES,
    MAX_FRAGMENTS,
    ROW,
    ROWS,
    append_fragment,
    current_ensemble,
    ensembles_by_entry,
    entries_up_to,
    entry_row,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.messages import (
    FENCED_RESPONSE,
    add_requests,
    add_requests_to,
    earliest_responses,
    forget_lost,
    processed,
    send,
    surely_lost,
    timed_out,
)

_CONTAINING = tuple(sum(1 << (s - 1) for s in range(1, 64) if s >> b & 1) for b in range(MAX_BOOKIES))


def sets_without(sets, bookies):
    """Of these sets of bookies (bit S - 1 for the set S) those that have none of `bookies`."""
    for b in range(MAX_BOOKIES):
        sets &= where((bookies >> b) & 1, ~_CONTAINING[b], -1)
    return sets


def valid_ensembles(state, params, include_bookies, exclude_bookies):
    """ValidEnsemble for every set of bookies S at once, bit S - 1; none has a bookie that is down."""
    valid = sets_without(params.ensembles, exclude_bookies | state.b_down)
    for b in range(MAX_BOOKIES):
        valid &= where((include_bookies >> b) & 1, _CONTAINING[b], -1)
    for i in range(MAX_FRAGMENTS):  # where there is no fragment, bit 63 is cleared, which is no set's
        ensemble = (state.meta_fragments.ensembles >> (6 * i)) & ROW
        valid &= ~(1 << ((ensemble - 1) & 63))
    return valid


def select_ensemble(state, params, include_bookies, exclude_bookies):
    """SelectEnsemble: of the valid ensembles that placement prefers, or of all, the one with the smallest bit mask."""
    valid = valid_ensembles(state, params, include_bookies, exclude_bookies)
    spread = valid & params.spread_ensembles
    return lowest_bit(where(spread != 0, spread, valid)) + 1


def add_pending(client, entry):
    """The client with a pending add operation for its current fragment."""
    shift = 6 * (entry - 1)
    return client._replace(
        pending=client.pending | (1 << shift),
        op_fragments=client.op_fragments | (client.fragments.num << shift),
        op_ensembles=client.op_ensembles | (current_ensemble(client.fragments) << shift),
    )


def receivable_confirms(client):
    """Success responses that ReceiveAddConfirmedResponse may take: bit 6(e - 1) + b."""
    return earliest_responses(client.responses.on_way) & ROWS & (current_ensemble(client.fragments) * EVERY_ROW)


def receive_add_confirmed(client, params, response):
    """ReceiveAddConfirmedResponse, with MaxContiguousConfirmedEntry and MayBeRemoveFromPending."""
    confirmed = client.confirmed | (1 << response)
    reached = 0
    for i in range(MAX_ENTRIES):
        reached |= where(popcount((confirmed >> (6 * i)) & ROW) >= params.ack_quorum, 1 << i, 0)
    start = where(params.literal, 0, client.lac)
    contiguous = reached | ((1 << start) - 1)
    lac = popcount(contiguous & ~(contiguous + 1))  # trailing ones
    done = 0
    for i in range(MAX_ENTRIES):
        done |= where(((reached >> i) & 1) & (i < lac), ROW << (6 * i), 0)
    return client._replace(
        confirmed=confirmed,
        lac=where(lac > client.lac, lac, client.lac),
        pending=client.pending & ~done,
        op_fragments=client.op_fragments & ~done,
        op_ensembles=client.op_ensembles & ~done,
        responses=processed(client.responses, 1 << response),
    )


def needing_resend(client):
    """NeedsResend: bit 6(e - 1) of each pending op that is not of the current fragment and ensemble."""
    other_fragment = client.op_fragments ^ (client.fragments.num * EVERY_ROW)
    other_ensemble = client.op_ensembles ^ (current_ensemble(client.fragments) * EVERY_ROW)
    return nonzero_rows(other_fragment | other_ensemble) & client.pending


def can_change_ensemble(state, params, client):
    """The guard of ChangeEnsemble."""
    ensemble = current_ensemble(client.fragments)
    failed = timed_out(client) & ensemble
    available = valid_ensembles(state, params, ensemble & ~failed, failed) != 0
    return where((failed != 0) & (needing_resend(client) == 0) & available, 1, 0)


def change_ensemble(state, params, client):
    """ChangeEnsemble for the client alone: new fragments, confirmations and time-outs of failed bookies forgotten."""
    old = client.fragments
    ensemble = current_ensemble(old)
    failed = timed_out(client) & ensemble
    new = select_ensemble(state, params, ensemble & ~failed, failed)
    first = client.lac + 1
    replaced = old._replace(ensembles=old.ensembles ^ ensemble ^ new)
    return client._replace(
        fragments=where(first == (old.first_ids & 7), replaced, append_fragment(old, new, first)),
        confirmed=client.confirmed & (~(failed * EVERY_ROW) | entries_up_to(client.lac)),
        requests=forget_lost(client.requests, failed * EVERY_REQUEST_ROW),
        responses=forget_lost(client.responses, failed * (EVERY_ROW | EVERY_ROW << FENCED_RESPONSE)),
    )


def publish_fragments(state, client):
    """A client's fragments into the metadata. Returns the state and the client, who knows the new version."""
    version = state.meta_version + 1
    state = state._replace(
        meta_fragments=client.fragments,
        meta_ensembles=ensembles_by_entry(client.fragments),
        meta_version=version,
    )
    return state, client._replace(meta_version=version)


def resendable_ops(client):
    """The guard of ResendPendingAddOp: bit 6(e - 1) of each pending op that can be sent again."""
    resend = needing_resend(client)
    return resend & ~when(resend != 0, unsendable_ops, client)


def unsendable_ops(client):
    """Pending ops that may not be sent again now: bit 6(e - 1)."""
    behind, sent = 0, 0
    for k in range(1, MAX_ENTRIES):  # an earlier op of the same fragment and ensemble goes first
        other_fragment = client.op_fragments ^ (client.op_fragments << (6 * k))
        other_ensemble = client.op_ensembles ^ (client.op_ensembles << (6 * k))
        behind |= ~nonzero_rows(other_fragment | other_ensemble) & (client.pending << (6 * k))
    for i in range(MAX_ENTRIES):
        again = add_requests_to(client.requests.sent, i + 1, client.lac) & new_bookies(client, i + 1)
        sent |= where(again != 0, 1 << (6 * i), 0)
    return behind | sent


def new_bookies(client, entry):
    """The bookies of the current ensemble that a pending op was not sent to."""
    return current_ensemble(client.fragments) & ~entry_row(client.op_ensembles, entry)


def resend_pending_add_op(state, client, entry, lost):
    """ResendPendingAddOp: to the bookies that are new; the op then is of the current fragment."""
    requests = send_requests(state, client, entry, new_bookies(client, entry), lost)
    row = ROW << (6 * (entry - 1))
    rest = client._replace(op_fragments=client.op_fragments & ~row, op_ensembles=client.op_ensembles & ~row)
    return add_pending(rest, entry)._replace(requests=requests)


def send_requests(state, client, entry, bookies, lost):
    """SendMessagesToEnsemble of GetAddEntryRequests."""
    unheard = surely_lost(state, bookies, lost)
    return send(client.requests, add_requests(entry, client.lac, bookies), add_requests(entry, client.lac, unheard))
