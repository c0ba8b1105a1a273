"""Verdicts of intervals on a target, and the number of runs that it takes to reach one."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from scipy.special import betainc, rel_entr

MEETS, FAILS, UNDECIDED = "meets", "does not meet", "undecided"
MOST_RUNS = 10**15


def judge(low: float, high: float, target: float) -> str:
    """Returns the verdict of an interval on a target, which is met only if the whole interval is within it."""
    if high <= target:
        return MEETS
    return FAILS if low > target else UNDECIDED


def tail(rows: pd.DataFrame) -> float:
    """Returns the probability with which each of the intervals may miss on one side."""
    return float((1.0 - rows["confidence"].iloc[0]) / rows["together"].iloc[0] / 2.0)


def runs_to_settle(point: Mapping[str, Any], tail: float, target: float) -> float:
    """Returns about how many runs an undecided point takes until its interval leaves the target out.

    Further runs are taken to have the same shares of losses and of hidden runs. Without either that is the rule of
    three at this confidence, log(tail) / log(1 - target), if the interval is Clopper-Pearson's. Else it is that of a
    confidence sequence (`analysis.statistics.sequential`), which excludes the target once n KL(share, target) is about
    log(1 / (2 tail)) + log(pi n / 2) / 2. Infinite beyond MOST_RUNS, and if the target lies between the share of losses
    and that of losses and hidden runs together.

    Where losses are too rare to count, P = inside + leaves x q, the runs are those from the head's exits, of which a
    share q is lost. What leaves a head whose exits are not sampled is settled by no number of runs.
    """
    if point.get("leaves", 0.0) > 0.0:
        target = (target - point["inside"]) / point["leaves"]
        if not point["exit_runs"] or not 0.0 < target < 1.0:
            return math.inf
        from_exits = {name: point[f"exit_{name}"] for name in ("losses", "runs", "hidden")}
        point = {**from_exits, "sequential": point["sequential"]}
    lost, most = point["losses"] / point["runs"], (point["losses"] + point["hidden"]) / point["runs"]
    exact = not point["sequential"]
    if exact and most == 0.0:
        return math.log(tail) / math.log1p(-target)

    def settled(runs: float) -> bool:
        if not exact:
            share = most if most < target else max(lost, target)
            divergence = float(rel_entr(share, target) + rel_entr(1.0 - share, 1.0 - target))
            return runs * divergence >= math.log(math.pi * runs / 2) / 2 - math.log(2 * tail)
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
