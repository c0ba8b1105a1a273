"""Losses of a design joined with those of its cluster, as columns of a result frame.

Scenarios that follow one entry (its life, an outage while it is stored) are what a cluster's losses are made of, and
are replaced by them. Those in which a client takes over from another are incidents of their own, beside the cluster's.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from quorisk.analysis.cluster import sampled
from quorisk.analysis.cluster.answer import ClusterAnswer, answer_of, for_each, p_any_of, placed_designs, quick_effort
from quorisk.analysis.cluster.certified import PRECISION
from quorisk.analysis.cluster.figures import BY_CAUSE, COLUMNS, ENDS, PLACED
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.method import FEW_RUNS
from quorisk.analysis.experiment.cluster import place_design
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint, by_design
from quorisk.analysis.experiment.placed import PLACEMENT, Placed, is_circumstance
from quorisk.analysis.experiment.scenarios import SCENARIO, ScenarioEvent
from quorisk.kernels.cluster.setting import PLACEMENTS, RANDOM
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.errors import ConfigError
from quorisk.say import text

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 0.02
"""Width of an interval, relative to a design's losses a year, below which nothing more is learned."""
WIDTH_BESIDE = 0.2
"""The same, relative to the widths that the design's other scenarios leave open."""
WIDTH_OF_LEAST, FAR = 0.5, 3.0
"""The same as WIDTH for a design that loses less than all others and the target by this factor: no rank and no verdict
depends on more."""
COARSE = 0.1
"""Relative precision of P(any loss in a year) that is enough to see whether it is above a target."""
PLACED_PRECISION = 0.01
"""Relative precision of P(any loss in a year) with other placements."""
NO_SCENARIO = "cluster"
"""Name of the only scenario in a frame without scenarios; its cluster replaces it."""

Key = tuple[tuple[str, Any], ...]
"""A design, as `GridPoint.design`."""


def worst_clusters(experiment: Experiment, precision: float = PRECISION) -> dict[Key, Placed]:
    """Returns each design on its cluster; where the grid lists several clusters, on the one where P(any loss in a year)
    is highest. Raises ConfigError if its losses cannot be computed.
    """
    found = defaultdict[Key, list[Placed]](list)
    for placed in placed_designs(experiment):
        found[placed.design].append(placed)
    several = {id(each): each for every in found.values() for each in every if len(every) > 1}
    answers = for_each(several, answer_of, quick_effort(experiment, precision))
    high = {place: answer.losses.p_any.high for place, answer in answers.items()}
    return {design: max(every, key=lambda each: high.get(id(each), 0.0)) for design, every in found.items()}


def solved_clusters(experiment: Experiment) -> Iterator[tuple[Key, ClusterAnswer]]:
    """Yields each design with the answer about its cluster, as soon as that is known. Raises ConfigError."""
    found, effort = worst_clusters(experiment), quick_effort(experiment)
    yield from zip(found, side_by_side(partial(answer_of, effort=effort), found.values(), effort.threads), strict=True)


def with_cluster(frame: "pd.DataFrame", experiment: Experiment, precision: float = PRECISION) -> "pd.DataFrame":
    """Returns a frame of an experiment with the losses of its designs on their clusters; unchanged without [cluster].

    Columns: each of COLUMNS with its ends; `any_loss_method`, by which the first of them was found; `incident_p50`,
    `incident_p99` and `incident_p99_high`, the entries that an incident loses; one for each cause, which begins with
    BY_CAUSE; `incident`, whether a scenario's losses are incidents of their own; `cluster_at`, the cluster if there are
    several; `stops_with_node` and `stops_with_rack`, the parts of ledgers that take no writes for as long as one is
    down; `write_minutes_lost_per_year`, of a ledger on average, infinite if that is not known. Raises ConfigError.
    """
    if not experiment.clusters or (experiment.scenarios and SCENARIO not in frame):
        return frame
    design_of = {point.point_id: point.design for point in experiment.points}
    if not set(frame["point_id"]) <= set(design_of):
        return frame  # merged from other sweeps, whose clusters may be others
    effort, found = quick_effort(experiment, precision), worst_clusters(experiment, precision)
    told = {design: cluster_columns(each) for design, each in for_each(found, answer_of, effort).items()}
    rows = [told[design_of[point_id]] for point_id in frame["point_id"]]
    names = dict.fromkeys(name for row in rows for name in row)
    frame = frame.assign(**{name: [row.get(name, 0.0) for row in rows] for name in names})
    if not experiment.scenarios:
        return frame.assign(**{SCENARIO: NO_SCENARIO, "per_year": 0.0, "incident": False})
    return frame.assign(incident=[experiment.scenarios[name].incident for name in frame[SCENARIO]])


def with_p_any(
    frame: "pd.DataFrame", experiment: Experiment, precision: float, target: float = math.inf
) -> "pd.DataFrame":
    """Returns a frame of `with_cluster` with P(any loss in a year) of another experiment's clusters. Designs surely
    above the target keep coarse figures; `precision` is for the others, if the choice depends on it. Unchanged if the
    frame has other points: then the figure that was scaled is none of a cluster."""
    design_of = {point.point_id: point.design for point in experiment.points}
    if not set(frame["point_id"]) <= set(design_of):
        return frame
    effort, worst = quick_effort(experiment, precision), worst_clusters(experiment, precision)
    found = {design_of[point_id]: worst[design_of[point_id]] for point_id in frame["point_id"]}
    told = for_each(found, p_any_of, effort._replace(precision=COARSE))
    left = {design: found[design] for design, p_any in told.items() if p_any.low <= target}
    if len(left) > 1 or any(told[design].high - told[design].low > COARSE * target for design in left):
        told |= for_each(left, p_any_of, effort)
    figures = [told[design_of[point_id]] for point_id in frame["point_id"]]
    return frame.assign(**{f"any_loss{end}": [each[i] for each in figures] for i, end in enumerate(ENDS)})


def with_placements(frame: "pd.DataFrame", experiment: Experiment) -> "pd.DataFrame":
    """Returns a frame of `with_cluster` with columns that compare placements: `placement`, and for each placement
    (PLACED and its name, with ends) P(any loss in a year) on the same cluster, NaN if it cannot be computed.
    Unchanged if copies can be placed in one way alone, or if designs differ in placement."""
    is_alone = all(each.cluster.racks == 1 and each.cluster.placement == RANDOM for each in experiment.clusters)
    if is_alone or "any_loss" not in frame or PLACEMENT in experiment.varied:
        return frame
    design_of, found = {point.point_id: point.design for point in experiment.points}, worst_clusters(experiment)
    there = {(key, name): to for key, each in found.items() for name in PLACEMENTS if (to := _placed_as(each, name))}
    told = for_each(there, p_any_of, quick_effort(experiment, PLACED_PRECISION))
    of = [design_of[point_id] for point_id in frame["point_id"]]
    columns = {
        f"{PLACED}{name}{end}": [told[each, name][i] if (each, name) in told else math.nan for each in of]
        for name in PLACEMENTS
        for i, end in enumerate(ENDS)
    }
    return frame.assign(placement=[found[each].cluster.placement for each in of], **columns)


def _placed_as(placed: Placed, placement: str) -> Placed | None:
    """A design with another placement; None if it does not fit there, or its losses cannot be computed."""
    assert placed.source is not None
    protocol, values, is_physical, _ = placed.source
    with suppress(ConfigError):
        other = place_design(protocol, {**dict(values), PLACEMENT: placement}, placed.varied, is_physical)
        return None if other.refused else other
    return None


def events_by_point(experiment: Experiment) -> dict[str, ScenarioEvent]:
    """Returns the event of each point's scenario, by point id; on the worst cluster of its design, if the file has
    one."""
    clusters = worst_clusters(experiment) if experiment.clusters and experiment.scenarios else {}
    return {
        point.point_id: experiment.scenarios[point.scenario].event(clusters.get(point.design))
        for point in experiment.points
        if point.scenario is not None
    }


def enough_of(experiment: Experiment, found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns the width of an interval of P(data loss), by point id, that is narrow enough: small beside the design's
    losses a year, or beside the widths of its other scenarios. Has points of scenarios beside the cluster that are not
    `found` (`p`, `low` and `high` by point id); none if a design's losses are unknown."""
    if not experiment.scenarios:
        return {}
    clusters = worst_clusters(experiment) if experiment.clusters else {}
    answers = for_each(clusters, answer_of, quick_effort(experiment))
    on_clusters = {design: each.losses.p_any.value for design, each in answers.items()}
    target = getattr(experiment.tables.get("targets"), "p_any_loss_per_year", math.inf)
    widths, happening = dict[str, float](), events_by_point(experiment)
    for design, points in by_design(experiment.points).items():
        weighed = [each for each in points if not is_replaced(experiment, each.scenario)]
        per_year = {each.point_id: happening[each.point_id].objects for each in weighed}
        known = [(often, found[name]) for name, often in per_year.items() if name in found]
        losses = math.fsum(often * each["p"] for often, each in known) + on_clusters.get(design, 0.0)
        left_open = math.fsum(often * (each["high"] - each["low"]) for often, each in known)
        others = [each for key, each in on_clusters.items() if key != design]
        part = WIDTH_OF_LEAST if others and FAR * losses <= min(*others, target) else WIDTH
        if enough := max(part * losses, WIDTH_BESIDE * left_open):
            widths |= {name: enough / often for name, often in per_year.items() if often and name not in found}
            seldom = design in answers and {name for name in widths if happening[name].per_year <= enough}
            widths |= dict.fromkeys(seldom or (), 1.0)  # as many incidents at most, whatever is lost
    return widths


def is_replaced(experiment: Experiment, scenario: str | None) -> bool:
    """Whether the losses of a scenario's points are among those of their cluster."""
    return bool(experiment.clusters) and not (scenario and experiment.scenarios[scenario].incident)


def surely_with_head(experiment: Experiment) -> list[GridPoint]:
    """Returns the points that need heads as far as is known before any computation: those of scenarios beside a
    cluster, unless all runs are counted, or there are too few for a head to save any."""
    run = experiment.run
    counts = run.method == "count" or (run.method == "auto" and run.runs <= FEW_RUNS)
    if not experiment.clusters or counts:
        return []
    points = (each for each in experiment.points if not is_replaced(experiment, each.scenario))
    return [each for each in points if rare.applies(each.point, run)]


def cluster_columns(found: ClusterAnswer) -> dict[str, Any]:
    """Returns the values that `with_cluster` adds for a design, by column."""
    losses = found.losses
    figures = dict(zip(COLUMNS, (losses.p_any, losses.incidents, losses.entries), strict=True))
    columns: dict[str, Any] = {
        f"{name}{end}": value for name, figure in figures.items() for end, value in zip(ENDS, figure[:3], strict=True)
    }
    sizes = losses.in_entries
    columns |= {f"incident_{name}": sizes[name].value if sizes else 0.0 for name in ("p50", "p99")}
    at = {key: value for key, value in found.design.items() if is_circumstance(key)}
    columns["any_loss_method"] = losses.p_any.method
    unseen = math.inf if losses.incidents.method == sampled.METHOD and losses.incidents.high > 0.0 else 0.0
    columns["incident_p99_high"] = sizes["p99"].high if sizes else unseen
    columns["cluster_at"] = text.settings(at, at)
    writing, rack_down = found.availability.writing, found.availability.rack_down
    columns["stops_with_node"] = writing.node_down if writing and not writing.has_room else 0.0
    columns["stops_with_rack"] = (rack_down.writing or 0.0) if rack_down and not rack_down.has_room else 0.0
    columns["pauses_with_rack"] = (rack_down.writing or 0.0) if rack_down and rack_down.has_room else 0.0
    minutes = writing.minutes_per_year if writing else None
    columns["write_minutes_lost_per_year"] = math.inf if minutes is None else minutes
    return columns | {f"{BY_CAUSE}{name}": cause.incidents.value for name, cause in losses.by_cause.items()}
