"""Rows of a frame: what is known of a configuration, solved exactly or estimated."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from quorisk.analysis.decision.designs import EXACT
from quorisk.analysis.estimate.estimate import Estimate
from quorisk.analysis.exact.exact import ExactResult
from quorisk.analysis.results import heads
from quorisk.kernels.model import OUTCOMES

REPLACED = "its cluster's"
"""The method of a scenario that is not weighed, since its losses are among those of the design's cluster."""
REPLACED_ROW: dict[str, Any] = {
    **dict.fromkeys((*OUTCOMES, "losses", "hidden", "steps", "messages", "p", "low", "high"), 0.0),
    **{"runs": 1.0, "method": REPLACED, "sequential": False},
}
"""Row of such a scenario."""


def is_counted(row: Mapping[str, Any]) -> bool:
    """Whether a configuration's losses were counted among runs, without a head."""
    return row["method"] != REPLACED and not row["method"].startswith(EXACT)


def solved_row(result: ExactResult) -> dict[str, Any]:
    """The row of a solved configuration: what is expected of one run."""
    p = result.data_loss.p
    outcomes = {name: result.outcomes.get(name, 0.0) for name in OUTCOMES}
    steps = math.inf if result.expected_steps is None else result.expected_steps  # None: a run may go on for ever
    counted = {"runs": 1.0, "losses": p, "hidden": 0, "steps": steps, "messages": 0}
    return {**outcomes, **counted, "p": p, "low": p, "high": p, "method": EXACT, "sequential": False}


def estimated_row(result: Estimate, unknown: Collection[int]) -> dict[str, Any]:
    """The row of an estimate; runs that end as `unknown` says may lose data later."""
    risk = result.data_loss
    hidden = sum(result.outcomes[OUTCOMES[outcome]] for outcome in unknown)
    losses: float = risk.losses
    beyond: dict[str, float] = {}
    if head := result.head:  # as in a frame of a sweep: what is expected of these runs
        losses = risk.p * result.runs if risk.low > 0.0 else 0
        of_exits = (head.lost, head.beyond - head.left_out, head.runs, head.losses, 0)
        beyond = dict(zip(heads.BEYOND, of_exits, strict=True))
    counted = {"runs": result.runs, "losses": losses, "hidden": hidden, "steps": result.steps, "messages": 0}
    how = {"method": result.method, "sequential": result.stopped not in ("runs", "certain")}
    return {**result.outcomes, **counted, "p": risk.p, "low": risk.low, "high": risk.high, **beyond, **how}
