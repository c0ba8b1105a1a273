"""Variants that lose data too seldom for the runs that are compared: each is estimated alone (docs/rare-events.md).

Runs of two variants that nearly never lose data say nothing about how much more often one does. The intervals of two
estimates do: if v lies in [v1, v2] and b in [b1, b2], then v - b lies in [v1 - b2, v2 - b1], and v / b in
[v1 / b2, v2 / b1]. Where two variants have the same head, they differ beyond it alone, and runs of both from its exits,
under the same random numbers, tell more: v - b = F (q_v - q_b).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quorisk.analysis.compare import common_random_numbers
from quorisk.analysis.estimate import method, rare
from quorisk.analysis.estimate.estimate import Risk, method_of, risk_of
from quorisk.analysis.estimate.method import KnownHead, Rare, Where
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.paired import PairedComparison, apart, compare_beyond_head, compare_pairs, holm
from quorisk.analysis.statistics.sequential import simultaneous
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.states.exits import from_exits


class VariantCounts(NamedTuple):
    """Counts from the runs of a variant."""

    point: Point
    losses: int
    hidden: int
    """Number of runs that may hide a loss."""


class Alone(NamedTuple):
    """A variant's probability of data loss, whatever the others are."""

    risk: Risk
    method: str
    """Method, as in `Estimate`."""
    head: str = ""
    """The digest of the head from whose exits runs started; empty if there was none."""


def compare_separately(
    experiment: Experiment,
    variants: Mapping[str, VariantCounts],
    pairs: Sequence[tuple[str, str, PairedComparison]],
    threads: int,
    solving: rare.Solving | None = None,
) -> tuple[dict[str, Alone], list[PairedComparison]]:
    """Returns P(data loss) of every variant, by label, and the comparisons of the pairs that follow from these. If no
    variant is too rare for paired runs, the former is empty, and the comparisons stay as they were.

    The intervals are wide enough for the differences and ratios of all pairs to hold together. `solving` is called as
    by `estimate.estimate`.
    """
    run = experiment.run
    confidence = simultaneous(simultaneous(run.confidence, len(pairs)), 2)
    given = experiment._replace(run=run._replace(confidence=confidence))
    alone: dict[str, Alone] = {}
    known: dict[str, KnownHead] = {}
    for label, seen in variants.items():
        is_rare = method.pilot_runs(seen.point, run) and method.is_rare(run, seen.losses, seen.hidden)
        if is_rare and (answer := _rare(given, seen.point, threads, solving)):
            digest = rare.digest(*answer.known) if answer.known.exits else ""
            known[digest] = answer.known
            alone[label] = _alone(given, answer, digest)
    if not alone:
        return {}, [found for *_, found in pairs]
    alone = {label: alone.get(label) or _counted(seen, run.runs, confidence) for label, seen in variants.items()}
    ends = {label: (each.risk.p, each.risk.low, each.risk.high) for label, each in alone.items()}
    answers = []
    for variant, baseline, found in pairs:
        head = alone[variant].head
        if head and head == alone[baseline].head:
            points = [variants[variant].point, variants[baseline].point]
            tail, part = _tail(given, points, known[head], threads)
            answers.append(compare_beyond_head(found, ends[baseline], tail, part))
        else:
            answers.append(apart(found, ends[variant], ends[baseline]))
    adjusted = holm([answer.p_value for answer in answers])
    return alone, [answer._replace(p_adjusted=p) for answer, p in zip(answers, adjusted, strict=True)]


def _rare(experiment: Experiment, point: Point, threads: int, solving: rare.Solving | None) -> Rare | None:
    model = experiment.model
    where = Where(registry.engine_of(experiment.run.engine), model, pack(model, [point]), threads, None)
    return method.runs_and_head(experiment, where, point, solving=solving)[1]


def _alone(experiment: Experiment, found: Rare, digest: str) -> Alone:
    part = rare.parts_by_invariant(experiment.model, *found.known)[DATA_LOSS]
    return Alone(risk_of(DATA_LOSS, found.tail, experiment.run, part), method_of(found, experiment.run), digest)


def _counted(seen: VariantCounts, runs: int, confidence: float) -> Alone:
    estimator = Estimator(confidence)
    low, high = estimator.interval(seen.losses, runs, seen.hidden)
    return Alone(Risk(seen.losses, seen.losses / runs, low, high, estimator.far_apart(low, high)), estimator.method)


def _tail(
    experiment: Experiment, points: list[Point], known: KnownHead, threads: int
) -> tuple[PairedComparison, tuple[float, float]]:
    """Compares a pair that shares a head by runs from its exits; also returns `part` of `compare_beyond_head`."""
    assert known.exits
    part, run = rare.parts_by_invariant(experiment.model, *known)[DATA_LOSS], experiment.run
    first_run = method.TAIL + run.first_run
    starts = from_exits(pack(experiment.model, points), known.exits)
    counted = common_random_numbers.count_pairs(
        experiment, starts, [(0, 1)], range(first_run, first_run + run.runs), threads
    )
    [tail] = compare_pairs(counted.by_event[0], run.confidence)
    return tail, (part.leaves, part.slack)
