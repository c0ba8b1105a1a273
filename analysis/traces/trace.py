"""One run, step by step: a counterexample to an invariant, or any run of a result.

A trace holds a run's nondeterminism alone. States, messages and words are what replaying it in plain Python, by the
model's own functions, gives; a trace that does not fit its model cannot be replayed.
"""

from typing import Any, Literal, NamedTuple

from quorisk.analysis.experiment.grid import GridPoint
from quorisk.kernels import paths
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import OUTCOMES, Model
from quorisk.kernels.paths import Path
from quorisk.kernels.protocols import registry
from quorisk.kernels.telling import Told
from quorisk.say.numbers import counted

Kind = Literal["shortest", "minimised", "run", "likeliest"]
"""Origin of a trace: the exhaustive search's shortest, a random run without superfluous steps, a random run as it was,
or the likeliest path to a loss."""


class Trace(NamedTuple):
    """A run of a point, from an initial state to a state that breaks an invariant, or to the run's end."""

    model: Model
    grid_point: GridPoint
    path: Path
    invariant: str | None
    """The invariant that the last state breaks and no state before it; None for a run that lost no data."""
    kind: Kind
    seed: int | None = None
    run: int | None = None
    """The index of the random run that it is or came from; None for a trace that the search found."""
    ended: str | None = None
    """Words on the run's outcome, its time, and what it broke; None if the trace is not a whole run."""


def of_run(model: Model, grid_point: GridPoint, seed: int, run: int) -> Trace:
    """Returns the random run of that index, to its end."""
    ran = rerun(model, grid_point.point, seed, run)
    broken = [invariant for i, invariant in enumerate(model.invariants) if ran.broken_mask >> i & 1]
    names = ", ".join(invariant.name for invariant in broken) or "nothing"
    steps = counted(len(ran.path.steps), "step")
    ended = f"{OUTCOMES[ran.outcome]} after {steps} at model time {ran.time:.6g}, broken: {names}"
    lost = next((invariant.name for invariant in broken if invariant.data_loss), None)
    return Trace(model, grid_point, ran.path, lost, "run", seed, run, ended)


class Replayed(NamedTuple):
    """States of a trace, and its steps in words."""

    states: list[Any]
    """States from the initial one to the last."""
    told: list[Told]
    """Steps in words, in their order."""
    newly_broken: list[list[str]]
    """Names of the invariants that each state is the first to break."""
    verdict: str
    """Words on how the last state breaks the trace's invariant; empty if it has none."""


def replay_in_words(trace: Trace) -> Replayed:
    """Replays a trace and puts it into words. Raises paths.PathError if the model does not allow it."""
    model, params = trace.model, params_of(trace)
    teller = registry.teller(model)
    states = paths.replay(model, params, trace.path)
    actions = [model.actions[step.action].name for step in trace.path.steps]
    told = [
        teller.tell(state, params, action, step.instance, after)
        for state, action, step, after in zip(states, actions, trace.path.steps, states[1:], strict=False)
    ]
    broken, newly = 0, []
    for state in states:
        now = paths.broken(model, state, params)
        newly.append([i.name for k, i in enumerate(model.invariants) if (now & ~broken) >> k & 1])
        broken |= now
    verdict = teller.verdict(states[-1], params, trace.invariant) if trace.invariant else ""
    return Replayed(states, told, newly, verdict)


def params_of(trace: Trace) -> Any:
    """Returns the model's `Params` of a trace."""
    return trace.model.make_params(trace.grid_point.point.values)
