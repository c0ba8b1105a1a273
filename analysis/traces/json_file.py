"""Traces as JSON: written by `quorisk trace --json`, read by `quorisk trace --replay`. Reading one runs nothing of it:
each step has to be one that the model allows."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorisk.analysis.experiment.config import GridPoint
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import MAX_RUNS, show
from quorisk.analysis.traces.trace import Kind, Trace, replay
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.states import paths


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Step(_Strict):
    action: str
    instance: int = Field(ge=0, lt=2**16)
    lost: int = Field(ge=0, lt=2**63)


class _Trace(_Strict):
    protocol: str
    version: int
    point_id: str
    parameters: dict[str, Any]
    invariant: str | None
    kind: Kind
    seed: int | None = Field(ge=0, lt=2**64)
    run: int | None = Field(ge=0, lt=MAX_RUNS)
    ended: str | None
    choice: int = Field(ge=0, lt=2**63)
    steps: list[_Step] = Field(max_length=10**6)


class _Answer(_Strict):
    """What the command prints."""

    trace: _Trace | None
    proved: bool
    reason: str
    verdict: str


def as_json(trace: Trace | None, proved: bool, reason: str, verdict: str) -> dict[str, Any]:
    """For `json.dumps`: the answer to a search for a counterexample, or to a replay."""
    document = None
    if trace:
        model, (point, point_id, _) = trace.model, trace.grid_point
        document = _Trace(
            protocol=model.name,
            version=model.version,
            point_id=point_id,
            parameters=dotted_values(model, point),
            invariant=trace.invariant,
            kind=trace.kind,
            seed=trace.seed,
            run=trace.run,
            ended=trace.ended,
            choice=trace.path.choice,
            steps=[
                _Step(action=model.actions[step.action].name, instance=step.instance, lost=step.lost)
                for step in trace.path.steps
            ],
        )
    return _Answer(trace=document, proved=proved, reason=reason, verdict=verdict).model_dump()


def load(path: Path, model: Model, grid_point: GridPoint) -> Trace:
    """The trace that a file holds, of this very point. Raises ConfigError, also if the model does not allow a step or
    the last state does not break what the trace says."""
    try:
        return _checked(_Answer.model_validate_json(path.read_bytes()), model, grid_point)
    except OSError as error:
        raise ConfigError(f" {path}: cannot be read: {error.strerror}", "replay") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f" {path}: {place}: {first['msg']}", "replay") from None
    except (ConfigError, paths.PathError) as error:
        raise ConfigError(f" {path}: {error}", "replay") from None


def _checked(answer: _Answer, model: Model, grid_point: GridPoint) -> Trace:
    found = answer.trace
    if found is None:
        raise ConfigError("trace: there is none in it")
    expected = {"protocol": model.name, "version": model.version} | dotted_values(model, grid_point.point)
    given = {"protocol": found.protocol, "version": found.version} | found.parameters
    for key in expected | given:
        if key not in given or key not in expected or given[key] != expected[key]:
            have, want = show(given.get(key)), show(expected.get(key))
            hint = "; an override can change that" if "." in key else ""
            raise ConfigError(f"{key} = {have}: the experiment file says {want}{hint}")
    actions = {action.name: i for i, action in enumerate(model.actions)}
    unknown = [step.action for step in found.steps if step.action not in actions]
    if unknown:
        raise ConfigError(f"trace.steps: action {show(unknown[0])}: {model.name} has {', '.join(actions)}")
    steps = tuple(paths.Step(actions[step.action], step.instance, step.lost) for step in found.steps)
    path = paths.Path(found.choice, steps)
    trace = Trace(model, grid_point, path, found.invariant, found.kind, found.seed, found.run, found.ended)
    broken = _broken_at_the_end(trace)
    if found.invariant is not None and found.invariant not in broken:
        raise ConfigError(
            f"trace.invariant = {show(found.invariant)}: the last step breaks {', '.join(broken) or 'none'}"
        )
    return trace


def _broken_at_the_end(trace: Trace) -> list[str]:
    """The invariants that the last state is the first to break."""
    return replay(trace._replace(invariant=None)).newly_broken[-1]
