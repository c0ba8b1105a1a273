"""Figures that have no effect: the rates of actions that are switched off, the probabilities with which these lose
something, and keys of [cluster] that others switch off.

A file or a profile that states how often a fault happens, while the bound of that fault is 0, answers for a cluster
without it, and nothing in the answer shows that.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from quorisk.analysis.experiment.keys import as_toml
from quorisk.analysis.experiment.placed import TABLE
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, RANDOM, TWO_RACKS
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import Model, closed_by

if TYPE_CHECKING:
    from quorisk.analysis.experiment.config import Experiment


_OF_CLUSTERS = {
    "scatter_width": ("placement", (RANDOM, TWO_RACKS, DISTINCT_RACKS)),
    "restart_time": ("restarts", (0.0,)),
    "service_life": ("lifetime_shape", (1.0,)),
    "batches": ("lifetime_shape", (1.0,)),
    "disks_per_node": ("disk_loss", (0.0,)),
}
"""Keys of [cluster], each with another key and the values of that key at which it has no effect."""


def switched_off(model: Model, points: Iterable[Point]) -> dict[str, tuple[str, ...]]:
    """Returns the figures that have no effect at any of these points, by key: rates.KEY, faults.p_KEY. With each come
    the keys of one point that switch it off.
    """
    bounds = sorted({name for action in model.actions for name in (*action.bounds, *action.needs)})
    different = {tuple(point.values[name] for name in bounds): point.values for point in points}
    off: dict[str, tuple[str, ...]] = {}
    for action in model.actions:
        by = [closed_by(model, action, values) for values in different.values()]
        if by and all(by):
            off[f"rates.{action.name}"] = tuple(f"{p.table}.{p.name}" for p in by[0])
    for each in model.probabilities:
        users = [f"rates.{action.name}" for action in model.actions if action.lost_with == each.name]
        if users and all(user in off for user in users):
            off[f"faults.{each.name}"] = off[users[0]]
    return off


def idle(experiment: "Experiment") -> list[str]:
    """Returns the figures that a file sets although they have no effect, each with the cause: "rates.writer_crashes
    (faults.writer_crash = false)". Of its profile, only faults, and what [variant] switches off, if the file says
    nothing of that; and nothing that is switched on in some scenario.
    """
    model, profile = experiment.model, experiment.profile
    points = [each.point for each in experiment.points]
    off = switched_off(model, points)
    in_scenarios = {key for each in experiment.scenarios.values() for key in each.values}
    off = {key: by for key, by in off.items() if not in_scenarios.intersection(by)}
    idle = [key for key in off if key in experiment.own and any(each.figure(key) for each in experiment.points)]
    if profile and not experiment.clusters:  # a cluster has faults of its own
        told = {f"rates.{action.name}" for action in model.actions if action.fault}
        told |= {key for key, by in off.items() if all(each.startswith("variant.") for each in by)}
        idle += [key for key in off if key in profile.figures.keys() & told and not experiment.own & {key, *off[key]}]
    said = [f"{key} ({_reason(off[key], points[0])})" for key in idle]
    for name, scenario in experiment.scenarios.items():
        of_it = [each for each in experiment.points if each.scenario == name]
        for key, by in switched_off(model, [each.point for each in of_it]).items():
            if key in scenario.values and any(each.figure(key) for each in of_it):
                said.append(f"scenarios.{name}.{key} ({_reason(by, of_it[0].point)})")
    return [*said, *_of_clusters(experiment)]


def _of_clusters(experiment: "Experiment") -> Iterator[str]:
    given = [dict(each.source.values) for each in experiment.clusters if each.source]
    events = (f"events.{each.name}." for placed in experiment.clusters[:1] for each in placed.cluster.events)
    by_event = {f"{event}p_lost": (f"{event}per_year", (0.0,)) for event in events}
    for name, (other, values) in (_OF_CLUSTERS | by_event).items():
        key, by = f"{TABLE}.{name}", f"{TABLE}.{other}"
        if key in experiment.own and all(each[by] in values for each in given) and any(each[key] for each in given):
            yield f"{key} ({by} = {as_toml(given[0][by])})"


def _reason(keys: Iterable[str], point: Point) -> str:
    return " and ".join(f"{key} = {as_toml(point.values[key.partition('.')[2]])}" for key in keys)
