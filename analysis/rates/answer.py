"""Output of `quorisk rates --json`, and the rows from which its figure is drawn."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from quorisk.analysis.experiment.known import Stated
from quorisk.analysis.experiment.profiles import Profile
from quorisk.analysis.rates.drives import FUTURE, REPEATED, UNREADABLE
from quorisk.analysis.rates.files import Files
from quorisk.analysis.rates.findings import OF_CLUSTER, Finding, pooled
from quorisk.analysis.rates.fleet import Fleet, total
from quorisk.analysis.rates.observed import DAY_S, Observed, Series, periods, posterior
from quorisk.analysis.rates.oddities import Oddities
from quorisk.analysis.statistics.known import Gamma, Known, LogNormal
from quorisk.kernels.protocols import evidence

YEAR_DAYS = 365.0
"""Days of a year in annual failure rates, as drive statistics have them: failures / (drive-days / 365)."""
POSTERIOR, DEFAULT, MODEL, PERIOD = "posterior", "default", "model", "period"
"""Subjects of the rows of `rows`, in their column `about`."""
_LEVELS = (("low", 0.05), ("high", 0.95), ("low_95", 0.025), ("high_95", 0.975))


class RatesAnswer(NamedTuple):
    """Figures of a protocol as data give them."""

    base: Profile
    """The profile for all figures that the data do not give."""
    findings: list[Finding]
    fleet: Fleet | None
    """The drives of the data; None without drive statistics."""
    files: Files
    oddities: Oddities
    """Oddities in the data."""


def as_json(answer: RatesAnswer) -> dict[str, Any]:
    """Returns the answer as plain dictionaries and lists. Rates are a second, failure rates of drives (`afr`) a year of
    365 days; `low` to `high` has 90 %, `low_95` to `high_95` 95 %.
    """
    return {
        "based_on": answer.base.name,
        "figures": [_figure(each) for each in answer.findings if each.key],
        "others": [_figure(each) for each in answer.findings if not each.key],
        "drives": of_drives(answer.fleet) if answer.fleet and answer.fleet.groups else None,
        "files": {kind: len(paths) for kind, paths in answer.files._asdict().items()},
        "told": [
            {"what": odd.what, "times": seen.times, "done": odd.done, "where": seen.where}
            for odd, seen in answer.oddities.items()
        ],
    }


def _figure(found: Finding) -> dict[str, Any]:
    observed = found.observed
    unit = "trials" if observed.kind.in_trials else "exposure_s"
    return {
        "key": found.key or None,
        "cluster_key": OF_CLUSTER.get(observed.kind),
        "kind": observed.kind.name,
        "events": observed.events,
        unit: observed.exposure,
        "value": found.known.median,
        "mean": found.known.mean,
        **_interval(found.known),
        "is_upper_bound": observed.events == 0,
        "of": found.why,
        "source": observed.source,
        "default": _default(found.default),
        "periods": list(_periods(observed)),
    }


def _interval(known: Known, scale: float = 1.0) -> dict[str, float]:
    return {name: scale * float(known.quantile(level)) for name, level in _LEVELS}


def _default(stated: Stated | None) -> dict[str, Any] | None:
    if stated is None:
        return None
    return {"value": float(stated.value), **(_interval(stated.known) if stated.known else {})}


def _periods(observed: Observed) -> Iterator[dict[str, Any]]:
    unit = "trials" if observed.kind.in_trials else "exposure_s"
    for each in periods(observed.series):
        if each.exposure > 0:
            known = posterior(observed.kind, each.events, each.exposure)
            days = {"first": each.first.isoformat(), "last": each.last.isoformat()}
            yield {**days, "events": each.events, unit: each.exposure, "value": known.median, **_interval(known)}


def of_drives(fleet: Fleet) -> dict[str, Any]:
    """Returns failure rates a year: of all drives, of each model and capacity, and of a model not among them."""
    models = [
        {"model": each.model, "capacity_bytes": each.capacity or None, **_failure_rate(each.series)}
        for each in fleet.groups
    ]
    population = pooled(fleet.groups)
    another, scale = population.another(), YEAR_DAYS * DAY_S
    whole = _failure_rate(total(fleet.groups))
    not_used = sum(fleet.oddities[what].times for what in (REPEATED, UNREADABLE, FUTURE) if what in fleet.oddities)
    return {
        "rows": whole["drive_days"] + not_used,
        "drives": fleet.num_drives,
        **whole,
        "models": models,
        "another_model": {
            "median": scale * another.median,
            "mean": scale * another.mean,
            **_interval(another, scale),
            "spread": population.spread,
        },
    }


def _failure_rate(series: Series) -> dict[str, Any]:
    """Failure rate of drives a year: failures / (drive-days / 365), and the posterior from Jeffreys' prior."""
    failures, drive_days = int(series.events.sum()), float(series.exposure.sum())
    known = Gamma(failures, drive_days / YEAR_DAYS)
    return {
        "drive_days": int(drive_days),
        "failures": failures,
        "afr": failures / (drive_days / YEAR_DAYS),
        "mean": known.mean,
        "median": known.median,
        **_interval(known),
    }


def rows(answer: RatesAnswer) -> list[dict[str, Any]]:
    """Returns the rows of the figure: for each key the data's value, the profile's, and those of models and periods.

    Columns: `key`; `about`, one of the four above; `label`; `median`; `p5`, `p25`, `p75` and `p95`, as far as known,
    else the median; `in_trials`, whether these are probabilities, not rates a second.
    """
    table, fleet = [], answer.fleet
    for each in answer.findings:
        if each.key:
            kind = each.observed.kind
            table.append(_row(each, POSTERIOR, f"{kind.name}: {each.observed.events:,}; {each.why}", each.known))
            if each.default:
                said = each.default.known or LogNormal(float(each.default.value), 1.0)
                table.append(_row(each, DEFAULT, answer.base.name, said, float(each.default.value)))
            for group in fleet.groups if fleet and kind == evidence.DRIVE_FAILURES else ():
                events, days = int(group.series.events.sum()), float(group.series.exposure.sum())
                label = f"{group.model} ({events:,} in {days:,.0f} days)"
                table.append(_row(each, MODEL, label, posterior(kind, events, days * DAY_S)))
            for period in periods(each.observed.series):
                if period.exposure > 0:
                    label = f"{period.first.isoformat()} to {period.last.isoformat()} ({period.events:,})"
                    table.append(_row(each, PERIOD, label, posterior(kind, period.events, period.exposure)))
    return table


def _row(found: Finding, about: str, label: str, known: Known, median: float | None = None) -> dict[str, Any]:
    ends = {f"p{100 * level:g}": float(known.quantile(level)) for level in (0.05, 0.25, 0.75, 0.95)}
    middle = known.median if median is None else median
    row = {"key": found.key, "about": about, "label": label, "median": middle}
    return {**row, **ends, "in_trials": found.observed.kind.in_trials}
