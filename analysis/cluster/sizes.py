"""Quantiles of the sizes of incidents, and the rates of incidents of at least some size, from weighted bins."""

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import betaincinv, ndtri

from quorisk.analysis.cluster.figures import QUANTILES, Size, YearFigure
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.sizes import least_of


def quantiles(
    weight: np.ndarray, largest: np.ndarray, unit: float, independent: float, confidence: float
) -> dict[str, Size]:
    """Returns the quantiles of sizes, counted by weight in bins whose largest sizes are given; none without any weight.

    The interval is that of the normal approximation for an effective sample of `independent` sizes, and the sizes of
    its bins belong to it: all are multiples of a `unit`, so that a bin of small ones has one alone. It has no
    upper end where all of so few sizes may well lie below the quantile: of p99, where they are fewer than 380, at 95 %.
    """
    total, found = float(weight.sum()), np.flatnonzero(weight)
    if total <= 0.0:
        return {}
    below, sizes = np.cumsum(weight[found]) / total, largest[found]
    z = float(ndtri((1.0 + confidence) / 2.0))

    def at(q: float) -> int:
        return min(int(np.searchsorted(below, q * (1.0 - 1e-12))), len(sizes) - 1)

    def least(place: int) -> float:
        multiples = math.ceil(least_of(int(found[place])) / unit * (1.0 - 1e-9))
        return min(unit * max(multiples, 1), float(sizes[place]))

    result = {}
    for name, q in QUANTILES.items():
        off = z * math.sqrt(q * (1.0 - q) / max(independent, 1.0))
        high = float(sizes[at(q + off)]) if q + off <= 1.0 else math.inf
        result[name] = Size(float(sizes[at(q)]), least(at(max(q - off, 0.0))), high)
    return result


def of_both(
    weight: np.ndarray, largest: np.ndarray, units: tuple[float, float], independent: float, confidence: float
) -> tuple[dict[str, Size], dict[str, Size]]:
    """Returns the `quantiles` of sizes in entries and in ledgers, whose bins are a row each."""
    in_entries, in_ledgers = (
        quantiles(*given, independent, confidence) for given in zip(weight, largest, units, strict=True)
    )
    return in_entries, in_ledgers


def units_of(cluster: Cluster) -> tuple[float, float]:
    """Returns the units that sizes are multiples of, in entries and in ledgers."""
    thin = any(each.number > 0 for each in cluster.thin)
    return 1.0 if thin else cluster.entries_per_ledger / cluster.windows, 1.0


def at_least(
    weight: np.ndarray, largest: np.ndarray, incidents: YearFigure, independent: float, confidence: float
) -> Mapping[float, Size]:
    """Returns the incidents a year that lose at least each power of ten, up to the first power that none reaches.

    The ends are those of the incidents times those of the part that is so large, by Clopper and Pearson, for an
    effective sample of `independent` sizes: of large incidents only a few may have been drawn, or none.
    """
    total = float(weight.sum())
    if total <= 0.0:
        return {}
    table: dict[float, Size] = {}
    most = float(largest.max())
    for power in range(max(0, math.ceil(math.log10(most))) + 1):
        size = 10.0**power
        part = min(1.0, float(weight[largest >= size].sum()) / total)
        low, high = _ends(part, independent, confidence)
        table[size] = Size(incidents.value * part, incidents.low * low, incidents.high * high)
        if part == 0.0:
            break
    return table


def _ends(part: float, independent: float, confidence: float) -> tuple[float, float]:
    """Clopper-Pearson interval of a part of `independent` sizes."""
    if math.isinf(independent):
        return part, part
    seen, others, error = part * independent, (1.0 - part) * independent, (1.0 - confidence) / 2.0
    low = float(betaincinv(seen, others + 1.0, error)) if seen > 0.0 else 0.0
    high = float(betaincinv(seen + 1.0, others, 1.0 - error)) if others > 0.0 else 1.0
    return low, high
