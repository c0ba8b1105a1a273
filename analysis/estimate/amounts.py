"""Records that an incident loses where producers write all the time: runs that lost some are made once more."""

import math
import statistics

from quorisk.analysis.estimate.estimate import Amount, Estimate
from quorisk.analysis.estimate.records import losing
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.engines.rerun import rerun

MOST_RUNS = 50
"""Most runs that lost data in which records are counted."""


def with_amount(experiment: Experiment, result: Estimate) -> Estimate:
    """Returns an estimate of the experiment's one point, with the number of records lost if the model can count them
    and at least two runs from the beginning lost data."""
    model, point, run = experiment.model, experiment.points[0].point, experiment.run
    if not (model.lost_records and point.values["continuous_writes"] and result.outcomes["lost"] > 1):
        return result
    from scipy.special import stdtrit  # here, since it takes its time to load

    params, found = model.make_params(point.values), list[float]()
    runs, _ = losing(model, point, run.seed, range(run.first_run, run.first_run + result.runs), MOST_RUNS)
    for each in runs[:MOST_RUNS]:
        ran = rerun(model, point, run.seed, each)
        initial, steps = model.initial(params, ran.path.choice), zip(ran.path.steps, ran.times, strict=True)
        found.append(model.lost_records(model.actions, initial, params, point.rates, steps))
    mean, num = statistics.fmean(found), len(found)
    off = float(stdtrit(num - 1, (1.0 + run.confidence) / 2.0)) * statistics.stdev(found) / math.sqrt(num)
    amount = Amount(mean, max(1.0, mean - off), mean + off, num)
    return result._replace(amount=amount, expected_records=mean * result.data_loss.p)
