"""Messages: how each kind is a bit, and what the MessagePassing module does to them.

A message is found by what tells it from others of its kind, so that nothing but a bit has to be kept of it:

    AddEntryRequestMessage    bit of (entry, lac, bookie), one word for each client
    AddEntryResponseMessage   bit of (entry, bookie), one word for each client; FENCED_RESPONSE bits higher if refused
    FenceRequestMessage       bit of (slot, bookie); the response as well
    ReadRequestMessage        bit of (entry, slot, bookie); the response as well

Functions of this module alone know at which bit: they take sets of bookies, one message to each.
"""

from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_ROW,
    EVERY_SLOT_ROW,
    ROW,
    ROWS,
    Messages,
    any_row,
    later_rows,
)
from quorisk.kernels.protocols.bookkeeper.slots import of_slot, slot_row

FENCED_RESPONSE = 24
"""Bits from a request's success response up to its response that says fenced (success = FALSE)."""
_READS_OF_AN_ENTRY = 12


# ---- MessagePassing


def send(messages, mask, lost):
    """SendMessagesToEnsemble and SendMessage: the messages of `mask` enter the map, of them `lost` as lost."""
    return Messages(messages.sent | mask, messages.on_way | (mask & ~lost), messages.lost | lost)


def reachable(state, bookies):
    """The bookies among these that a message may reach: the others' messages are lost, and no coin is thrown."""
    return bookies & ~state.b_down


def surely_lost(state, bookies, lost):
    """The bookies whose messages are lost: `lost` by the coins, and those of these bookies that are down."""
    return lost | (bookies & state.b_down)


def processed(messages, mask):
    """MessageProcessed, for messages on their way."""
    return messages._replace(on_way=messages.on_way & ~mask)


def forget_lost(messages, mask):
    """A loss that was acted on: delivery count -1 becomes 0."""
    return messages._replace(lost=messages.lost & ~mask)


def lose(messages, mask):
    """Messages on their way that do not arrive: delivery count 1 becomes -1."""
    return Messages(messages.sent, messages.on_way & ~mask, messages.lost | mask)


# ---- AddEntryRequestMessage


def _request_row(entry, lac):
    """An add request's LAC is smaller than its entry: pairs of them are counted from (1, 0) on."""
    return (entry * (entry - 1)) // 2 + lac


def add_requests(entry, lac, bookies):
    """AddEntryRequestMessages for `entry` that carry `lac`, to these bookies."""
    return bookies << (6 * _request_row(entry, lac))


def add_requests_to(requests, entry, lac):
    """The bookies to which those requests went."""
    return (requests >> (6 * _request_row(entry, lac))) & ROW


def add_request_bookie(request):
    """The bookie of an add request, a bit's place."""
    return request % 6


def add_request_entry(request):
    """The entry of an add request, a bit's place: rows 0; 1, 2; 3 to 5; 6 to 9."""
    row = request // 6
    return where(row >= 3, where(row >= 6, 4, 3), where(row >= 1, 2, 1))


def add_request_lac(request):
    """The LAC of an add request, a bit's place."""
    return request // 6 - _request_row(add_request_entry(request), 0)


def add_requests_by_entry(requests):
    """Add requests folded over their LACs: bit 6(e - 1) + b."""
    second = (requests >> 6) | (requests >> 12)
    third = (requests >> 18) | (requests >> 24) | (requests >> 30)
    fourth = (requests >> 36) | (requests >> 42) | (requests >> 48) | (requests >> 54)
    return (requests & ROW) | (second & ROW) << 6 | (third & ROW) << 12 | (fourth & ROW) << 18


def add_requests_of(rows):
    """Unfolds bit 6(e - 1) + b over every LAC: the inverse of `add_requests_by_entry`."""
    second = ((rows >> 6) & ROW) * (0b1000001 << 6)
    third = ((rows >> 12) & ROW) * (0b1000001000001 << 18)
    return (rows & ROW) | second | third | ((rows >> 18) & ROW) * (EVERY_ROW << 36)


def behind_requests(on_way):
    """The add requests behind one of an earlier entry from the same client to the same bookie."""
    return add_requests_of(later_rows(add_requests_by_entry(on_way)))


def earliest_requests(on_way):
    """IsEarliestMsg for add requests on their way; those of entry 1 alone are behind none."""
    return on_way & ~when(on_way > ROW, behind_requests, on_way)


# ---- AddEntryResponseMessage


def add_response(entry, bookie):
    """The AddEntryResponseMessage with success = TRUE, as a bit's place."""
    return 6 * (entry - 1) + bookie


def answer_to(request):
    """The success response to an add request, both as bits' places."""
    return add_response(add_request_entry(request), add_request_bookie(request))


def behind_responses(on_way):
    """The add responses behind one of an earlier entry from the same bookie to the same client."""
    later = later_rows((on_way | (on_way >> FENCED_RESPONSE)) & ROWS)
    return later | (later << FENCED_RESPONSE)


def earliest_responses(on_way):
    """IsEarliestMsg for add responses on their way, successful or fenced."""
    return on_way & ~when((on_way & ~(ROW | ROW << FENCED_RESPONSE)) != 0, behind_responses, on_way)


def timed_out(client):
    """WriteTimeoutForBookie: the bookies that lost an add message with this client."""
    return any_row(client.requests.lost | client.responses.lost)


# ---- ReadRequestMessage, ReadResponseMessage


def read_messages(entry, slot, bookies):
    """ReadRequestMessages for `entry` of the client of this slot to these bookies, or the responses of these."""
    return slot_row(slot, bookies) << (_READS_OF_AN_ENTRY * (entry - 1))


def reads_of_entry(messages, entry, slot):
    """The bookies with which the client of this slot has such read messages for `entry`."""
    return of_slot(messages >> (_READS_OF_AN_ENTRY * (entry - 1)), slot)


def reads_of_slot(messages, slot, bookies):
    """Such read messages for any entry of the client of this slot with these bookies."""
    return messages & (slot_row(slot, bookies) * EVERY_SLOT_ROW)


def read_entry(message):
    """The entry of a read message, a bit's place."""
    return message // _READS_OF_AN_ENTRY + 1


def bookies_of_reads(messages, slot):
    """The bookies with which the client of this slot has such read messages, whatever the entry."""
    messages |= (messages >> 12) | (messages >> 24)
    return of_slot(messages | (messages >> 24), slot)
