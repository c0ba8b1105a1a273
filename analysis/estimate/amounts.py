"""Records that a run loses, where producers write all the time: runs that lost some are made once more."""

import math
import statistics
from typing import Any

from quorisk.analysis.estimate.estimate import Amount, only_point
from quorisk.analysis.estimate.method import PILOT_RUNS
from quorisk.analysis.estimate.records import runs_losing
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.engines.rerun import rerun

MOST_RUNS = 50
"""Most runs that lost data in which records are counted."""


def with_amount(experiment: Experiment, result: Any) -> Any:
    """Returns an `Estimate` or an `ExactResult` of the experiment's one point, with the number of records lost if it is
    known."""
    if not (result.data_loss.p and (amount := records_if_any(experiment))):
        return result
    return result._replace(amount=amount, expected_records=amount.mean * result.data_loss.p)


def records_if_any(experiment: Experiment) -> Amount | None:
    """Returns the number of records that a run of the experiment's one point loses if it loses any. None if the model
    cannot count them, or if fewer than two of its first PILOT_RUNS runs lose data."""
    model, point, run = experiment.model, only_point(experiment).point, experiment.run
    if not (model.lost_records and point.values["continuous_writes"]):
        return None
    runs, _ = runs_losing(
        model, point, run.seed, range(run.first_run, run.first_run + min(run.runs, PILOT_RUNS)), MOST_RUNS
    )
    if len(runs) < 2:
        return None
    from scipy.special import stdtrit  # here, since it takes its time to load

    params, found = model.make_params(point.values), list[float]()
    for each in runs[:MOST_RUNS]:
        ran = rerun(model, point, run.seed, each)
        initial, steps = model.initial(params, ran.path.choice), zip(ran.path.steps, ran.times, strict=True)
        found.append(model.lost_records(model.actions, initial, params, point.rates, steps))
    mean, num = statistics.fmean(found), len(found)
    off = float(stdtrit(num - 1, (1.0 + run.confidence) / 2.0)) * statistics.stdev(found) / math.sqrt(num)
    return Amount(mean, max(1.0, mean - off), mean + off, num)
