"""Losses of a cluster from years drawn at random: for clusters that strata cannot solve, and for frequent losses."""

import math

from quorisk.analysis.cluster.figures import Cause, Losses, YearFigure
from quorisk.analysis.cluster.sizes import at_least, of_both, units_of
from quorisk.analysis.statistics.intervals import bernstein, sum_of_few
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.sizes import IN_ENTRIES
from quorisk.kernels.cluster.years import ANY, BY_CAUSE, ENTRIES, INCIDENTS, UNIT, WEIGHT_UNIT, YearTally

METHOD = "sampled years"
_ALMOST = 1.0 - 1e-16
_FEW_YEARS = 30
"""Years up to which the variance of a year is at least that of independent events, each the largest there is."""


def losses_of_years(cluster: Cluster, tally: YearTally, confidence: float) -> Losses:
    """Returns the losses that years add up to. The interval of P(any) holds whatever its distribution; those of the
    means of incidents and entries take the largest that was drawn for the largest there is, and where nothing was lost
    what P(any) allows."""
    sums = [each * UNIT for each in tally.sums]
    low, high = bernstein(sums[ANY], sums[ANY + 1], tally.years, confidence)
    ten, ten_low, ten_high = (-math.expm1(10.0 * math.log1p(-min(p, _ALMOST))) for p in (tally.mean(ANY), low, high))
    if cluster.is_ageing:  # years are not independent: nodes that are old in one are new in another
        ten_low, ten_high = low, min(1.0, 10.0 * high)
    largest = float(tally.largest[IN_ENTRIES].max())
    incidents = _mean(tally, sums, INCIDENTS, confidence, high)
    seen = tally.mean(INCIDENTS) ** 2 * tally.years**2
    independent = seen / sums[INCIDENTS + 1] if sums[INCIDENTS + 1] else 0.0
    in_entries, in_ledgers = of_both(tally.weight, tally.largest, units_of(cluster), independent, confidence)
    by_cause = [_mean(tally, sums, BY_CAUSE + 2 * i, confidence, high) for i in range(len(cluster.causes))]
    total, none = sum(figure.value for figure in by_cause) or 1.0, YearFigure(0.0, 0.0, 0.0, METHOD)
    return Losses(
        YearFigure(tally.mean(ANY), low, high, METHOD),
        YearFigure(ten, ten_low, ten_high, METHOD),
        incidents,
        _mean(tally, sums, ENTRIES, confidence, high, largest / (cluster.entries or 1.0)).times(cluster.entries),
        in_entries,
        in_ledgers,
        {
            cause: Cause(each if is_there else none, each.value / total)
            for (cause, is_there), each in zip(cluster.causes.items(), by_cause, strict=True)
        },
        at_least(tally.weight[IN_ENTRIES], tally.largest[IN_ENTRIES], incidents, independent, confidence),
        (tally.weight * WEIGHT_UNIT, tally.largest),
        independent,
    )


def _mean(
    tally: YearTally, sums: list[float], what: int, confidence: float, unseen: float, most: float = 1.0
) -> YearFigure:
    """Mean a year with its interval; `most` is the most that an event adds, `unseen` the upper end if none was seen."""
    mean = tally.mean(what)
    if mean == 0.0:
        return YearFigure(0.0, 0.0, unseen, METHOD)
    variance = max(0.0, sums[what + 1] / tally.years - mean * mean) / max(1, tally.years - 1)
    if tally.years < _FEW_YEARS:
        variance = max(variance, mean * most / tally.years)
    return YearFigure(mean, *sum_of_few(mean, variance, most / tally.years, confidence), METHOD)
