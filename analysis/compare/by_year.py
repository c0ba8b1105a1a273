"""What a variant is worth in losses a year: compared run by run in each scenario, and added up."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from quorisk.analysis.compare import compare
from quorisk.analysis.compare.compare import Changed, Plan, Result
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.experiment.scenarios import SCENARIO
from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.paired import Comparison
from quorisk.say.plain import plain


class Difference(NamedTuple):
    """A variant against a baseline, in losses a year over all scenarios."""

    variant: str
    baseline: str
    of_variant: float
    of_baseline: float
    difference: float
    """of_variant - of_baseline."""
    low: float
    high: float


class Years(NamedTuple):
    """What a comparison of a year's scenarios found."""

    per_year: dict[str, float]
    """How many times a year each scenario happens."""
    scenarios: dict[str, Result]
    """The comparison for each scenario, by name; their intervals hold together."""
    pairs: list[Difference]
    confidence: float
    """The confidence with which the differences of all pairs hold together."""


def plans(changed: Changed, make: Callable[[Changed], Plan], axes: Sequence[str] = ()) -> dict[str, Plan]:
    """Returns the plans that `make` makes of each of several scenarios; none if there are fewer. Raises ConfigError,
    also where a scenario has its own value of what is varied: `axes`, the lists of values as overrides.

    Each is held to a confidence with which all hold together.
    """
    experiment = changed(*axes)
    names = list(dict.fromkeys(point.scenario for point in experiment.points if point.scenario))
    if len(names) < 2:
        return {}
    level = yearly.confidence_of_each(experiment.run.confidence, len(names))
    return {name: make(partial(changed, f"{SCENARIO}={name}", f"run.confidence={level!r}")) for name in names}


def compare_years(
    by_scenario: Mapping[str, Plan],
    confidence: float,
    threads: int,
    progress: Callable[[int], None] | None = None,
    solving: Callable[[int, int], None] | None = None,
) -> Years:
    """Carries out the plans of `plans`, which were made for this confidence; the rest is as in `compare.compare`."""
    results = {name: compare.compare(plan, threads, progress, solving) for name, plan in by_scenario.items()}
    per_year = {name: plan.experiment.scenarios[name].per_year for name, plan in by_scenario.items()}
    pairs = [
        _difference([(per_year[name], result, place) for name, result in results.items()])
        for place in range(len(next(iter(results.values())).pairs))
    ]
    return Years(per_year, results, pairs, confidence)


def _difference(parts: list[tuple[float, Result, int]]) -> Difference:
    """The sum over scenarios of one pair. The low ends hold together, and so does their sum; likewise the high ones."""
    pair = parts[0][1].pairs[parts[0][2]]
    found: list[tuple[float, Comparison]] = [
        (per_year, result.pairs[place].events[DATA_LOSS]) for per_year, result, place in parts
    ]

    def total(field: str) -> float:
        return math.fsum(per_year * getattr(each, field) for per_year, each in found)

    ends = [total(field) for field in ("p_variant", "p_baseline", "difference", "difference_low", "difference_high")]
    return Difference(pair.variant, pair.baseline, *ends)


def as_json(years: Years) -> dict[str, Any]:
    """Returns an object for `json.dumps`; named tuples become objects."""
    scenarios = {name: {"per_year": years.per_year[name]} | plain(result) for name, result in years.scenarios.items()}
    pairs = [pair._asdict() for pair in years.pairs]
    return {"losses_per_year": pairs, "confidence": years.confidence, "scenarios": scenarios}
