"""Which designs meet a target, how they rank, and which of them to choose."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from scipy.special import betainc, rel_entr

from quorisk.plots import choose, text

MEETS, FAILS, UNDECIDED = "meets", "does not meet", "undecided"
MOST_RUNS = 10**15
_MOST_DECADES = 10
_COUNTS = [
    "losses",
    "hidden",
    "runs",
    "p",
    "low",
    "high",
    "sequential",
    "messages",
    "steps",
    "completed",
    "horizon",
    "stuck",
]
_PROMISES = ["copies", "stored", "on_disk", "survives", "changed"]
"""Columns of a frame that tell what a configuration promises (`analysis.decision.promises`), if they are there."""


class Design(NamedTuple):
    """What one chooses, under everything that it has to live with: the points that differ in faults alone."""

    settings: str
    points: list[dict[str, Any]]
    """Rows of a result frame, of one invariant, and `at`: the faults of a row, empty if none differs from the worst."""
    worst: dict[str, Any]
    """The point whose interval reaches highest."""
    rank: int = 1
    """From 1. Designs of which no run lost data share a rank, however many runs each had: nothing tells them apart."""

    @property
    def is_clean(self) -> bool:
        """Whether no run lost data: all that is known then is an upper bound."""
        return not any(point["losses"] for point in self.points)

    @property
    def is_changed(self) -> bool:
        """Whether it has a mechanism off, or an older version of the protocol."""
        return bool(self.worst.get("changed"))

    def promises_less(self, other: "Design") -> bool:
        """Whether it has fewer copies than another one, as an entry is acknowledged or in the end, and never more."""
        mine, others = ([each.worst.get(name, 0) for name in ("copies", "stored")] for each in (self, other))
        return mine != others and all(a <= b for a, b in zip(mine, others, strict=True))

    def p_stuck(self) -> float:
        """The share of runs that get stuck, under the faults under which most do."""
        return float(max(point["stuck"] / point["runs"] for point in self.points))

    def verdict(self, target: float) -> str:
        """Whether the target is met under all faults; not, if it is surely not met under any."""
        return judge(max(point["low"] for point in self.points), self.worst["high"], target)

    def telling(self, target: float) -> dict[str, Any]:
        """The point that the verdict rests on: the worst, or where that one alone decides nothing, one that fails."""
        fails = self.verdict(target) == FAILS and self.worst["low"] <= target
        return max(self.points, key=lambda point: point["low"]) if fails else self.worst

    def cost(self, measure: str) -> float:
        """The "messages" or "steps" for each run that succeeds, on average over the faults; infinite if none does."""
        succeeded = [choose.succeeded(point) for point in self.points]
        if not all(succeeded):
            return math.inf
        pairs = zip(self.points, succeeded, strict=True)
        return float(sum(point[measure] / num for point, num in pairs) / len(self.points))

    def runs_to_settle(self, tail: float, target: float) -> float:
        """About how many runs a point it takes until a verdict that is open is not: until one point fails if any is
        about to, else until all meet.
        """
        undecided = [point for point in self.points if judge(point["low"], point["high"], target) == UNDECIDED]
        failing = [point for point in undecided if point["p"] > target]
        runs = [runs_to_settle(point, tail, target) for point in failing or undecided]
        return min(runs) if failing else max(runs)


def judge(low: float, high: float, target: float) -> str:
    """What an interval says about a target: it is met only if the whole interval is within it."""
    if high <= target:
        return MEETS
    return FAILS if low > target else UNDECIDED


def designs(rows: pd.DataFrame) -> list[Design]:
    """The designs among the rows of one invariant by rank: those of which no run lost data, then those first whose
    intervals reach least high.
    """
    keys = text.varied(rows)
    design_keys, fault_keys = choose.design(keys), text.independent(rows, choose.faults(keys))
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    columns = [*_COUNTS, *(name for name in _PROMISES if name in rows)]
    for point in rows[[*design_keys, *fault_keys, *columns]].to_dict("records"):
        groups[tuple(point[key] for key in design_keys)].append(point)
    found = []
    for points in groups.values():
        worst = max(points, key=lambda point: point["high"])
        differ = any(point["high"] < worst["high"] for point in points)
        for point in points:
            point["at"] = text.settings(point, fault_keys) if differ else ""
        found.append(Design(text.settings(worst, design_keys) or "the one design", points, worst))
    return _ranked(found)


def _ranked(found: list[Design]) -> list[Design]:
    """In an order that does not depend on the one given."""

    def weight(design: Design) -> tuple[bool, float]:
        return not design.is_clean, 0.0 if design.is_clean else design.worst["high"]

    def place(design: Design) -> tuple[Any, ...]:
        promised = [-design.worst.get(name, 0) for name in ("copies", "stored")]
        return *weight(design), design.is_changed, *promised, design.p_stuck(), design.settings

    found = sorted(found, key=place)
    weights = [weight(design) for design in found]
    return [design._replace(rank=1 + weights.index(weight(design))) for design in found]


def choice(found: list[Design], target: float) -> list[Design]:
    """The designs that meet a target, in the order in which to choose them, the first before all.

    Not among them are designs with a mechanism off, or an older version, and those that promise fewer copies than
    another one that meets the target, if no run of the two lost data: what such runs cannot tell apart they are no
    reason to save on. Then come first those that store least, and among these the safest, and the cheapest.
    """
    meets = [design for design in found if design.verdict(target) == MEETS and not design.is_changed]
    clean = [design for design in meets if design.is_clean]
    kept = [each for each in meets if not each.is_clean or not any(each.promises_less(other) for other in clean)]
    measure = "messages" if any(point["messages"] for design in found for point in design.points) else "steps"
    return sorted(kept, key=lambda each: (each.worst.get("stored", 0), each.rank, each.cost(measure)))


def tail(rows: pd.DataFrame) -> float:
    """The probability with which each of the intervals may miss on one side."""
    together = len(rows) if text.is_simultaneous(rows) else 1
    return float((1.0 - rows["confidence"].iloc[0]) / together / 2.0)


def runs_to_settle(point: Mapping[str, Any], tail: float, target: float) -> float:
    """About how many runs an undecided point takes until its interval leaves the target out.

    As if they went on as those made so far: with the same shares of losses and of hidden runs. Without either that is
    the rule of three at this confidence, log(tail) / log(1 - target), if the interval is Clopper-Pearson's. Else it is
    that of a confidence sequence (`analysis.statistics.sequential`), which excludes the target once n KL(share, target)
    is about log(1 / (2 tail)) + log(pi n / 2) / 2. Infinite beyond MOST_RUNS, and so if the target
    lies between the share of losses and that of losses and hidden runs together.
    """
    lost, most = point["losses"] / point["runs"], (point["losses"] + point["hidden"]) / point["runs"]
    exact = not point["sequential"]
    if exact and most == 0.0:
        return math.log(tail) / math.log1p(-target)

    def settled(runs: float) -> bool:
        if not exact:
            share = most if most < target else max(lost, target)
            return runs * _divergence(share, target) >= math.log(math.pi * runs / 2) / 2 - math.log(2 * tail)
        if most < target:  # so few losses would be this unlikely at the target
            return bool(1.0 - betainc(most * runs + 1.0, runs - most * runs, target) <= tail)
        return bool(betainc(lost * runs, runs - lost * runs + 1.0, target) <= tail)

    below, above = float(point["runs"]), 2.0 * point["runs"]
    while not settled(above):
        below, above = above, 2.0 * above
        if above > MOST_RUNS:
            return math.inf
    while above > 1.01 * below:
        middle = math.sqrt(below * above)
        below, above = (below, middle) if settled(middle) else (middle, above)
    return above


def _divergence(share: float, target: float) -> float:
    """KL(share, target) of two coins, in nats."""
    return float(rel_entr(share, target) + rel_entr(1.0 - share, 1.0 - target))


class Decade(NamedTuple):
    """What designs come to at one target."""

    target: float
    meets: list[Design]
    fails: int
    undecided: int


def decades(found: list[Design]) -> list[Decade]:
    """Targets at powers of ten, from the one that all of these designs meet down to one that none does."""
    highs = [design.worst["high"] for design in found]
    first, last = (min(0, math.ceil(math.log10(high))) for high in (max(highs), min(highs)))
    result = []
    for exponent in range(first, max(last - 2, first - _MOST_DECADES), -1):
        target = 10.0**exponent
        verdicts = [design.verdict(target) for design in found]
        meets = [design for design, verdict in zip(found, verdicts, strict=True) if verdict == MEETS]
        result.append(Decade(target, meets, verdicts.count(FAILS), verdicts.count(UNDECIDED)))
    return result
