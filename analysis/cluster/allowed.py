"""What designs may lose on their clusters by what is known of the rates: P(any loss in a year) at each draw of them.

The rate at which anything is lost is close to a product of powers of node loss, outages and what they take. Its powers
come of solving the cluster again with one figure a little higher or lower; how far off the product is at some draws,
which are solved, is `error_factor`, and widens what is said.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from quorisk.analysis.cluster.answer import Effort, by_years_alone, effort_of
from quorisk.analysis.cluster.certified import Draws, any_loss
from quorisk.analysis.cluster.unflushed import Tails
from quorisk.analysis.estimate.estimate import num_cores
from quorisk.analysis.experiment.cluster import TABLE, Placed
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.rates.allowed import NUM_DRAWS
from quorisk.analysis.rates.draws import draw_named
from quorisk.analysis.statistics.allowed import LEVELS, Allowed, Design, Figure, log_variance_shares
from quorisk.analysis.statistics.allowed import Draws as Levels
from quorisk.analysis.statistics.known import Known
from quorisk.kernels.cores import side_by_side

_STEP = 1.25
"""By how much a figure is scaled, up and down, to find its power."""
_NUM_CHECKED = 4
_PRECISION = 0.01
_SURELY = 1e-9
"""A hazard below which nothing is lost, as far as anybody can tell."""


def known(experiment: Experiment, placed: Sequence[Placed], num_draws: int = NUM_DRAWS) -> Allowed | None:
    """Returns what these designs may lose; None if the file says of no figure of its cluster how well it is known, or
    if nodes age, so that years have to be drawn.
    """
    of = _figures(experiment, placed)
    if not of or any(by_years_alone(each.cluster) for each in placed):
        return None
    draws, effort = draw_named(tuple(of), num_draws), effort_of(experiment, num_cores())
    values = {
        name: figure.known.quantile(draws.levels[:, draws.names.index(name)]) / figure.value
        for name, figure in of.items()
    }
    found = side_by_side(lambda each: _design(each, effort, of, draws, values), placed, effort.threads)
    return Allowed(draws, of, list(found))


def _figures(experiment: Experiment, placed: Sequence[Placed]) -> dict[str, Figure]:
    """The figures that play a part, by name."""
    found = {}
    for name, each in experiment.known.items():
        field = name.removeprefix(f"{TABLE}.")
        if field == name or each.log_sigma == 0.0 or name in placed[0].varied:
            continue
        value = float(getattr(placed[0].cluster, field))
        if value > 0.0:
            found[name] = Figure(each, value, value, "trial" if field.startswith("p_") else "year")
    return found


def _hazard(placed: Placed, effort: Effort, factors: Mapping[str, float]) -> float:
    """The rate of years with a loss, with some figures multiplied."""
    cluster = placed.cluster
    for name, factor in factors.items():
        field = name.removeprefix(f"{TABLE}.")
        value = getattr(cluster, field) * factor
        cluster = cluster._replace(**{field: min(value, 1.0) if field.startswith("p_") else value})
    cluster = cluster._replace(thin=placed.thin or ())
    p_any = any_loss(cluster, effort.confidence, Draws(effort.seed, effort.threads, precision=_PRECISION)).value
    if p_any == 1.0:
        return math.inf
    tails = Tails(cluster.outages, placed.unflushed, cluster.ledgers)
    return max(-math.log1p(-p_any) + tails.incidents, _SURELY * _SURELY)


def _design(
    placed: Placed, effort: Effort, of: Mapping[str, Figure], draws: Levels, values: Mapping[str, np.ndarray]
) -> Design | None:
    here = _hazard(placed, effort, {})
    if not _SURELY * _SURELY < here < math.inf:
        return None
    ends = {name: [_hazard(placed, effort, {name: step}) for step in (_STEP, 1.0 / _STEP)] for name in of}
    powers = {name: math.log(more / less) / (2.0 * math.log(_STEP)) for name, (more, less) in ends.items()}
    hazards = np.full(len(draws.levels), here)
    for name, power in powers.items():
        hazards *= values[name] ** power
    solved = np.array(
        [_hazard(placed, effort, {name: float(values[name][i]) for name in of}) for i in range(_NUM_CHECKED)]
    )
    off = np.log(hazards[:_NUM_CHECKED] / solved)
    factor, whole = float(np.exp(np.abs(off).max())), float(np.log(hazards).var())
    hazards[:_NUM_CHECKED] = solved
    low, middle, high = (float(each) for each in np.quantile(hazards, (LEVELS[0], 0.5, LEVELS[1])))
    of_known: dict[str, Known] = {name: figure.known for name, figure in of.items()}
    return Design(
        values=-np.expm1(-hazards),
        median=-math.expm1(-middle),
        low=-math.expm1(-low / factor),
        high=-math.expm1(-high * factor),
        error_factor=factor,
        num_solved=_NUM_CHECKED,
        powers=powers,
        shares=log_variance_shares(of_known, powers),
        bent=float((off**2).mean() / whole) if whole else 0.0,
    )
