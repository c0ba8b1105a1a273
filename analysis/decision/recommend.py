"""Which design to choose: all of them weighed, ranked, held to the targets, and what would change the answer."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from quorisk.analysis.decision import breakeven
from quorisk.analysis.decision.breakeven import BreakEven
from quorisk.analysis.decision.scope import scope_of
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.errors import ConfigError
from quorisk.plots import verdict
from quorisk.plots.designs import Design, designs
from quorisk.plots.judging import MEETS
from quorisk.plots.recommend import Recommendation, recommend
from quorisk.plots.scope import Scope


class Advice(NamedTuple):
    """What is known of an experiment's designs, and what follows."""

    designs: list[Design]
    """By rank."""
    choice: list[Design]
    """Those to choose from, the first before all; empty if none meets the targets."""
    target: float
    """Losses a year, or if there are no scenarios the probability in a run; infinite for none."""
    words: Recommendation
    break_even: list[BreakEven]
    levers: list[str]
    """Keys of the figures that were scaled."""
    scope: Scope

    @property
    def has_targets(self) -> bool:
        """Whether designs are held to anything."""
        wanted = ("wants_write_p99_ms", "wants_copies", "wants_nodes", "wants_zones")
        beside = (self.designs[0].worst.get(name, 0) for name in wanted)
        return self.target < math.inf or any(0 < each < math.inf for each in beside)


def advise(
    experiment: Experiment,
    weigher: Weigher,
    keys: Sequence[str] | None = (),
) -> Advice:
    """Weighs all designs of an experiment, and finds where the choice flips for the figures of these keys, or all that
    the experiment sets if None. Raises ConfigError.
    """
    levers = breakeven.levers(experiment)
    known = [lever.key for lever in levers]
    for key in keys or ():
        if key not in known:
            raise ConfigError(f" {key}: one of {', '.join(known)}", "keys")
    rows = weigher.frame(experiment)
    found, target = designs(rows), float(rows["target"].iloc[0])
    flips: list[BreakEven] = []
    scale = [lever for lever in levers if (keys is None or lever.key in keys) and len(found) > 1]
    for lever in scale:
        flips += breakeven.break_even(experiment, lever, partial(_name, weigher, lever.key))
    choice, scaled = verdict.choice(found, target), [lever.key for lever in scale]
    return Advice(found, choice, target, recommend(rows), flips, scaled, scope_of(experiment))


def _name(weigher: Weigher, key: str, experiment: Experiment) -> str:
    """The design that is chosen."""
    rows = weigher.frame(experiment, f"break-even of {key}: ")
    chosen = verdict.choice(designs(rows), float(rows["target"].iloc[0]))
    return chosen[0].settings if chosen else ""


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
        "break_even": [_break_even(each) for each in advice.break_even],
        "scope": advice.scope.as_json(),
    }


def _break_even(found: BreakEven) -> dict[str, Any]:
    key, value = found.lever
    sides = {"value_before": value * found.factor_before, "value_beyond": value * found.factor_beyond}
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
