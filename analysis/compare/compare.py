"""Variants of a configuration compared with a baseline, run by run under common random numbers.

Run i of every variant draws the same random numbers, so that two variants differ only in runs in which their
difference matters.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quorisk.analysis.compare import common_random_numbers, separately
from quorisk.analysis.compare.small_case import SmallCase, losing_cases
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.estimate import assumptions, data_loss_invariants, only_point
from quorisk.analysis.estimate.stopping import fixed_runs
from quorisk.analysis.experiment.cluster import cluster_keys as of_clusters
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.file_values import is_text
from quorisk.analysis.experiment.grid import GridPoint, by_design
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS, find_key, keys_of
from quorisk.analysis.experiment.placed import PLACEMENT
from quorisk.analysis.statistics.paired import METHOD, PairedComparison, compare_pairs
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Parameter
from quorisk.kernels.progress import Progress
from quorisk.say.quantities import say_rate, say_time

Changed = Callable[..., Experiment]
"""A function that returns an experiment under overrides such as "run.runs=1000": `Experiment.changed`, for one."""


class Variant(NamedTuple):
    """A configuration that is compared."""

    label: str
    point_id: str
    point: Point


class ComparisonPlan(NamedTuple):
    """Variants to compare, and their experiment."""

    experiment: Experiment
    """Model, runs, seed and confidence, which the variants share."""
    variants: tuple[Variant, ...]
    """The baseline, and then the variants that are compared with it."""
    is_ablation: bool = False
    """Whether each variant has one mechanism or repair less than the baseline."""


class VariantPair(NamedTuple):
    """A variant against a baseline, by their labels."""

    variant: str
    baseline: str
    events: dict[str, PairedComparison]
    """The comparison for each invariant, DATA_LOSS first."""


class Result(NamedTuple):
    """Results of a comparison."""

    protocol: str
    model_version: int
    parameters: dict[str, Any]
    """The parameters that all variants share, by dotted key."""
    seed: int
    runs: int
    """The number of runs of each variant."""
    confidence: float
    """The confidence with which the intervals of one event and kind hold together for all pairs."""
    method: str
    variants: dict[str, str]
    """The point id of each variant, by label."""
    cut_off: dict[str, int]
    """The number of runs that may hide a loss, by label."""
    pairs: list[VariantPair]
    data_loss_invariants: list[str]
    assumptions: list[str]
    alone: dict[str, separately.Alone]
    """The probability of data loss of each variant, by label, if some are too small to be seen in the runs that were
    compared (`compare_rare`); empty if none are. The comparisons of data loss follow from them."""
    small_cases: dict[str, SmallCase]
    """Small cases, by label, in which variants of an ablation can lose data that lost nothing here."""


def vary(changed: Changed, options: Sequence[str]) -> ComparisonPlan:
    """Plans the variants of options such as "variant.fence_recovery_reads=true,false", crossed if there are several.

    The first is the baseline. Raises ConfigError.
    """
    experiment, keys = varied_experiment(changed, options)
    shared = [key for key in experiment.varied if key not in keys]
    open_keys = [key for key in shared if len({each.varied[key] for each in experiment.points}) > 1]
    if open_keys:
        raise ConfigError(f"{experiment.path}: grid.{open_keys[0]}: varies too; set {open_keys[0]} to pick a value")
    if len(experiment.points) < 2:
        raise ConfigError(f" {options[0]}: a single configuration; give at least two values", "vary")
    return ComparisonPlan(experiment, tuple(_variant(_label(keys, each), each) for each in experiment.points))


def varied_experiment(changed: Changed, options: Sequence[str]) -> tuple[Experiment, list[str]]:
    """Returns the experiment of options of `vary`, and the keys that they list. Raises ConfigError."""
    names, axes = zip(*(axis(option) for option in options), strict=True)
    experiment = changed(*axes)
    known = keys_of(experiment.model, tuple(experiment.scenarios))
    known |= {PLACEMENT: of_clusters()[PLACEMENT]} if experiment.clusters else {}
    keys = [find_key(name, known).name for name in names]
    if len(set(keys)) < len(keys):
        raise ConfigError(f" {options[-1]}: give each key once, with all of its values", "vary")
    for option, key in zip(options, keys, strict=True):
        listed, left = option.count(",") + 1, len({point.varied[key] for point in experiment.points})
        if left < listed:
            raise ConfigError(f" {option}: grid.where leaves out {listed - left} of its {listed} values", "vary")
    return experiment, keys


def ablation(changed: Changed) -> ComparisonPlan:
    """Plans to turn off each mechanism of the model and each repair of the file in turn, and to compare with all on.

    A switch that is off by default guards against nothing: it stays as the file has it. Raises ConfigError.
    """
    each = ablated(changed)
    variants = tuple(_variant(label, only_point(experiment)) for label, experiment in each.items())
    return ComparisonPlan(next(iter(each.values())), variants, is_ablation=True)


def ablated(changed: Changed) -> dict[str, Experiment]:
    """Returns the experiments that `ablation` compares, by label: the one with all on first. Raises ConfigError."""
    experiment = changed()
    repairs = repairs_on(experiment)
    switches = [p for p in experiment.model.parameters if p.table == "variant" and p.allowed is None]
    switches = [p for p in switches if p.default_value]
    baseline = _everywhere(experiment, switches, True)
    others = {f"{p.name} off": _everywhere(baseline, [p], False) for p in [*switches, *repairs]}
    return {"all on": baseline} | others


def one_by_one(changed: Changed, options: Sequence[str]) -> dict[str, Experiment]:
    """Returns the experiment of each variant of options of `vary`, with all of its scenarios, by label. Raises
    ConfigError."""
    experiment, keys = varied_experiment(changed, options)
    return {
        _label(keys, points[0]): experiment._replace(points=tuple(points))
        for points in by_design(experiment.points).values()
    }


def repairs_on(experiment: Experiment) -> list[Parameter]:
    """Returns the repairs that are on at some point of an experiment: scenarios may do without one."""
    parameters = experiment.model.parameters
    return [p for p in parameters if p.repair and any(each.point.values[p.name] for each in experiment.points)]


def _everywhere(experiment: Experiment, switches: Sequence[Parameter], on: bool) -> Experiment:
    """The experiment with switches turned on or off, in scenarios that set them for themselves as well."""
    keys = [f"{p.table}.{p.name}" for p in switches]
    own = [f"scenarios.{name}.{key}" for name, s in experiment.scenarios.items() for key in keys if key in s.values]
    return experiment.changed(*(f"{key}={str(on).lower()}" for key in [*keys, *own]))


def axis(option: str) -> tuple[str, str]:
    """Returns the key of an option of `vary`, and the list of values that overrides it. Raises ConfigError."""
    name, equals, text = (part.strip() for part in option.partition("="))
    values = [value.strip() for value in text.split(",")]
    if not name or not equals or not all(values):
        raise ConfigError(f" {option}: written as section.key=value,value", "vary")
    words = [f'"{value}"' if is_text(value) else value for value in values]
    name = name.removeprefix("grid.")
    return name, f"grid.{name}=[{', '.join(words)}]"


def _variant(label: str, point: GridPoint) -> Variant:
    return Variant(label, point.point_id, point.point)


def _label(keys: Sequence[str], point: GridPoint) -> str:
    physical = point.point.time_unit is not None
    words = [_word(key, point.varied[key], physical) for key in keys]
    return ", ".join(f"{key.rpartition('.')[2]} {word}" for key, word in zip(keys, words, strict=True))


def _word(key: str, value: Any, physical: bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if physical and key.startswith("rates."):
        return say_rate(value)
    return say_time(value) if physical and key in ("run.lifetime", "run.horizon") and value < math.inf else str(value)


def compare(
    plan: ComparisonPlan, threads: int, progress: Progress | None = None, solving: rare.Solving | None = None
) -> Result:
    """Runs all variants of a plan and compares them; those that lose data too seldom for that are estimated alone.

    `progress` and `solving` are called as by `estimate.estimate`. Raises ConfigError if a precision is asked for.
    """
    experiment, model, run = plan.experiment, plan.experiment.model, plan.experiment.run
    runs = fixed_runs(experiment)
    points = pack(model, [variant.point for variant in plan.variants])
    events = [DATA_LOSS, *(invariant.name for invariant in model.invariants)]
    pairs = [(place, 0) for place in range(1, len(plan.variants))]
    counted = common_random_numbers.count_pairs(
        experiment, points, pairs, range(run.first_run, run.first_run + runs), threads, progress
    )
    by_event = zip(events, counted.by_event, strict=True)
    compared = {event: compare_pairs(of_event, run.confidence) for event, of_event in by_event}
    variants = {variant.label: variant.point for variant in plan.variants}
    baseline, *others = variants
    cut_off = dict(zip(variants, counted.cut_off, strict=True))
    all_losing = data_loss_invariants(model)
    seen = {event: compared[event] for event in (DATA_LOSS, *all_losing)}
    alone, separate = separately.compare_separately(experiment, variants, cut_off, seen, threads, solving)
    compared |= separate
    by_variant = zip(others, zip(*compared.values(), strict=True), strict=True)
    return Result(
        protocol=experiment.protocol,
        model_version=model.version,
        parameters=_shared_parameters(plan),
        seed=run.seed,
        runs=runs,
        confidence=run.confidence,
        method=METHOD,
        variants={variant.label: variant.point_id for variant in plan.variants},
        cut_off=cut_off,
        pairs=[VariantPair(label, baseline, dict(zip(events, found, strict=True))) for label, found in by_variant],
        data_loss_invariants=all_losing,
        assumptions=_assumptions(plan) + ([rare.ASSUMPTION] if alone else []),
        alone=alone,
        small_cases=_small_cases(plan, dict(zip(others, compared[DATA_LOSS], strict=True))),
    )


def _small_cases(plan: ComparisonPlan, data_loss: dict[str, PairedComparison]) -> dict[str, SmallCase]:
    """The variants of an ablation that lost nothing, but do so in a small case."""
    if not plan.is_ablation:
        return {}
    on = plan.variants[0].point.values
    off = {each.label: each.point.values.items() - on.items() for each in plan.variants[1:]}
    return losing_cases(
        plan.experiment.model, {label: dict(off[label]) for label in off if not data_loss[label].p_variant}
    )


def _shared_parameters(plan: ComparisonPlan) -> dict[str, Any]:
    first, *others = (dotted_values(plan.experiment.model, variant.point) for variant in plan.variants)
    return {key: value for key, value in first.items() if all(other[key] == value for other in others)}


def _assumptions(plan: ComparisonPlan) -> list[str]:
    """The assumptions that all variants share, then those of each variant alone."""
    model, at_any_time = plan.experiment.model, plan.experiment.run.at_any_time
    said = [assumptions(model, variant.point, at_any_time) for variant in plan.variants]
    shared = [sentence for sentence in said[0] if all(sentence in other for other in said)]
    own = zip(plan.variants, said, strict=True)
    return shared + [f"{variant.label}: {each}" for variant, other in own for each in other if each not in shared]


def rows(result: Result) -> list[dict[str, Any]]:
    """Returns a row for each event and pair, for a data frame: the shared parameters under their dotted keys (no
    horizon is infinite), `protocol`, `model_version`, `seed`, `runs`, `confidence`, `variant`, `baseline`, `invariant`,
    `data_loss` (whether its breach is), and the fields of `Comparison`, its table's among them.
    """
    names = ("protocol", "model_version", "seed", "runs", "confidence")
    shared = {name: getattr(result, name) for name in names} | result.parameters
    shared |= {key: math.inf for key in ("run.horizon", "run.lifetime") if key in shared and shared[key] is None}
    losing = (DATA_LOSS, *result.data_loss_invariants)
    return [
        {**shared, "variant": pair.variant, "baseline": pair.baseline}
        | {"invariant": invariant, "data_loss": invariant in losing}
        | pair.events[invariant]._asdict()
        | pair.events[invariant].table._asdict()
        for invariant in result.pairs[0].events
        for pair in result.pairs
    ]
