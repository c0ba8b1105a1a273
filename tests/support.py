"""What several tests share: values for models, random walks, runs of the engine."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from quorisk.kernels import paths
from quorisk.kernels.engines import numba_engine, points, tally
from quorisk.kernels.engines.job import Job
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model, loses_messages, with_defaults
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols import registry

ROOT = Path(__file__).parent.parent
"""The repository."""

EACH_PROTOCOL = [
    pytest.param(name, marks=[pytest.mark.exhaustive] * (name in ("kraft", "raft"))) for name in registry.names()
]
"""Names, for what holds of any protocol: the two with the most code, which takes longest to compile and to step, come
with all tests alone."""

MOST_STEPS = 400
"""Of a random walk."""
_TRIES = 200
"""To find values that go together."""
SMALL_FILE = """
protocol = "compaction"
[model]
messages = 3
compactions = 3
keys = 1
values = 1
max_crashes = 2
"""
"""An experiment file's beginning: runs of a few dozen steps, of which some lose data."""
LOSING = {
    "protocol": "compaction",
    "model": {"messages": 3, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 2},
    "variant": {"persist_cursor_before_delete": False},
}
"""The same as a dictionary, without a mechanism, so that more runs lose data."""
FLIPPING_FILE = """
protocol = "bookkeeper"
[model]
bookies = 2
clients = 1
write_quorum = 2
entries = 1
inflight = 1
[faults]
max_lost = 2
[rates]
bookie_is_lost = 0.001
[run]
runs = 20000
lifetime = 100.0
target = 0.005
[grid]
ack_quorum = [1, 2]
"""
"""An experiment file of two designs: which one is chosen depends on its rates and its lifetime."""


def values_of(model: Model, **given: Any) -> dict[str, Any]:
    """All parameters of a model: those given, by their names of today or of before, else the small configuration, else
    the defaults."""
    now = {parameter.formerly: parameter.name for parameter in model.parameters if parameter.formerly}
    named = {now.get(name, name): value for name, value in given.items()}
    return with_defaults(model, {**registry.cases(model.name).small, **named})


def tables_of(model: Model, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables of an experiment file that give these parameters."""
    tables: dict[str, dict[str, Any]] = {"model": {}, "variant": {}, "faults": {}}
    for parameter in model.parameters:
        if parameter.name in values:
            tables[parameter.table][parameter.name] = values[parameter.name]
    return tables


def any_values(model: Model, chance: random.Random) -> dict[str, Any]:
    """Random values of all parameters, within what is allowed."""
    for tries in count():
        values: dict[str, Any] = {}
        for parameter in model.parameters:
            allowed: Any = parameter.allowed or (True, False)
            if parameter.allowed is None or not isinstance(allowed[0], int):
                values[parameter.name] = chance.choice(allowed)
            else:  # small ones, where hardly any others have room beside each other
                low, high = allowed
                values[parameter.name] = chance.randint(low, chance.randint(low, high) if tries >= _TRIES else high)
        if all(condition.holds(values) for condition in model.conditions):
            break
    return values


def params_of(model: Model, **given: Any) -> Any:
    return model.make_params(values_of(model, **given))


def point_of(
    model: Model, message_loss: float = 0.1, rates: dict[str, float] | None = None, **given: Any
) -> points.Point:
    limits: dict[str, Any] = {name: given.pop(name) for name in ("max_steps", "horizon", "lifetime") if name in given}
    limits = {"max_steps": 10_000, "horizon": math.inf} | limits
    others = {each.name: given.pop(each.name) for each in model.probabilities if each.name in given}
    loss = message_loss if loses_messages(model) else 0.0
    return points.Point(values_of(model, **given), rates or {}, loss, **limits, other_losses=others)


def run(
    model: Model, point: points.Point, runs: int, seed: int = 1, first_run: int = 0, threads: int = 1
) -> tally.Tally:
    """The tally of some runs of one point."""
    job = Job(0, first_run, runs)
    return tally.named_tally(model, numba_engine.simulate(model, points.pack(model, [point]), [job], seed, threads)[0])


def instances(model: Model, state: Any, params: Any) -> Iterator[tuple[Any, int]]:
    """The action instances that are enabled, by plain Python."""
    return ((model.actions[action], instance) for action, instance in paths.instances(model, state, params))


def states_of(model: Model, params: Any, *steps: tuple[Any, ...]) -> list[Any]:
    """The states of the run that makes these steps: each an action, an instance, and what is lost unless nothing is."""
    names = [action.name for action in model.actions]
    made = (paths.Step(names.index(name), instance, *(lost or [0])) for name, instance, *lost in steps)
    return paths.replay(model, params, paths.Path(0, tuple(made)))


def refusal(function: Callable[..., Any], *given: Any, error: type[Exception] = ConfigError) -> str:
    """The text of the error that a call raises."""
    with pytest.raises(error) as raised:
        function(*given)
    return str(raised.value)


def random_walks(
    model: Model, params: Any, walks: int, seed: int, rarely: tuple[str, ...] = ()
) -> Iterator[tuple[Any, Any, int, int, Any]]:
    """(state, action, instance, lost, next state) of every step of random runs, by plain Python.

    An action is the likelier the less it was taken so far, so that the rare ones come up; those named in `rarely`,
    which end a run, are 50 times less likely still. A run that goes on is left after MOST_STEPS.
    """
    chance = random.Random(seed)
    taken: Counter[str] = Counter()
    for _ in range(walks):
        state = model.initial(params, chance.randrange(model.initial_choices(params)))
        for _ in range(MOST_STEPS):
            enabled = list(instances(model, state, params))
            if not enabled:
                break
            names = sorted({action.name for action, _ in enabled})
            (name,) = chance.choices(names, [(0.02 if name in rarely else 1) / (1 + taken[name]) for name in names])
            taken[name] += 1
            found, instance = chance.choice([(a, i) for a, i in enabled if a.name == name])
            sent = found.sends(state, params, instance)
            lost = sum(1 << b for b in bits(sent) if chance.random() < 0.3)
            after = found.apply(state, params, instance, lost)
            yield state, found, instance, lost, after
            state = after
