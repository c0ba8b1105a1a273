"""What the designs of an experiment lose, each configuration solved exactly where its chain is small, else by runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quorisk.analysis import tidy
from quorisk.analysis.estimate import Estimate, estimate
from quorisk.analysis.exact.exact import ExactResult, exact
from quorisk.analysis.experiment.config import Experiment, GridPoint
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import OUTCOMES

if TYPE_CHECKING:
    import pandas as pd

EXACT = "exact"


class Weigher:
    """Solves and estimates configurations, each once however often it is asked about."""

    def __init__(self, memory_bytes: int, threads: int, tell: Callable[[str], None] | None = None) -> None:
        """Chains may take `memory_bytes`; `tell` is told what is done."""
        self._memory_bytes, self._threads, self._tell = memory_bytes, threads, tell
        self._known: dict[tuple[str, float], dict[str, Any]] = {}
        self._too_large: set[str] = set()
        """Sizes of chains that did not fit, whatever the rates."""
        self.num_solved = self.num_estimated = 0

    def frame(self, experiment: Experiment, what: str = "") -> "pd.DataFrame":
        """A frame as that of a sweep (`tidy.load`), of any data loss alone: a row for each configuration.

        A configuration whose chain fits the memory is solved: `method` is EXACT, both ends of the interval are `p`, and
        outcomes, steps and losses are expectations of one run. Others are estimated by the experiment's runs; the
        intervals of a design's scenarios hold together.
        """
        import pandas as pd

        together = max(len(experiment.scenarios), 1)
        level = 1.0 - (1.0 - experiment.run.confidence) / together
        rows = []
        for number, point in enumerate(experiment.points, 1):
            if self._tell:
                self._tell(f"{what}configuration {number:,} of {len(experiment.points):,}")
            alone = experiment._replace(points=(point,), run=experiment.run._replace(confidence=level))
            key = point.point_id, level
            if key not in self._known:
                self._known[key] = self._weigh(alone)
            rows.append(_row(experiment, point) | self._known[key] | {"together": together})
        return tidy.described(pd.DataFrame(rows), experiment)

    def _weigh(self, alone: Experiment) -> dict[str, Any]:
        sizes = repr(alone.points[0].point.values)
        if sizes not in self._too_large:
            try:
                found = _solved(exact(alone, self._memory_bytes))
                self.num_solved += 1
                return found
            except ConfigError:
                self._too_large.add(sizes)
        self.num_estimated += 1
        return _estimated(estimate(alone, self._threads))


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
    counted = {"runs": 1.0, "losses": p, "hidden": 0, "steps": result.expected_steps or 0.0, "messages": 0}
    return {**outcomes, **counted, "p": p, "low": p, "high": p, "method": EXACT, "sequential": False}


def _estimated(result: Estimate) -> dict[str, Any]:
    risk = result.data_loss
    hidden = result.outcomes["unfinished"]
    losses: float = risk.losses
    if result.head:  # as in a frame of a sweep: what is expected of these runs
        losses = risk.p * result.runs if risk.low > 0.0 else 0
    counted = {"runs": result.runs, "losses": losses, "hidden": hidden, "steps": result.steps, "messages": 0}
    interval = {"p": risk.p, "low": risk.low, "high": risk.high}
    return {
        **result.outcomes,
        **counted,
        **interval,
        "method": result.method,
        "sequential": result.stopped not in ("runs", "certain"),
    }
