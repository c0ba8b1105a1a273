"""Designs that are known while others are still weighed: a line for each, which an interrupted command leaves."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from quorisk.analysis.cluster.figures import YearFigure
from quorisk.analysis.cluster.joined import Key, events_by_point, is_replaced
from quorisk.analysis.decision.designs import short_names
from quorisk.analysis.decision.promises import with_promises
from quorisk.analysis.decision.years import SUMMED, part_of
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.scenarios import SCENARIO
from quorisk.analysis.statistics.yearly import NOTHING, Ends, incidents, p_any
from quorisk.say import numbers

if TYPE_CHECKING:
    import pandas as pd


class Early:
    """Collects the results of each design, and reports a design once they are complete."""

    def __init__(self, experiment: Experiment, rows: "pd.DataFrame", say: Callable[[str], None]) -> None:
        """`rows` has the parameters of each point; `say` takes a line."""
        self._experiment, self._say = experiment, say
        if experiment.scenarios:
            rows = rows.assign(**{SCENARIO: [point.scenario for point in experiment.points]})
        self._names = dict(zip(rows["point_id"], short_names(with_promises(rows, experiment)), strict=True))
        self._missing: dict[Key, set[str]] = {}
        self._found: dict[str, Mapping[str, Any]] = {}
        self._on_cluster: dict[Key, Ends] = {}
        for point in experiment.points:
            missing = self._missing.setdefault(point.design, {"cluster"} if experiment.clusters else set())
            missing |= set() if is_replaced(experiment, point.scenario) else {point.point_id}

    def placed(self, design: Key, found: YearFigure) -> None:
        """Takes P(any loss in a year) of a design on its cluster."""
        self._on_cluster[design] = Ends(*found[:3])
        self._done(design, "cluster")

    def weighed(self, point: GridPoint, found: Mapping[str, Any]) -> None:
        """Takes `p`, `low` and `high` of a point."""
        self._found[point.point_id] = found
        self._done(point.design, point.point_id)

    def interrupted(self) -> None:
        """Reports P(any loss in a year) on their clusters of designs whose results are incomplete."""
        for design in self._on_cluster:
            if missing := self._missing[design]:
                others = [str(point.scenario) for point in self._of(design) if point.point_id in missing]
                self._tell(design, f", without {' and '.join(others)}")

    def _done(self, design: Key, what: str) -> None:
        self._missing[design].discard(what)
        if not self._missing[design]:
            self._tell(design)

    def _tell(self, design: Key, more: str = "") -> None:
        points = self._of(design)
        is_yearly = self._experiment.clusters or self._experiment.scenarios
        ends = self._year(points) if is_yearly else Ends(*(self._found[points[0].point_id][name] for name in SUMMED))
        said = numbers.plain(ends.value) if ends.value else numbers.bound(ends.high, numbers.plain)
        interval = "" if ends.low == ends.high else f" {numbers.in_brackets(ends.low, ends.high)}"
        what = "P(any loss in a year)" if is_yearly else "P(data loss) of a run"
        self._say(f"{self._names[points[0].point_id]}: {what} {said}{interval}{more}")

    def _of(self, design: Key) -> list[GridPoint]:
        return [point for point in self._experiment.points if point.design == design]

    def _year(self, points: list[GridPoint]) -> Ends:
        """P(any loss in a year) of a design's scenarios, beside its cluster if it has one."""
        happening = events_by_point(self._experiment)
        parts = [
            part_of({**happening[point.point_id]._asdict(), **self._found[point.point_id]})
            for point in points
            if point.point_id in self._found
        ]
        return p_any(incidents(parts), self._on_cluster.get(points[0].design, NOTHING))
