"""What the designs of an experiment lose, each configuration solved exactly where its chain is small, else by runs."""

import math
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from quorisk.analysis.cluster.joined import is_replaced, with_cluster
from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.estimate import Estimate, estimate
from quorisk.analysis.estimate.method import unknown_outcomes
from quorisk.analysis.exact.exact import ExactResult, exact
from quorisk.analysis.experiment.config import Experiment, GridPoint
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.results import heads, sweeps
from quorisk.analysis.statistics.yearly import confidence_of_each
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import OUTCOMES

if TYPE_CHECKING:
    import pandas as pd

EXACT = "exact"
REPLACED = "its cluster's"
"""The method of a scenario that is not weighed, since its losses are among those of the design's cluster."""
_REPLACED: dict[str, Any] = {
    **dict.fromkeys((*OUTCOMES, "losses", "hidden", "steps", "messages", "p", "low", "high"), 0.0),
    **{"runs": 1.0, "method": REPLACED, "sequential": False},
}


class OutOfTime(Exception):
    """There is no time to weigh a configuration."""


class Weigher:
    """Solves and estimates configurations, each once however often it is asked about."""

    def __init__(
        self, memory_bytes: int, threads: int, tell: Callable[[str], None] | None = None, may_run: bool = True
    ) -> None:
        """Chains may take `memory_bytes`; `tell` is told what is done."""
        self._memory_bytes, self._threads, self._tell, self._what = memory_bytes, threads, tell, ""
        self._pace = Pace(0)
        self.may_run = may_run
        """Unless it may, configurations whose chains do not fit raise OutOfTime."""
        self.deadline = math.inf
        """On `time.monotonic`'s clock: from then on they do, whatever they are."""
        self.longest_run_s = 0.0
        """Seconds that the runs of a configuration have taken, at the most."""
        self._known: dict[tuple[str, float], dict[str, Any]] = {}
        self._too_large: set[str] = set()
        """Sizes of chains that did not fit, whatever the rates."""
        self.num_solved = self.num_estimated = 0

    def say(self, what: str, pace: Pace) -> None:
        """What configurations are weighed for, from here on, and what says how long that takes."""
        self._what, self._pace = what, pace

    def frame(self, experiment: Experiment) -> "pd.DataFrame":
        """Returns a frame as that of a sweep (`tidy.load`), of any data loss alone: a row for each configuration.

        A configuration whose chain fits the memory is solved: `method` is EXACT, both ends of the interval are `p`, and
        outcomes, steps and losses are expectations of one run. Others are estimated by the experiment's runs; the
        intervals of a design's scenarios hold together.
        """
        import pandas as pd

        together, num_points = max(len(experiment.scenarios), 1), len(experiment.points)
        pace, rows = Pace(num_points), []
        self.say("", pace)
        for number, point in enumerate(experiment.points, 1):
            known = _REPLACED
            if not is_replaced(experiment, point.scenario):
                known = self._weighed(experiment, point, number, num_points)
            rows.append(_row(experiment, point) | known | {"together": together})
            pace.took()
        return sweeps.described(pd.DataFrame(rows), experiment)

    def renewed(
        self, rows: "pd.DataFrame", experiment: Experiment, other: Experiment, point_ids: Collection[str]
    ) -> "pd.DataFrame":
        """Such a frame of an experiment with the numbers that the configurations of these ids have in another one, of
        which each configuration stands where it does in the first.
        """
        import pandas as pd

        there = {here.point_id: point for here, point in zip(experiment.points, other.points, strict=True)}
        records: list[dict[str, Any]] = []
        number = 0
        for row in rows.to_dict("records"):
            point, now = there[row["point_id"]], {}
            if row["point_id"] in point_ids and not is_replaced(other, point.scenario):
                number += 1
                now = self._weighed(other, point, number, len(point_ids))
            if point.scenario is not None:
                now = now | {"per_year": other.scenarios[point.scenario].per_year}
            records.append(row | now)
        return with_cluster(pd.DataFrame(records), other)

    def _weighed(self, experiment: Experiment, point: GridPoint, number: int, num_points: int) -> dict[str, Any]:
        level = confidence_of_each(experiment.run.confidence, len(experiment.scenarios))
        if self._tell:
            left = self._pace.told(self.deadline - time.monotonic())
            self._tell(f"{self._what}configuration {number:,} of {num_points:,}{left}")
        key = point.point_id, level
        if key not in self._known:
            if time.monotonic() > self.deadline:
                raise OutOfTime
            run = experiment.run._replace(confidence=level)
            self._known[key] = self._weigh(experiment._replace(points=(point,), run=run))
        return self._known[key]

    def _weigh(self, alone: Experiment) -> dict[str, Any]:
        point = alone.points[0].point
        sizes = repr(point.values)
        if rare.applies(point, alone.run) and sizes not in self._too_large:
            try:
                found = _solved(exact(alone, self._memory_bytes, data_loss_alone=True))
                self.num_solved += 1
                return found
            except ConfigError:
                self._too_large.add(sizes)
        if not self.may_run:
            raise OutOfTime
        start = time.perf_counter()
        found = _estimated(estimate(alone, self._threads), unknown_outcomes(alone.run))
        self.longest_run_s = max(self.longest_run_s, time.perf_counter() - start)
        self.num_estimated += 1
        return found


def _row(experiment: Experiment, point: GridPoint) -> dict[str, Any]:
    model, run = experiment.model, experiment.run
    return {
        "point_id": point.point_id,
        "protocol": model.name,
        "model_version": model.version,
        "seed": run.seed,
        **dotted_values(model, point.point),
        "invariant": DATA_LOSS,
        "data_loss": True,
        "confidence": run.confidence,
        "target": run.target,
    }


def _solved(result: ExactResult) -> dict[str, Any]:
    p = result.data_loss.p
    outcomes = {name: result.outcomes.get(name, 0.0) for name in OUTCOMES}
    steps = math.inf if result.expected_steps is None else result.expected_steps  # None: a run may go on for ever
    counted = {"runs": 1.0, "losses": p, "hidden": 0, "steps": steps, "messages": 0}
    return {**outcomes, **counted, "p": p, "low": p, "high": p, "method": EXACT, "sequential": False}


def _estimated(result: Estimate, unknown: Collection[int]) -> dict[str, Any]:
    risk = result.data_loss
    hidden = sum(result.outcomes[OUTCOMES[outcome]] for outcome in unknown)
    losses: float = risk.losses
    beyond: dict[str, float] = {}
    if head := result.head:  # as in a frame of a sweep: what is expected of these runs
        losses = risk.p * result.runs if risk.low > 0.0 else 0
        of_exits = (head.lost, head.leaves - head.left_out, head.runs, head.losses, 0)
        beyond = dict(zip(heads.BEYOND, of_exits, strict=True))
    counted = {"runs": result.runs, "losses": losses, "hidden": hidden, "steps": result.steps, "messages": 0}
    interval = {"p": risk.p, "low": risk.low, "high": risk.high}
    return {
        **result.outcomes,
        **counted,
        **interval,
        **beyond,
        "method": result.method,
        "sequential": result.stopped not in ("runs", "certain"),
    }
