"""A model traced: its guards, effects and invariants as expressions in the leaves of its state.

The parameters and the rates of one configuration are constants in them. So is whatever `Bounds` rules out. Bounds need
not be right: a state beyond them is found by `strays` or by `Seen.unbounded`, and nothing here is true of what follows.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from quorisk.kernels.model import INSTANCE_BITS, Action, Model, fault_bits, leaves, num_words
from quorisk.kernels.tracing.demand import leaf_names, width
from quorisk.kernels.tracing.expressions import Graph, Node, bits, same, trailing_zeros
from quorisk.kernels.tracing.folding import choose, condition, integer, make, negation, new_graph
from quorisk.kernels.tracing.general import CHOICE, nested

LOSSES = "losses"
"""Name of the leaf of which bit j is set if message j of a step is lost."""


NARROWEST = 16
"""Bits of the narrowest lanes that there are."""


class Bounds(NamedTuple):
    """What a configuration's runs are taken to show."""

    state: tuple[int, ...]
    """The bits that each leaf of the state may have."""
    enabled: frozenset[int]
    """Words of instances of which some may be enabled, by their place in the model."""
    taken: frozenset[int]
    """The words of instances of which some may be taken."""
    broken: frozenset[int]
    """Places of the invariants that may be broken."""
    shares: tuple[float, ...] = ()
    """The share of steps that take each word; empty if nothing is known of it."""
    mean_steps: float = math.inf
    """Of a run; infinite if some run was not seen to end."""


class Word(NamedTuple):
    """A word of instances that may be enabled."""

    number: int
    """Its place among the model's words."""
    action: int
    fault: int
    """The bit of its kind of fault in a run's `met_mask`; 0 if it is none."""
    weight: int
    """The rate of its instances, as in `points.Points`."""
    mask: Any
    """The instances that are enabled."""
    sent: Any
    """Messages that the instance `bit_leaf` sends."""
    after: tuple[Any, ...] | None
    """The leaves of the state after it, LOSSES being lost; None if the bounds rule out that it is taken."""
    share: float = 1.0
    """Of all steps, how many are thought to take it."""
    doubt: Any = False
    """Whether `after` need not be right; see `assume`."""


class Seen(NamedTuple):
    """What an engine has to know of a state."""

    masks: tuple[Any, ...]
    """The enabled instances of each of `TracedModel.words`."""
    unbounded: Any
    """Whether an instance is enabled that the bounds rule out, or the rest need not be right; see `assume`."""
    broken: tuple[Any, ...]
    """By invariant: whether it is broken."""
    outcome: Any


class TracedModel(NamedTuple):
    """A model in one configuration."""

    state: tuple[Any, ...]
    """The leaves of the state, of name `("state", i)`; 0 where bits are ruled out, or where nothing depends on them."""
    words: tuple[Word, ...]
    """Those that may be enabled, in the order in which instances are drawn."""
    now: Seen
    """What an engine has to know of the state, as a function of its leaves."""
    num_choices: int
    """Number of initial states."""
    initial: tuple[Any, ...]
    """The leaves of initial state number CHOICE."""
    at_first: Seen
    """What an engine has to know of the initial state, as a function of CHOICE."""
    bounds: Bounds
    graph: Graph


def widest(model: Model) -> Bounds:
    """All that the model's layout has room for."""
    words = frozenset(range(sum(num_words(model))))
    invariants = frozenset(range(len(model.invariants)))
    return Bounds(tuple((1 << width) - 1 for width in leaves(model.widths)), words, words, invariants)


def bit_leaf(place: int) -> tuple[str, int]:
    """Name of the leaf that is the place of the bit chosen in the word at that place of `TracedModel.words`."""
    return "bit", place


def mask_leaf(place: int) -> tuple[str, int]:
    """Name of the leaf of which that bit alone is set."""
    return "mask", place


def trace(model: Model, params: Any, weights: Sequence[int], bounds: Bounds) -> TracedModel:
    """The model with these parameters; `weights` are the rates of its words of instances, as in `points.Points`.

    Raises TypeError if the protocol's functions do with a traced value what cannot be followed.
    """
    return _Tracer(model, params, weights, bounds).trace()


class Together(NamedTuple):
    """What a step does, whichever word is drawn: `word_leaf` says which."""

    after: tuple[Any, ...]
    """The leaves of the state after it."""
    num_sent: Any
    met: Any
    """The bit of the kind of fault that it is."""
    redo: Any
    """Whether that is not all certain: the bounds rule out that state or the word, or the word is in doubt."""


def word_leaf(place: int) -> tuple[str, int]:
    """Name of the leaf that holds where the word at that place is drawn."""
    return "word", place


def together(traced: TracedModel, places: Sequence[int]) -> Together:
    """The effects of the words at these places in one; of others, none."""
    after = list(traced.state)
    num_sent: Any = 0
    met: Any = 0
    redo: Any = False
    for place in places:
        word = traced.words[place]
        drawn = traced.graph.leaf(word_leaf(place), 1, is_bool=True)
        redo = make("or", redo, drawn if word.after is None else make("and", drawn, word.doubt))
        for i, (leaf, new) in enumerate(zip(traced.state, word.after or traced.state, strict=True)):
            if not same(leaf, new):
                after[i] = choose(drawn, new, after[i])
        num_sent = choose(drawn, make("popcount", word.sent), num_sent)
        met = choose(drawn, word.fault, met)
    return Together(tuple(after), num_sent, met, make("or", redo, strays(after, traced.bounds)))


def strays(after: Sequence[Any], bounds: Bounds) -> Any:
    """Whether a state with these leaves is out of bounds."""
    astray: Any = False
    beyond: dict[int, Any] = {}  # by the width of lanes: one wide leaf does not widen what is asked of all others
    for value, may in zip(after, bounds.state, strict=True):
        if bits(value)[1] & ~may:
            lane = width(value, NARROWEST)
            places = (1 << (lane - 1)) - 1
            astray = make("or", astray, make("less", value, 0))
            beyond[lane] = make("or", beyond.get(lane, 0), make("and", value, places & ~may))
    for bits_beyond in beyond.values():
        astray = make("or", astray, condition(bits_beyond))
    return astray


class _Tracer:
    def __init__(self, model: Model, params: Any, weights: Sequence[int], bounds: Bounds) -> None:
        self.model, self.params, self.weights, self.bounds = model, params, weights, bounds
        self.graph = new_graph()
        self.losses = self.graph.leaf(LOSSES, (1 << model.max_sends) - 1) if model.max_sends else 0

    def trace(self) -> TracedModel:
        state = tuple(self.graph.leaf(("state", i), may) if may else 0 for i, may in enumerate(self.bounds.state))
        num_choices = self.model.initial_choices(self.params)
        initial = self._initial(num_choices)
        now, at_first = self._seen(state), self._seen(initial)
        places = [i for i, mask in enumerate(now.masks) if not same(mask, 0)]
        words = self._words(state, now.masks, places)
        now, at_first = (seen._replace(masks=tuple(seen.masks[i] for i in places)) for seen in (now, at_first))
        needed = self._needed(now, words)

        def kept(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(value if i in needed else 0 for i, value in enumerate(values))

        words = tuple(word._replace(after=word.after and kept(word.after)) for word in words)
        initial = kept(initial)
        at_first = at_first._replace(unbounded=make("or", at_first.unbounded, strays(initial, self.bounds)))
        return TracedModel(kept(state), words, now, num_choices, initial, at_first, self.bounds, self.graph)

    def _needed(self, now: Seen, words: Sequence[Word]) -> set[int]:
        """Places of the leaves on which runs depend, bounds or not: what bounds fold away may matter beyond them."""
        everything = widest(self.model)
        if self.bounds == everything:
            return _needed(now, words)
        whole = trace(self.model, self.params, self.weights, everything)
        return {i for i, leaf in enumerate(whole.state) if isinstance(leaf, Node)}

    def _initial(self, num_choices: int) -> tuple[Any, ...]:
        choice: Any = 0
        if num_choices > 1:
            choice = self.graph.leaf(CHOICE, (1 << (num_choices - 1).bit_length()) - 1, hi=num_choices - 1)
        return tuple(map(integer, leaves(self.model.initial(self.params, choice))))

    def _seen(self, state: Sequence[Any]) -> Seen:
        """As `Seen`, but with the masks of all words: 0 for those that are never drawn."""
        whole = nested(self.model.widths, iter(state))
        unbounded: Any = False
        masks: list[Any] = []
        for mask in (mask for action in self.model.actions for mask in action.enabled(whole, self.params)):
            if self.weights[len(masks)] and len(masks) not in self.bounds.enabled:
                unbounded = make("or", unbounded, condition(mask))
            drawn = self.weights[len(masks)] and len(masks) in self.bounds.enabled
            masks.append(integer(mask) if drawn else 0)
        broken = tuple(negation(condition(v.holds(whole, self.params))) for v in self.model.invariants)
        return Seen(tuple(masks), unbounded, broken, integer(self.model.outcome(whole, self.params)))

    def _words(self, state: Sequence[Any], masks: Sequence[Any], places: Sequence[int]) -> tuple[Word, ...]:
        whole = nested(self.model.widths, iter(state))
        actions = [
            (i, first) for i, num in enumerate(num_words(self.model)) for first in range(0, num << INSTANCE_BITS, 64)
        ]
        words = []
        for place, i in enumerate(places):
            number, first = actions[i]
            sent, after = 0, None
            if i in self.bounds.taken:
                sent, after = self._taken(self.model.actions[number], whole, first + self._bit(place, masks[i]))
            fault = fault_bits(self.model)[number]
            share = self.bounds.shares[i] if self.bounds.shares else 1.0
            words.append(Word(i, number, fault, self.weights[i], masks[i], sent, after, share))
        return tuple(words)

    def _bit(self, place: int, mask: Any) -> Any:
        """The place of the bit chosen in a mask."""
        _, may = bits(mask)
        lowest, highest = trailing_zeros(may), may.bit_length() - 1
        if lowest == highest:
            return lowest
        bit = self.graph.leaf(bit_leaf(place), (1 << highest.bit_length()) - 1, lowest, highest)
        bit.power = self.graph.leaf(mask_leaf(place), may)
        return bit

    def _taken(self, action: Action, whole: Any, instance: Any) -> tuple[Any, tuple[Any, ...]]:
        """What an instance sends, and the leaves of the state after it."""
        sent = integer(action.sends(whole, self.params, instance))
        after = action.apply(whole, self.params, instance, make("deposit", self.losses, sent))
        return sent, tuple(map(integer, leaves(after)))


def _needed(now: Seen, words: Sequence[Word]) -> set[int]:
    """Places of the leaves of the state on which runs depend."""
    needed = leaf_names([*now.masks, now.unbounded, *now.broken, now.outcome, *(word.sent for word in words)])
    while True:
        after = [value for word in words for i, value in enumerate(word.after or ()) if ("state", i) in needed]
        if (more := leaf_names(after)) <= needed:
            return {name[1] for name in needed if name[0] == "state"}
        needed |= more
