"""Losses of a design in a year, all in all: the answer that every verb gives first, and gives alike."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quorisk.analysis.cluster.answer import ClusterAnswer
from quorisk.analysis.cluster.figures import Cause, YearFigure
from quorisk.analysis.cluster.joined import cluster_columns, is_replaced
from quorisk.analysis.decision import years
from quorisk.analysis.decision.designs import EXACT, Design, ranked_designs, runs_of_interval
from quorisk.analysis.decision.rows import REPLACED
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.estimate import amounts
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import by_design, one_wanted
from quorisk.analysis.experiment.placed import Placed
from quorisk.analysis.experiment.scenarios import SCENARIO
from quorisk.analysis.statistics import yearly
from quorisk.analysis.statistics.yearly import FATES
from quorisk.kernels.cluster.setting import CLUSTER
from quorisk.kernels.errors import ConfigError
from quorisk.say import text
from quorisk.say.plain import plain_data


class Whole(NamedTuple):
    """Losses of a design in a year: on its cluster if it has one, and in the scenarios that count beside it."""

    settings: str
    """Settings of the design, in words."""
    p_any: YearFigure
    """P(any loss in a year)."""
    incidents: YearFigure
    """Events a year that lose anything."""
    entries: YearFigure
    """Number of objects lost in a year: entries, or other objects that scenarios follow."""
    either: Mapping[str, float]
    """P(any loss in a year) if what an event touches shares one fate, or is independent; empty if that is known, or
    makes no difference."""
    by_cause: Mapping[str, float]
    """Incidents a year by scenario and by cause of the cluster's; without a cluster, losses a year."""
    scenarios: Mapping[str, Mapping[str, Any]]
    """Scenarios that count, by name: `per_year`, `hits` and `fates` of the event, and `p`, `low`, `high`, `method` and
    `runs` of P(loss) of one object. If asked, of logs that are written to all the time: `amount`, the records that a
    log loses if any, at the scenario's rate; `writing_s_per_year`, the time in which what is lost in a year was
    written; and on a cluster whose `entries_per_second` is known, at that rate, `records_per_year`."""
    confidence: float

    @property
    def losses_per_year(self) -> dict[str, float]:
        """Returns the losses in a year, with their ends."""
        return dict(zip(("p", "low", "high"), self.entries[:3], strict=True))

    def whole_json(self) -> dict[str, Any]:
        """Returns all of it for `json.dumps`."""
        return {**self.as_json(), "losses_per_year": self.losses_per_year, "scenarios": plain_data(self.scenarios)}

    def as_json(self) -> dict[str, Any]:
        """Returns the fields with which every verb's --json begins."""
        value, low, high, method = self.p_any
        p_any = {"p": value, "low": low, "high": high, "method": method}
        return {
            "p_any_loss_per_year": p_any | {f"{fates}_fates": p for fates, p in self.either.items()},
            "incidents_per_year": self.incidents._asdict(),
            "expected_entries_per_year": self.entries._asdict(),
        }


def whole_year(experiment: Experiment, weigher: Weigher, is_exact: bool = False, records: bool = False) -> Whole:
    """Returns the losses in a year of the one design of an experiment that is about years.

    Args:
        experiment: the experiment.
        weigher: what solves and estimates scenarios.
        is_exact: whether each scenario has to be solved.
        records: whether the records lost are wanted as well.

    Raises:
        ConfigError: if there are several designs, or if a scenario that has to be solved is not.
    """
    if len(of := by_design(experiment.points)) > 1:
        raise ConfigError(f"{experiment.path}: {one_wanted([dict(design) for design in of])}")
    found = wholes(experiment, weigher)[0]
    for name, row in found.scenarios.items():
        if is_exact and row["method"] != EXACT:
            raise ConfigError(
                f"{experiment.path}: scenarios.{name}: not solved, since its chain has no end or does not fit in the "
                "memory; give more `memory`, or estimate it"
            )
    return found._replace(scenarios=_with_records(found.scenarios, experiment)) if records else found


def _with_records(scenarios: Mapping[str, Mapping[str, Any]], experiment: Experiment) -> dict[str, Mapping[str, Any]]:
    """The scenarios with their lost records of logs that are written to all the time, if their first runs lose any: see
    `Whole.scenarios`."""
    found, per_second = dict(scenarios), 0.0
    for placed in experiment.clusters[:1]:
        per_second = placed.figure_in_file("cluster.entries_per_second") / placed.cluster.ledgers
    for point in experiment.points:
        row = found.get(str(point.scenario), {"p": 0.0})
        if row["p"] and (amount := amounts.records_if_any(experiment._replace(points=(point,)))):
            records = row["per_year"] * row["hits"] * row["p"] * amount.mean
            writing_s = records / point.figure(f"rates.{experiment.model.writes}")
            at_rate = {"records_per_year": per_second * writing_s} if per_second else {}
            found[str(point.scenario)] = {**row, "amount": amount, "writing_s_per_year": writing_s, **at_rate}
    return found


def wholes(experiment: Experiment, weigher: Weigher) -> list[Whole]:
    """Returns the losses in a year of each design of an experiment that is about years, by rank. Raises ConfigError."""
    return [of_design(each, experiment.run.confidence) for each in ranked_designs(weigher.frame(experiment))]


def of_design(design: Design, confidence: float) -> Whole:
    """Returns the losses in a year of a design of a frame."""
    worst = design.worst
    rows = [row for row in worst["parts"] if row["method"] != REPLACED]
    counted = {
        row[SCENARIO]: {name: row[name] for name in ("per_year", "hits", "fates", "p", "low", "high", "method")}
        | {"runs": runs_of_interval(row)}
        for row in rows
        if not design.is_clustered or row["incident"]
    }
    of_cluster = [worst["any_loss_method"]] if design.is_clustered else []
    method = " and ".join(dict.fromkeys([*of_cluster, *(row["method"] for row in counted.values())]))
    p_any, incidents, entries = (
        YearFigure(*years.ends(worst, name), method) for name in ("p_any", "incidents", "entries")
    )
    entries = entries._replace(method=years.method_of_entries(method, worst))
    either = {fates: worst[f"p_any_{fates}"] for fates in FATES if f"p_any_{fates}" in worst}
    return Whole(design.settings, p_any, incidents, entries, either, design.by_cause, counted, confidence)


def by_variant(found: Mapping[str, Whole]) -> dict[str, Any]:
    """Returns the object of a comparison's --json: the baseline's year, P(any loss in a year) and losses by variant,
    and the differences of the others from the baseline."""
    (baseline, first), *others = found.items()
    each = {label: one.as_json()["p_any_loss_per_year"] for label, one in found.items()}
    pairs = [
        {
            "variant": label,
            "baseline": baseline,
            "difference": one.p_any.value - first.p_any.value,
            "low": one.p_any.low - first.p_any.high,
            "high": one.p_any.high - first.p_any.low,
        }
        for label, one in others
    ]
    entries = {label: one.entries._asdict() for label, one in found.items()}
    return first.as_json() | {"p_any_loss_by_variant": each, "expected_entries_by_variant": entries, "pairs": pairs}


def likeliest_scenario(experiment: Experiment, found: Whole) -> Experiment:
    """Returns an experiment of the one scenario that shows how its design loses data most often. Losses of a cluster
    are shown by a scenario that it replaces: an outage, or another one that follows an entry; by the file itself if it
    has no such scenario."""
    if not experiment.scenarios:
        return experiment
    most = max(found.by_cause, key=lambda cause: found.by_cause[cause], default="")
    names = [str(point.scenario) for point in experiment.points]
    if most not in names:
        is_outage = {
            str(point.scenario): point.point.values.get("max_outages", 0) > 0
            for point in experiment.points
            if is_replaced(experiment, point.scenario)
        }
        events = [each for placed in experiment.clusters[:1] for each in placed.cluster.events]
        outages = {text.cause(each.name) for each in events if each.scope == CLUSTER}
        wanted = [name for name, has in is_outage.items() if has == (most in outages)]
        likely = sorted(names, key=lambda name: -found.scenarios.get(name, {"p": 0.0})["p"])
        most = (wanted or list(is_outage) or likely)[0]
    return experiment.changed(f"{SCENARIO}={most}")


def with_scenarios(experiment: Experiment, answers: Sequence[ClusterAnswer], weigher: Weigher) -> list[ClusterAnswer]:
    """Returns the losses of designs on their clusters together with those in scenarios that count beside these, as all
    other verbs give them. Sizes of incidents stay the clusters' own. Raises ConfigError."""
    names = [name for name, scenario in experiment.scenarios.items() if scenario.incident]
    if not names:
        return list(answers)
    design_of = {point.point_id: point.design for point in experiment.points}
    rows: dict[Any, list[dict[str, Any]]] = {}
    for row in weigher.frame(experiment).to_dict("records"):
        rows.setdefault(design_of[row["point_id"]], []).append(row)
    return [
        _with_rows(answer, rows[placed.design], experiment, placed)
        for answer, placed in zip(answers, experiment.clusters, strict=True)
    ]


def _with_rows(
    answer: ClusterAnswer, rows: Sequence[Mapping[str, Any]], experiment: Experiment, placed: Placed
) -> ClusterAnswer:
    """A design's answer on a cluster, joined with those of its scenarios, which have a row each."""
    here = [
        {**row, **cluster_columns(answer), **experiment.scenarios[row[SCENARIO]].event(placed)._asdict()}
        for row in rows
    ]
    parts, losses = {row[SCENARIO]: years.part_of(row) for row in here if row["incident"]}, answer.losses
    method = " and ".join(dict.fromkeys([losses.p_any.method, *(row["method"] for row in here if row["incident"])]))
    year = years.year_of_scenarios(here)
    p_any, often, entries = (YearFigure(*years.ends(year, name), method) for name in ("p_any", "incidents", "entries"))
    entries = entries._replace(method=years.method_of_entries(method, year))
    ten_years = yearly.Ends(*(10.0 * rate for rate in yearly.incidents(parts.values())))
    in_ten = yearly.p_any(ten_years, yearly.Ends(*losses.p_any_in_ten_years[:3]))
    by_cause = {cause: each.incidents for cause, each in losses.by_cause.items()}
    by_cause |= {name: YearFigure(*yearly.incidents([part]), method) for name, part in parts.items()}
    shares = {cause: Cause(each, each.value / often.value if often.value else 0.0) for cause, each in by_cause.items()}
    joined = losses._replace(
        p_any=p_any, p_any_in_ten_years=YearFigure(*in_ten, method), incidents=often, entries=entries, by_cause=shares
    )
    assumed = f"Sizes of incidents are those of the cluster alone, without what {' and '.join(parts)} may lose at once"
    assumed += "; entries lost a year have one record of each partition" if year["entries_at_least"] else ""
    own_share = losses.incidents.value / often.value if often.value else 1.0
    return answer._replace(losses=joined, assumptions=(*answer.assumptions, assumed), own_share=own_share)
