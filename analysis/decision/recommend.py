"""Which design to choose: all of them weighed, ranked, held to the targets, and what would change the answer."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from quorisk.analysis.decision import breakeven, verdict
from quorisk.analysis.decision.advice import Recommendation, recommend
from quorisk.analysis.decision.breakeven import BreakEven, Search
from quorisk.analysis.decision.designs import Design, designs
from quorisk.analysis.decision.judging import MEETS
from quorisk.analysis.decision.levers import picked, untold
from quorisk.analysis.decision.scope import scope_of
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment.config import Experiment
from quorisk.say.scope import Scope


class Advice(NamedTuple):
    """What is known of an experiment's designs, and what follows."""

    designs: list[Design]
    """The designs, by rank."""
    choice: list[Design]
    """The designs to choose from, the best first; empty if none meets the targets."""
    target: float
    """The target: losses a year or, without scenarios, the probability in a run; infinite if there is none."""
    words: Recommendation
    search: Search
    """What the search for break-even points found."""
    scope: Scope

    @property
    def has_targets(self) -> bool:
        """Whether designs are held to anything."""
        return verdict.has_targets(self.designs, self.target)


WITHIN_S = 20.0
"""Seconds in which break-even points are searched for without being asked for."""


def advise(
    experiment: Experiment, weigher: Weigher, keys: Sequence[str] | None = (), within_s: float = math.inf
) -> Advice:
    """Weighs all designs of an experiment, and finds where the choice flips for the figures of these keys, all that the
    experiment sets if None. Within some time it finds those that results alone do not tell, as many as it can, if
    designs are held to something. Raises ConfigError.
    """
    levers = picked(experiment, keys)
    rows = weigher.frame(experiment)
    found, target = designs(rows), float(rows["target"].iloc[0])
    if within_s < math.inf:
        levers = untold(experiment) if verdict.has_targets(found, target) else []
        weigher.may_run = weigher.longest_run_s < within_s  # else the first would take longer
    search = breakeven.search(experiment, rows, weigher, levers if len(found) > 1 else [], within_s)
    return Advice(found, verdict.choice(found, target), target, recommend(rows), search, scope_of(experiment))


def as_json(advice: Advice) -> dict[str, Any]:
    """For `json.dumps`. Of designs `losses_per_year`, or without scenarios `p_loss`, at their worst faults."""
    chosen, runner_up = ([each.settings for each in advice.choice] + ["", ""])[:2]
    return {
        "designs": [_design(design, advice, design.settings == chosen) for design in advice.designs],
        "chosen": chosen or None,
        "runner_up": runner_up or None,
        "headline": advice.words.headline,
        "reasons": advice.words.sentences,
        "changes_it": advice.words.flips,
        "break_even": [_break_even(each) for each in advice.search.found],
        "scaled": [lever.key for lever in advice.search.tried],
        "scope": advice.scope.as_json(),
    }


def _break_even(found: BreakEven) -> dict[str, Any]:
    key, value = found.lever.key, found.lever.value
    sides = {"value_before": found.before, "value_beyond": found.beyond}
    return {"key": key, "value": value, **sides, "instead": found.instead or None}


def _design(design: Design, advice: Advice, is_chosen: bool) -> dict[str, Any]:
    worst = design.worst
    what = "losses_per_year" if "parts" in worst else "p_loss"
    return {
        "design": design.settings,
        "rank": design.rank,
        what: {name: worst[name] for name in ("p", "low", "high")},
        "proved_zero": design.is_proved,
        "survives": worst.get("survives"),
        **{f"write_{level}_ms": worst.get(f"write_{level}_ms") for level in ("p50", "p99", "p999")},
        "stored_bytes": worst.get("stored_bytes"),
        "copies": worst.get("copies"),
        "stored": worst.get("stored"),
        "changed": worst.get("changed", ""),
        "p_stuck": design.p_stuck(),
        "meets": design.verdict(advice.target) == MEETS,
        "shortfalls": design.shortfalls(),
        "chosen": is_chosen,
        "scenarios": {
            part["run.scenario"]: {name: part[name] for name in ("per_year", "p", "low", "high", "method")}
            for part in worst.get("parts", [])
        },
    }
