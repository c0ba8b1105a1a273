"""A run of the engines once more, in plain Python: the same random numbers, the same steps, every state at hand.

It takes some milliseconds, and nothing is compiled.
"""

from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels import paths
from quorisk.kernels.engines.points import ALWAYS, Point, Points, pack, params_at
from quorisk.kernels.engines.step import RUNNING, Settings, fresh, initial_choice, lasted, step
from quorisk.kernels.engines.tally import add_run, empty, parts, write_record
from quorisk.kernels.model import Model
from quorisk.kernels.paths import Path, Step
from quorisk.kernels.rule import groups, member


class Rerun(NamedTuple):
    """A run, and what an engine would record of it."""

    path: Path
    outcome: int
    """Outcome of the run: its place in OUTCOMES."""
    broken_mask: int
    met_mask: int
    """Kinds of faults that it met; see `model.fault_kinds`."""
    exposed: tuple[float, ...]
    """Duration of each exposure; see `model.exposures`."""
    first_steps: tuple[int, ...]
    """Step, by invariant, at which it broke; 0 if it did not."""
    messages: int
    """Messages sent."""
    time: float
    """Model time at which it ended."""
    times: list[float]
    """Model time of each step."""

    def record(self) -> tuple[int, ...]:
        """The row that engines write of it; its columns are `engines.job.RECORD`."""
        masks = self.broken_mask, self.met_mask
        return self.outcome, *masks, len(self.path.steps), self.messages, *parts(self.time)


def rerun(model: Model, point: Point, seed: int, run: int) -> Rerun:
    """The run of that index of a point, as `engines.Engine.record` counts it."""
    return _rerun(model, pack(model, [point]), 0, seed, run)


def tally_of_runs(
    model: Model, points: Points, seed: int, point: int, runs: np.ndarray, recording: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns what `numba_engine.tally_of_runs` does, for a few runs."""
    tally, records = empty(model, len(runs) if recording else 0)
    for i, run in enumerate(runs.tolist()):
        ran = _rerun(model, points, point, seed, run)
        columns = ran.outcome, ran.broken_mask, ran.met_mask, len(ran.path.steps), ran.messages
        high_low = add_run(*columns, ran.time, 1.0, ran.first_steps, ran.exposed, tally)
        if recording:
            write_record(records, i, *columns, *high_low)
    return tally, records


def _rerun(model: Model, points: Points, point: int, seed: int, run: int) -> Rerun:
    params, steps = params_at(model, points, point), list[Step]()
    accepts, unit = points.accepts[point], float(points.time_units[point])
    settings = Settings(
        params=(),  # the model's functions have them
        weights=tuple(points.weights[point].tolist()),
        accepts=tuple(accepts) if (accepts < ALWAYS).any() else (),
        losses=tuple(points.losses[point]),
        max_steps=int(points.max_steps[point]),
        horizon=float(points.horizons[point]),
    )
    choice = initial_choice(model.initial_choices(params), np.uint64(seed), run)
    ran = fresh(model, 0, run, model.initial(params, choice))
    times = list[float]()
    while ran.outcome == RUNNING:
        ran = step(model, _Answers(model, params, ran.state, steps), settings, np.uint64(seed), ran)
        times += [ran.time * unit] * (len(steps) - len(times))
    return Rerun(
        path=Path(choice, tuple(steps)),
        outcome=ran.outcome,
        broken_mask=ran.broken_mask,
        met_mask=ran.met_mask,
        exposed=tuple(each * unit for each in lasted(model, ran)),
        first_steps=ran.first_steps,
        messages=ran.messages,
        time=ran.time * unit,
        times=times,
    )


class _Answers:
    """Answers of a model's functions in a state, by plain Python; see `step.Answers`. Notes the step that is taken."""

    def __init__(self, model: Model, params: Any, state: Any, steps: list[Step]) -> None:
        self.model, self.params, self.state, self.steps = model, params, state, steps

    def broken(self) -> int:
        return paths.broken(self.model, self.state, self.params)

    def groups(self) -> list[int]:
        actions = ((action, action.enabled(self.state, self.params)) for action in self.model.actions)
        return [int(mask) for action, masks in actions for mask in groups(action, masks)]

    def outcome(self) -> int:
        return int(self.model.outcome(self.state, self.params))

    def member(self, action: int, group: int, picked: int) -> int:
        its = self.model.actions[action]
        return int(member(its, its.enabled(self.state, self.params), group, picked))

    def subset(self, action: int, instance: int) -> int:
        return int(self.model.actions[action].sends(self.state, self.params, instance))

    def after(self, action: int, instance: int, lost: int) -> Any:
        if action < 0:
            return self.state
        self.steps.append(Step(action, int(instance), int(lost)))
        return paths.after(self.model, self.state, self.params, self.steps[-1])

    def once(self, values: Any) -> Any:
        return values
