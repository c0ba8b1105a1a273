"""Intervals of the difference and the ratio of two configurations under common random numbers.

Every run is one of four: lost under both, under the variant alone, under the baseline alone, or under neither.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import betainc

from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.analysis.statistics.sequential import simultaneous

METHOD = (
    "Clopper-Pearson bounds of the runs lost under one of the two alone, combined by Bonferroni; exact McNemar test"
)


class PairTable(NamedTuple):
    """Numbers of pairs of runs, by which of the two was lost."""

    both: int
    only_variant: int
    only_baseline: int
    neither: int


class PairTables(NamedTuple):
    """The table of pairs as seen, and the two tables to which runs that were cut off may distort it the most."""

    seen: PairTable
    """Runs cut off count as not lost."""
    least: PairTable
    """Runs cut off count as lost under the baseline and as not lost under the variant."""
    most: PairTable
    """Runs cut off count as lost under the variant and as not lost under the baseline."""


class PairedComparison(NamedTuple):
    """A variant against a baseline in one event."""

    table: PairTable
    p_variant: float
    p_baseline: float
    difference: float
    """p_variant - p_baseline."""
    difference_low: float
    difference_high: float
    ratio: float | None
    """p_variant / p_baseline; None if the baseline never lost."""
    ratio_low: float
    ratio_high: float | None
    """The upper end of the ratio's interval; None if it has none."""
    p_value: float
    """The p-value of the exact test that both lose equally often."""
    p_adjusted: float
    """The p-value, adjusted for the number of pairs compared (Holm)."""
    paired: bool = True
    """Whether difference and ratio are those of the table; else each of the two was estimated alone (`apart`)."""
    from_exits: bool = False
    """Whether the runs of the table start from the exits of a head that both share (`compare_beyond_head`)."""


def apart(
    seen: PairedComparison, variant: tuple[float, float, float], baseline: tuple[float, float, float]
) -> PairedComparison:
    """Returns a comparison of two separate estimates: each a probability with low and high end.

    If both intervals hold, so do those of difference and ratio. Table and p-values are still those that were seen.
    """
    (p, low, high), (q, q_low, q_high) = variant, baseline
    return seen._replace(
        p_variant=p,
        p_baseline=q,
        difference=p - q,
        difference_low=low - q_high,
        difference_high=high - q_low,
        ratio=p / q if q > 0.0 else None,
        ratio_low=low / q_high if q_high > 0.0 else 0.0,
        ratio_high=high / q_low if q_low > 0.0 else None,
        paired=False,
    )


def compare_beyond_head(
    seen: PairedComparison, baseline: tuple[float, float, float], tail: PairedComparison, part: tuple[float, float]
) -> PairedComparison:
    """Returns the comparison of two variants that share a head, from runs of both that start at its exits.

    With the head's L and F, v = L + F q_v and b = L + F q_b: v - b = F (q_v - q_b), and v / b = 1 + (v - b) / b.
    `baseline` is estimate, low and high end of b, and `tail` compares q_v with q_b; if both hold, so do difference and
    ratio. `part` is F, and a bound on the difference's other errors. The p-value is that of `tail`.
    """
    leaves, slack = part
    p, b_low, b_high = baseline
    difference = leaves * tail.difference
    low, high = leaves * tail.difference_low - slack, leaves * tail.difference_high + slack
    at_least = 1.0 + _quotient(low, b_high if low > 0.0 else b_low)
    at_most = 1.0 + _quotient(high, b_low if high > 0.0 else b_high)
    return seen._replace(
        table=tail.table,
        p_variant=p + difference,
        p_baseline=p,
        difference=difference,
        difference_low=low,
        difference_high=high,
        ratio=1.0 + difference / p if p > 0.0 else None,
        ratio_low=max(0.0, at_least),
        ratio_high=at_most if at_most < math.inf else None,
        p_value=tail.p_value,
        p_adjusted=tail.p_value,
        from_exits=True,
    )


def _quotient(a: float, b: float) -> float:
    return a / b if b > 0.0 else math.copysign(math.inf, a)


def compare_pairs(counts: Sequence[PairTables], confidence: float) -> list[PairedComparison]:
    """Returns the comparisons of pairs in one event; the intervals of all pairs hold together with `confidence`.

    Each end of an interval grows with the variant's losses and shrinks with the baseline's. So the low ends of
    `PairTables.least` and the high ends of `PairTables.most` hold whatever runs cut off would have lost.
    """
    each = simultaneous(confidence, len(counts))
    p_values = [_worst_p_value(count) for count in counts]
    return [
        _comparison(count, each, p_value, p_adjusted)
        for count, p_value, p_adjusted in zip(counts, p_values, holm(p_values), strict=True)
    ]


def _comparison(counts: PairTables, confidence: float, p_value: float, p_adjusted: float) -> PairedComparison:
    table, runs = counts.seen, sum(counts.seen)
    of_variant, of_baseline = table.both + table.only_variant, table.both + table.only_baseline
    ratio_high = ratio_interval(counts.most, confidence)[1]
    return PairedComparison(
        table=table,
        p_variant=of_variant / runs,
        p_baseline=of_baseline / runs,
        difference=(table.only_variant - table.only_baseline) / runs,
        difference_low=difference_interval(counts.least, confidence)[0],
        difference_high=difference_interval(counts.most, confidence)[1],
        ratio=of_variant / of_baseline if of_baseline else None,
        ratio_low=ratio_interval(counts.least, confidence)[0],
        ratio_high=ratio_high if ratio_high < math.inf else None,
        p_value=p_value,
        p_adjusted=p_adjusted,
    )


def difference_interval(table: PairTable, confidence: float) -> tuple[float, float]:
    """Returns the interval that holds p_variant - p_baseline with at least this confidence.

    The difference is that of the probabilities v and b that a run is lost under the variant alone and under the
    baseline alone. Let [v1, v2] and [b1, b2] be their Clopper-Pearson intervals with confidence 1 - a/2 each, so that
    with 1 - a both hold: then v - b is in [v1 - b2, v2 - b1]. Runs lost under both do not widen it.
    """
    each, runs = simultaneous(confidence, 2), sum(table)
    variant_low, variant_high = clopper_pearson(table.only_variant, runs, each)
    baseline_low, baseline_high = clopper_pearson(table.only_baseline, runs, each)
    return variant_low - baseline_high, variant_high - baseline_low


def ratio_interval(table: PairTable, confidence: float) -> tuple[float, float]:
    """Returns the interval that holds p_variant / p_baseline with at least this confidence: 0 to infinity at worst.

    Of the m runs lost under either, let shares v and b in expectation be lost under the variant alone and the baseline
    alone: the ratio is (1 - b) / (1 - v). Given m, both are binomial; as for the difference, intervals [v1, v2] and
    [b1, b2] with confidence 1 - a/2 each give [(1 - b2) / (1 - v1), (1 - b1) / (1 - v2)].
    """
    lost = sum(table) - table.neither
    if lost == 0:
        return 0.0, math.inf
    each = simultaneous(confidence, 2)
    variant_low, variant_high = clopper_pearson(table.only_variant, lost, each)
    baseline_low, baseline_high = clopper_pearson(table.only_baseline, lost, each)
    low = (1.0 - baseline_high) / (1.0 - variant_low) if variant_low < 1.0 else math.inf
    return low, (1.0 - baseline_low) / (1.0 - variant_high) if variant_high < 1.0 else math.inf


def mcnemar(table: PairTable) -> float:
    """Returns the two-sided p-value of McNemar's exact test that variant and baseline lose equally often.

    If they do, each of the m runs lost under one alone is as likely one of the variant's as one of the baseline's:
    p = min(1, 2 P(X <= k)), X binomial of m and 1/2, k the smaller of the two counts. Source: Q. McNemar, "Note on the
    sampling error of the difference between correlated proportions or percentages", Psychometrika 12 (1947) 153-157.
    """
    few, many = sorted((table.only_variant, table.only_baseline))
    return min(1.0, 2.0 * float(betainc(many, few + 1, 0.5))) if many > 0 else 1.0


def _worst_p_value(counts: PairTables) -> float:
    """The largest p-value that runs which were cut off allow; 1 if they could turn the difference round."""
    if counts.least.only_variant > counts.least.only_baseline:
        return mcnemar(counts.least)
    return mcnemar(counts.most) if counts.most.only_variant < counts.most.only_baseline else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns the p-values of m tests adjusted for their number, however they depend on each other.

    In ascending order, p(i) becomes the largest of min(1, (m - j + 1) p(j)) over j <= i. Source: S. Holm, "A simple
    sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979) 65-70.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted
