"""A model traced: its guards, effects and invariants as expressions in the leaves of its state.

The parameters and the rates of one configuration are constants in them. So is whatever `Bounds` rules out. Bounds need
not be right: a state beyond them is found by `strays` or by `Seen.unbounded`, and nothing here holds after it.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from quorisk.kernels import rule
from quorisk.kernels.model import Action, Model, fault_bits, leaves
from quorisk.kernels.tracing.demand import leaf_names, width
from quorisk.kernels.tracing.expressions import Graph, Node, known_bits, same, trailing_zeros
from quorisk.kernels.tracing.folding import as_integer, condition, make, negation, new_graph, select
from quorisk.kernels.tracing.general import CHOICE, PICKED, nested

NARROWEST = 16
"""Bits of the narrowest lanes that there are."""


class Follower(NamedTuple):
    """A leaf of the state that is `value` where another one, the flag, is not 0, and 0 elsewhere."""

    leaf: int
    flag: int
    value: int


class Bounds(NamedTuple):
    """Assumed bounds of a configuration's runs."""

    state: tuple[int, ...]
    """The bits that each leaf of the state may have."""
    enabled: frozenset[int]
    """Words of groups of which some may be enabled, by their place in `rule.group_words`."""
    taken: frozenset[int]
    """The words of groups of which some may be taken."""
    broken: frozenset[int]
    """Places of the invariants that may be broken."""
    shares: tuple[float, ...] = ()
    """The share of steps that take each word; empty if nothing is known of it."""
    mean_steps: float = math.inf
    """Mean number of steps of a run; infinite if some run was not seen to end."""
    followers: tuple[Follower, ...] = ()
    """Leaves that follow others; no flag is one of them."""


class Word(NamedTuple):
    """A word of groups that may be enabled."""

    number: int
    """Its place in `rule.group_words`."""
    action: int
    fault: int
    """The bit of its kind of fault in a run's `met_mask`; 0 if it is none."""
    weight: int
    """The rate of its groups, as in `points.Points`."""
    mask: Any
    """The groups with a member enabled."""
    subset: Any
    """Mask of what the instance that goes off may lose, such as the messages that it sends. This instance is the member
    of the group `bit_leaf` that PICKED picks."""
    loss: int
    """The place of its probability in `rule.loss_names`."""
    after: tuple[Any, ...] | None
    """The leaves of the state after it, `losses_leaf(loss)` being lost; None if bounds rule out that it is taken."""
    share: float = 1.0
    """Estimated share of all steps that take it."""
    doubt: Any = False
    """Whether `after` may be wrong: a leaf does not follow as it was seen to, or an assumption of `assume` fails."""

    @property
    def sent(self) -> Any:
        """The messages that it sends: nothing else is counted as such."""
        return 0 if self.loss else self.subset


class Seen(NamedTuple):
    """Values of a state that an engine needs."""

    masks: tuple[Any, ...]
    """The groups with a member enabled of each of `TracedModel.words`."""
    unbounded: Any
    """Whether a group is enabled that the bounds rule out, or the rest may be wrong; see `assume`."""
    broken: tuple[Any, ...]
    """Whether each invariant is broken."""
    outcome: Any


class TracedModel(NamedTuple):
    """A model in one configuration."""

    state: tuple[Any, ...]
    """The leaves of the state, of name `("state", i)`; 0 where bits are ruled out, where nothing depends on them, and
    where they follow others."""
    words: tuple[Word, ...]
    """Words that may be enabled, in the order in which groups are drawn."""
    now: Seen
    """Values of the state that an engine needs, as functions of its leaves."""
    num_choices: int
    """Number of initial states."""
    initial: tuple[Any, ...]
    """The leaves of initial state number CHOICE."""
    at_first: Seen
    """Values of the initial state that an engine needs, as functions of CHOICE."""
    bounds: Bounds
    graph: Graph


def widest(model: Model) -> Bounds:
    """Returns bounds as wide as the model's layout."""
    words = frozenset(range(len(rule.group_words(model))))
    invariants = frozenset(range(len(model.invariants)))
    return Bounds(tuple((1 << width) - 1 for width in leaves(model.widths)), words, words, invariants)


def losses_leaf(loss: int) -> tuple[str, int]:
    """Name of the leaf of which bit j is set if member j of a step's subset is lost, by that place in
    `rule.loss_names`."""
    return "losses", loss


def bit_leaf(place: int) -> tuple[str, int]:
    """Name of the leaf that is the place of the bit chosen in the word at that place of `TracedModel.words`."""
    return "bit", place


def mask_leaf(place: int) -> tuple[str, int]:
    """Name of the leaf in which only that bit is set."""
    return "mask", place


def trace(model: Model, params: Any, weights: Sequence[int], bounds: Bounds) -> TracedModel:
    """The model with these parameters; `weights` are the rates of its words of groups, as in `points.Points`.

    Raises TypeError if the protocol's functions do with a traced value what tracing cannot follow, and ValueError if
    what an action sends may exceed `Model.max_sends`.
    """
    return _Tracer(model, params, weights, bounds).trace()


@lru_cache(maxsize=2)
def trace_all(model: Model, params: Any, weights: tuple[int, ...]) -> TracedModel:
    """The model traced with the bounds of `widest`, kept as it is wanted twice; see `trace`."""
    return trace(model, params, weights, widest(model))


class Together(NamedTuple):
    """The effect of a step, whichever word is drawn: `word_leaf` says which."""

    after: tuple[Any, ...]
    """Leaves of the state after the step."""
    num_sent: Any
    met: Any
    """Bit of the kind of fault that the step is."""
    redo: Any
    """Whether that may be wrong: the bounds rule out that state or the word, or the word is in doubt."""


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
                after[i] = select(drawn, new, after[i])
        num_sent = select(drawn, make("popcount", word.sent), num_sent)
        met = select(drawn, word.fault, met)
    return Together(tuple(after), num_sent, met, make("or", redo, strays(after, traced.bounds)))


def strays(after: Sequence[Any], bounds: Bounds) -> Any:
    """Whether a state with these leaves is out of bounds."""
    astray: Any = False
    beyond: dict[int, Any] = {}  # by the width of lanes: one wide leaf does not widen what all others need
    for value, may in zip(after, bounds.state, strict=True):
        if known_bits(value)[1] & ~may:
            lane = width(value, NARROWEST)
            places = (1 << (lane - 1)) - 1
            astray = make("or", astray, make("less", value, 0))
            beyond[lane] = make("or", beyond.get(lane, 0), make("and", value, places & ~may))
    for bits_beyond in beyond.values():
        astray = make("or", astray, condition(bits_beyond))
    return astray


def not_following(after: Sequence[Any], followers: Sequence[Follower]) -> Any:
    """Whether a leaf does not have the value that follows from its flag."""
    found: Any = False
    for leaf, flag, value in followers:
        found = make("or", found, make("unequal", after[leaf], select(condition(after[flag]), value, 0)))
    return found


class _Tracer:
    def __init__(self, model: Model, params: Any, weights: Sequence[int], bounds: Bounds) -> None:
        self.model, self.params, self.weights, self.bounds = model, params, weights, bounds
        self.graph = new_graph(lanes=True)
        most = (1 << model.max_sends) - 1
        self.losses = [
            self.graph.leaf(losses_leaf(loss), most) if most else 0 for loss in range(len(rule.loss_names(model)))
        ]
        self.picked = self.graph.leaf(PICKED, (1 << rule.PICK_BITS) - 1)

    def trace(self) -> TracedModel:
        state = [self.graph.leaf(("state", i), may) if may else 0 for i, may in enumerate(self.bounds.state)]
        followers = self.bounds.followers
        for leaf, flag, value in followers:
            state[leaf] = select(condition(state[flag]), value, 0)
        num_choices = self.model.initial_choices(self.params)
        initial = self._initial(num_choices)
        now, at_first = self._seen(state), self._seen(initial)
        places = [i for i, mask in enumerate(now.masks) if not same(mask, 0)]
        words = self._words(state, now.masks, places)
        now, at_first = (seen._replace(masks=tuple(seen.masks[i] for i in places)) for seen in (now, at_first))
        needed = self._needed(now, words) - {each.leaf for each in followers}

        def kept(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(value if i in needed else 0 for i, value in enumerate(values))

        words = tuple(word._replace(after=word.after and kept(word.after)) for word in words)
        astray = make("or", not_following(initial, followers), strays(kept(initial), self.bounds))
        initial = kept(initial)
        at_first = at_first._replace(unbounded=make("or", at_first.unbounded, astray))
        return TracedModel(kept(state), words, now, num_choices, initial, at_first, self.bounds, self.graph)

    def _needed(self, now: Seen, words: Sequence[Word]) -> set[int]:
        """Places of the leaves on which runs depend, bounds or not: what bounds fold away may matter beyond them."""
        everything = widest(self.model)
        if self.bounds == everything:
            return needed_leaves(now, words)
        whole = trace_all(self.model, self.params, tuple(self.weights))
        return {i for i, leaf in enumerate(whole.state) if isinstance(leaf, Node)}

    def _initial(self, num_choices: int) -> tuple[Any, ...]:
        choice: Any = 0
        if num_choices > 1:
            choice = self.graph.leaf(CHOICE, (1 << (num_choices - 1).bit_length()) - 1, hi=num_choices - 1)
        return tuple(map(as_integer, leaves(self.model.initial(self.params, choice))))

    def _seen(self, state: Sequence[Any]) -> Seen:
        """Makes a `Seen` with the masks of all words: 0 for those that are never drawn."""
        whole = nested(self.model.widths, iter(state))
        unbounded: Any = False
        masks: list[Any] = []
        for mask in (
            mask for action in self.model.actions for mask in rule.groups(action, self._enabled(action, whole))
        ):
            if self.weights[len(masks)] and len(masks) not in self.bounds.enabled:
                unbounded = make("or", unbounded, condition(mask))
            drawn = self.weights[len(masks)] and len(masks) in self.bounds.enabled
            masks.append(as_integer(mask) if drawn else 0)
        broken = tuple(negation(condition(v.holds(whole, self.params))) for v in self.model.invariants)
        return Seen(tuple(masks), unbounded, broken, as_integer(self.model.outcome(whole, self.params)))

    def _enabled(self, action: Action, whole: Any) -> tuple[Any, ...]:
        return tuple(map(as_integer, action.enabled(whole, self.params)))

    def _words(self, state: Sequence[Any], masks: Sequence[Any], places: Sequence[int]) -> tuple[Word, ...]:
        whole = nested(self.model.widths, iter(state))
        words = []
        for place, i in enumerate(places):
            number, first = rule.group_words(self.model)[i]
            loss = rule.losses(self.model)[number]
            subset, after, doubt = 0, None, False
            if i in self.bounds.taken:
                group = first + self._bit(place, masks[i])
                subset, after = self._taken(self.model.actions[number], whole, group, self.losses[loss])
                doubt = not_following(after, self.bounds.followers)
            fault = fault_bits(self.model)[number]
            share = self.bounds.shares[i] if self.bounds.shares else 1.0
            words.append(Word(i, number, fault, self.weights[i], masks[i], subset, loss, after, share, doubt))
        return tuple(words)

    def _bit(self, place: int, mask: Any) -> Any:
        """The place of the bit chosen in a mask."""
        _, may = known_bits(mask)
        lowest, highest = trailing_zeros(may), may.bit_length() - 1
        if lowest == highest:
            return lowest
        bit = self.graph.leaf(bit_leaf(place), (1 << highest.bit_length()) - 1, lowest, highest)
        bit.power = self.graph.leaf(mask_leaf(place), may)
        return bit

    def _taken(self, action: Action, whole: Any, group: Any, losses: Any) -> tuple[Any, tuple[Any, ...]]:
        """Returns what the instance of a group that goes off may lose, and the leaves of the state after it."""
        instance = group
        if action.shared > 1:
            instance = as_integer(rule.member(action, self._enabled(action, whole), group, self.picked))
        subset = as_integer(action.sends(whole, self.params, instance))
        if known_bits(subset)[1] >> self.model.max_sends:
            raise ValueError(f"{action.name} may send more than {self.model.max_sends} messages")
        after = action.apply(whole, self.params, instance, make("deposit", losses, subset))
        return subset, tuple(map(as_integer, leaves(after)))


def needed_leaves(now: Seen, words: Sequence[Word], and_others: Iterable[int] = ()) -> set[int]:
    """Places of the leaves of the state on which runs, or the others of these leaves, depend."""
    outputs = [*now.masks, now.unbounded, *now.broken, now.outcome]
    needed = leaf_names(outputs + [value for word in words for value in (word.subset, word.doubt)])
    needed |= {("state", i) for i in and_others}
    while True:
        after = [value for word in words for i, value in enumerate(word.after or ()) if ("state", i) in needed]
        if (more := leaf_names(after)) <= needed:
            return {name[1] for name in needed if name[0] == "state"}
        needed |= more
