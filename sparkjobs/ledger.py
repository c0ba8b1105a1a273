"""Which runs of a grid have been computed, and which are wanted next. It holds counts alone, no rows.

With a fixed number of runs all of them are wanted at once. With a precision there are rounds: in each a point gets the
runs after which its interval should be narrow enough, and before the next the points drop out whose interval is. It is
looked at after the numbers of runs of `sequential.looks`, in their order, and the first look at which it is narrow
enough is where the point stops, however far the round went. So what a point reports is what `quorisk estimate` reports,
and depends on nothing but the experiment.

A point that may be too rare to count (`analysis.method`) has its pilot's runs first. If it is, it waits for its head,
with which it stops; or goes on to be counted, where that knows no more.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from quorisk.analysis import results
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.judge import estimator_of, is_precise, rule_of
from quorisk.analysis.method import counts, is_rare
from quorisk.analysis.statistics import sequential
from quorisk.kernels.engines.job import Job

FIRST_ROUND = 16 * sequential.FIRST_LOOK
"""Runs of each point before anything is known of it, if a precision is asked for: a look."""
MOST_GROWTH, MARGIN = 4.0, 1.05
"""From round to round a point's runs grow fourfold at most; predicted numbers of runs are raised by 5%."""
SPENT = "budget"
"""Why a point stopped: it has made all its runs, and its interval is wider than was asked for."""


class Counts(NamedTuple):
    """What the ledger keeps of a row."""

    num_runs: int
    losses: int
    """Of what the precision is about."""
    hidden: int
    """Runs that may hide a loss."""


class Stop(NamedTuple):
    """Where a point's runs end, for now or for good."""

    num_runs: int
    why: str
    """As in the column `stopped` of results; empty if it goes on."""


class _Point:
    """The runs of a point that are there without a gap, counted from the point's first, and those further on."""

    def __init__(self) -> None:
        self.runs = self.losses = self.hidden = 0
        self.further: dict[int, Counts] = {}
        """By first run."""
        self.why = ""
        self.head: Mapping[str, Any] | None = None
        """See `analysis.heads`."""
        self.waits = False
        """For its head."""

    def holes(self, within: range) -> Iterator[range]:
        """Ranges of runs that no row has."""
        at = max(within.start, self.runs)
        for first, row in sorted(self.further.items()):
            if first + row.num_runs > at:
                yield range(at, min(first, within.stop))
                at = first + row.num_runs
        yield range(at, within.stop)


class Ledger:
    """The state of all points of an experiment."""

    def __init__(self, run: RunSettings, num_points: int, pilots: Sequence[int] = ()) -> None:
        """`pilots`: by point, after how many runs it is seen whether it is too rare to count (`method.pilot_runs`)."""
        self._run = run
        self._pilots = pilots or [0] * num_points
        self._rule = rule_of(run)
        self._looks = list(sequential.looks(run.runs)) if self._rule else [run.runs]
        self._at_look = frozenset(self._looks)
        self._points = [_Point() for _ in range(num_points)]
        self.num_stopped = 0

    def add(self, point: int, first_run: int, row: Counts) -> None:
        """Takes note of a row."""
        here = self._points[point]
        here.further[first_run - self._run.first_run] = row
        self._go_on(point)

    def solve(self, point: int, head: Mapping[str, Any]) -> None:
        """Takes note of a point's head."""
        here = self._points[point]
        here.head = head
        if here.waits:
            self._stop_or_wait(point)
            self._go_on(point)

    def _go_on(self, point: int) -> None:
        """Counts the rows that follow on each other, up to where the point stops or waits."""
        here = self._points[point]
        while not here.why and not here.waits and (row := here.further.pop(here.runs, None)):
            here.runs += row.num_runs
            here.losses += row.losses
            here.hidden += row.hidden
            self._stop_or_wait(point)

    def _stop_or_wait(self, point: int) -> None:
        here = self._points[point]
        at_pilot = 0 < here.runs == self._pilots[point]
        precise = self._is_precise(here)
        here.waits = at_pilot and not precise and not here.head and is_rare(self._run, here.losses, here.hidden)
        if precise:
            here.why = "precision"
        elif at_pilot and here.head and here.head["digest"]:
            here.why = here.head["stopped"]
        elif here.runs == self._run.runs and not here.waits:
            here.why = SPENT if self._rule else results.BY_RUNS
        self.num_stopped += here.why != ""

    def stops(self) -> list[Stop]:
        """By point: where it stopped, or how far it has come."""
        return [Stop(point.runs, point.why) for point in self._points]

    def wanted(self) -> list[Job]:
        """The runs of the next round; none if every point has stopped."""
        return [
            Job(index, self._run.first_run + part.start, len(part))
            for index, point in self._going_on()
            for hole in point.holes(range(self._next(index, point)))
            for part in self._cut(hole, self._pilots[index])
        ]

    def unsolved(self) -> list[int]:
        """The points that wait for their heads."""
        return [index for index, point in enumerate(self._points) if point.waits]

    def _next(self, index: int, point: _Point) -> int:
        """How far a point goes in the next round."""
        target = self._target(point) if self._rule else self._run.runs
        return min(target, self._pilots[index]) if point.runs < self._pilots[index] else target

    def _going_on(self) -> Iterator[tuple[int, _Point]]:
        return ((i, point) for i, point in enumerate(self._points) if not point.why and not point.waits)

    def _is_precise(self, point: _Point) -> bool:
        if point.runs not in self._at_look or not counts(self._run):
            return False
        return is_precise(self._run, point.losses, point.runs, point.hidden, len(self._points))

    def _target(self, point: _Point) -> int:
        """The look to which a point goes next: where it should be narrow enough, as widths go by 1 / sqrt(runs)."""
        if point.runs == 0:
            return min(FIRST_ROUND, self._run.runs)
        assert self._rule
        estimator = estimator_of(self._run, len(self._points))
        low, high = estimator.interval(point.losses, point.runs, point.hidden)
        share = point.losses / point.runs
        aim = min(self._rule.half_width, self._rule.relative * (share or 1.0))
        growth = min(MOST_GROWTH, MARGIN * ((high - low) / 2 / aim) ** 2)
        if share == 0.0 and self._rule.relative < math.inf:  # no loss yet, and so no scale
            growth = MOST_GROWTH
        least = max(growth * point.runs, point.runs + 1)
        return next((look for look in self._looks if look >= least), self._run.runs)

    def _cut(self, runs: range, pilot: int) -> Iterator[range]:
        """The range in pieces that end at looks, and at the pilot's end."""
        inside = {look for look in (*self._looks, pilot) if look in runs and look > runs.start}
        edges = [runs.start, *sorted(inside), runs.stop]
        return (range(start, end) for start, end in pairwise(edges) if start < end)
