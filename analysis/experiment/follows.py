"""A figure stands in one place: runs of scenarios take the figures of nodes from [cluster].

A scenario may have a value of its own, since many count only runs in which something happens soon. A file that says in
[rates] or [faults] what [cluster] says otherwise is refused; a profile just gives way.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from quorisk.analysis.experiment import cluster
from quorisk.analysis.experiment.keys import as_toml
from quorisk.analysis.experiment.placed import TABLE, is_circumstance
from quorisk.analysis.experiment.scenarios import SCENARIO, Scenario
from quorisk.kernels.cluster.setting import CLUSTER, RACK, Cluster
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.say.quantities import YEAR_S

Combination = tuple[dict[str, Any], dict[str, Any]]
"""See `grid.Combination`."""
_SAME = 1e-9


def _repair(here: Cluster) -> float | None:
    """Copies are made again after the detection delay and, on average, half the time that all of a node's take."""
    mean = here.detection_delay + here.repair_time / 2.0
    return 1.0 / (mean * YEAR_S) if here.lost_alone and mean else None


def _p_lost(scope: str) -> Callable[[Cluster], float | None]:
    """The function that reads p_lost of the one event of this scope; None if there are several, or none."""

    def told(here: Cluster) -> float | None:
        found = [event.p_lost for event in here.events if event.scope == scope]
        return found[0] if len(found) == 1 else None

    return told


_TOLD: Mapping[str, Callable[[Cluster], float | None]] = {
    "node_loss": lambda here: here.lost_alone / YEAR_S or None,
    "repair": _repair,
    "p_lost_in_outage": _p_lost(CLUSTER),
    "p_lost_in_rack_outage": _p_lost(RACK),
}
"""Rates a second and probabilities of a cluster, by their names in `[follows]` of `settings.toml`; None if nothing
follows."""


def followed(protocol: str, values: Mapping[str, Any], is_physical: bool) -> dict[str, float]:
    """Returns the values that follow from the cluster of a design, by key, given those of all keys; rates only where
    these are a second's. Raises ConfigError if the design does not fit there."""
    keys = registry.of_cluster(protocol)
    here = cluster.arranged(protocol, values) if keys else None
    found = {key: _TOLD[word](here) for key, word in keys.items() if here}
    is_told = {key: is_physical or not key.startswith("rates.") for key in keys}
    return {key: value for key, value in found.items() if value is not None and is_told[key]}


def following(
    combinations: Iterable[Combination],
    protocol: str,
    own: Collection[str],
    found: Mapping[str, Scenario],
    is_physical: bool,
) -> Iterator[Combination]:
    """Yields a grid's combinations with the values that follow from the cluster of each. `own` are the keys that the
    file or overrides set outside scenarios. Raises ConfigError where these differ, and where the clusters of one design
    would have its scenarios run at different values."""
    before: dict[Any, dict[str, float]] = {}
    for varied, here in combinations:
        overlaid = found[varied[SCENARIO]].values if SCENARIO in varied else {}
        try:
            of_all = followed(protocol, here, is_physical)
        except ConfigError:  # which `grid.placed` says, with the design's place in the grid
            of_all = {}
        now = {key: value for key, value in of_all.items() if key not in overlaid}
        for key, value in now.items():
            if key in own and abs(here[key] - value) > _SAME * value:
                both = f"{key} = {as_toml(here[key])}: [{TABLE}] gives {value:.6g}"
                raise ConfigError(f"{both}, and a figure stands in one place; leave it out")
        design = tuple((key, value) for key, value in varied.items() if not is_circumstance(key))
        if found and before.setdefault(design, now) != now:
            key = next(key for key, value in now.items() if before[design].get(key) != value)
            raise ConfigError(f"grid: the clusters of one design give {key} several values; sweep them one by one")
        yield varied, {**here, **now}
