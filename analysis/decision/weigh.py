"""Losses of an experiment's designs, each configuration solved exactly where its chain is small, else by runs."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from quorisk.analysis.cluster.joined import (
    COARSE,
    enough_of,
    events_by_point,
    is_replaced,
    solved_clusters,
    surely_with_head,
    with_cluster,
    with_p_any,
)
from quorisk.analysis.decision import frames
from quorisk.analysis.decision.early import Early
from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.decision.rows import REPLACED_ROW, estimated_row, is_counted, solved_row
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.ahead import compiling_for_exits
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.estimate.method import ENOUGH_LOSSES, FEW_RUNS, PILOT_RUNS, pilot_runs, unknown_outcomes
from quorisk.analysis.estimate.stopping import rule_of
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint, TooLarge, by_design
from quorisk.analysis.statistics.yearly import confidence_of_each
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import RateError, key, pack
from quorisk.kernels.errors import ConfigError
from quorisk.say.waiting import Tell

if TYPE_CHECKING:
    import pandas as pd

MEMORY = 128 << 20
"""Bytes for the chain of a configuration, unless others are given."""
CLOSE = 0.005
"""Largest half-width of the interval of few runs, though a wider one were enough: else a P that a thousand runs would
show were said to be 0."""
PRECISION = 0.01
"""Relative precision of P(any loss) under other figures: a choice flips where designs differ by more."""
_OF_SIZES = ["wants_losses_per_year", "wants_incident_entries_p99", "wants_write_minutes_lost_per_year"]
"""Targets for which all losses of a cluster have to be computed again."""


class OutOfTime(Exception):
    """There is no time to weigh a configuration."""


class Weigher:
    """Solves and estimates configurations, each once however often it is needed."""

    def __init__(
        self,
        memory_bytes: int,
        threads: int,
        tell: Tell | None = None,
        may_run: bool = True,
        known: Callable[[str], None] | None = None,
    ) -> None:
        """Chains may take `memory_bytes`; `tell` is called with a line about each step, and `known` with a line about
        each design of a frame once it is complete."""
        self._memory_bytes, self._threads, self._tell, self._what = memory_bytes, threads, tell, ""
        self._pace, self._known_early = Pace(0), known
        self.may_run = may_run
        """Whether runs may be made; else configurations whose chains do not fit raise OutOfTime."""
        self.deadline = math.inf
        """Time on `time.monotonic`'s clock from which all configurations not known yet raise OutOfTime."""
        self.longest_run_s = 0.0
        """Seconds that the runs of a configuration have taken, at the most."""
        self._solved: dict[tuple[bytes, ...], dict[str, Any]] = {}
        self._known: dict[tuple[tuple[bytes, ...], float], tuple[float, dict[str, Any]]] = {}
        """Estimates, each with the width that was enough."""
        self._enough: dict[str, float] = {}
        """Width of an interval that is enough, by point of the last frame."""
        self._too_large: set[str] = set()
        """Parameters of chains that did not fit, whatever the rates."""
        self._not_fitting, self._without_head = TooLarge(), TooLarge()
        self._noted: list[tuple[TooLarge, str | None, tuple[int, ...]]] = []
        """Sizes to be added to these once no other thread asks them: numbers must not depend on who comes first."""

    @property
    def num_estimated(self) -> int:
        """Configurations that were estimated."""
        return len(self._known)

    def say(self, what: str, pace: Pace) -> None:
        """Sets the purpose for which configurations are weighed from here on, and the pace that times them."""
        self._what, self._pace = what, pace
        if what:
            self.tell(what.removesuffix(": "), self._left)

    def _left(self) -> str:
        return self._pace.told(self.deadline - time.monotonic())

    def frame(self, experiment: Experiment) -> "pd.DataFrame":
        """Returns a frame as that of a sweep (`tidy.load`), of any data loss alone: a row for each configuration.

        A configuration whose chain fits the memory is solved: `method` is EXACT, both ends of the interval are `p`, and
        outcomes, steps and losses are expectations of one run. Others are estimated, and so are scenarios beside a
        cluster: only as closely as its design's losses a year need. The intervals of its scenarios hold together.
        """
        with compiling_for_exits(experiment.protocol, [each.point for each in surely_with_head(experiment)]):
            early = Early(experiment, frames.parameters(experiment), self._known_early) if self._known_early else None
            try:
                return _described(experiment, self._all(experiment, early))
            except KeyboardInterrupt:
                if early:
                    early.interrupted()
                raise

    def _all(self, experiment: Experiment, early: Early | None) -> dict[str, dict[str, Any]]:
        """The numbers of all configurations, by point id."""
        points = [point for point in experiment.points if not is_replaced(experiment, point.scenario)]
        found: dict[str, dict[str, Any]] = {}
        self._solve_clusters(experiment, early)
        self.say("", pace := Pace(len(points)))
        self._enough = enough_of(experiment, {})

        def took(point: GridPoint, row: dict[str, Any]) -> None:
            found[point.point_id] = row
            if early:
                early.weighed(point, row)

        def solved(points: Sequence[GridPoint]) -> list[dict[str, Any] | None]:
            rows = []
            for point in points:
                rows.append(self._exactly(_alone(experiment, point)))
                self._learn(point.scenario)
            return rows

        left = [point for point in points if point.point_id not in self._enough]
        scenarios = dict.fromkeys(point.scenario for point in left)  # in each of which the same chains fit
        tried = [[each for each in left if each.scenario == name] for name in scenarios]
        for own, rows in zip(tried, side_by_side(solved, tried, self._threads), strict=True):
            for point, known in zip(own, rows, strict=True):
                if known:
                    took(point, known)
                    pace.took()
        self._enough = enough_of(experiment, found)
        others = [point for point in points if point.point_id not in found]
        _compile_engine(experiment, others)
        batches = [_scouts_first(experiment, batch) for batch in _telling_first(experiment, others)]
        ids = [point.point_id for batch in batches for part in batch for point in part]
        numbers = {point_id: number for number, point_id in enumerate(ids, len(found) + 1)}

        counted = set[tuple[tuple[str, Any], ...]]()

        def weighed(point: GridPoint) -> dict[str, Any]:
            width = self._enough.get(point.point_id, 0.0)
            by_few = point.design in counted
            row = self._weighed(experiment, point, numbers[point.point_id], len(points), width, by_few)
            pace.took()
            return row

        for batch in batches:
            for part in batch:
                for point, row in zip(part, side_by_side(weighed, part, self._threads), strict=True):
                    took(point, row)
                self._learn()
            self._enough |= enough_of(experiment, found)
            counted |= {point.design for part in batch for point in part if is_counted(found[point.point_id])}
        return found

    def _solve_clusters(self, experiment: Experiment, early: Early | None) -> None:
        """Solves the clusters of all designs; the answers are cached."""
        if not experiment.clusters:
            return
        self.say("", pace := Pace(num := len(by_design(experiment.points))))
        self.tell(f"cluster of design 1 of {num:,}")
        for number, (design, answer) in enumerate(solved_clusters(experiment), 1):
            pace.took()
            if early:
                early.placed(design, answer.losses.p_any)
            self.tell(f"cluster of design {min(number + 1, num):,} of {num:,}", pace.told)

    def tell(self, line: str, left: Callable[[], str] = str) -> None:
        """Reports the present step, if there is a callback for it, as `Tell`."""
        if self._tell:
            self._tell(line, left)

    def renewed(
        self, rows: "pd.DataFrame", experiment: Experiment, other: Experiment, point_ids: Collection[str]
    ) -> "pd.DataFrame":
        """Returns such a frame of an experiment with the numbers that the configurations of these ids have in another
        experiment, in which each configuration has the same place.
        """
        import pandas as pd

        there = {here.point_id: point for here, point in zip(experiment.points, other.points, strict=True)}
        records: list[dict[str, Any]] = []
        number, happening = 0, events_by_point(other)
        target, is_alone = float(rows["target"].iloc[0]), len({there[each].design for each in point_ids}) == 1
        for row in rows.to_dict("records"):
            point, now = there[row["point_id"]], {}
            kept = is_replaced(other, point.scenario) or ("any_loss" in row and point.point_id == row["point_id"])
            if row["point_id"] in point_ids and not kept:
                number += 1
                enough, by_few = self._enough.get(row["point_id"], 0.0), is_counted(row)
                often = happening[point.point_id].objects if point.scenario is not None else 1.0
                if is_alone and by_few and often:  # only the target decides
                    enough = max(enough, COARSE * target / len(point_ids) / often)
                now = self._weighed(other, point, number, len(point_ids), enough, by_few)
            if point.scenario is not None:
                now = now | happening[point.point_id]._asdict()
            records.append(row | now)
        self._learn()
        if other.clusters:
            self._in_time()
        if other.clusters is not experiment.clusters:  # whose designs are those of the frame's points
            other = other._replace(points=experiment.points)
        frame = pd.DataFrame(records)
        weighed = frame["point_id"].isin(point_ids)
        if "any_loss" not in frame or (frame.filter(_OF_SIZES) < math.inf).any(axis=None):
            return with_cluster(frame, other, PRECISION)
        return pd.concat([with_p_any(frame[weighed], other, PRECISION, target), frame[~weighed]]).sort_index()

    def _weighed(
        self,
        experiment: Experiment,
        point: GridPoint,
        number: int,
        num_points: int,
        enough: float = 0.0,
        by_few: bool = False,
    ) -> dict[str, Any]:
        """A configuration's numbers; an interval that is as narrow as `enough` will do, also one `by_few` runs."""
        self.tell(f"{self._what}configuration {number:,} of {num_points:,}", self._left)
        alone = _alone(experiment, point)
        if not enough and (known := self._exactly(alone)):
            return known
        runs = _runs_of(experiment, point), alone.run.confidence
        if runs not in self._known or self._known[runs][0] > enough:
            self._in_time()
            if not self.may_run:
                raise OutOfTime
            start = time.perf_counter()
            self._known[runs] = enough, self._closely(alone, enough, by_few or enough >= 1.0)
            self.longest_run_s = max(self.longest_run_s, time.perf_counter() - start)
        return self._known[runs][1]

    def _in_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise OutOfTime

    def _exactly(self, alone: Experiment) -> dict[str, Any] | None:
        """The numbers of a configuration by its chain; None if that does not fit."""
        point, runs = alone.points[0], _runs_of(alone, alone.points[0])
        if runs in self._solved:
            return self._solved[runs]
        values, size = repr(point.point.values), point.sizes(alone.model)
        too_large = values in self._too_large or self._not_fitting.has(point.scenario, size)
        if too_large or not rare.applies(point.point, alone.run):
            return None
        self._in_time()
        try:
            self._solved[runs] = solved_row(exact(alone, self._memory_bytes, data_loss_alone=True, lumps=True))
        except ConfigError:
            self._too_large.add(values)
            self._noted.append((self._not_fitting, point.scenario, size))
            return None
        return self._solved[runs]

    def _closely(self, alone: Experiment, enough: float, by_few: bool) -> dict[str, Any]:
        """An estimate: first by what takes little time, if some width is enough. Few runs take least, but where all
        else of a design is solved, a head is worth more: it answers for other rates as well."""
        tries, made = [("head", FEW_RUNS), ("auto", PILOT_RUNS)], None
        if enough and by_few:
            run = alone.run._replace(confidence=1.0 - (1.0 - alone.run.confidence) / 2)  # either interval may fail
            alone = alone._replace(run=run)
            few = min(run.runs, FEW_RUNS // 4) if enough >= 1.0 else run.runs if run.runs <= 2 * FEW_RUNS else FEW_RUNS
            counted = run._replace(method="count", runs=few, precision=min(enough / 2, CLOSE))
            counted = counted._replace(relative_precision=math.inf)
            found = self._estimate(alone._replace(run=counted), enough)
            if found["high"] - found["low"] <= enough:
                return found
            if few == run.runs and rule_of(run) is None:  # all runs were made
                if found["losses"] >= ENOUGH_LOSSES:  # losses are not rare, and counting them is best
                    return found
                made = None if alone.clusters or pilot_runs(alone.points[0].point, run) else found
            if found["losses"] >= ENOUGH_LOSSES:
                tries = []
        runs, applies = alone.run.runs, rare.applies(alone.points[0].point, alone.run)
        for method, few in tries:
            if enough and runs > few and (applies or method == "auto"):
                with suppress(ConfigError):  # there is no head
                    found = self._estimate(alone._replace(run=alone.run._replace(method=method, runs=few)), enough)
                    if found["high"] - found["low"] <= enough:
                        return found
        if 0.0 < enough < 1.0 and (known := self._exactly(alone) or made):
            return known
        if enough and not alone.clusters and rule_of(alone.run) is None:
            alone = alone._replace(run=alone.run._replace(precision=enough / 2))
        return self._estimate(alone, enough)

    def _estimate(self, alone: Experiment, enough: float) -> dict[str, Any]:
        """An estimate. After two heads of a scenario that told no more than counting, configurations no smaller are
        counted."""
        run, scenario, size = alone.run, alone.points[0].scenario, alone.points[0].sizes(alone.model)
        if run.method == "auto" and self._without_head.has(scenario, size):
            run = run._replace(method="count")
        found = estimated_row(estimate(alone._replace(run=run), self._threads, enough=enough), unknown_outcomes(run))
        if run.method == "auto" and is_counted(found) and found["losses"] < ENOUGH_LOSSES and not found["sequential"]:
            self._noted.append((self._without_head, scenario, size))
        return found

    def _learn(self, scenario: str | None = None) -> None:
        """Heeds from here on what was noted, of one scenario or of all."""
        for note in list(self._noted):
            which, name, size = note
            if scenario in (None, name):
                self._noted.remove(note)
                which.add(name, size)


def _compile_engine(experiment: Experiment, points: Sequence[GridPoint]) -> None:
    """Shows the engine all configurations that are to be estimated: else it would compile a kernel for each of a few,
    and only then the one that serves all."""
    if points:
        model, run = experiment.model, experiment.run
        of_all = pack(model, [each.point for each in points])
        registry.engine_of(run.engine).simulate(model, of_all, [Job(0, 0, 1)], run.seed)


def _runs_of(experiment: Experiment, point: GridPoint) -> tuple[bytes, ...]:
    """The identity of a configuration's runs: the same for designs that differ in what plays no part in a scenario."""
    try:
        return key(pack(experiment.model, [point.point]), 0)
    except RateError:  # it has no runs, but may have a chain
        return (point.point_id.encode(),)


def _alone(experiment: Experiment, point: GridPoint) -> Experiment:
    """The experiment of one configuration, whose interval holds together with others (`_together`)."""
    level = confidence_of_each(experiment.run.confidence, _together(experiment))
    return experiment._replace(points=(point,), run=experiment.run._replace(confidence=level))


def _together(experiment: Experiment) -> int:
    """Number of intervals that hold together: of all configurations with `run.simultaneous`, else of a design's."""
    return len(experiment.points) if experiment.run.simultaneous else max(len(experiment.scenarios), 1)


def _described(experiment: Experiment, found: Mapping[str, Mapping[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    together = _together(experiment)
    numbers = [{**found.get(point.point_id, REPLACED_ROW), "together": together} for point in experiment.points]
    return frames.described(pd.concat([frames.parameters(experiment), pd.DataFrame(numbers)], axis=1), experiment)


def _scouts_first(experiment: Experiment, points: Sequence[GridPoint]) -> list[list[GridPoint]]:
    """Three parts, one after another: the smallest of each scenario, whose heads tell whether those of others are of
    use; others, the largest first, so that none of these is left alone at the end; those that make the same runs as one
    before."""
    scouts, others, repeated = list[GridPoint](), list[GridPoint](), list[GridPoint]()
    known, num = set[tuple[bytes, ...]](), Counter[str | None]()
    for point in sorted(points, key=lambda point: sum(point.sizes(experiment.model))):
        runs, is_scout = _runs_of(experiment, point), num[point.scenario] < TooLarge.MOST_TRIES
        (repeated if runs in known else scouts if is_scout else others).append(point)
        num[point.scenario] += runs not in known
        known.add(runs)
    return [scouts, others[::-1], repeated]


def _telling_first(experiment: Experiment, points: Sequence[GridPoint]) -> list[list[GridPoint]]:
    """The scenario of each design that happens most often, which mostly decides how much is open in the end, and then
    all others, which need be no more precise than that leaves of use."""
    if experiment.clusters or not experiment.scenarios:
        return [list(points)]
    often = events_by_point(experiment)
    first = {max(each, key=lambda point: often[point.point_id].objects).point_id for each in by_design(points).values()}
    return [[each for each in points if (each.point_id in first) == is_first] for is_first in (True, False)]
