"""Losses of a cluster by strata, rare or not: some solved, some sampled as shares of bounds, and the rest bounded."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quorisk.analysis.cluster.figures import Cause, Losses, YearFigure
from quorisk.analysis.cluster.hazard import IncidentRates, p_any_in_years
from quorisk.analysis.cluster.sizes import at_least, of_both, units_of
from quorisk.analysis.statistics.intervals import bernstein
from quorisk.kernels.cluster.bounds import ENTRIES, INCIDENTS
from quorisk.kernels.cluster.draws import SHARES
from quorisk.kernels.cluster.setting import AFTER, SINGLES, Cluster
from quorisk.kernels.cluster.shares import LATE, NOT_FIRST, SHARE, SHARE_SQUARED, Shares, draw_shares
from quorisk.kernels.cluster.sizes import IN_ENTRIES, Sizes, no_sizes
from quorisk.kernels.cluster.strata import Row, Strata, strata
from quorisk.kernels.progress import Progress

METHOD = "strata"
PILOT, LEAST, MOST = 1 << 12, 1 << 14, 1 << 20
"""Numbers of draws: of the pilot that estimates how many are needed, the least for PRECISION, and the most."""
PRECISION = 1e-3
"""Half-width of an interval, relative to the figure, for which draws are made."""


class DrawPlan(NamedTuple):
    """Settings of draws."""

    seed: int
    threads: int
    progress: Progress | None = None
    """Called with the number of draws that were made since its last call."""
    precision: float = PRECISION
    pilot: int = PILOT
    """Number of draws that estimate how many are needed; also the least number."""


class Rate(NamedTuple):
    """A rate a year, with the strata and draws that it adds up."""

    value: float
    low: float
    high: float
    found: Strata
    sampled: Shares
    off: float
    """Bound of the error from ticks that were taken for too old to matter."""


def certified(cluster: Cluster, confidence: float, draws: DrawPlan) -> Losses:
    """Returns the losses of a cluster."""
    each = (1.0 + confidence) / 2.0  # P(any) needs two intervals
    incidents, solved, rates = _any_loss(cluster, each, draws)
    entries = _rate(cluster, ENTRIES, confidence, draws, SHARES + 2)
    sizes, independent = _sizes(incidents, solved)
    every = _figure(incidents[:3])
    in_entries, in_ledgers = of_both(*sizes, units_of(cluster), independent, confidence)
    return Losses(
        _figure(p_any_in_years(rates)),
        _figure(p_any_in_years(rates, 10.0)),
        every,
        _figure(entries[:3]),
        in_entries,
        in_ledgers,
        dict(_by_cause(cluster, incidents, solved, each)),
        at_least(sizes.weight[IN_ENTRIES], sizes.largest[IN_ENTRIES], every, independent, confidence),
        sizes,
        independent,
    )


def any_loss(cluster: Cluster, confidence: float, draws: DrawPlan) -> YearFigure:
    """Returns P(anything is lost in a year) alone."""
    return _figure(p_any_in_years(_any_loss(cluster, (1.0 + confidence) / 2.0, draws)[-1]))


def _any_loss(cluster: Cluster, confidence: float, draws: DrawPlan) -> tuple[Rate, Shares, IncidentRates]:
    incidents = _rate(cluster, INCIDENTS, confidence, draws, SHARES)
    solved = _again(cluster, incidents.found, draws, SHARES + 4)
    return incidents, solved, _with_first(incidents, solved, confidence)


def _figure(ends: Sequence[float]) -> YearFigure:
    value, low, high = ends
    return YearFigure(float(value), float(low), float(high), METHOD)


def _rate(cluster: Cluster, what: str, confidence: float, draws: DrawPlan, purpose: int) -> Rate:
    found = strata(cluster, what)
    pilot = draw_shares(cluster, found, what, False, draws.pilot, draws.seed, purpose, draws.threads, draws.progress)
    num = _needed(found, pilot, draws)
    sampled = draw_shares(cluster, found, what, False, num, draws.seed, purpose + 1, draws.threads, draws.progress)
    value, low, high, off = found.solved, 0.0, 0.0, found.off
    if num:
        low, high = _ends(sampled, SHARE, confidence)
        off += sampled.late * _ends(sampled, LATE, confidence)[1]
        value += sampled.whole * sampled.sums[SHARE] / num
    least = max(0.0, found.solved + low - off)
    return Rate(value, least, found.solved + high + found.left_out + off, found, sampled, off)


def _ends(part: Shares, what: int, confidence: float) -> tuple[float, float]:
    """The interval of the sum at place `what`, whose squares are at the next place, as a rate a year."""
    low, high = bernstein(part.sums[what], part.sums[what + 1], part.draws, confidence)
    return part.whole * low, part.whole * high


def _needed(found: Strata, pilot: Shares, draws: DrawPlan) -> int:
    """Number of draws that the precision needs, estimated from those of a pilot."""
    if not pilot.draws:
        return 0
    mean = pilot.sums[SHARE] / pilot.draws
    spread = math.sqrt(max(0.0, pilot.sums[SHARE_SQUARED] / pilot.draws - mean * mean))
    wanted = draws.precision * (found.solved + pilot.whole * mean)
    return _within((3.0 * pilot.whole * spread / wanted) ** 2, draws) if wanted > 0.0 else MOST


def _within(num: float, draws: DrawPlan) -> int:
    """`num` draws, limited to the fewest and the most for their precision."""
    return int(min(max(num, draws.pilot, LEAST * PRECISION / draws.precision), MOST))


def _again(cluster: Cluster, found: Strata, draws: DrawPlan, purpose: int) -> Shares:
    """Draws of the strata that are solved: for how much is lost, and whether it is the first time."""
    whole = sum(row.weight * row.bound for row in found.rows if not math.isnan(row.value))
    num = _within(10.0 / draws.precision * whole / found.solved, draws) if found.solved else 0
    return draw_shares(cluster, found, INCIDENTS, True, num, draws.seed, purpose, draws.threads, draws.progress)


def _with_first(incidents: Rate, solved: Shares, confidence: float) -> IncidentRates:
    """The rates of all incidents and of first ones, which follow none within the memory."""
    value = low = high = 0.0
    for part in filter(lambda part: part.draws, (incidents.sampled, solved)):
        ends = _ends(part, NOT_FIRST, (1.0 + confidence) / 2.0)
        value += part.whole * part.sums[NOT_FIRST] / part.draws
        low, high = low + ends[0], high + ends[1]
    first = (incidents.value - value, max(0.0, incidents.low - high), incidents.high - low)
    return IncidentRates(incidents[:3], first, incidents.found.memory, incidents.off)


def _sizes(incidents: Rate, solved: Shares) -> tuple[Sizes, float]:
    """Sizes of all incidents, and how many independent ones they are worth."""
    sizes, total, squares = no_sizes(), 0.0, 0.0
    for part, rate in ((incidents.sampled, incidents.value - incidents.found.solved), (solved, incidents.found.solved)):
        if part.draws and part.sums[SHARE] > 0.0:
            times = rate / part.sums[SHARE]
            sizes.add(part.sizes, times)
            total += rate
            squares += times * times * part.sums[SHARE_SQUARED]
    return sizes, total * total / squares if squares else 0.0


def _by_cause(cluster: Cluster, incidents: Rate, solved: Shares, confidence: float) -> Iterator[tuple[str, Cause]]:
    """Yields incidents by cause. What strata leave open may be due to any one cause, or not to it at all."""
    part, found, off = incidents.sampled, incidents.found, incidents.off
    for number, (name, is_there) in enumerate(cluster.causes.items()):
        value, low, high = _solved_by(name, number, found, solved, confidence)
        if part.draws:
            total, squares = part.by_cause[number]
            ends = bernstein(total, squares, part.draws, confidence)
            value += part.whole * total / part.draws
            low, high = low + part.whole * ends[0], high + part.whole * ends[1]
        low, high = max(0.0, low - off), min(high + found.left_out + off, incidents.high)
        figure = _figure((value, low, high) if is_there else (0.0, 0.0, 0.0))
        yield name, Cause(figure, figure.value / incidents.value if incidents.value else 0.0)


def _solved_by(name: str, number: int, found: Strata, solved: Shares, confidence: float) -> tuple[float, float, float]:
    """Rate of a cause in solved strata: from the causes of their ticks, or from draws where thin entries are lost."""
    if not solved.by_cause[-1, 0]:
        rows = (row for row in found.rows if not math.isnan(row.value))
        value = sum(row.weight * row.value * _part(name, row, found) for row in rows)
        return value, value, value
    total, squares = solved.by_cause[number]
    low, high = bernstein(total, squares, solved.draws, confidence)
    times = found.solved / solved.sums[SHARE]
    return times * total, times * solved.draws * low, times * solved.draws * high


def _part(name: str, row: Row, found: Strata) -> float:
    """The fraction of such a stratum's losses that is due to a cause. Nodes of all its ticks before are down."""
    cause = found.now[row.now].cause
    none = math.prod(1.0 - found.past[i].common for i in row.past) if cause == SINGLES else 1.0
    return {cause: none, AFTER: 1.0 - none}.get(name, 0.0)
