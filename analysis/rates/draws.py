"""Draws of the figures that are not known exactly: the same for all designs and scenarios, and every time.

An unknown is a name of `Experiment.known`, such as rates.bookie_is_lost. However many nodes, scenarios and designs use
it, it is one figure: each draw gives it one level between 0 and 1, and each design takes the figure's quantile there.
So designs are compared under the same figures, also where their grid lists other distributions for one of them.

    drawn = draw(experiment, 1024)
    for each in experiment.points:
        values = drawn.values(unknowns(experiment, each))                # by key, an array of 1024 values
        points = [with_values(each.point, row) for row in rows(values)]  # and `per_year` of the scenario among them
"""

from collections.abc import Iterator, Mapping

import numpy as np

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.statistics.uncertainty import Draws, Unknown
from quorisk.kernels.engines.points import Point, may_happen
from quorisk.kernels.model import Model
from quorisk.kernels.rule import loss_names

PER_YEAR = "per_year"
"""The key of the number of times a year that a point's scenario happens, on which no run depends."""
SEED = 1


def unknowns(experiment: Experiment, each: GridPoint) -> dict[str, Unknown]:
    """Returns the unknown figures of a point by their keys: rates.KEY, faults.KEY, PER_YEAR.

    A figure that the point's scenario sets for itself is that scenario's own unknown. Figures known exactly are none,
    and neither are those of which the file gives a value alone.
    """
    found: dict[str, Unknown] = {}
    overlaid = experiment.scenarios[each.scenario].values if each.scenario else {}
    for key in (*_keys(experiment.model, each.point), *([PER_YEAR] if each.scenario else [])):
        name = f"scenarios.{each.scenario}.{key}" if key in overlaid or key == PER_YEAR else key
        known = experiment.known.get(name)
        if key in each.varied:
            known = experiment.known_in_grid.get((key, each.varied[key]))
        if known and known.log_sigma > 0:
            found[key] = Unknown(name, known)
    return found


def _keys(model: Model, point: Point) -> Iterator[str]:
    """Keys of a point that matter, and whose uncertainty files may give."""
    yield from (f"faults.{name}" for name in loss_names(model))
    yield from (f"rates.{action.name}" for action in model.actions if may_happen(model, action, point.values))


def draw_unknowns(experiment: Experiment, num_draws: int, seed: int = SEED) -> Draws:
    """Returns draws of all unknowns of an experiment's points; powers of two are the best numbers of them."""
    of_points = (each.name for point in experiment.points for each in unknowns(experiment, point).values())
    return draw_named(tuple(dict.fromkeys(of_points)), num_draws, seed)


def draw_named(names: tuple[str, ...], num_draws: int, seed: int = SEED) -> Draws:
    """Returns draws of unknowns of these names.

    Points of a Sobol sequence, scrambled: see A. B. Owen, "Scrambling Sobol' and Niederreiter-Xing points", Journal of
    Complexity 14 (1998) 466-489.
    """
    from scipy.stats import qmc  # here, since it takes its time to load

    if not names:
        return Draws((), np.empty((num_draws, 0)))
    sobol = qmc.Sobol(len(names), scramble=True, rng=np.random.default_rng(seed))
    drawn = sobol.random_base2(max(num_draws - 1, 0).bit_length())[:num_draws]
    return Draws(names, np.clip(drawn, 2.0**-32, 1 - 2.0**-32))


def by_draw(values: Mapping[str, np.ndarray]) -> Iterator[dict[str, float]]:
    """Yields drawn values draw by draw."""
    for row in zip(*(each.tolist() for each in values.values()), strict=True):
        yield dict(zip(values, row, strict=True))


def with_values(point: Point, values: Mapping[str, float]) -> Point:
    """Returns a point with other figures, by key; PER_YEAR changes nothing."""
    rates = {key.removeprefix("rates."): value for key, value in values.items() if key.startswith("rates.")}
    for key, value in values.items():
        if key.startswith("faults."):
            point = point.with_p_lost(key.removeprefix("faults."), value)
    return point._replace(rates={**point.rates, **rates})
