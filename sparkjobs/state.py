"""The state of a sweep: the rows on disk, the rows that wait to be written, and the runs that are wanted."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorisk.analysis.cluster.joined import enough_of
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.method import counts, judged, pilot_runs
from quorisk.analysis.estimate.stopping import rule_of
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.identity import canonical_parameters
from quorisk.analysis.results import heads, schema
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.tally import named_tally
from quorisk.kernels.errors import ConfigError, RunError
from quorisk.kernels.model import OUTCOMES
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.ledger import Ledger, PointEnd, RowCounts
from quorisk.sparkjobs.run import Done

HEADS_PART = 0.25
"""Part of a budget that the heads of all points may take together if each needs one."""
OUT_OF_TIME = "time"
"""Value in the column `stopped` of results: the time was spent before the runs were done."""


class SweepState:
    """The state of a sweep whose folder this process has to itself."""

    def __init__(self, experiment: Experiment, out: Path, budget_s: float = math.inf) -> None:
        """Reads the folder's rows; HEADS_PART of a budget may go to heads. Raises ConfigError and RunError."""
        pilots = [pilot_runs(each.point, experiment.run) for each in experiment.points]
        num_points = len(experiment.points)
        cores = min(num_cores(), num_points)  # one core solves a head
        core_s = HEADS_PART * budget_s * cores / num_points
        largest = rare.affordable(core_s) if core_s < math.inf else rare.MOST_TRANSITIONS
        self.enough = _enough(experiment)
        """Interval width of P(any data loss), by point, that needs no more runs; 0 if there is none."""
        self.ledger = Ledger(experiment.run, num_points, pilots, experiment.protocol, largest, self.enough)
        self._experiment, self._out = experiment, out
        self._waiting = folder.Waiting(out / folder.TASKS)
        self.commit = self._waiting.commit
        index = {each.point_id: point for point, each in enumerate(experiment.points)}
        told = folder.tasks(out).select(
            ["point_id", "seed", "first_run", "num_runs", *OUTCOMES, "steps", "invariants", "head"]
        )
        for batch in told.to_batches(max_chunksize=4096):
            for row in batch.to_pylist():
                if row["point_id"] not in index:
                    said = "holds results of another version of this model, or of its source; choose another folder"
                    raise ConfigError(f" {out}: {said}", "out")
                if row["seed"] != experiment.run.seed:
                    said = f" {out}: holds runs of another seed, {row['seed']}; choose another folder"
                    raise ConfigError(said, "out")
                self._note(index[row["point_id"]], row)

    def _note(self, point: int, row: Mapping[str, Any]) -> None:
        if row["head"]:
            if not row["head"]["digest"] and not counts(self._experiment.run):
                asked = f"{self._experiment.path}: run.method = {self._experiment.run.method!r}"
                said = f"the chain of point {point + 1} of the grid is too large; use auto or count, in another folder"
                raise ConfigError(f"{asked}: {said}")
            self.ledger.solve(point, row["head"])
            return
        broken = {each["name"]: each["broken"] for each in row["invariants"]}
        found = RowCounts(row["num_runs"], *judged(row, broken, self._experiment.run), int(row["steps"]))
        self.ledger.add(point, row["first_run"], found)

    def take(self, done: Sequence[Done]) -> None:
        """Keeps results, on disk before long. Raises ConfigError and RunError."""
        model = self._experiment.model
        for each in done:
            point, first_run, _ = each.job
            if each.head:  # whose runs have numbers of their own
                first_run = self._experiment.run.first_run
            tally = named_tally(model, each.sums)
            row = schema.row(
                identity(self._experiment, self._experiment.points[point]),
                model,
                first_run,
                tally,
                each.engine,
                each.wall_s,
                each.head,
            )
            row |= {"versions": each.versions, "attempt": each.attempt, "host": each.host}
            self._waiting.add(row)
            self._note(point, row)

    def ends(self) -> list[PointEnd]:
        """Returns for each point the number of runs that count, and the reason why there are no more."""
        return [stop if stop.why else stop._replace(why=OUT_OF_TIME) for stop in self.ledger.stops()]

    def is_written(self) -> bool:
        """Whether the results on disk are those of all points, each ended for good."""
        try:
            table = folder.result_rows(self._out)
        except RunError:
            return False
        names = ("point_id", "num_runs", "stopped", "head")
        there = [
            (point_id, num_runs, stopped, heads.runs_from_exits(head) if head else 0)
            for point_id, num_runs, stopped, head in zip(*(table[name].to_pylist() for name in names), strict=True)
        ]
        ends = zip(self._experiment.points, self.ledger.stops(), strict=True)
        return there == [(each.point_id, end.num_runs, [end.why], end.tail_runs) for each, end in ends]


def _enough(experiment: Experiment) -> tuple[float, ...]:
    """Returns `SweepState.enough`; all 0 if the file asks for a precision, which then ends runs."""
    widths = {} if rule_of(experiment.run) else enough_of(experiment, {})
    return tuple(widths.get(point.point_id, 0.0) for point in experiment.points)


def identity(experiment: Experiment, here: GridPoint) -> schema.Identity:
    """Returns the identity that all rows of a point share."""
    return schema.Identity(
        point_id=here.point_id,
        protocol=experiment.protocol,
        model_version=experiment.model.version,
        parameters=canonical_parameters(experiment.model, here.point),
        seed=experiment.run.seed,
    )
