"""Traces as JSON: written by `quorisk trace --json`, read by `quorisk trace --replay`. Reading one runs nothing of it:
each step has to be one that the model allows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.identity import dotted_values, later_defaults
from quorisk.analysis.experiment.keys import MAX_RUNS, TEXT, Kind, as_toml, integer, one_of
from quorisk.analysis.traces import trace as traces
from quorisk.analysis.traces.trace import Trace, replay_in_words
from quorisk.kernels import paths
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model

MOST_STEPS = 10**6
_TABLE = Kind(dict, "an object", lambda v: v if isinstance(v, dict) else None)
_STEPS = Kind(
    list, f"a list, of {MOST_STEPS} at most", lambda v: v if isinstance(v, list) and len(v) <= MOST_STEPS else None
)
_STEP = {"action": TEXT, "instance": integer(0, 2**16 - 1), "lost": integer(0, 2**63 - 1)}
_TRACE = {
    "protocol": TEXT,
    "version": integer(0, 2**63 - 1),
    "point_id": TEXT,
    "parameters": _TABLE,
    "invariant": TEXT,
    "kind": one_of(get_args(traces.Kind)),
    "seed": integer(0, 2**64 - 1),
    "run": integer(0, MAX_RUNS - 1),
    "ended": TEXT,
    "choice": integer(0, 2**63 - 1),
    "steps": _STEPS,
}
_MAY_BE_NULL = ("invariant", "seed", "run", "ended")


def as_json(trace: Trace | None, proved: bool, reason: str, verdict: str) -> dict[str, Any]:
    """Returns an object for `json.dumps`: the answer to a search for a counterexample, or to a replay."""
    document = None
    if trace:
        model, (point, point_id, _) = trace.model, trace.grid_point
        document = {
            "protocol": model.name,
            "version": model.version,
            "point_id": point_id,
            "parameters": dotted_values(model, point),
            "invariant": trace.invariant,
            "kind": trace.kind,
            "seed": trace.seed,
            "run": trace.run,
            "ended": trace.ended,
            "choice": trace.path.choice,
            "steps": [step._asdict() | {"action": model.actions[step.action].name} for step in trace.path.steps],
        }
    return {"trace": document, "proved": proved, "reason": reason, "verdict": verdict}


def load_trace(path: Path, model: Model, grid_point: GridPoint) -> Trace:
    """Returns the trace that a file holds, of this very point. Raises ConfigError, also if the model does not allow a
    step or the last state does not break what the trace says."""
    try:
        answer = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f" {path}: cannot be read: {error.strerror}", "replay") from None
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or nesting and numbers beyond Python's limits
        raise ConfigError(f" {path}: not JSON: {error}", "replay") from None
    try:
        if not isinstance(answer, dict) or not isinstance(answer.get("trace"), dict):
            raise ConfigError("has no trace")
        return _checked(_read(answer["trace"], _TRACE, "trace"), model, grid_point)
    except (ConfigError, paths.PathError) as error:
        raise ConfigError(f" {path}: {error}", "replay") from None


def _read(found: object, kinds: Mapping[str, Kind], place: str) -> dict[str, Any]:
    """The values of an object that has just these keys. Raises ConfigError."""
    if not isinstance(found, dict):
        raise ConfigError(f"{place} = {as_toml(found)}: an object with {', '.join(kinds)}")
    for key in (*kinds, *found):
        if key not in kinds or key not in found:
            raise ConfigError(
                f"{place}.{key}: {'missing' if key in kinds else 'no such key'}; there are {', '.join(kinds)}"
            )
    for key, kind in kinds.items():
        if kind.read_or_none(found[key]) is None and not (found[key] is None and key in _MAY_BE_NULL):
            raise ConfigError(f"{place}.{key} = {as_toml(found[key])}: {kind.allowed}")
    return found


def _checked(found: Mapping[str, Any], model: Model, grid_point: GridPoint) -> Trace:
    _check_same({key: found[key] for key in ("protocol", "version")} | found["parameters"], model, grid_point)
    actions = {action.name: i for i, action in enumerate(model.actions)}
    steps = []
    for number, each in enumerate(found["steps"]):
        step = _read(each, _STEP, f"trace.steps.{number}")
        if step["action"] not in actions:
            raise ConfigError(f"trace.steps: action {as_toml(step['action'])}: {model.name} has {', '.join(actions)}")
        steps.append(paths.Step(actions[step["action"]], step["instance"], step["lost"]))
    path = paths.Path(found["choice"], tuple(steps))
    rest = (found[key] for key in ("invariant", "kind", "seed", "run", "ended"))
    trace = Trace(model, grid_point, path, *rest)
    broken = replay_in_words(trace._replace(invariant=None)).newly_broken[-1]
    if trace.invariant is not None and trace.invariant not in broken:
        raise ConfigError(
            f"trace.invariant = {as_toml(trace.invariant)}: the last step breaks {', '.join(broken) or 'nothing'}"
        )
    return trace


def _check_same(given: Mapping[str, Any], model: Model, grid_point: GridPoint) -> None:
    """Raises ConfigError unless a trace is of this very point."""
    expected = {"protocol": model.name, "version": model.version} | dotted_values(model, grid_point.point)
    given = {**later_defaults(model), **given}
    for key in {**expected, **given}:
        if key not in given or key not in expected or given[key] != expected[key]:
            have, want = as_toml(given.get(key)), as_toml(expected.get(key))
            hint = "; an override can change that" if "." in key else ""
            raise ConfigError(f"{key} = {have}: the experiment file says {want}{hint}")
