"""Identity of runs: everything that they depend on besides their seed and index."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from quorisk.analysis.experiment.placed import PLACEMENT
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.rule import loss_names

SOURCE = "protocol.source"
"""The key of `registry.source` in the parameters of a row, for protocols that are not Quorisk's own."""


def dotted_values(model: Model, point: Point) -> dict[str, Any]:
    """Returns every key of an experiment file that the point depends on, defaults filled in, in the file's order.

    Numbers that may be fractions are floats; `run.horizon` and `run.lifetime` are None if there is none. Where rates
    and times have units they are given in seconds, and `run.time_unit`, which a file cannot set, is "s". The placement
    of copies is there where designs differ in it.
    """
    return {**_of_values(model, point), **_losses(model, point), **_rates(model, point), **_run(point)}


def _of_values(model: Model, point: Point) -> dict[str, Any]:
    return {f"{p.table}.{p.name}": point.values[p.name] for p in model.parameters}


def _losses(model: Model, point: Point) -> dict[str, Any]:
    return {f"faults.{name}": float(point.p_lost(name)) for name in loss_names(model)}


def _rates(model: Model, point: Point) -> dict[str, Any]:
    return {f"rates.{action.name}": float(point.rates.get(action.name, 1.0)) for action in model.actions}


def _run(point: Point) -> dict[str, Any]:
    return {
        "run.max_steps": point.max_steps,
        "run.horizon": _finite(point.horizon),
        "run.lifetime": _finite(point.lifetime),
        **({"run.time_unit": point.time_unit} if point.time_unit else {}),
        **({PLACEMENT: point.placement} if point.placement else {}),
    }


@cache
def later_defaults(model: Model) -> Mapping[str, Any]:
    """Returns the keys that a model got after its version, with their defaults: a point that has these keeps its
    identity, which leaves them out."""
    later = {p.name: p for p in model.parameters if p.later}
    return {
        **{f"{p.table}.{p.name}": p.default_value for p in later.values()},
        **{f"faults.{probability.name}": 0.0 for probability in model.probabilities},
        **{f"rates.{action.name}": 1.0 for action in model.actions if action.needs and later.keys() >= {*action.needs}},
    }


def identity_values(model: Model, point: Point) -> dict[str, Any]:
    """Returns `dotted_values` without those of `later_defaults` that the point has: what its identity is made of.

    A protocol that is not Quorisk's own is known by its source, too: nobody would see that its version had to change.
    """
    later = later_defaults(model)
    values = {key: value for key, value in dotted_values(model, point).items() if later.get(key, ...) != value}
    return values | _source(model)


def _source(model: Model) -> dict[str, str]:
    source = registry.source(model.name) if model.name in registry.foreign() else ""
    return {SOURCE: source} if source else {}


def _finite(time: float) -> float | None:
    return None if math.isinf(time) else float(time)


def canonical_parameters(model: Model, point: Point) -> str:
    """`identity_values` as JSON: keys sorted, no white space, floats as their shortest exact decimals (`repr`)."""
    return json.dumps(identity_values(model, point), sort_keys=True, separators=(",", ":"), allow_nan=False)


def point_id(model: Model, point: Point) -> str:
    """SHA-256, in hex, of the canonical JSON of {"model", "parameters": `identity_values`, "version"}."""
    return id_of(model.name, model.version, canonical_parameters(model, point))


def point_ids(model: Model) -> Callable[[Point], str]:
    """Returns a faster `point_id` for many points: the JSON of mappings that they share (the same objects) is computed
    once."""
    later, source = later_defaults(model), _source(model)
    known: dict[tuple[int, int], tuple[Point, list[str]]] = {}  # a point keeps the mappings whose ids these are

    def told(values: Mapping[str, Any]) -> list[str]:
        """Keys with values as JSON: in quotes, so that they sort as the keys do."""
        return [
            f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'), allow_nan=False)}"
            for key, value in values.items()
            if later.get(key, ...) != value
        ]

    def of(point: Point) -> str:
        shared = id(point.values), id(point.rates)
        if shared not in known:
            known[shared] = point, sorted(told(_of_values(model, point)) + told(_rates(model, point)) + told(source))
        own = told(_losses(model, point)) + told(_run(point))
        return id_of(model.name, model.version, f"{{{','.join(sorted(known[shared][1] + own))}}}")

    return of


def id_of(name: str, version: int, parameters: str) -> str:
    """`point_id` of a model's name and version and of canonical parameters."""
    whole = f'{{"model":{json.dumps(name)},"parameters":{parameters},"version":{version}}}'
    return hashlib.sha256(whole.encode()).hexdigest()
