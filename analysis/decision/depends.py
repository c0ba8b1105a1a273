"""Elasticities of a design's losses in a year: of P(any loss), of incidents and of entries, by key.

Each scenario contributes what it loses, which changes with its rates by elasticities that are solved or estimated
(`analysis.rates.sensitivity`), and with how often its event happens. A cluster is answered again with one figure after
another a little higher and a little lower: what [cluster] says directly, what its scenarios take from there, and
rates on which it depends how many entries have few copies or are not on disk.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from quorisk.analysis.cluster.answer import answer_of, quick_effort
from quorisk.analysis.cluster.joined import is_replaced, worst_clusters
from quorisk.analysis.decision.weigh import MEMORY, Weigher
from quorisk.analysis.decision.whole import Whole
from quorisk.analysis.decision.whole import whole_year as whole_of
from quorisk.analysis.decision.years import part_of
from quorisk.analysis.estimate import rare
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.placed import COUNTS, Placed, as_override, is_key, most_of
from quorisk.analysis.rates import sensitivity
from quorisk.analysis.rates.sensitivity import Sensitivity
from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.yearly import YearPart
from quorisk.kernels.cores import num_cores, side_by_side
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.progress import Progress
from quorisk.say.plain import plain_data

STEP = 1.1
"""Factor by which a figure of a cluster is raised, and lowered."""
_FINE = 1.0 + 1e-6
"""The same where a scenario's incidents follow from it in closed form."""
_NEAR = 1.001
"""Factor by which a probability of 1, or nearly, is lowered."""
_ALMOST = 1.0 - 1e-16
_LITTLE = 0.01
"""A scenario's incidents, relative to all, up to which unknown elasticities of it count as 0."""


class YearlyElasticities(NamedTuple):
    """Elasticities of a design's losses in a year."""

    design: dict[str, Any]
    whole: Whole
    values: dict[str, float]
    """Values of the figures, by key as in the file; those that a scenario sets for itself by scenarios.NAME.KEY. Times
    are in seconds, sizes in bytes, and rates of a cluster's events a year."""
    elasticities: dict[str, float | None]
    """Elasticities of P(any loss in a year), by key; None where one is not known."""
    of_incidents: dict[str, float | None]
    of_entries: dict[str, float | None]
    """Elasticities of incidents, and of the entries lost in a year."""
    scenarios: dict[str, Sensitivity]
    """Sensitivities of the scenarios that count, each by itself."""
    taken_as_0: tuple[str, ...]
    """Scenarios with few losses and unknown elasticities, which count as 0."""

    def as_json(self) -> dict[str, Any]:
        """Returns an object for `json.dumps`."""
        scenarios = {name: {**self.whole.scenarios[name], **plain_data(each)} for name, each in self.scenarios.items()}
        return {
            **self.whole.as_json(),
            "design": self.design,
            "p": self.whole.p_any.value,
            "values": self.values,
            "elasticities": self.elasticities,
            "elasticities_of": {"incidents": self.of_incidents, "entries": self.of_entries},
            "elasticities_taken_as_0": list(self.taken_as_0),
            "scenarios": scenarios,
        }


class _Sums(NamedTuple):
    """Losses in a year: the rate of years with a loss, incidents and entries."""

    hazard: float = 0.0
    incidents: float = 0.0
    entries: float = 0.0

    def plus(self, other: "_Sums", times: float = 1.0) -> "_Sums":
        return _Sums(*(a + times * b for a, b in zip(self, other, strict=True)))


def depends(
    experiment: Experiment,
    memory_bytes: int,
    threads: int,
    progress: Progress | None = None,
    solving: rare.Solving | None = None,
) -> Sensitivity | YearlyElasticities:
    """Returns the sensitivity of the losses of an experiment's one design: in a year, if it is about years, else in a
    run. `progress` and `solving` are those of `sensitivity.sensitivity`. Raises ConfigError."""
    if not experiment.asks_year:
        return sensitivity.sensitivity(experiment, memory_bytes, progress, solving)
    weigher = Weigher(MEMORY, threads)
    experiment = _on_one_cluster(experiment)
    whole = whole_of(experiment, weigher)
    found: dict[str, Sensitivity] = {}
    for point in experiment.points:
        if not is_replaced(experiment, point.scenario):
            alone = experiment._replace(points=(point,))
            found[str(point.scenario)] = sensitivity.sensitivity(alone, memory_bytes, progress, solving)
    solved = {name: each for name, each in found.items() if each.confidence is None}
    parts = {name: _known_closer(part_of(row), solved.get(name)) for name, row in whole.scenarios.items()}
    most = _LITTLE * whole.incidents.value
    little = {name for name, part in parts.items() if _year(part).incidents <= most}
    unknown = [name for name in sorted(little) if parts[name].high and None in found[name].elasticities.values()]
    of_scenarios = (_of_scenario(experiment, name, each, parts[name], name in little) for name, each in found.items())
    values, slopes = dict[str, float](), dict[str, _Sums | None]()
    for key, value, slope in chain(*of_scenarios, _of_cluster(experiment, found, parts, little)):
        values[key] = value
        before = slopes.get(key, _Sums())
        slopes[key] = before.plus(slope) if before and slope else None
    p, incidents, entries = whole.p_any.value, whole.incidents.value, whole.entries.value
    times = (1.0 - p) / p if p else 0.0, 1.0 / incidents if incidents else 0.0, 1.0 / entries if entries else 0.0
    any_loss, of_incidents, of_entries = (
        {key: None if slope is None else each * slope[i] for key, slope in slopes.items()}
        for i, each in enumerate(times)
    )
    design = dict(experiment.points[0].design)
    return YearlyElasticities(design, whole, values, any_loss, of_incidents, of_entries, found, tuple(unknown))


def _on_one_cluster(experiment: Experiment) -> Experiment:
    """The experiment on the worst of its clusters, if it lists several."""
    if len(experiment.clusters) < 2:
        return experiment
    [placed] = worst_clusters(experiment).values()
    return experiment.changed(*(f"{key}={as_override(key, value)}" for key, value in placed.varied.items()))


def _known_closer(part: YearPart, found: Sensitivity | None) -> YearPart:
    """The part with the P(loss) of the scenario's own head, if that bounds it more closely."""
    return part._replace(p=found.p) if found and found.high - found.low < part.high - part.low else part


def _year(part: YearPart) -> _Sums:
    """The losses of a scenario in a year."""
    often = yearly.incidents([part]).value
    return _Sums(often, often, yearly.lost_a_year([part]).value)


def _slope(part: YearPart, **fields: float) -> _Sums:
    """The derivative of a scenario's losses by the logarithm of a figure on which fields of `part` depend with these
    powers."""
    up, down = (
        _year(part._replace(**{name: getattr(part, name) * step**power for name, power in fields.items()}))
        for step in (_FINE, 1.0 / _FINE)
    )
    return _Sums(*((a - b) / (2.0 * math.log(_FINE)) for a, b in zip(up, down, strict=True)))


def _of_scenario(
    experiment: Experiment, name: str, found: Sensitivity, part: YearPart, loses_little: bool
) -> Sequence[tuple[str, float, _Sums | None]]:
    """A scenario's figures: key, value, and the derivative of its losses by the figure's logarithm. What is not known
    of a scenario that loses little counts as 0."""
    scenario, told = experiment.scenarios[name], list[tuple[str, float, _Sums | None]]()
    by_p = _slope(part, p=1.0)
    for key, elasticity in found.elasticities.items():
        if key in experiment.follows:
            continue  # a figure of the cluster
        whole = f"scenarios.{name}.{key}" if key in scenario.values else key
        nothing = _Sums() if loses_little else None
        told.append((whole, found.values[key], nothing if elasticity is None else _Sums().plus(by_p, elasticity)))
    for key in ("per_year", "hits"):
        if isinstance(value := getattr(scenario, key), float) and (key == "per_year" or value > 1.0):
            told.append((f"scenarios.{name}.{key}", value, _slope(part, **{key: 1.0})))
    return told


class _Way(NamedTuple):
    """A design under another value of one figure."""

    value: float
    placed: Placed
    points: Mapping[str, GridPoint]
    """Grid points by scenario."""


def _of_cluster(
    experiment: Experiment, found: Mapping[str, Sensitivity], parts: Mapping[str, YearPart], little: Container[str]
) -> Iterator[tuple[str, float, _Sums | None]]:
    """Figures on which a cluster depends: key, value, and the derivative by its logarithm of the losses there and in
    scenarios that take the figure from there; None if years have to be drawn, which show no such difference. Of
    scenarios that lose little, a derivative that is not known counts as 0."""
    if not experiment.clusters:
        return
    [placed] = experiment.clusters
    here = _Way(0.0, placed, _by_scenario(experiment))

    def slope(key: str) -> tuple[str, float, _Sums | None] | None:
        value, most = placed.figure_in_file(key), most_of(key)
        up = min(STEP, most / value)
        moved = (min(value * up, most), value / up) if up > _NEAR else (value, value / _NEAR)
        moved = (value + 1.0, value - 1.0) if key in COUNTS else moved
        ways = [_way(experiment, here, key, there) or here._replace(value=value) for there in moved]
        if not any(_is_other(way, here) for way in ways):
            return None
        if placed.cluster.is_ageing:
            return key, value, None
        higher, lower = (_lost(experiment, way, here, found, parts, little) for way in ways)
        if higher is None or lower is None or ways[0].value == ways[1].value:
            return key, value, None
        span, at = math.log(ways[0].value / ways[1].value), [way.value == value for way in ways]
        return key, value, _Sums(*(_between(*ends, *at) / span for ends in zip(higher, lower, strict=True)))

    for told in side_by_side(slope, placed.figures(experiment.given - experiment.follows), num_cores()):
        if told:
            yield told


def _between(up: float, down: float, is_up: bool, is_down: bool) -> float:
    """A difference, as a power law through both ends has it in their middle, or at the end that `is` of the design."""
    here = up if is_up else down if is_down else math.sqrt(up * down)
    return here * math.log(up / down) if up > 0.0 and down > 0.0 else up - down


def _by_scenario(experiment: Experiment) -> dict[str, GridPoint]:
    return {str(point.scenario): point for point in experiment.points}


def _way(experiment: Experiment, here: _Way, key: str, moved: float) -> _Way | None:
    """The design with another value of a figure; None if that is refused."""
    if not is_key(key):
        return here._replace(value=moved, placed=here.placed.with_figures({key: moved}))
    try:
        other = experiment.changed(f"{key}={as_override(key, moved)}")
    except ConfigError:
        return None
    return _Way(moved, other.clusters[0], _by_scenario(other))


def _is_other(way: _Way, here: _Way) -> bool:
    of = ([each.point for each in points.values()] for points in (way.points, here.points))
    return way.placed.is_other(here.placed) or len({repr(points) for points in of}) > 1


def _lost(
    experiment: Experiment,
    way: _Way,
    here: _Way,
    found: Mapping[str, Sensitivity],
    parts: Mapping[str, YearPart],
    little: Container[str],
) -> _Sums | None:
    """The losses of a year under another value of a figure; None if they are not known of a scenario that loses more
    than a little."""
    losses = answer_of(way.placed, quick_effort(experiment)).losses
    hazard = -math.log1p(-min(losses.p_any.value, _ALMOST))
    total = _Sums(hazard, losses.incidents.value, losses.entries.value)
    for name, part in parts.items():
        event = experiment.scenarios[name].event(way.placed)
        logarithm = 0.0
        before, now = (dotted_values(experiment.model, points[name].point) for points in (here.points, way.points))
        for key, elasticity in found[name].elasticities.items():
            if now[key] != before[key] and part.high:
                if elasticity is not None:
                    logarithm += elasticity * math.log(now[key] / before[key])
                elif name not in little:
                    return None
        p = min(1.0, part.p * math.exp(logarithm))
        total = total.plus(_year(part._replace(per_year=event.per_year, hits=event.hits, p=p)))
    return total


def rows(found: Sensitivity | YearlyElasticities, experiment: Experiment) -> list[dict[str, Any]]:
    """Returns the rows of a tornado chart, of a run or of a year: see `sensitivity.rows`."""
    if isinstance(found, Sensitivity):
        return sensitivity.rows(found, experiment)
    return [
        sensitivity.tornado_row(key, value, found.values[key], experiment.known.get(key))
        for key, value in found.elasticities.items()
    ]


def as_json(found: Sensitivity | YearlyElasticities) -> dict[str, Any]:
    """Returns an object for `json.dumps`."""
    return dict(plain_data(found)) if isinstance(found, Sensitivity) else found.as_json()
