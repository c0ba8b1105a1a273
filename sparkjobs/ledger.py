"""The ledger of a grid's runs: those that have been computed, and those wanted next. It holds counts alone, no rows.

With a fixed number of runs all of them are wanted at once. With a precision there are rounds: in each a point gets the
runs after which its interval should be narrow enough; points whose interval is drop out before the next. Intervals are
judged after the numbers of runs of `sequential.looks`, in their order: a point stops at the first look at which its
interval is narrow enough, however far the round went. So a point reports what `quorisk estimate` reports, which depends
on nothing but the experiment.

A point that may be too rare to count (`estimate.method`) has its pilot's runs first. If it is, it waits for its head.
Then runs from the head's exits follow by the same rules, if they are needed; or the point's runs are counted on, if its
head knows no more than counting.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from quorisk.analysis.estimate.method import counts, is_rare, most_transitions
from quorisk.analysis.estimate.rare import MOST_TRANSITIONS
from quorisk.analysis.estimate.stopping import estimator_of_run, is_precise, rule_of
from quorisk.analysis.experiment.config import RunSettings
from quorisk.analysis.results import heads, schema
from quorisk.analysis.statistics import sequential
from quorisk.kernels.engines.job import Job
from quorisk.kernels.errors import ConfigError

FIRST_ROUND = 16 * sequential.FIRST_LOOK
"""Runs of each point in the first round, if a precision is given: one of the looks."""
MOST_GROWTH, MARGIN = 4.0, 1.05
"""The most growth of a point's runs from round to round, and the factor on predicted numbers of runs."""
SPENT = "budget"
"""Reason to stop: the point has made all its runs, though its interval is wider than `run.precision`."""


class RowCounts(NamedTuple):
    """Sums of a row, or of rows that follow on each other."""

    num_runs: int = 0
    losses: int = 0
    """Runs that broke the invariant of `run.precision`."""
    hidden: int = 0
    """Runs that may hide a loss."""
    steps: int = 0


class PointEnd(NamedTuple):
    """The end of a point's runs, for now or for good."""

    num_runs: int
    why: str
    """The reason, as in the column `stopped` of results; empty if the point goes on."""
    head: Mapping[str, Any] | None = None
    """The head that counts (`analysis.results.heads`), without its runs; None if all losses are counted."""
    tail_runs: int = 0
    """The number of runs from its exits."""


class _Runs:
    """Runs that are there without a gap, counted from the first, and those further on."""

    def __init__(self) -> None:
        self.sums = RowCounts()
        self.further: dict[int, RowCounts] = {}
        """Rows beyond a gap, by first run."""

    def take(self) -> bool:
        """Adds the row that follows; returns False if it is not there."""
        row = self.further.pop(self.sums.num_runs, None)
        if row:
            self.sums = RowCounts(*map(sum, zip(self.sums, row, strict=True)))
        return row is not None

    def holes(self, within: range) -> Iterator[range]:
        """Yields the ranges of runs that no row has."""
        at = max(within.start, self.sums.num_runs)
        for first, row in sorted(self.further.items()):
            if first + row.num_runs > at:
                yield range(at, min(first, within.stop))
                at = first + row.num_runs
        yield range(at, within.stop)


class _Point:
    def __init__(self, most_runs: int) -> None:
        self.most_runs = most_runs
        """Runs that it makes; with a head, runs from the head's exits."""
        self.counted, self.tail = _Runs(), _Runs()
        """Runs from the beginning, and runs from the exits of its head."""
        self.why = ""
        self.heads: list[Mapping[str, Any]] = []
        """Heads that tasks found, until it is known which one is wanted."""
        self.waits, self.is_solved = False, False
        """Whether it waits for its head; whether that has come, even if it knows no more than counting."""
        self.head: Mapping[str, Any] | None = None
        """The head by which it is answered."""

    @property
    def runs(self) -> _Runs:
        """The runs that are wanted, now or next."""
        return self.tail if self.head else self.counted


class Ledger:
    """The state of all points of an experiment."""

    def __init__(
        self,
        run: RunSettings,
        num_points: int,
        pilots: Sequence[int] = (),
        protocol: str = "",
        largest_head: int = MOST_TRANSITIONS,
        enough: Sequence[float] = (),
    ) -> None:
        """`pilots`: by point, the runs after which it is judged whether it is too rare to count (`method.pilot_runs`);
        `protocol`: its name, for an error; `largest_head`: the most transitions of a head; `enough`: by point, the
        width of an interval of any data loss that leaves nothing to learn, or 0."""
        self._protocol, self._largest_head = protocol, largest_head
        self._run = run
        self._pilots = pilots or [0] * num_points
        self._enough = enough or [0.0] * num_points
        self._rule = rule_of(run)
        self._looks = list(sequential.looks(run.runs)) if self._rule else [run.runs]
        self._at_look = frozenset(self._looks)
        self._points = [_Point(run.runs) for _ in range(num_points)]
        self.num_stopped = 0

    def add(self, point: int, first_run: int, row: RowCounts) -> None:
        """Takes note of a row of runs from the beginning."""
        self._points[point].counted.further[first_run - self._run.first_run] = row
        self._go_on(point)

    def solve(self, point: int, head: Mapping[str, Any]) -> None:
        """Takes note of a point's head, and of the runs from its exits. Raises ConfigError if it is another one."""
        self._points[point].heads.append(head)
        self._go_on(point)

    def _go_on(self, point: int) -> None:
        """Counts the rows that follow on each other, up to where the point stops or waits."""
        here = self._points[point]
        while not here.why and (self._reads_heads(here, point) or (not here.waits and here.runs.take())):
            self._stop_or_wait(here, self._pilots[point])

    def _reads_heads(self, here: _Point, point: int) -> bool:
        """Whether there are new rows with the head that a point waits for, or has; takes note of them."""
        wanted = here.waits or here.head
        found = [head for head in here.heads if wanted and heads.is_for(head, self._most_transitions(here))]
        for head in found:
            if here.head and here.head["digest"] != head["digest"]:
                said = "machines differ in the likeliest paths of one point; start again on one kind of them"
                raise ConfigError(f"{said}, in another folder")
            here.head, here.waits, here.is_solved = head if head["digest"] else None, False, True
            if here.head:
                here.most_runs = heads.wanted_runs(head, self._run, self._enough[point])
            for part in head["runs"]:  # one, in what tasks leave
                row = RowCounts(part["num_runs"], heads.runs_broken(head, self._run.precision_of), head["unfinished"])
                here.tail.further[part["first_run"] - self._run.first_run] = row
        if wanted:
            here.heads = []
        return bool(found)

    def _stop_or_wait(self, here: _Point, pilot: int) -> None:
        runs, losses, hidden, _ = here.runs.sums
        precise = runs in self._at_look and self._is_precise(here)
        may_wait = 0 < runs == pilot and not here.is_solved and not precise
        here.waits = may_wait and is_rare(self._run, losses, hidden)
        if precise:
            here.why = "precision"
        elif here.head and here.head["exits"] == 0:
            here.why = schema.CERTAIN
        elif runs == here.most_runs and not here.waits:
            here.why = SPENT if self._rule else schema.BY_RUNS
        self.num_stopped += here.why != ""
        if here.head and here.why:
            self._hold_against(here, here.head)

    def _hold_against(self, here: _Point, head: Mapping[str, Any]) -> None:
        """Raises ModelError where a point's pilot contradicts its head, and the runs from its exits."""
        name, known = self._run.precision_of, heads.part(head, self._run.precision_of)
        pilot, tail = ((runs.sums.losses, runs.sums.num_runs, runs.sums.hidden) for runs in (here.counted, here.tail))
        if pilot[1]:
            known.hold_against(self._protocol, name, pilot, tail)

    def stops(self) -> list[PointEnd]:
        """Returns where each point stopped, or how far it has come."""
        return [
            PointEnd(here.counted.sums.num_runs, here.why, here.head, here.tail.sums.num_runs) for here in self._points
        ]

    def wanted(self) -> list[Job]:
        """Returns the runs of the next round, those from exits included; none if every point has stopped, or waits."""
        return [
            Job(index, self._run.first_run + part.start, len(part))
            for index, here in enumerate(self._points)
            if not here.why and not here.waits
            for hole in here.runs.holes(range(self._next(here, self._pilots[index])))
            for part in self._cut(hole, 0 if here.head else self._pilots[index])
        ]

    def left(self) -> tuple[list[Job], dict[int, int], dict[int, int]]:
        """Returns the work left: `wanted` runs, `unsolved` heads, and heads of `tails`; all are empty at the end."""
        return self.wanted(), self.unsolved(), self.tails()

    def unsolved(self) -> dict[int, int]:
        """Returns the most transitions of the heads that points wait for, by point."""
        return {i: self._most_transitions(p) for i, p in enumerate(self._points) if p.waits}

    def tails(self) -> dict[int, int]:
        """Returns the most transitions of the heads whose exits the wanted runs of points start from, by point."""
        return {i: self._most_transitions(p) for i, p in enumerate(self._points) if p.head and not p.why}

    def _most_transitions(self, here: _Point) -> int:
        pilot = here.counted.sums
        return min(self._largest_head, most_transitions(self._run, pilot.steps, pilot.num_runs))

    def _next(self, here: _Point, pilot: int) -> int:
        """Returns the number of runs that a point has after the next round."""
        target = self._target(here) if self._rule else here.most_runs
        is_pilot = here.counted.sums.num_runs < pilot
        return min(target, pilot) if is_pilot else target

    def _is_precise(self, here: _Point) -> bool:
        runs, losses, hidden, _ = here.runs.sums
        if here.head:
            known = heads.part(here.head, self._run.precision_of)
            return known.is_precise(self._run, losses, runs, hidden, len(self._points))
        return counts(self._run) and is_precise(self._run, losses, runs, hidden, len(self._points))

    def _interval(self, here: _Point) -> tuple[float, float, float]:
        """Returns the estimate, and the interval's low and high end."""
        runs, losses, hidden, _ = here.runs.sums
        estimator = estimator_of_run(self._run, len(self._points))
        if here.head:
            known = heads.part(here.head, self._run.precision_of)
            return known.p(losses, runs), *known.interval(estimator, losses, runs, hidden)
        return losses / runs, *estimator.interval(losses, runs, hidden)

    def _target(self, here: _Point) -> int:
        """Returns the next look of a point, where it should be precise enough: widths shrink by 1 / sqrt(runs)."""
        runs = here.runs.sums.num_runs
        if runs == 0:
            return min(FIRST_ROUND, self._run.runs)
        assert self._rule
        p, low, high = self._interval(here)
        aim = min(self._rule.half_width, self._rule.relative * (p or 1.0))
        growth = min(MOST_GROWTH, MARGIN * ((high - low) / 2 / aim) ** 2)
        if here.runs.sums.losses == 0 and self._rule.relative < math.inf:  # no loss yet, and so no scale
            growth = MOST_GROWTH
        least = max(growth * runs, runs + 1)
        return next((look for look in self._looks if look >= least), self._run.runs)

    def _cut(self, runs: range, pilot: int) -> Iterator[range]:
        """Returns the range in pieces that end at looks, and at the pilot's end."""
        inside = {look for look in (*self._looks, pilot) if look in runs and look > runs.start}
        edges = [runs.start, *sorted(inside), runs.stop]
        return (range(start, end) for start, end in pairwise(edges) if start < end)
