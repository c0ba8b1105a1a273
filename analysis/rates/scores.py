"""Elasticities of a probability of loss that was counted in each rate: the mean score of the losing runs.

A run takes step k with the odds r[k] times its groups, by the sum of all rates. So the derivative of the logarithm of
a run's probability in log r[k], its score, is the sum over its steps of 1 for a step of k less the odds of one; in the
logarithm of a probability m with which l of n members are lost, of (l - n m) / (1 - m). The elasticity of P is the mean
score of the runs that lose data, whatever P is: they alone are made again, in plain Python, state by state. Source:
P. W. Glynn, "Likelihood ratio gradient estimation for stochastic systems", Communications of the ACM 33 (1990) 75-84.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from quorisk.analysis.estimate.records import runs_losing
from quorisk.analysis.rates.elasticities import Elasticity, faults_of, keys_of_figures
from quorisk.kernels import paths
from quorisk.kernels.engines.points import Point, rates_in_force
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import Model
from quorisk.kernels.ops import popcount
from quorisk.kernels.paths import Path
from quorisk.kernels.progress import Progress
from quorisk.kernels.rule import groups, loss_names, losses

FEWEST_LOSSES, MOST_LOSSES = 30, 500
"""Fewest losing runs for elasticities, and most losing runs that are made again."""
MOST_RUNS = 1 << 20
"""Most runs that are made to see which of them lose data."""
UNSEEN = 3.0
"""Rule of three: if none of n runs did something, less than 3 / n of all do, with 95 %. A step of it moves a score
by 1."""


class LosingRuns(NamedTuple):
    """Results from losing runs."""

    runs: int
    """The runs that were made, in order."""
    losses: int
    """Number of these runs that lost data."""
    hidden: int
    """Number of runs that were cut off and might have lost data later."""
    elasticities: dict[str, Elasticity]
    """Elasticities by key, as in `elasticities.MovesSolved`; empty if fewer than FEWEST_LOSSES runs lost data."""
    actions: dict[str, float]
    """Mean number of times that an action happened in a losing run, if above 0."""
    faults: dict[str, float]
    """Mean number of times that a losing run met each kind of fault."""


def count_losing_runs(
    model: Model, point: Point, seed: int, runs: range, confidence: float, progress: Progress | None = None
) -> LosingRuns:
    """Returns results for a point without a horizon from the first MOST_LOSSES of these runs that lose data.

    Intervals are those of a mean, and wider by UNSEEN / losses: what happens on so small a part of the losing runs may
    be on none of these. `progress` is called with the number of losing runs made again since its last call.
    """
    losing_runs, hidden = runs_losing(model, point, seed, runs)
    seen = len(runs), len(losing_runs), hidden
    if len(losing_runs) < FEWEST_LOSSES:
        return LosingRuns(*seen, {}, {}, {})
    found = []
    for run in losing_runs[:MOST_LOSSES]:
        found.append(_scored(model, point, rerun(model, point, seed, run).path))
        if progress:
            progress(1)
    scores, times, lost = (np.array(each, float) for each in zip(*found, strict=True))
    z = float(ndtri((1.0 + confidence) / 2.0))
    means, reaches = scores.mean(axis=0), z * scores.std(axis=0, ddof=1) / math.sqrt(len(found))
    reaches += UNSEEN / len(found)
    often = times.mean(axis=0).tolist()
    return LosingRuns(
        *seen,
        elasticities={
            key: Elasticity(value, value - reach, value + reach)
            for key, value, reach in zip(keys_of_figures(model, point), means.tolist(), reaches.tolist(), strict=True)
            if key
        },
        actions={action.name: often[i] for i, action in enumerate(model.actions) if often[i]},
        faults=faults_of(model, often, float(lost.mean())),
    )


def _scored(model: Model, point: Point, path: Path) -> tuple[list[float], list[int], int]:
    """Scores of a run (`elasticities.keys_of_figures`), the number of times of each action, and of lost messages."""
    params, rates = model.make_params(point.values), list(rates_in_force(model, point).values())
    p_lost = [point.p_lost(name) for name in loss_names(model)]
    scores, of_losses = np.zeros(len(rates) + 1), [0.0] * len(p_lost)
    times, messages = [0] * len(rates), 0
    for state, step in zip(paths.replay(model, params, path), path.steps, strict=False):
        weights = [rate * _num_groups(model, i, state, params) if rate else 0.0 for i, rate in enumerate(rates)]
        scores -= np.array([*weights, 1.0 / point.lifetime]) / (math.fsum(weights) + 1.0 / point.lifetime)
        scores[step.action] += 1.0
        times[step.action] += 1
        size, place = paths.sends(model, state, params, step).bit_count(), losses(model)[step.action]
        if 0.0 < (p := p_lost[place]) < 1.0:
            of_losses[place] += (step.lost.bit_count() - size * p) / (1.0 - p)
        messages += step.lost.bit_count() if place == 0 else 0
    return [*scores.tolist(), *of_losses], times, messages


def _num_groups(model: Model, place: int, state: object, params: object) -> int:
    action = model.actions[place]
    return sum(popcount(mask) for mask in groups(action, action.enabled(state, params)))
