"""Variants that lose data too seldom for the runs that are compared: each is estimated alone (docs/rare-events.md).

Runs of two variants that nearly never lose data say nothing about how much oftener one does. The intervals of two
estimates do: if v lies in [v1, v2] and b in [b1, b2], then v - b lies in [v1 - b2, v2 - b1], and v / b in
[v1 / b2, v2 / b1].
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from quorisk.analysis import method
from quorisk.analysis.estimate import Risk, estimate
from quorisk.analysis.experiment.config import Experiment, GridPoint
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.paired import Comparison, apart
from quorisk.analysis.statistics.sequential import simultaneous
from quorisk.kernels.engines.points import Point


class Seen(NamedTuple):
    """What the runs of a variant say of it."""

    point_id: str
    point: Point
    losses: int
    hidden: int
    """Runs that may hide a loss."""


class Alone(NamedTuple):
    """A variant's probability of data loss, whatever the others are."""

    risk: Risk
    method: str
    """As in `Estimate`."""


def alone(
    experiment: Experiment,
    variants: Mapping[str, Seen],
    num_pairs: int,
    threads: int,
    solving: Callable[[int, int], None] | None = None,
) -> dict[str, Alone]:
    """The probability of data loss of every variant, by label; none if runs tell enough of all of them.

    The intervals are as wide as those of difference and ratio need for all pairs to hold together. `solving` is called
    as by `estimate.estimate`.
    """
    run = experiment.run
    each = simultaneous(simultaneous(run.confidence, num_pairs), 2)
    found: dict[str, Alone] = {}
    for label, seen in variants.items():
        if method.pilot_runs(seen.point, run) and method.is_rare(run, seen.losses, seen.hidden):
            point = GridPoint(seen.point, seen.point_id, {})
            given = experiment._replace(points=(point,), run=run._replace(confidence=each))
            estimated = estimate(given, threads, solving=solving)
            if estimated.head:
                found[label] = Alone(estimated.data_loss, estimated.method)
    if not found:
        return {}
    return {label: found.get(label) or _counted(seen, run.runs, each) for label, seen in variants.items()}


def _counted(seen: Seen, runs: int, confidence: float) -> Alone:
    estimator = Estimator(confidence)
    low, high = estimator.interval(seen.losses, runs, seen.hidden)
    return Alone(Risk(seen.losses, seen.losses / runs, low, high, estimator.far_apart(low, high)), estimator.method)


def compared(pairs: Sequence[tuple[str, str, Comparison]], known: Mapping[str, Alone]) -> list[Comparison]:
    """Pairs of variant and baseline compared by what is known of each; as they were if that is nothing."""
    if not known:
        return [found for *_, found in pairs]
    ends = {label: (each.risk.p, each.risk.low, each.risk.high) for label, each in known.items()}
    return [apart(found, ends[variant], ends[baseline]) for variant, baseline, found in pairs]
