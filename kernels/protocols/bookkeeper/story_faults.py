"""The story of bookies that fail, in words: the actions in which no client takes part."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.bookkeeper import describe, layout
from quorisk.kernels.protocols.bookkeeper.describe import LOST, ON_ITS_WAY, SpecState
from quorisk.kernels.protocols.bookkeeper.faults import rack_of
from quorisk.kernels.protocols.bookkeeper.names import ZK, bookie_name, fragment_names, in_order, label_of
from quorisk.kernels.protocols.bookkeeper.slots import bookie_of
from quorisk.kernels.telling import Note, Told, listed, words_beside

WORDS = words_beside(__file__)["steps_of_bookies"]
"""Sentences on steps by action, with fields in braces."""


STRUCK: Mapping[str, Callable[[layout.State, Any, int], list[int]]] = {
    **dict.fromkeys(
        (
            *("bookie_restarts_empty", "bookie_is_lost", "bookie_is_replaced"),
            *("bookie_flushes", "bookie_restarts_unclean", "bookie_loses_some"),
        ),
        lambda state, params, instance: [instance],
    ),
    **dict.fromkeys(
        ("two_bookies_are_lost_together", "three_bookies_are_lost_together"),
        lambda state, params, instance: bits(instance + 1),
    ),
    "auditor_replicates_fragment": lambda state, params, instance: [bookie_of(instance)],
    "rack_restarts_empty": lambda state, params, rack: bits(rack_of(params, rack) & ~state.b_down),
    "cluster_loses_power": lambda state, params, instance: bits(params.bookies),
    "rack_loses_power": lambda state, params, rack: bits(rack_of(params, rack)),
}
"""The bookies that an instance of each action is about."""


def tell_of_bookies(before: SpecState, then: SpecState, action: str, struck: list[int]) -> Told:
    """Returns the fate of bookies in words, with the requests that never reach them."""
    names = [bookie_name(b) for b in struck]
    gone = [bookie_name(b) for b in sorted(then.b_down - before.b_down)]
    comes = f"{listed(gone)} {'is' if len(gone) == 1 else 'are'} lost for good" if gone else "every bookie comes back"
    fields = {"bookies": listed(names), "fate": comes}
    notes = [Note((bookie_name(b),), text) for b in struck for text in _news(before, then, b, action)]
    if action == "auditor_replicates_fragment":
        fragments = zip(before.meta_fragments, then.meta_fragments, strict=True)
        old, new = next((was, now) for was, now in fragments if was != now)
        (substitute,) = set(new.ensemble) - set(old.ensemble)
        copied = then.b_entries[substitute] - before.b_entries[substitute]
        fields["substitute"] = bookie_name(substitute)
        fields["copied"] = f"copies {_entries(copied)}" if copied else "finds nothing to copy"
        notes.append(Note((ZK,), f"ensemble {fragment_names([new])}"))
    words = WORDS[action].format(**fields)
    of_all = [Note((names[0], names[-1]), words)] if action.endswith("loses_power") else []
    return Told(words=words, notes=(*of_all, *notes))


def _entries(entries: Iterable[describe.Entry]) -> str:
    return ", ".join(f"e{entry.id}" for entry in sorted(entries))


def _news(before: SpecState, then: SpecState, b: int, action: str) -> Iterator[str]:
    """Yields the changes of a bookie that failed, or flushed."""
    if b in before.b_down:
        if b not in then.b_down:
            yield "a new machine, empty"
        return
    if b in then.b_down:
        yield "lost for good"
    elif action.endswith("restarts_empty"):
        yield "empty"
    elif action == "bookie_flushes":
        yield f"on disk: {_entries(then.disks[b].entries) or 'no entry'}"
    else:
        gone = [_entries(before.b_entries[b] - then.b_entries[b])]
        gone += ["fence"] if before.b_fenced[b] and not then.b_fenced[b] else []
        if any(gone) or not action.endswith("loses_power"):
            yield f"{', '.join(filter(None, gone)) or 'nothing'} gone"
    if then.b_fenced[b] and not before.b_fenced[b]:
        yield "fenced"
    if then.b_limbo[b] and not before.b_limbo[b]:
        yield "in limbo"
    if missed := _labels(before, then, b):
        yield f"never gets: {missed}"


def _labels(before: SpecState, then: SpecState, b: int) -> str:
    """The requests that were on their way to a bookie and are lost with it."""
    counts = dict(then.messages)
    missed: Iterable[describe.Message] = (
        m for m, count in before.messages if m.bookie == b and count == ON_ITS_WAY and counts[m] == LOST
    )
    return ", ".join(map(label_of, in_order(missed)))
