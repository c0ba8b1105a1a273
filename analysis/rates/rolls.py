"""Rolls: an operator restarts all nodes of a cluster, one after another. The times when nodes were up show them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from quorisk.analysis.rates.observed import DAY_S, Observed, day_of, series
from quorisk.analysis.rates.prometheus import Samples
from quorisk.kernels.protocols import evidence

_FEWEST = 3
"""Fewest nodes of a cluster that has rolls: two that stop in a row may do so by chance."""
_WAIT_S = 3600.0
"""The longest time from a node's return to the next one's stop."""


class Downtime(NamedTuple):
    """A node that was not up for a while."""

    node: Samples
    start_s: float
    """Unix times: of the first sample at 0, and of the first at 1 after it."""
    end_s: float


def by_job(up: Sequence[Samples]) -> list[list[Samples]]:
    """Returns the nodes of each cluster: targets with the same label `job`."""
    jobs: dict[str, list[Samples]] = defaultdict(list)
    for each in up:
        jobs[each.labels.get("job", "")].append(each)
    return list(jobs.values())


def found(nodes: Sequence[Samples]) -> list[list[Downtime]]:
    """Returns the rolls of a cluster, each with one stop of every node."""
    rolls: list[list[Downtime]] = []
    roll: list[Downtime] = []
    for stop in sorted((stop for node in nodes for stop in _stops(node)), key=lambda stop: stop.start_s):
        goes_on = bool(roll) and roll[-1].end_s <= stop.start_s <= roll[-1].end_s + _WAIT_S
        if not goes_on or any(stop.node is each.node for each in roll):
            roll = []
        roll.append(stop)
        if len(roll) == len(nodes) >= _FEWEST:
            rolls.append(roll)
            roll = []
    return rolls


def _stops(node: Samples) -> Iterator[Downtime]:
    """The stops of a node that are over."""
    is_up = node.values == 1
    falls, rises = (np.flatnonzero(change) + 1 for change in (is_up[:-1] & ~is_up[1:], ~is_up[:-1] & is_up[1:]))
    for fall, place in zip(falls, np.searchsorted(rises, falls), strict=True):
        if place < len(rises):
            yield Downtime(node, float(node.times[fall]), float(node.times[rises[place]]))


def steps_outside(node: Samples, rolled: Sequence[Downtime]) -> np.ndarray:
    """Returns, for each step from a sample of a node to the next, whether none of these stops is in it."""
    starts, ends = np.array([(stop.start_s, stop.end_s) for stop in rolled if stop.node is node]).reshape(-1, 2).T
    begun, over = np.searchsorted(starts, node.times[1:], "right"), np.searchsorted(ends, node.times[:-1], "right")
    return np.asarray(begun == over)


def roll_counts(clusters: Sequence[Sequence[Samples]], source: str) -> Iterator[Observed]:
    """Yields the rolls in the time watched, the restarts in the time waited for them, and the ends of restarts."""
    watched = [nodes for nodes in clusters if len(nodes) >= _FEWEST]
    if not watched:
        return
    rolls = [roll for nodes in watched for roll in found(nodes)]
    spans = [max(nodes, key=lambda node: float(np.ptp(node.times))).times for nodes in watched]
    days = [day_of(roll[0].start_s) for roll in rolls]
    watched_days = np.concatenate([times[1:] // DAY_S for times in spans])
    lasted = np.concatenate([np.zeros(len(days)), *map(np.diff, spans)])
    yield Observed(evidence.ROLLS, series([*days, *watched_days], np.arange(len(lasted)) < len(days), lasted), source)
    gaps = [(day_of(after.start_s), after.start_s - before.end_s) for roll in rolls for before, after in pairwise(roll)]
    ends = [(day_of(stop.end_s), stop.end_s - stop.start_s) for roll in rolls for stop in roll]
    for kind, each in ((evidence.ROLL_RESTARTS, gaps), (evidence.RESTART_ENDS, ends)):
        if each:
            yield Observed(kind, series([day for day, _ in each], [1] * len(each), [time for _, time in each]), source)
