"""The contract between a protocol and everything that runs it: engines, search, exact solver, traces.

Every bit of nondeterminism of a model is (initial choice, action instance, lost subset). An engine draws it, the
exhaustive search enumerates it, a trace records it. Nothing outside a protocol's package knows that protocol.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from quorisk.kernels.ops import where

COMPLETED, STUCK, LOST, HORIZON, UNFINISHED = range(5)
"""Outcomes of a run; the first two are those that a model's `outcome` may return."""
OUTCOMES = ("completed", "stuck", "lost", "horizon", "unfinished")

EXPOSURE, AVAILABILITY = "exposure", "availability"
"""Kinds of breach that are not errors; see `Invariant.about`."""
ABOUT = ("", EXPOSURE, AVAILABILITY)
TABLES = ("model", "variant", "faults")
"""Tables of an experiment file that may hold model parameters."""
LOST_MESSAGE = "lost message"
"""The kind of fault that belongs to no action."""
MESSAGE_LOSS = "message_loss"
"""The probability with which messages are lost; a key of `[faults]`, as those of `Model.probabilities` are."""
EVERYTHING = 64
"""Value of `Action.shared` with which all instances of the action, in all its words, share its rate."""

INSTANCE_BITS = 6
"""Bits of an instance's number below its word: it is word * 64 + bit, a place in the masks of `Action.enabled`."""


class Condition(NamedTuple):
    """A relation between parameters that the model needs: `ack_quorum <= write_quorum`."""

    key: str
    allowed: str
    holds: Callable[[Mapping[str, Any]], bool]


class Action(NamedTuple):
    """One action of a protocol's specification; all four functions are pure and traceable (see `ops`)."""

    name: str
    """The specification's name in snake_case; also the key of its rate."""
    enabled: Callable[[Any, Any], tuple[Any, ...]]
    """`enabled(state, params)`: a tuple of int64 masks, a bit for each instance that is enabled now."""
    sends: Callable[[Any, Any, Any], Any]
    """`sends(state, params, instance)`: int64 mask, a bit for each message that the instance would send, or for each
    thing that it may lose; see `lost_with`."""
    apply: Callable[[Any, Any, Any, Any], Any]
    """`apply(state, params, instance, lost)`: the next state; `lost` is the subset of `sends` that is lost."""
    fault: str = ""
    """Kind of fault, such as "lost bookie"; "" if the action is no fault."""
    counts: str = ""
    """Sentence that says what the rate counts: who or what does it at that rate."""
    shared: int = 1
    """Number of neighbouring instances of a word, aligned, that share the rate: one of such a group goes off at the
    rate, each that is enabled as likely as the others. EVERYTHING if all instances are one group."""
    lost_with: str = MESSAGE_LOSS
    """Name of the probability with which each member of `sends` is lost, independently. Members are messages if it is
    MESSAGE_LOSS; others are not counted as messages."""
    needs: tuple[str, ...] = ()
    """Parameters of which at least one must differ from its default, or the action never happens and its rate plays no
    part. For an action added after the model's version: without them runs and identities are what they were."""
    bounds: tuple[str, ...] = ()
    """Parameters that must all be above their lowest allowed value, or on if switches, or the action never happens: how
    often a fault may happen, whether there is a repair, another client."""
    rate: float = 1.0
    """Rate where an experiment file gives none."""
    rate_of: str = ""
    """Action whose rate is the default instead: for a part of the specification's action that may have its own rate."""
    interval_ms: tuple[str, ...] = ()
    """Settings of a cluster, in milliseconds, whose reciprocal is the rate; files may give one of them instead."""
    only: Condition | None = None
    """Condition without which the action never happens; a file that gives the rate all the same is refused."""


class Invariant(NamedTuple):
    """A property of states; a run ends at the first state that breaks one flagged `data_loss`."""

    name: str
    holds: Callable[[Any, Any], Any]
    data_loss: bool
    about: str = ""
    """Kind of a breach that is no error: EXPOSURE (another fault would do more harm now than it should; runs add up for
    how long) or AVAILABILITY (nothing is lost, but something cannot go on)."""
    room: str = ""
    """Parameter that gives more room, if a breach means that a limit of the model is reached: results say how often
    that happens, and are refused if it is often."""


class Parameter(NamedTuple):
    """A key of an experiment file that a model takes, with what is allowed."""

    name: str
    table: str
    """`model`, `variant` or `faults`."""
    allowed: tuple[int, int] | tuple[str, ...] | None
    """Integers: lowest and highest. Choices: their names, the default first. None: a switch."""
    doc: str = ""
    """Description; that of Quorisk's own protocols is in their `words.toml`."""
    history: bool = False
    """A switch that adds history to the specification's own state; off in the exhaustive search unless set."""
    default: Any = None
    """Value where a file gives none, if it differs from that of the rule in `default_value`."""
    follows: str = ""
    """Parameter whose value is the default; a point that takes it is identical to one with that value given."""
    repair: bool = False
    """A switch of `faults` that mends what faults did: a mechanism, which ablations turn off where it is on."""
    called: tuple[str, ...] = ()
    """Names that the cluster itself has for it, which files may use as well."""
    spelled: tuple[tuple[int, Any], ...] = ()
    """Pairs of a value as the cluster has it and the same value here; files may use both."""
    formerly: str = ""
    """Former name: files may still use it, and get a note with the new one."""
    later: bool = False
    """Whether the model got it after its version: at its default, points and their identities are unchanged."""

    @property
    def default_value(self) -> Any:
        """The value where a file gives none: faults do not happen, switches are on, the first choice is taken.

        None if a file has to give one.
        """
        if self.default is not None:
            return self.default
        if self.table == "faults":
            return self.allowed[0] if self.allowed else False
        if self.allowed is None:
            return True
        return None if isinstance(self.allowed[0], int) else self.allowed[0]

    def default_among(self, values: Mapping[str, Any]) -> Any:
        """`default_value`, given those of the other parameters."""
        return values[self.follows] if self.follows else self.default_value


def switch(name: str, doc: str = "", table: str = "variant", **more: Any) -> Parameter:
    """A parameter that is on or off."""
    return Parameter(name, table, None, doc, **more)


class Probability(NamedTuple):
    """A key of `[faults]`: the probability that a member of some actions' subsets is lost; 0 by default."""

    name: str
    doc: str


def one_choice(params: Any) -> int:
    """`initial_choices` of most protocols: one initial state."""
    return 1


class Alike(NamedTuple):
    """Things of a model that are alike, such as its bookies: no step and no invariant tells one from another.

    If two of them change places in a state, all that can happen from there is the same, except for their numbers. So a
    head (`kernels.states.head`) keeps one of all states that such changes turn into each other.
    """

    most: int
    """Number of such things that a state has room for."""
    number: Callable[[Any], int]
    """`number(params)`: how many of them, counted from the first, are alike; 0 if something tells them apart."""
    bits: Any
    """A state whose integers are the bits that a field has for each thing; 0: the field is not about them. A field is
    made of rows, with the same number of bits for each thing, the first one lowest."""


class Margin(NamedTuple):
    """Distance of a state from any loss, in faults of one kind: it bounds losses on paths that are not followed."""

    fault: str
    """Action that is the fault; it loses no members of a subset."""
    most: Callable[[Any], int]
    """`most(params)`: the instances of it that may be enabled at a time; 0 if `needed` does not hold with these. If not
    0, heads follow the fault first."""
    needed: Callable[[Any, Any], Any]
    """`needed(state, params)`: the number of them that still have to come before a loss, at least. 0 where a data-loss
    invariant is broken; the fault lowers it by 1 at most, and no other step lowers it."""


class Model(NamedTuple):
    """A protocol: what can happen, what must hold, and what an experiment file may say about it."""

    name: str
    version: int
    """Counted up with every change of behaviour: results of different versions never merge."""
    parameters: tuple[Parameter, ...]
    conditions: tuple[Condition, ...]
    make_params: Callable[[Mapping[str, Any]], Any]
    """`make_params(values)`: `Params`, a NamedTuple of integers, from the checked values of `parameters`."""
    initial: Callable[[Any, Any], Any]
    """`initial(params, choice)`: the initial state number `choice`."""
    actions: tuple[Action, ...]
    """Actions in the specification's order."""
    invariants: tuple[Invariant, ...]
    outcome: Callable[[Any, Any], Any]
    """`outcome(state, params)`: COMPLETED or STUCK, for a state in which nothing is enabled."""
    widths: Any
    """A state whose integers are the bits that each field needs: how the search packs states."""
    max_sends: int
    """Largest number of members of `sends` of one action instance: its bits 0 to max_sends - 1."""
    initial_choices: Callable[[Any], int] = one_choice
    """`initial_choices(params)`: the number of initial states."""
    limits: tuple[str, ...] = ()
    """Omissions of the model, a sentence each, which stand wherever a number of the model does."""
    forget: Callable[[Any, Any], Any] | None = None
    """`forget(state, params)`: the state without what no step and no invariant reads any more. What can happen from
    there, apart from steps that only change such things, is as likely as before. Heads keep only such states."""
    alike: Alike | None = None
    """Its things that are alike, if it has any."""
    margin: Margin | None = None
    """Number of faults that any loss takes, if it is known."""
    probabilities: tuple[Probability, ...] = ()
    """Probabilities besides MESSAGE_LOSS that its actions are `lost_with`."""
    lost_records: Callable[[Any, Any, Any, Any, Any], float] | None = None
    """`lost_records(actions, state, params, rates, steps)`: the number of records lost, with `continuous_writes`, by a
    run that ends in a loss, from its initial state and its steps (`paths.Step`), each with its time."""
    writes: str = ""
    """Action whose rate is that of the records."""


def with_defaults(model: Model, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all parameters of a model: those given, else the defaults; None for one that has to be given."""
    values = {p.name: p.default_value for p in model.parameters} | dict(given)
    return values | {p.name: p.default_among(values) for p in model.parameters if values[p.name] is None}


def smallest_params(model: Model) -> Any:
    """`Params` of the smallest sizes and the defaults: compiled code takes the types of params and states from them."""
    return model.make_params({p.name: p.allowed[0] if p.allowed else p.default_value for p in model.parameters})


def needed_parameters(model: Model, action: Action) -> tuple[Parameter, ...]:
    """The parameters of `Action.needs`."""
    return tuple(parameter for parameter in model.parameters if parameter.name in action.needs)


def closed_by(model: Model, action: Action, values: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters that keep an action from ever happening, with these values of all; none if it may happen."""
    by_name = {parameter.name: parameter for parameter in model.parameters}
    bounds = [by_name[name] for name in action.bounds]
    low = [p for p in bounds if values[p.name] == (p.allowed[0] if p.allowed else False)]
    wanted = needed_parameters(model, action)
    off = wanted if all(values[p.name] == p.default_value for p in wanted) else ()
    return tuple(dict.fromkeys((*low, *off)))


@cache
def num_words(model: Model) -> tuple[int, ...]:
    """Returns the number of words of the instance mask of each action."""
    params = smallest_params(model)
    state = model.initial(params, 0)
    return tuple(len(action.enabled(state, params)) for action in model.actions)


def instance_words(model: Model) -> list[tuple[int, int]]:
    """(place of the action, first instance) of each word of all actions' instance masks, in order."""
    return [(action, 64 * word) for action, words in enumerate(num_words(model)) for word in range(words)]


def loses_messages(model: Model) -> bool:
    """Whether it sends messages, which may be lost."""
    return any(action.lost_with == MESSAGE_LOSS and action.sends is not sends_nothing for action in model.actions)


def data_loss_mask(model: Model) -> int:
    """Bit i is set if a breach of invariant i is data loss."""
    return sum(1 << i for i, invariant in enumerate(model.invariants) if invariant.data_loss)


def exposures(model: Model) -> tuple[int, ...]:
    """Places of the invariants whose breach is exposure."""
    return tuple(i for i, invariant in enumerate(model.invariants) if invariant.about == EXPOSURE)


def exposure_mask(model: Model) -> int:
    """Bit i is set if a breach of invariant i is exposure."""
    return sum(1 << i for i in exposures(model))


def fault_kinds(model: Model) -> tuple[str, ...]:
    """The kinds of faults that a run may meet: LOST_MESSAGE, then those of the actions in order of first appearance.

    Bit k of a run's `met_mask` is set if it met one of kind k.
    """
    return tuple(dict.fromkeys([LOST_MESSAGE, *(action.fault for action in model.actions if action.fault)]))


def fault_bits(model: Model) -> tuple[int, ...]:
    """Returns, by action, the bit of its kind in a run's `met_mask`; 0 if it is no fault."""
    kinds = fault_kinds(model)
    return tuple(1 << kinds.index(action.fault) if action.fault else 0 for action in model.actions)


def leaves(value: Any) -> tuple[int, ...]:
    """The integers of nested tuples, in order."""
    found: list[int] = []
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, tuple):
            found += leaves(item)
        else:
            found.append(item)
    return tuple(found)


def sends_nothing(state, params, instance):
    """`Action.sends` of an action that sends no message."""
    return 0


def sends_one(state, params, instance):
    """`Action.sends` of an action that always sends one message."""
    return 1


def action(enabled: Any, fault: str = "", *, sends: Any = sends_nothing, **more: Any) -> Callable[[Any], Action]:
    """Decorator of an effect (`Action.apply`): makes it the action of its name, with its docstring as `counts`.

    With a guard of `instances.each`, `sends` and the effect take the instance as the guard does.
    """
    unpacked = getattr(enabled, "unpacked", None)

    def of(apply: Any) -> Action:
        sent, effect = sends, apply
        if unpacked:
            sent = sends if sends in (sends_nothing, sends_one) else _of_indices(sends, unpacked)
            effect = _of_indices(apply, unpacked)
        return Action(apply.__name__, enabled, sent, effect, fault, " ".join((apply.__doc__ or "").split()), **more)

    return of


def _of_indices(function: Any, unpacked: Any) -> Any:
    """Makes a `sends` or `apply` that takes an instance's number from one that takes its indices."""

    def of_instance(state, params, instance, *lost):
        return function(state, params, *unpacked(instance), *lost)

    return of_instance


def in_normal_form(normal_form: Callable[[Any, Any], Any], action: Action, switch: str = "continuous_writes") -> Action:
    """An action after which the state is brought to a normal form, if this switch of the parameters is not 0.

    `normal_form(state, params)` is a state from which everything that invariants can tell is as likely as from `state`:
    with continuous writes it merges neighbouring records with the same fate.
    """

    def apply(state: Any, params: Any, instance: Any, lost: Any) -> Any:
        after, is_on = action.apply(state, params, instance, lost), getattr(params, switch)
        if isinstance(is_on, int) and not is_on:
            return after
        return where(is_on, normal_form(after, params), after)

    return action._replace(apply=apply)


def variant_of(other: Action, **changes: Any) -> Callable[[Any], Action]:
    """Decorator of a guard (`Action.enabled`) that makes it the action of its name, in all else like another but for
    these changes."""
    return lambda enabled: other._replace(name=enabled.__name__, enabled=enabled, **changes)
