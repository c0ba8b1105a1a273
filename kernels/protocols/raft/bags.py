"""Bags of messages of one kind: each a word, in descending order, so that equal bags are equal states.

A message is its record (see `layout`), above a bit that is set if it was taken: without `resend` it stays in the bag,
and is never sent again. A full bag takes nothing: senders wait. Send's guard, that no such message is in the bag, is
computed for all pairs of servers at once (`pairs_of`).
"""

from quorisk.kernels.ops import when, where
from quorisk.kernels.protocols.fields import joined, parted, total_bits
from quorisk.kernels.protocols.raft.layout import ROOM

TAKEN = 1
_SKIPPED = max(map(total_bits, ROOM)) + 1
"""The lowest bit of a slot's count of dropped slots before it, while a bag is packed."""


def is_received(slot, panicked):
    """Whether a message is on its way to a server that runs: not to one of `panicked`, a mask."""
    return (slot != 0) & (slot & TAKEN == 0) & ((panicked >> ((slot >> 1) & 0b111)) & 1 == 0)


def message(kind, slot):
    """The message in a slot."""
    return parted(kind, slot >> 1)


def has_room(bag):
    """Whether one more message may be sent."""
    return bag[bag.shape[0] - 1] == 0


def pairs_of(bag, kind, holds):
    """Pairs of servers, a mask (see `is_pair`), with a message in the bag, taken or not, that `holds`."""
    found = 0
    for slot in bag.numbers:
        found |= when(slot != 0, _pair_of, kind, slot, holds)
    return found


def _pair_of(kind, slot, holds):
    sent = message(kind, slot)
    return where(holds(sent), 1 << (sent.source << 3 | sent.dest), 0)


def is_pair(pairs, source, dest):
    """Whether this pair of servers is in a mask of pairs."""
    return (pairs >> (source << 3 | dest)) & 1 != 0


def with_sent(bag, sent):
    """The bag with one more message."""
    word, slots = joined(sent) << 1, []
    for slot in bag.numbers:
        slots.append(where(word > slot, word, slot))
        word = where(word > slot, slot, word)
    return bag.of(slots)


def without(bag, k, params):
    """The bag once the message in slot k was taken."""
    slots = [*bag.numbers, 0]
    forgotten = bag.of([where(k <= i, slots[i + 1], slots[i]) for i in range(len(slots) - 1)])
    return where(params.resend != 0, forgotten, bag.put(k, bag[k] | TAKEN))


def without_all(bag, of, params):
    """The bag without the messages to or from these servers, a mask."""
    slots, dropped = bag.numbers, []
    for slot in slots:
        dest, source = (slot >> 1) & 0b111, (slot >> 4) & 0b111
        dropped.append((((of >> dest) | (of >> source)) & 1 != 0) & (slot != 0))
    taken = bag.of([slot | where(drop, TAKEN, 0) for slot, drop in zip(slots, dropped, strict=True)])
    return where(params.resend != 0, bag.of(_packed(slots, dropped)), taken)


def _packed(slots, dropped):
    """The slots that are not dropped, in order, without gaps."""
    before, moving = 0, []
    for slot, drop in zip(slots, dropped, strict=True):
        moving.append(where(drop | (slot == 0), 0, slot | (before << _SKIPPED)))
        before = before + where(drop, 1, 0)
    for step in (1 << i for i in range((len(slots) - 1).bit_length())):
        bit = step << _SKIPPED
        beyond = [*moving[step:], *[0] * step]
        moving = [
            where(later & bit != 0, later, where(slot & bit != 0, 0, slot))
            for slot, later in zip(moving, beyond, strict=True)
        ]
    return [slot & ((1 << _SKIPPED) - 1) for slot in moving]


def emptied(bag, params):
    """The bag once nothing is on its way."""
    taken = bag.of([slot | where(slot != 0, TAKEN, 0) for slot in bag.numbers])
    return where(params.resend != 0, bag.of([]), taken)


def slot_of(bags, kind, k):
    """Slot k of a bag, which `kind` is the place of; 0 if it has no such slot."""
    found = 0
    for number, bag in enumerate(bags):
        found |= when((kind == number) & (k < bag.shape[0]), bag.__getitem__, k)
    return found
