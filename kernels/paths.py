"""The steps of a model in plain Python: for traces, where one run matters and not the speed."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from quorisk.kernels.model import Model
from quorisk.kernels.ops import bits


class Step(NamedTuple):
    """One action instance and the messages that it loses."""

    action: int
    """Place in the model's actions."""
    instance: int
    lost: int


class Path(NamedTuple):
    """A run, or the beginning of one: all of its nondeterminism."""

    choice: int
    """The initial state's number."""
    steps: tuple[Step, ...]


class PathError(ValueError):
    """Steps that the model does not allow."""


def instances(model: Model, state: Any, params: Any) -> Iterator[tuple[int, int]]:
    """(place of the action, instance) of all that are enabled, in the model's order."""
    for i, action in enumerate(model.actions):
        for word, mask in enumerate(action.enabled(state, params)):
            for bit in bits(mask):
                yield i, 64 * word + bit


def subsets(mask: int) -> Iterator[int]:
    """The subsets of a mask, each after its own subsets."""
    part = 0
    while True:
        yield part
        if part == mask:
            return
        part = (part - mask) & mask


def is_enabled(model: Model, state: Any, params: Any, step: Step) -> bool:
    """Whether the instance is enabled."""
    masks = model.actions[step.action].enabled(state, params)
    word, bit = step.instance >> 6, step.instance & 63
    return word < len(masks) and bool(masks[word] >> bit & 1)


def sends(model: Model, state: Any, params: Any, step: Step) -> int:
    """Mask of the messages that an enabled instance sends."""
    return int(model.actions[step.action].sends(state, params, step.instance))


def after(model: Model, state: Any, params: Any, step: Step) -> Any:
    """The next state."""
    return model.actions[step.action].apply(state, params, step.instance, step.lost)


def broken(model: Model, state: Any, params: Any) -> int:
    """Bit i is set if invariant i does not hold."""
    return sum(1 << i for i, invariant in enumerate(model.invariants) if not invariant.holds(state, params))


def replay(model: Model, params: Any, path: Path) -> list[Any]:
    """The states of a path, one more than it has steps. Raises PathError."""
    choices = model.initial_choices(params)
    if not 0 <= path.choice < choices:
        raise PathError(f"initial state {path.choice}: there are {choices}, counted from 0")
    states = [model.initial(params, path.choice)]
    for number, step in enumerate(path.steps, 1):
        name, state = model.actions[step.action].name, states[-1]
        if not is_enabled(model, state, params, step):
            raise PathError(f"step {number}: {name}, instance {step.instance}: not enabled")
        sent = sends(model, state, params, step)
        if step.lost & ~sent:
            raise PathError(f"step {number}: {name}, lost {step.lost}: of the messages sent, mask {sent}")
        states.append(after(model, state, params, step))
    return states
