"""P(any loss in a year) of designs on their clusters, at each draw of the rates from what is known of them.

A cluster is solved again at as many draws as there is time for. At the others, the logarithm of the rate at which
anything is lost is interpolated between these: it is smooth, close to a plane where losses are rare, and bends where
one cause takes over from another. `error_factor` is how far off that is at draws that are solved; it widens intervals.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from quorisk.analysis.cluster.answer import Effort, cluster_of, effort_of
from quorisk.analysis.cluster.certified import DrawPlan, any_loss
from quorisk.analysis.cluster.unflushed import Tails
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.placed import EVENTS, TABLE, Placed
from quorisk.analysis.rates.draws import draw_named
from quorisk.analysis.rates.reweighted import NUM_DRAWS
from quorisk.analysis.statistics.uncertainty import LEVELS, Allowed, DrawnLosses, Draws, Figure, bent, variance_shares
from quorisk.kernels.cluster.bounds import INCIDENTS
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.strata import strata
from quorisk.kernels.cores import num_cores, side_by_side
from quorisk.kernels.model import MESSAGE_LOSS
from quorisk.kernels.progress import Progress
from quorisk.say.quantities import YEAR_S

_STEP = 1.25
"""Factor by which a figure is scaled to see whether it matters."""
_LEAST_SOLVED, _MOST_ROWS = 16, 8192
"""Fewest draws solved for each design, and rows of strata solved for all designs: few rows allow more draws."""
_FINE = 4096
"""Fewest draws from which quantiles are taken; designs are compared at the first of them."""
_NUM_CHECKED = 8
"""Number of solved draws, the last ones, at which interpolation between the others is checked."""
_PRECISION, _PILOT = 0.1, 512
"""Relative precision and pilot draws of each solution. Both are coarse: the rates leave far more open."""
_LEAST_REACH = 0.02
"""Least change of the logarithm of losses that is attributed to any figure."""
_SURELY = 1e-18
"""Hazard a year up to which a design counts as losing nothing."""
_ALMOST = 1.0 - 1e-16


def losses_on_clusters(
    experiment: Experiment, placed: Sequence[Placed], num_draws: int = NUM_DRAWS, tell: Progress | None = None
) -> Allowed | None:
    """Returns the losses of these designs for draws of uncertain figures; None if the file gives no uncertainty for any
    figure that matters, or if nodes age, so that years have to be drawn. `tell` is called with the number of designs
    done.
    """
    of = _figures(experiment, placed)
    if not of or any(each.cluster.is_ageing for each in placed):
        return None
    draws, effort = draw_named(tuple(of), max(_FINE, num_draws)), effort_of(experiment, num_cores())
    rows = _MOST_ROWS // len(placed)
    told: list[DrawnLosses | None] = []
    for each in side_by_side(lambda each: _design(each, effort, of, draws, num_draws, rows), placed, effort.threads):
        told.append(each._replace(values=each.values[:num_draws]) if each else None)
        if tell:
            tell(len(told))
    return Allowed(draws._replace(levels=draws.levels[:num_draws]), of, told)


def _figures(experiment: Experiment, placed: Sequence[Placed]) -> dict[str, Figure]:
    """The figures that matter, by name: those of the cluster, and those of the runs that say how many entries have few
    copies or are not on disk."""
    found = {}
    for name, each in experiment.known.items():
        table, field = name.split(".")[0], name.rpartition(".")[2]
        if each.log_sigma == 0.0 or table == "scenarios" or name in placed[0].varied:
            continue
        value = placed[0].figure(name)
        if any(design.with_figures({name: _STEP * value}).is_other(design) for design in placed):
            is_trial = table == "faults" or field.startswith("p_")
            often = value if is_trial or table == TABLE else value * YEAR_S
            found[name] = Figure(each, value, often, "trial" if is_trial else "year", _a_year(placed[0], name))
    return found


def _a_year(placed: Placed, name: str) -> float:
    """The years or trials of a figure that a year of the cluster shows."""
    for event in placed.cluster.events:
        groups = placed.cluster.scopes_of(event)
        if name == f"{EVENTS}{event.name}.per_year":
            return sum(groups.values())
        if name == f"{EVENTS}{event.name}.p_lost":
            return event.per_year * sum(nodes * number for nodes, number in groups.items())
    if name == f"faults.{MESSAGE_LOSS}":  # of each copy, a request and its answer
        return placed.per_second * YEAR_S * 2 * placed.cluster.write_quorum
    nodes, disks = placed.cluster.nodes, placed.cluster.disks_per_node
    return {f"{TABLE}.node_loss": nodes, f"{TABLE}.disk_loss": nodes * disks}.get(name, math.inf)


def _hazard(placed: Placed, effort: Effort) -> float:
    """The rate of years with a loss: of copies where only those outages happen that find all on disk, and of others."""
    tails = Tails(placed.cluster.outages, placed.unflushed, placed.cluster.ledgers)
    calm = cluster_of(placed).with_outages(tails.calm)
    return max(-math.log1p(-min(_p_any(calm, effort), _ALMOST)) + tails.incidents, _SURELY)


@lru_cache(maxsize=4096)
def _p_any(cluster: Cluster, effort: Effort) -> float:
    """P(any loss of copies in a year), computed once where designs or figures make no difference to a cluster."""
    return any_loss(cluster, effort.confidence, DrawPlan(effort.seed, 1, None, _PRECISION, _PILOT)).value


def _design(
    placed: Placed, effort: Effort, of: dict[str, Figure], draws: Draws, num_draws: int, most_rows: int
) -> DrawnLosses | None:
    if _hazard(placed, effort) <= _SURELY:
        return None
    num_rows = max(1, len(strata(cluster_of(placed), INCIDENTS).rows))
    num_solved = min(num_draws, max(_LEAST_SOLVED, most_rows // num_rows))
    given = [figure.value for figure in of.values()]
    ends = np.array([figure.known.quantile(LEVELS) for figure in of.values()])
    around = _around(given, ends)
    drawn = np.column_stack([figure.known.quantile(draws.levels[:, i]) for i, figure in enumerate(of.values())])
    there = [dict(zip(of, row, strict=True)) for row in [*around, *drawn[:num_solved]]]
    solved = np.log([_hazard(placed.with_figures(figures), effort) for figures in there])
    moved, far = solved[2 : len(around) : 2] - solved[1 : len(around) : 2], np.log(ends[:, 1] / ends[:, 0])
    scale = np.maximum(np.abs(moved), _LEAST_REACH) / far
    at = np.log(np.vstack([around, drawn]) / given) * scale
    hazards = np.exp(_between(at, solved)[len(around) :])
    factor = _factor(at[: len(solved)], solved)
    low, middle, high = (float(each) for each in np.quantile(hazards, (LEVELS[0], 0.5, LEVELS[1])))
    powers = dict(zip(of, (moved / far).tolist(), strict=True))
    of_known = {name: figure.known for name, figure in of.items()}
    return DrawnLosses(
        values=-np.expm1(-hazards),
        median=-math.expm1(-middle),
        low=-math.expm1(-low / factor),
        high=-math.expm1(-high * factor),
        error_factor=factor,
        num_solved=num_solved,
        powers=powers,
        shares=variance_shares(of_known, powers),
        bent=bent(hazards, powers, of_known, draws),
    )


def _around(given: Sequence[float], ends: np.ndarray) -> np.ndarray:
    """Figures as given, then with one after another at the two ends of its interval."""
    around = np.tile(given, (1 + 2 * len(given), 1))
    for i, (low, high) in enumerate(ends):
        around[1 + 2 * i, i], around[2 + 2 * i, i] = low, high
    return around


def _between(at: np.ndarray, solved: np.ndarray) -> np.ndarray:
    """Values at all places: `solved` at the first ones, interpolated at the others."""
    from scipy.interpolate import RBFInterpolator  # here, since it takes its time to load

    places, first = np.unique(at[: len(solved)], axis=0, return_index=True)
    rest = RBFInterpolator(places, solved[first], kernel="cubic")(at[len(solved) :])
    return np.concatenate([solved, rest])


def _factor(at: np.ndarray, solved: np.ndarray) -> float:
    """Largest factor by which interpolation from the other values misses the last ones."""
    return float(np.exp(np.abs(_between(at, solved[:-_NUM_CHECKED]) - solved).max()))
