"""Answers about a cluster: the probability of a loss in a year, and the rate, sizes and causes of incidents."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from quorisk.analysis.cluster.availability import Availability, Restarts, Writers, availability
from quorisk.analysis.cluster.certified import PRECISION, DrawPlan, any_loss, certified
from quorisk.analysis.cluster.figures import Losses, Size, YearFigure
from quorisk.analysis.cluster.sampled import losses_of_years
from quorisk.analysis.cluster.unflushed import Tails, with_unflushed
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.placed import Placed
from quorisk.analysis.experiment.scenarios import Scenario
from quorisk.kernels.cluster.setting import CLUSTER, Cluster, Thin
from quorisk.kernels.cluster.years import YearTally, draw_years
from quorisk.kernels.cores import num_cores, side_by_side
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.progress import Progress
from quorisk.say.numbers import plain
from quorisk.say.quantities import YEAR_S

PETABYTE = 1e15
WIDE = 0.05
"""Relative width of an interval by strata above which years are drawn as well; the narrower interval then counts."""
SELDOM = 1e-6
"""Incidents a year below which drawing years says nothing."""
_CRASHES, _CRASH = "faults.max_clean_shutdowns", "rates.no_data_loss_unclean_shutdown"


class Effort(NamedTuple):
    """Amount of computation for an answer, and the confidence and precision of its intervals."""

    years: int = 1_000_000
    """Number of years to draw, where years are drawn."""
    first_year: int = 0
    seed: int = 0
    confidence: float = 0.95
    method: str = "auto"
    """`count` draws years alone; any other method uses strata where they hold."""
    threads: int = 1
    precision: float = PRECISION
    """Half-width of an interval, relative to its figure, that the draws of strata aim at."""


class ClusterAnswer(NamedTuple):
    """Losses of a design on its cluster, and times when the cluster cannot be used."""

    design: Mapping[str, Any]
    """The design's values of the grid's keys, by dotted name."""

    losses: Losses
    availability: Availability
    stored_bytes: float
    """Bytes of all stored entries, each entry counted once; 0 if unknown."""
    entry_bytes: float
    years: int
    """Number of years drawn."""
    assumptions: tuple[str, ...]
    own_share: float = 1.0
    """The cluster's part of all incidents; the others are of scenarios beside it, and sizes are not of these."""


def placed_designs(experiment: Experiment) -> tuple[Placed, ...]:
    """Returns the designs of an experiment on their clusters. Raises ConfigError if it says nothing of one."""
    if not experiment.clusters:
        raise ConfigError(f"{experiment.path}: [cluster]: missing; see docs/cluster.md")
    for each in experiment.clusters:
        for name, scenario in experiment.scenarios.items():
            if not (scenario.incident or each.cluster.outages) and scenario.values.get("faults.max_outages"):
                raise ConfigError(
                    f"{experiment.path}: scenarios.{name}: outages of the cluster take its place, and there are none; "
                    'give [cluster.events.power_outage] with scope = "cluster", or incident = true in the scenario'
                )
        promised = each.source.promised if each.source else None
        is_alone = promised and promised.asked < promised.stored  # a leader acknowledges what no follower has yet
        if is_alone and not any(_is_crash(each, other) for other in experiment.scenarios.values()):
            raise ConfigError(
                f'{experiment.path}: variant.acks = "1": what only its leader has is lost as that crashes, and no '
                f"scenario says how often: give one with {_CRASHES}, incident = true and a per_year above 0, "
                "as `quorisk init kraft` does"
            )
        if each.refused:
            raise ConfigError(f"{experiment.path}: {each.refused}")
        if each.thin is None:
            raise ConfigError(
                f"{experiment.path}: entries are acknowledged with fewer than {each.cluster.write_quorum} copies, and "
                "those that have not all of them yet may decide P(any loss). How many these are follows from "
                "cluster.entries_per_second and cluster.retention, and from rates in seconds (a profile): give these"
            )
    return experiment.clusters


def _is_crash(placed: Placed, scenario: Scenario) -> bool:
    """Whether it is a scenario of crashing brokers, which no [cluster] counts, and ever happens."""
    values = scenario.values
    is_crash = values.get(_CRASHES) and values.get(_CRASH, 1.0) and not values.get("faults.max_stalls")
    return bool(scenario.incident and is_crash and scenario.event(placed).per_year)


def effort_of(experiment: Experiment, threads: int) -> Effort:
    """Returns the effort that an experiment's [run] sets; its runs are years."""
    run = experiment.run
    return Effort(run.runs, run.first_run, run.seed, run.confidence, run.method, threads)


def answers(placed: Sequence[Placed], effort: Effort, progress: Progress | None = None) -> list[ClusterAnswer]:
    """Returns the answers about designs on their clusters.

    `progress` is called with the number of years that have ended; a design that needs none counts as `effort.years`.
    """
    found = []
    for each in placed:
        found.append(answer(each, effort, progress=progress))
        if progress and not found[-1].years:
            progress(effort.years)
    return found


def answer(placed: Placed, effort: Effort, progress: Progress | None = None) -> ClusterAnswer:
    """Returns the answer about a design on its cluster.

    Strata give rare losses, within bounds. Years are drawn where the chain of strata does not hold (nodes that age),
    where strata leave much open because losses are frequent, and where `effort.method` is "count". `progress` is called
    with the years that have ended since its last call.
    """
    found, drawn = solved(placed, effort), None
    if wants_years(found, effort):
        drawn = draw_years(cluster_of(placed), effort.first_year, effort.years, effort.seed, effort.threads, progress)
    return from_losses(placed, effort, found, drawn)


def quick_effort(experiment: Experiment, precision: float = PRECISION) -> Effort:
    """Returns the effort for each design, the same for every verb. At a coarser precision, which is for designs under
    other figures, strata alone are used, however much they leave open where losses are frequent."""
    effort = effort_of(experiment, num_cores())._replace(precision=precision)
    return effort._replace(method="head") if effort.method == "auto" and precision > PRECISION else effort


_answer = lru_cache(maxsize=4096)(answer)


def answer_of(placed: Placed, effort: Effort) -> ClusterAnswer:
    """Returns the answer about a design on its cluster. It is needed for each table, figure and break-even point, and
    computed once."""
    return _answer(placed._replace(varied=(), source=None), effort)._replace(design=placed.varied)  # type: ignore[arg-type]


def p_any_of(placed: Placed, effort: Effort) -> YearFigure:
    """Returns P(any loss in a year) alone, as `answer_of` says it: in half the time where strata tell all of it."""
    if placed.cluster.is_ageing or effort.method == "count" or placed.unflushed:
        return answer_of(placed, effort).losses.p_any
    draws = DrawPlan(effort.seed, effort.threads, None, effort.precision)
    return any_loss(cluster_of(placed), effort.confidence, draws)


def for_each(found: Mapping[Any, Placed], tell: Callable[..., Any], effort: Effort) -> dict[Any, Any]:
    """Results of `tell` for each design on its cluster with this effort, computed side by side."""
    return dict(zip(found, side_by_side(partial(tell, effort=effort), found.values(), effort.threads), strict=True))


def cluster_of(placed: Placed) -> Cluster:
    """Returns the cluster of a design, including the entries that lack copies."""
    return placed.cluster._replace(thin=placed.thin or ())


def solved(placed: Placed, effort: Effort) -> Losses | None:
    """Returns a design's losses by strata; None if its nodes age or `effort.method` is "count"."""
    cluster = cluster_of(placed)
    if cluster.is_ageing or effort.method == "count":
        return None
    return certified(cluster, effort.confidence, DrawPlan(effort.seed, effort.threads, precision=effort.precision))


def wants_years(found: Losses | None, effort: Effort) -> bool:
    """Whether years have to be drawn for a design whose losses by strata are `found`."""
    return found is None or (effort.method == "auto" and _is_open(found))


def from_losses(placed: Placed, effort: Effort, found: Losses | None, drawn: YearTally | None) -> ClusterAnswer:
    """Returns the answer about a design from its losses `found` by strata and the years `drawn`.

    Raises ValueError if both are None.
    """
    cluster, found = cluster_of(placed), _of_copies(placed, effort, found, drawn)
    tails = Tails(cluster.outages, placed.unflushed, cluster.ledgers)
    if tails.incidents:
        calm = _calm(placed, effort, tails)
        found = with_unflushed(found, calm, tails, cluster, effort.confidence)
    return ClusterAnswer(
        placed.varied,
        found,
        availability_of(placed),
        cluster.entries * placed.entry_bytes,
        placed.entry_bytes,
        drawn.years if drawn else 0,
        tuple(_assumptions(cluster, placed)),
    )


def availability_of(placed: Placed) -> Availability:
    """Returns how available a design's ledgers are for reads, closing and writes."""
    restarts = Restarts(placed.restarts, placed.restart_time_s / YEAR_S, placed.outage_time_s / YEAR_S)
    needs, waits = placed.write_needs, (placed.replaced_after_s, placed.leaderless_for_s)
    return availability(placed.cluster, restarts, placed.ack_quorum, Writers(needs, *waits) if needs else None)


def _of_copies(placed: Placed, effort: Effort, found: Losses | None, drawn: YearTally | None) -> Losses:
    """Losses of copies, from strata and drawn years together."""
    if drawn:
        seen = losses_of_years(cluster_of(placed), drawn, effort.confidence)
        found = _narrower(found, seen) if found else seen
    if found is None:
        raise ValueError("neither strata nor years tell anything")
    return found


def _calm(placed: Placed, effort: Effort, tails: Tails) -> Losses:
    """Losses of copies if only those outages happen that find everything flushed. At most the default number of years
    is drawn, since this work is not shared out."""
    calm, drawn = placed._replace(cluster=placed.cluster.with_outages(tails.calm)), None
    found = solved(calm, effort)
    if wants_years(found, effort):
        years = min(effort.years, Effort().years)
        drawn = draw_years(cluster_of(calm), effort.first_year, years, effort.seed, effort.threads)
    return _of_copies(calm, effort, found, drawn)


def _is_open(found: Losses) -> bool:
    figures = found.p_any, found.incidents, found.entries
    return found.incidents.value > SELDOM and any(_width(figure) > WIDE * figure.value for figure in figures)


def _width(figure: YearFigure) -> float:
    return figure.high - figure.low


def _narrower(found: Losses, drawn: Losses) -> Losses:
    """Figures by strata, replaced by those of years where strata are wide and years narrower. Sizes and causes of
    incidents have the same source as their rate, so that they add up to it."""

    def narrower(one: YearFigure, other: YearFigure) -> YearFigure:
        return other if _width(one) > WIDE * one.value and _width(other) < _width(one) else one

    incidents = narrower(found.incidents, drawn.incidents)
    return (drawn if incidents is drawn.incidents else found)._replace(
        p_any=narrower(found.p_any, drawn.p_any),
        p_any_in_ten_years=narrower(found.p_any_in_ten_years, drawn.p_any_in_ten_years),
        entries=narrower(found.entries, drawn.entries),
    )


def _assumptions(cluster: Cluster, placed: Placed) -> Iterator[str]:
    """Assumptions of an answer, one sentence each."""
    yield "Copies on a lost node are made again elsewhere, each ledger's at a time of its own"
    if not cluster.repair_queue:
        yield "Repairs of one loss do not slow those of another"
    if cluster.is_ageing:
        yield "P(any loss in ten years) is that of independent years; with nodes that age, only its interval holds"
    else:
        yield "Nodes are lost at a constant rate, whatever their age"
    yield "Nodes that one event may take are lost independently of each other"
    if cluster.disks_per_node > 1:
        yield (
            "A ledger is on the disk of the same number in all of its nodes. A lost disk takes the copies on it; its "
            "node, which counts as lost alone, is down until all of its copies are made again, and loses no more"
        )
    if placed.source and placed.source.promised.last_leads:
        yield from _of_last(cluster)
    if placed.unflushed:
        yield (
            f"At any time {plain(placed.unflushed)} acknowledged entries are not on disk where they would be needed, "
            "as much of each ledger as of another: an outage of the whole cluster takes these, one of a rack none"
        )
    if cluster.thin:
        yield from _of_thin(cluster.thin)


def _of_last(cluster: Cluster) -> Iterator[str]:
    """The assumption on nodes that lose their disks in an outage of the whole cluster, and what it is worth."""
    outages = [(event.per_year, event.p_lost) for event in cluster.events if event.scope == CLUSTER]
    rate = sum(per_year * -math.expm1(cluster.nodes * math.log1p(-p)) for per_year, p in outages if p < 1.0)
    if rate:
        yield (
            "A broker whose disk an outage of the whole cluster takes does not start with an empty one under its old "
            "id. If it did, it would lead where it was the last in sync, and the others would truncate their logs to "
            f"its own: up to {plain(rate)} incidents a year more, each of all that is stored in such partitions"
        )


def _of_thin(thin: Sequence[Thin]) -> Iterator[str]:
    """Assumptions about entries that have fewer copies than the write quorum."""
    healing, lasting = (sum(each.number for each in thin if each.heals is heals) for heals in (True, False))
    if healing:
        yield (
            f"At any time {plain(healing)} acknowledged entries do not have all of their copies yet, as fewer "
            "acknowledge: only an outage of the whole cluster can take them, as it takes their writer"
        )
    if lasting:
        yield (
            f"{plain(lasting)} stored entries have fewer copies for good, as requests were lost (message_loss): nobody "
            "makes the missing copies, and any loss of nodes can take these entries"
        )


def main_figures(found: ClusterAnswer) -> dict[str, Any]:
    """Returns the main figures of a design by name, as a line of a table."""
    losses = found.losses
    figures = {"p_any": losses.p_any, "incidents": losses.incidents, "entries": losses.entries}
    ends = {
        f"{name}{end}": value
        for name, figure in figures.items()
        for end, value in (("", figure.value), ("_low", figure.low), ("_high", figure.high))
    }
    return {**found.design, **ends, **{name: size.value for name, size in losses.in_entries.items()}}


def as_json(found: Sequence[ClusterAnswer]) -> dict[str, Any]:
    """Returns an object for `json.dumps`: the answer itself if it is the only one, else a list of `designs`."""
    return _as_json(found[0]) if len(found) == 1 else {"designs": [_as_json(each) for each in found]}


def _as_json(found: ClusterAnswer) -> dict[str, Any]:
    """See docs/cluster.md."""
    losses = found.losses
    between = {end: 1.0 / rate if rate > 0.0 else None for end, rate in _turned(losses.incidents).items()}
    return {
        **({"design": dict(found.design)} if found.design else {}),
        "p_any_loss_per_year": _probability(losses.p_any),
        "p_any_loss_in_ten_years": _probability(losses.p_any_in_ten_years),
        "incidents_per_year": losses.incidents._asdict(),
        "years_between_incidents": between | {"method": losses.incidents.method},
        "expected_entries_per_year": losses.entries._asdict(),
        "share_with_sizes": found.own_share,
        "incident_entries": _sizes(losses.in_entries),
        "incident_ledgers": _sizes(losses.in_ledgers),
        **_in_bytes(found),
        "causes": {cause: each.incidents._asdict() | {"share": each.share} for cause, each in losses.by_cause.items()},
        "at_least": [
            {"entries": size, "incidents_per_year": rate.value, "low": rate.low, "high": rate.high}
            for size, rate in losses.at_least.items()
        ],
        "availability": {
            name: part._asdict() if hasattr(part, "_asdict") else part
            for name, part in found.availability._asdict().items()
        },
        "years": found.years,
        "assumptions": list(found.assumptions),
    }


def _probability(figure: YearFigure) -> dict[str, Any]:
    return {"p": figure.value, "low": figure.low, "high": figure.high, "method": figure.method}


def _turned(figure: YearFigure) -> dict[str, float]:
    """A rate's interval with its ends swapped: their reciprocals are the interval of the time between."""
    return {"value": figure.value, "low": figure.high, "high": figure.low}


def _sizes(sizes: Mapping[str, Size]) -> dict[str, Any]:
    intervals = {name: [size.low, size.high if math.isfinite(size.high) else None] for name, size in sizes.items()}
    return {name: size.value for name, size in sizes.items()} | {"intervals": intervals}


def _in_bytes(found: ClusterAnswer) -> dict[str, Any]:
    """Losses in bytes, in all and for each stored petabyte; empty if the size of entries is unknown."""
    if not found.entry_bytes or not found.stored_bytes:
        return {}
    losses, entry = found.losses, found.entry_bytes
    a_petabyte = entry * PETABYTE / found.stored_bytes
    sizes = {name: Size(*(entry * end for end in size)) for name, size in losses.in_entries.items()}
    return {
        "stored_bytes": found.stored_bytes,
        "expected_bytes_per_year": losses.entries.times(entry)._asdict(),
        "expected_bytes_per_petabyte_year": losses.entries.times(a_petabyte)._asdict(),
        "incident_bytes": _sizes(sizes),
    }
