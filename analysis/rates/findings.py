"""Findings from data on a protocol's figures: posteriors by key, beside what a profile says without these data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from quorisk.analysis.experiment.known import Stated
from quorisk.analysis.rates.fleet import Drives, Fleet, total
from quorisk.analysis.rates.observed import DAY_S, Observed, as_date
from quorisk.analysis.statistics.known import Known
from quorisk.analysis.statistics.pooling import Pooled
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.evidence import Evidence

ANY, FLEET = "any", "fleet"
"""Drives whose failure rate a profile takes: a model that is not among these, or all of them together."""

EVENTS = "cluster.events."
OF_CLUSTER = {
    evidence.NODE_LOSSES: "cluster.node_loss",
    evidence.DRIVE_FAILURES: "cluster.node_loss",
    evidence.OUTAGES: f"{EVENTS}power_outage.per_year",
    evidence.LOST_IN_OUTAGES: f"{EVENTS}power_outage.p_lost",
    evidence.RACK_LOSSES: f"{EVENTS}rack_lost.per_year",
    evidence.LOST_IN_RACK: f"{EVENTS}rack_lost.p_lost",
    evidence.BATCH_LOSSES: f"{EVENTS}nodes_lost_together.per_year",
    evidence.LOST_IN_BATCH: f"{EVENTS}nodes_lost_together.p_lost",
}
"""The key of [cluster] that each kind of data gives, whatever the protocol."""


class Finding(NamedTuple):
    """The posterior from data of one kind, and the key that it gives."""

    observed: Observed
    key: str
    """The key that follows from it; empty if no key of the protocol does."""
    known: Known
    """The rate a second, or the probability."""
    default: Stated | None
    """The profile's figure for the key without these data."""
    why: str
    """Words on how it was found, or on why no key follows."""


def findings(
    observed: Sequence[Observed], fleet: Fleet | None, of: str, told_by: Evidence, defaults: Mapping[str, Stated | None]
) -> list[Finding]:
    """Returns the findings from data, by kind. `defaults` has the profile's figures without them, by key.

    Where two kinds give the same key, `told_by` names the better one first, and the other gives none. Raises
    ConfigError if `of` is neither ANY nor FLEET nor one of the fleet's models.
    """
    each: list[tuple[Observed, Known, str]] = [(one, one.known, "all counts together") for one in observed]
    if fleet and fleet.groups:
        each += _of_drives(fleet, of)
    elif of not in (ANY, FLEET):
        _of_model((), of)
    order = list(told_by)
    each.sort(key=lambda it: order.index(it[0].kind) if it[0].kind in order else len(order))
    taken: dict[str, str] = {}
    found = []
    for one, known, why in each:
        key = told_by.get(one.kind, "")
        if unused := _unused(key, OF_CLUSTER.get(one.kind, ""), defaults, taken):
            found.append(Finding(one, "", known, None, unused))
        else:
            taken[key] = one.kind.name
            found.append(Finding(one, key, known, defaults[key], why))
    return found


def _unused(key: str, of_cluster: str, defaults: Mapping[str, Stated | None], taken: Mapping[str, str]) -> str:
    """Reason why a kind does not give its key; empty if it does."""
    if not key:
        return f"tells {of_cluster} alone" if of_cluster else "no figure of this protocol follows"
    if key not in defaults:
        return f"{key} would follow, which this protocol does not have"
    return f"{taken[key]} tell {key} better" if key in taken else ""


def _of_drives(fleet: Fleet, of: str) -> Iterator[tuple[Observed, Known, str]]:
    """Drive failures, the posterior of a rate, and words on the drives whose rate it is."""
    groups = fleet.groups if of in (ANY, FLEET) else _of_model(fleet.groups, of)
    days = total(groups)
    last_day = days.first_day + len(days.events) - 1
    source = f"drive statistics of {as_date(days.first_day)} to {as_date(last_day)}"
    observed = Observed(evidence.DRIVE_FAILURES, days._replace(exposure=days.exposure * DAY_S), source)
    if of == ANY and len(groups) > 1:
        yield observed, pooled(groups).another(), f"a model that is not among these {len(groups)}"
    else:
        yield observed, observed.known, "all drives" if of in (ANY, FLEET) else f"drives of model {of}"


def _of_model(groups: Sequence[Drives], of: str) -> list[Drives]:
    if found := [group for group in groups if group.model == of]:
        return found
    models = ", ".join(dict.fromkeys(group.model for group in groups)) or "of drive statistics, but there are none here"
    raise ConfigError(f" {of}: {ANY}, {FLEET}, or one of the models {models}", "of")


def pooled(groups: Sequence[Drives]) -> Pooled:
    """Returns the posterior of models' failure rates a second."""
    series = [group.series for group in groups]
    return Pooled([each.events.sum() for each in series], [each.exposure.sum() * DAY_S for each in series])
