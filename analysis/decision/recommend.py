"""Choice of a design: all are weighed, ranked and held to the targets, with what would change the answer."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis.cluster.figures import COLUMNS, ENDS
from quorisk.analysis.cluster.interpolated import losses_on_clusters as on_clusters
from quorisk.analysis.cluster.joined import worst_clusters
from quorisk.analysis.decision import breakeven, verdict, years
from quorisk.analysis.decision.advice import Recommendation, recommend
from quorisk.analysis.decision.breakeven import BreakEvenSearch
from quorisk.analysis.decision.designs import Design, loses_at_least, ranked_designs
from quorisk.analysis.decision.doubt import SETTLED, Doubt, doubt, of_draws
from quorisk.analysis.decision.judging import MEETS
from quorisk.analysis.decision.levers import picked, untold
from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.decision.rows import REPLACED
from quorisk.analysis.decision.scope import scope_of
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.decision.whole import of_design
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import by_design
from quorisk.analysis.experiment.placed import Placed
from quorisk.analysis.experiment.scenarios import ScenarioEvent
from quorisk.analysis.rates.reweighted import losses_by_rates as by_rates
from quorisk.kernels.progress import Progress
from quorisk.say.plain import plain_data
from quorisk.say.scope import Scope

if TYPE_CHECKING:
    import pandas as pd


class Advice(NamedTuple):
    """Advice on an experiment's designs."""

    designs: list[Design]
    """The designs, by rank."""
    choice: list[Design]
    """The designs to choose from, the best first; empty if none meets the targets."""
    target: float
    """The target: losses a year or, without scenarios, the probability in a run; infinite if there is none."""
    words: Recommendation
    search: BreakEvenSearch
    """Results of the search for break-even points."""
    scope: Scope
    doubt: Doubt | None = None
    """Doubt about the choice due to uncertain rates; None if no uncertainty is given."""
    confidence: float = 0.95
    is_asked: bool = False
    """Whether the user named the figures that were scaled."""

    @property
    def asked_for(self) -> list[str]:
        """Results of the search for figures that the user named, in sentences."""
        return self.search.told() if self.is_asked else []

    @property
    def has_targets(self) -> bool:
        """Whether designs have any targets."""
        return verdict.has_targets(self.designs, self.target)


WITHIN_S = 2.5
"""Seconds for the search of break-even points that is made by default."""
ALL_WITHIN_S = 600.0
"""Seconds for the search of those of all figures, unless a limit is given: there may be a hundred figures, and each try
may take a minute."""


def advise(
    experiment: Experiment,
    weigher: Weigher,
    keys: Sequence[str] | None = (),
    within_s: float = math.inf,
    asked: bool = True,
) -> Advice:
    """Weighs all designs of an experiment, and finds where the choice between them flips.

    Args:
        experiment: the experiment.
        weigher: what solves and estimates configurations.
        keys: figures that are scaled until the choice flips; all that the experiment sets if None.
        within_s: seconds for these.
        asked: whether the user asked for them; if not, and designs have targets, those that results alone do not show.

    Returns:
        The designs by rank, the choice and the reasons.

    Raises:
        ConfigError: if the experiment or a key cannot be used.
    """
    levers = picked(experiment, keys)
    rows = weigher.frame(experiment)
    found, target = ranked_designs(rows), float(rows["target"].iloc[0])
    if not asked:
        levers = untold(experiment) if verdict.has_targets(found, target) else []
        weigher.may_run = weigher.longest_run_s < 2 * within_s  # else the first would take longer
    pace = Pace(num := len(by_design(experiment.points)))

    def tell(number: int) -> None:
        pace.took()
        weigher.tell(f"draws from what is known of the rates: design {number:,} of {num:,}", pace.told)

    with ThreadPoolExecutor(1) as beside:  # the search leaves a core idle
        doubts = beside.submit(doubted, experiment, rows, found, target, tell)
        search = breakeven.find_break_even(experiment, rows, weigher, levers if len(found) > 1 else [], within_s)
        sure = doubts.result()
    choice = verdict.choice(found, target)
    words, confidence = recommend(rows, sure=sure), experiment.run.confidence
    return Advice(found, choice, target, words, search, scope_of(experiment), sure, confidence, asked)


def doubted(
    experiment: Experiment, rows: "pd.DataFrame", found: Sequence[Design], target: float, tell: Progress | None = None
) -> Doubt | None:
    """Returns the doubt about the choice among designs; `rows` are of the experiment, about any loss. None if the file
    does not state how well rates are known, or if too little of the losses is solved. `tell` is called with the number
    of designs done.
    """
    is_known = experiment.known or experiment.known_in_grid
    if not is_known or not {point.point_id for point in experiment.points} <= set(rows["point_id"]):
        return None
    number = {point.point_id: i for i, each in enumerate(by_design(experiment.points).values()) for point in each}
    if experiment.clusters:
        placed = list(worst_clusters(experiment).values())
        sure = doubt(found, target, on_clusters(experiment, placed, tell=tell), number)
        return _with_faster_repair(experiment, found, target, placed, number, sure)
    ends = rows.set_index("point_id")
    losses = [(float(ends["low"][each.point_id]), float(ends["high"][each.point_id])) for each in experiment.points]
    return doubt(found, target, by_rates(experiment, losses, tell=tell), number)


def _with_faster_repair(
    experiment: Experiment,
    found: Sequence[Design],
    target: float,
    placed: Sequence[Placed],
    number: Mapping[str, int],
    sure: Doubt | None,
) -> Doubt | None:
    """The doubt about designs; if the deciding figure cannot be measured, repair in half the time may be a remedy."""
    if sure is None or sure.learn is None or sure.learn.is_measurable:
        return sure
    chosen = verdict.chosen(list(found), target)
    faster = [each._replace(cluster=each.cluster.with_repair(0.5)) for each in placed]
    there = doubt(found, target, on_clusters(experiment, faster), number)
    part = there.choice.get(chosen, 0.0) if there and chosen else 0.0
    if part < SETTLED:
        return sure
    clause = f"with repair twice as fast, {chosen} is the choice in {of_draws(part)} of the draws"
    return sure._replace(learn=sure.learn._replace(remedies=(*sure.learn.remedies, clause)))


def as_json(advice: Advice) -> dict[str, Any]:
    """Returns an object for `json.dumps`: of designs, `losses_per_year` or in a run `p_loss`, at their worst faults."""
    chosen, runner_up = ([each.settings for each in advice.choice] + ["", ""])[:2]
    return {
        **_first(advice),
        "designs": [_design(design, advice, design.settings == chosen) for design in advice.designs],
        "chosen": chosen or None,
        "runner_up": runner_up or None,
        "headline": advice.words.headline,
        "reasons": advice.words.sentences,
        "changes_it": advice.words.flips,
        "doubt": advice.doubt.as_json() if advice.doubt else None,
        "break_even": [
            {
                **{"key": lever.key, "value": lever.value, "value_before": flip.before, "value_beyond": flip.beyond},
                "instead": flip.instead or None,
            }
            for lever, flip in advice.search.found
        ],
        "scaled": [lever.key for lever in advice.search.tried],
        "switched_off": [lever.key for lever in advice.search.off],
        "scope": plain_data(advice.scope),
    }


def _first(advice: Advice) -> dict[str, Any]:
    """The losses in a year of the chosen design, or of the first by rank if none is chosen; empty if the file is not
    about years."""
    design = (advice.choice or advice.designs)[0]
    return of_design(design, advice.confidence).as_json() if "parts" in design.worst else {}


def _design(design: Design, advice: Advice, is_chosen: bool) -> dict[str, Any]:
    worst = design.worst
    return {
        "design": design.settings,
        "rank": design.rank,
        **_losses(design),
        "allowed": _allowed(design, advice.doubt),
        "proved_zero": design.is_proved,
        "survives": worst.get("survives"),
        **{f"write_{level}_ms": worst.get(f"write_{level}_ms") for level in ("p50", "p99", "p999")},
        "stored_bytes": worst.get("stored_bytes"),
        "writes_stop": {what: worst.get(f"stops_with_{what}") for what in ("node", "rack")},
        "write_minutes_lost_per_year": _finite(worst.get("write_minutes_lost_per_year")),
        "copies": worst.get("copies"),
        "stored": worst.get("stored"),
        "changed": worst.get("changed", ""),
        "p_stuck": design.p_stuck(),
        "verdict": design.verdict(advice.target),
        "meets": design.verdict(advice.target) == MEETS,
        "shortfalls": design.shortfalls(),
        "chosen": is_chosen,
        "p_any_loss_by_placement": {
            name: dict(zip(years.SUMMED, ends, strict=True)) for name, ends in design.by_placement.items()
        },
        "scenarios": {
            part["run.scenario"]: {
                name: part[name] for name in (*ScenarioEvent._fields, "p", "low", "high", "method") if name in part
            }
            for part in worst.get("parts", [])
            if part["method"] != REPLACED
        },
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def _allowed(design: Design, sure: Doubt | None) -> dict[str, Any] | None:
    """The losses of a design that the rates allow; None if these are not known."""
    return sure.allowed[design.settings].as_json() if sure and design.settings in sure.allowed else None


def _losses(design: Design) -> dict[str, Any]:
    """The losses of a design: in a year, on its cluster, or in a run."""
    worst, keys = design.worst, ("p", "low", "high")
    figures = {key: worst[key] for key in keys}
    if not design.is_clustered:
        p_any = {key: worst[f"p_any{end}"] for key, end in zip(keys, ENDS, strict=True)} if "parts" in worst else {}
        return {"p_any_loss_per_year": p_any, "losses_per_year": figures} if p_any else {"p_loss": figures}
    ends = {what: {key: worst[f"{what}{end}"] for key, end in zip(keys, ENDS, strict=True)} for what in COLUMNS[1:]}
    return {
        "p_any_loss_per_year": figures,
        "incidents_per_year": ends["incidents"],
        "losses_per_year": ends["entries"],
        "incident_entries": {
            "p50": worst["incident_p50"],
            "p99": worst["incident_p99"],
            "at_least": loses_at_least(worst),
        },
    }
