"""Checks of a model's declarations against what it does: a wrong declaration makes wrong numbers.

Compiled code checks as it runs that states fit `Model.widths` and that subsets fit `Model.max_sends`, where their
expressions alone do not show it. The checks here need no compiler, and say where a model is wrong: checks of the model
itself, and of its states and steps one by one, in plain Python.
"""

import random
from collections import Counter
from collections.abc import Callable, Container, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import (
    ABOUT,
    COMPLETED,
    EVERYTHING,
    MESSAGE_LOSS,
    STUCK,
    TABLES,
    Model,
    leaves,
    num_words,
    smallest_params,
)
from quorisk.kernels.ops import bits

MOST_WIDTH = 63
_RARELY = 0.02
"""Weight of an action that comes rarely, where that of others is 1."""
MOST_STEPS = 400
"""Largest number of steps of a walk."""
MARGIN_STEPS = 2000
"""Number of steps of walks that are checked against a margin."""
FEW_STEPS = 500
"""Number of steps of walks that are checked before another distribution's model is used."""


def unfit(name: str, declared: str, why: str) -> str:
    """Returns the text of a ModelError about a wrong declaration, for code that cannot say where it is wrong."""
    return f"protocol = {name!r}: {declared}: {why}; `quorisk check-protocol {name}` says where"


def check_model(model: Model) -> None:
    """Raises ModelError if a model contradicts itself, before it is used."""
    for wrong in _contradictions(model):
        raise ModelError(f"protocol = {model.name!r}: {wrong}")


def _contradictions(model: Model) -> Iterator[str]:
    for kind, names in {
        "parameters": [each.name for each in model.parameters],
        "actions": [each.name for each in model.actions],
        "invariants": [each.name for each in model.invariants],
        "probabilities": [MESSAGE_LOSS, *(each.name for each in model.probabilities)],
    }.items():
        yield from (f"{kind}: {name!r} is there twice" for name, times in Counter(names).items() if times > 1)
    if not any(invariant.data_loss for invariant in model.invariants):
        yield "invariants: none has data_loss=True, so nothing could be lost"
    known = {MESSAGE_LOSS, *(each.name for each in model.probabilities)}
    of_model = {each.name for each in model.parameters}
    for parameter in model.parameters:
        if parameter.table not in TABLES:
            yield f"parameter {parameter.name}: table = {parameter.table!r}: one of {', '.join(TABLES)}"
        if parameter.follows and parameter.follows not in of_model:
            yield f"parameter {parameter.name}: follows = {parameter.follows!r}: there is no such parameter"
    for invariant in model.invariants:
        if invariant.about not in ABOUT:
            yield f"invariant {invariant.name}: about = {invariant.about!r}: one of {', '.join(map(repr, ABOUT))}"
    for action in model.actions:
        if action.lost_with not in known:
            yield f"action {action.name}: lost_with = {action.lost_with!r}: one of {', '.join(sorted(known))}"
        if not 1 <= action.shared <= EVERYTHING:
            yield f"action {action.name}: shared = {action.shared}: 1 to {EVERYTHING}, which is EVERYTHING"
        for name in sorted({*action.needs} - of_model):
            yield f"action {action.name}: needs = {name!r}: there is no such parameter"
    if not 0 <= model.max_sends <= MOST_WIDTH:
        yield f"max_sends = {model.max_sends}: 0 to {MOST_WIDTH}"
    if model.margin and model.margin.fault not in {action.name for action in model.actions}:
        yield f"margin: fault = {model.margin.fault!r}: there is no such action"
    yield from _misshapen(model)


def _misshapen(model: Model) -> Iterator[str]:
    """Yields the declarations about states that do not have the shape of states."""
    params = smallest_params(model)
    if (choices := model.initial_choices(params)) < 1:
        yield f"initial_choices: {choices} of {_text(params)}: at least 1"
        return
    shape = _shape(model.initial(params, 0))
    if _shape(model.widths) != shape:
        yield "widths: not the same fields as those of the initial state"
        return
    names = field_names(model.widths)
    for name, width in zip(names, leaves(model.widths), strict=True):
        if not 1 <= width <= MOST_WIDTH:
            yield f"widths: {name} = {width}: 1 to {MOST_WIDTH} bits"
    if model.alike is None:
        return
    if _shape(model.alike.bits) != shape:
        yield "alike.bits: not the same fields as those of the initial state"
        return
    for name, width, each in zip(names, leaves(model.widths), leaves(model.alike.bits), strict=True):
        if each and width % (each * model.alike.most):
            yield f"alike.bits: {name} = {each}: {model.alike.most} things of so many bits do not fill its {width} bits"


def _shape(value: Any) -> Any:
    return tuple(map(_shape, value)) if isinstance(value, tuple) else None


def field_names(state: Any, prefix: str = "") -> list[str]:
    """The names of a state's integers, those of nested tuples with a dot."""
    if not isinstance(state, tuple):
        return [prefix]
    names = getattr(state, "_fields", tuple(map(str, range(len(state)))))
    dotted = f"{prefix}." if prefix else ""
    return [each for name, part in zip(names, state, strict=True) for each in field_names(part, dotted + name)]


class Walk(NamedTuple):
    """A step that was taken and checked."""

    state: Any
    action: int
    instance: int
    lost: int
    after: Any


def walks(model: Model, params: Any, num: int, seed: int, rarely: Container[str] = ()) -> Iterator[Walk]:
    """Yields the steps of random walks in plain Python; each state and step is checked. Actions taken seldom so far are
    the likeliest, but for those that come `rarely`. Raises ModelError, which names the mistake and its place."""
    chance = random.Random(seed)
    taken: Counter[int] = Counter()
    choices = evaluated(model, "initial_choices", params, model.initial_choices, params)
    if choices < 1:
        raise ModelError(f"protocol = {model.name!r}: initial_choices: {choices} of {_text(params)}: at least 1")
    for _ in range(num):
        choice = chance.randrange(choices)
        state = evaluated(model, "initial", params, model.initial, params, choice)
        _check_state(model, params, state, f"initial, choice {choice},")
        for _ in range(MOST_STEPS):
            enabled = _enabled(model, params, state)
            if not enabled:
                break
            places = sorted({place for place, _ in enabled})
            often = [_RARELY if model.actions[each].name in rarely else 1.0 for each in places]
            (place,) = chance.choices(places, [share / (1 + taken[i]) for share, i in zip(often, places, strict=True)])
            taken[place] += 1
            instance = chance.choice([each for at, each in enabled if at == place])
            lost, after = _taken(model, params, state, place, instance, chance)
            yield Walk(state, place, instance, lost, after)
            state = after


@cache
def check_walks(model: Model, params: Any) -> None:
    """Raises ModelError if one of a few hundred steps is not what the model declares. This takes a tenth of a second,
    and finds errors that compiled code cannot locate and GPUs do not check."""
    for _ in islice(walks(model, params, FEW_STEPS, seed=1), FEW_STEPS):
        pass


def check_margin(model: Model, params: Any, num: int = MARGIN_STEPS) -> int:
    """Checks `num` steps of random walks against `Model.margin`; returns their number, 0 if there is no margin.

    Raises ModelError, which says what is wrong where. A sample cannot find a margin that is wrong elsewhere.
    """
    margin = model.margin
    if margin is None or not margin.most(params):
        return 0
    for step in islice(walks(model, params, num, seed=1), num):
        action = model.actions[step.action].name
        before, after = (
            evaluated(model, "margin.needed", s, margin.needed, s, params) for s in (step.state, step.after)
        )
        text = f"protocol = {model.name!r}: margin: needed = {before} of {_text(step.state)}"
        if before - after > (action == margin.fault):
            raise ModelError(f"{text}, from which {action} leads to {after}")
        if after and any(each.data_loss and not each.holds(step.after, params) for each in model.invariants):
            text = f"protocol = {model.name!r}: margin: needed = {after} of {_text(step.after)}"
            raise ModelError(f"{text}, where data is lost")
        enabled = [model.actions[place].name for place, _ in _enabled(model, params, step.state)].count(margin.fault)
        if enabled > margin.most(params):
            raise ModelError(f"protocol = {model.name!r}: margin: most = {margin.most(params)}, of {_text(step.state)}")
    return num


def _enabled(model: Model, params: Any, state: Any) -> list[tuple[int, int]]:
    """(place of the action, instance) of all that are enabled."""
    found = []
    all_words = evaluated(model, "the guards of the smallest sizes", params, num_words, model)
    for place, (action, words) in enumerate(zip(model.actions, all_words, strict=True)):
        where = f"the guard of {action.name}"
        masks = evaluated(model, where, state, action.enabled, state, params)
        if not isinstance(masks, tuple) or len(masks) != words:
            raise ModelError(f"protocol = {model.name!r}: {where} gives {masks!r}: a tuple of {words} masks, always")
        found += [(place, 64 * word + bit) for word, mask in enumerate(masks) for bit in bits(int(mask) & _WORD)]
    return found


def _taken(model: Model, params: Any, state: Any, place: int, instance: int, chance: random.Random) -> tuple[int, Any]:
    """Returns an instance's lost subset, drawn at random, and the state after it."""
    action = model.actions[place]
    where = f"{action.name}, instance {instance},"
    sent = int(evaluated(model, f"sends of {where}", state, action.sends, state, params, instance))
    if sent >> model.max_sends:
        raise ModelError(
            f"protocol = {model.name!r}: max_sends = {model.max_sends}: {where} sends {sent:#b} in {_text(state)}, but "
            f"may only have bits 0 to {model.max_sends - 1}"
        )
    lost = sum(1 << bit for bit in bits(sent) if chance.random() < 0.3)
    after = evaluated(model, f"apply of {where}", state, action.apply, state, params, instance, lost)
    _check_state(model, params, after, where)
    return lost, after


def _check_state(model: Model, params: Any, state: Any, where: str) -> None:
    if _shape(state) != _shape(model.widths):
        raise ModelError(f"protocol = {model.name!r}: {where} makes {_text(state)}: not the fields of widths")
    for name, value, width in zip(field_names(model.widths), leaves(state), leaves(model.widths), strict=True):
        if int(value) != value or int(value) >> width:
            raise ModelError(
                f"protocol = {model.name!r}: widths: {name} = {width}: {where} makes it {value}, of {_text(params)}; 0 "
                f"to {(1 << width) - 1}"
            )
    for invariant in model.invariants:
        evaluated(model, f"invariant {invariant.name}", state, invariant.holds, state, params)
    ended = evaluated(model, "outcome", state, model.outcome, state, params)
    if ended not in (COMPLETED, STUCK):
        raise ModelError(f"protocol = {model.name!r}: outcome: {ended} of {_text(state)}: COMPLETED or STUCK")


def evaluated(model: Model, where: str, about: Any, function: Callable[..., Any], *given: Any) -> Any:
    """Returns the result of a protocol's function. Raises ModelError if the function raises an error; its text names
    `about`, the state or parameters of the call, if there are any.
    """
    try:
        return function(*given)
    except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        of_it = f", of {_text(about)}" if about else ""
        raise ModelError(f"protocol = {model.name!r}: {where}: {said}{of_it}") from error


def _text(value: Any) -> str:
    names, numbers = field_names(value), leaves(value)
    return ", ".join(f"{name}={number}" for name, number in zip(names, numbers, strict=True))


_WORD = (1 << 64) - 1
