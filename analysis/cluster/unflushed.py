"""Incidents beside those of copies that are gone: outages of the whole cluster that take what is not on disk.

Each ledger's entries come at the same rate, and those are not on disk that came after its last flush, an exponential
time ago. So an outage takes a geometric number of each, and of all ledgers one with a negative binomial distribution.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from quorisk.analysis.cluster.figures import Cause, Losses, YearFigure
from quorisk.analysis.cluster.sizes import at_least, of_both
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.sizes import IN_ENTRIES, IN_LEDGERS, Sizes, bin_of, no_sizes

UNFLUSHED = "unflushed"
"""Name of these incidents' cause."""
_SELDOM = 1e-12
"""Fraction of all outages that counts as none."""
_PARTS = 2000
"""Number of equally likely sizes that stand for a distribution."""


class Tails(NamedTuple):
    """Entries that are not on disk when the power fails."""

    outages: float
    """Outages of the whole cluster a year."""
    entries: float
    """Mean number of these entries."""
    ledgers: float

    @property
    def p_none(self) -> float:
        """P(an outage finds nothing of the kind)."""
        return math.exp(-self.ledgers * math.log1p(self.entries / self.ledgers))

    @property
    def calm(self) -> float:
        """The part of outages that find nothing of the kind."""
        return self.p_none if self.p_none > _SELDOM else 0.0

    @property
    def incidents(self) -> float:
        """Incidents a year."""
        return self.outages * (1.0 - self.p_none)

    @property
    def part(self) -> float:
        """Fraction of the ledgers that lose entries in such an outage."""
        return self.entries / (self.ledgers + self.entries)

    def sizes(self) -> Sizes:
        """Sizes of an incident in entries and in ledgers, with a total weight of 1."""
        levels = self.p_none + (1.0 - self.p_none) * (np.arange(_PARTS) + 0.5) / _PARTS
        found = no_sizes()
        for what, law in (
            (IN_ENTRIES, scipy.stats.nbinom(self.ledgers, 1.0 - self.part)),
            (IN_LEDGERS, scipy.stats.binom(round(self.ledgers), self.part)),
        ):
            _add(found, what, np.maximum(law.ppf(levels), 1.0), np.full(_PARTS, 1.0 / _PARTS))
        return found

    def on_top(self, others: Sizes, stored: float) -> Sizes:
        """Sizes of outages that take `others` of all `stored` entries as well, and the tails of the rest."""
        found = no_sizes()
        for what, mean, whole in (
            (IN_ENTRIES, self.entries, stored),
            (IN_LEDGERS, self.part * self.ledgers, self.ledgers),
        ):
            left = np.maximum(0.0, 1.0 - others.largest[what] / whole)
            _add(found, what, others.largest[what] + mean * left, others.weight[what])
        return found


def with_unflushed(losses: Losses, calm: Losses, tails: Tails, cluster: Cluster, confidence: float) -> Losses:
    """Returns a cluster's losses with the tails added. An outage that takes both copies and tails is one incident:
    tails exist in the same fraction of those outages as of all.

    `calm` are the losses of copies where only those outages happen that find nothing of the kind. The others come
    independently of these, so P(nothing is lost) is that there times e^(-rate).
    """
    rate, p, stored, old = tails.incidents, 1.0 - tails.p_none, cluster.entries, losses.incidents
    causes = {name: each.incidents for name, each in losses.by_cause.items()}
    by_outage = [causes[event.name] for event in cluster.events if event.takes_writers]
    value, low, high = (math.fsum(ends) for ends in zip(*(each[:3] for each in by_outage), strict=True))
    outages = YearFigure(value, low, high, old.method)
    both = outages.times(p)
    total = YearFigure(
        max(rate, old.value + rate - both.value),
        max(rate, old.low + rate - both.high),
        old.high + rate - both.low,
        old.method,
    )
    sizes = _sizes(losses, tails, both.value, stored)
    independent = losses.independent if old.value else math.inf
    causes |= {event.name: causes[event.name].times(1.0 - p) for event in cluster.events if event.takes_writers}
    causes[UNFLUSHED] = YearFigure(rate, rate, rate, old.method)
    in_entries, in_ledgers = of_both(*sizes, (1.0, 1.0), independent, confidence)
    entries, more = losses.entries, _more(losses, tails, outages.value, stored)
    return losses._replace(
        p_any=_joined(calm.p_any, rate),
        p_any_in_ten_years=_joined(calm.p_any_in_ten_years, 10.0 * rate),
        incidents=total,
        entries=YearFigure(entries.value + more, entries.low + more, entries.high + more, entries.method),
        in_entries=in_entries,
        in_ledgers=in_ledgers,
        by_cause={name: Cause(each, each.value / total.value) for name, each in causes.items()},
        at_least=at_least(sizes.weight[IN_ENTRIES], sizes.largest[IN_ENTRIES], total, independent, confidence),
        sizes=sizes,
        independent=independent,
    )


def _more(losses: Losses, tails: Tails, outages: float, stored: float) -> float:
    """Entries a year lost from tails alone; `outages` a year take copies, and a part of the tails with them."""
    old = Sizes(*losses.sizes)
    weight = float(old.weight[IN_ENTRIES].sum())
    part = float(old.weight[IN_ENTRIES] @ old.largest[IN_ENTRIES]) / (weight * stored) if weight else 0.0
    return tails.entries * (tails.outages - outages * min(1.0, part))


def _sizes(losses: Losses, tails: Tails, both: float, stored: float) -> Sizes:
    """Sizes of all incidents, weighted by their rates; `both` a year take copies and tails."""
    sizes, old = no_sizes(), Sizes(*losses.sizes)
    weight = float(old.weight[IN_ENTRIES].sum())
    if weight:
        sizes.add(old, (losses.incidents.value - both) / weight)
        sizes.add(tails.on_top(old, stored), both / weight)
    sizes.add(tails.sizes(), tails.incidents - both)
    return sizes


def _add(found: Sizes, what: int, sizes: np.ndarray, weights: np.ndarray) -> None:
    for size, weight in zip(sizes[weights > 0.0], weights[weights > 0.0], strict=True):
        place = bin_of(size)
        found.weight[what, place] += weight
        found.largest[what, place] = max(found.largest[what, place], size)


def _joined(p_any: YearFigure, incidents: float) -> YearFigure:
    """P(any) of two kinds of incidents that come independently of each other."""
    value, low, high = (-math.expm1(math.log1p(-p) - incidents) if p < 1.0 else 1.0 for p in p_any[:3])
    return YearFigure(value, low, high, p_any.method)
