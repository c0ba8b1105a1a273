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
from quorisk.analysis.estimate.estimate import Risk, data_loss_invariants, method_of, risk_of
from quorisk.analysis.estimate.method import KnownHead, Rare, Where
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.analysis.statistics.paired import PairedComparison, apart, compare_beyond_head, compare_pairs, holm
from quorisk.analysis.statistics.sequential import simultaneous
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.states.exits import from_exits


class Alone(NamedTuple):
    """A variant's probability of data loss, whatever the others are."""

    risk: Risk
    invariants: dict[str, Risk]
    """The risk of each invariant whose breach is data loss."""
    method: str
    """Method, as in `Estimate`."""
    head: str = ""
    """The digest of the head from whose exits runs started; empty if there was none."""

    def of(self, event: str) -> Risk:
        """Returns the risk of DATA_LOSS, or of one of these invariants."""
        return self.risk if event == DATA_LOSS else self.invariants[event]


def compare_separately(
    experiment: Experiment,
    variants: Mapping[str, Point],
    hidden: Mapping[str, int],
    seen: Mapping[str, Sequence[PairedComparison]],
    threads: int,
    solving: rare.Solving | None = None,
) -> tuple[dict[str, Alone], dict[str, list[PairedComparison]]]:
    """Returns P(data loss) of every variant, by label, and the comparisons that follow, by event. Both are empty if no
    variant is too rare for paired runs.

    The first variant is the baseline. `hidden` counts each one's runs that may hide a loss. `seen` has the comparisons
    of all others with the baseline, of DATA_LOSS and of each invariant whose breach is that. The intervals are wide
    enough for the differences and ratios of all pairs to hold together. `solving` is called as by `estimate.estimate`.
    """
    run, (baseline, *others) = experiment.run, variants
    confidence = simultaneous(simultaneous(run.confidence, len(others)), 2)
    given = experiment._replace(run=run._replace(confidence=confidence))
    losses = {label: {event: _losses(found)[i] for event, found in seen.items()} for i, label in enumerate(variants)}
    alone: dict[str, Alone] = {}
    known: dict[str, KnownHead] = {}
    for label, point in variants.items():
        is_rare = method.pilot_runs(point, run) and method.is_rare(run, losses[label][DATA_LOSS], hidden[label])
        if is_rare and (answer := _rare(given, point, threads, solving)):
            digest = rare.digest(*answer.known) if answer.known.exits else ""
            known[digest] = answer.known
            alone[label] = _alone(given, answer, digest)
    if not alone:
        return {}, {}
    counted = {label: _counted(losses[label], run.runs, hidden[label], confidence) for label in variants}
    alone = counted | alone
    head = alone[baseline].head
    shared = [label for label in others if alone[label].head == head != ""]
    tails = {label: _tails(given, [variants[label], variants[baseline]], known[head], threads) for label in shared}
    compared = {}
    for event, of_event in seen.items():
        ends = {label: alone[label].of(event)[1:4] for label in variants}
        answers = [
            compare_beyond_head(found, ends[baseline], *tails[label][event])
            if label in tails
            else apart(found, ends[label], ends[baseline])
            for label, found in zip(others, of_event, strict=True)
        ]
        adjusted = holm([answer.p_value for answer in answers])
        compared[event] = [answer._replace(p_adjusted=p) for answer, p in zip(answers, adjusted, strict=True)]
    return alone, compared


def _losses(seen: Sequence[PairedComparison]) -> list[int]:
    """Runs in which an event happened, the baseline's first."""
    tables = [each.table for each in seen]
    return [tables[0].both + tables[0].only_baseline, *(each.both + each.only_variant for each in tables)]


def _rare(experiment: Experiment, point: Point, threads: int, solving: rare.Solving | None) -> Rare | None:
    model = experiment.model
    where = Where(registry.engine_of(experiment.run.engine), model, pack(model, [point]), threads, None)
    return method.runs_and_head(experiment, where, point, solving=solving)[1]


def _alone(experiment: Experiment, found: Rare, digest: str) -> Alone:
    parts = rare.parts_by_invariant(experiment.model, *found.known)
    events = (DATA_LOSS, *data_loss_invariants(experiment.model))
    risks = {event: risk_of(event, found.tail, experiment.run, parts[event]) for event in events}
    return Alone(risks.pop(DATA_LOSS), risks, method_of(found, experiment.run), digest)


def _counted(losses: Mapping[str, int], runs: int, hidden: int, confidence: float) -> Alone:
    estimator, risks = Estimator(confidence), {}
    for event, lost in losses.items():
        low, high = estimator.interval(lost, runs, hidden)
        risks[event] = Risk(lost, lost / runs, low, high, estimator.far_apart(low, high))
    return Alone(risks.pop(DATA_LOSS), risks, estimator.method)


def _tails(
    experiment: Experiment, points: list[Point], known: KnownHead, threads: int
) -> dict[str, tuple[PairedComparison, tuple[float, float]]]:
    """Returns `tail` and `part` of `compare_beyond_head` by event: the pair shares a head; runs start at its exits."""
    assert known.exits
    model, run, first_run = experiment.model, experiment.run, method.TAIL + experiment.run.first_run
    starts = from_exits(pack(model, points), known.exits)
    counted = common_random_numbers.count_pairs(
        experiment, starts, [(0, 1)], range(first_run, first_run + run.runs), threads
    )
    parts = rare.parts_by_invariant(model, *known).items()  # any data loss first, as in `counted`
    return {
        event: (compare_pairs(tables, run.confidence)[0], (part.leaves, part.slack))
        for (event, part), tables in zip(parts, counted.by_event, strict=True)
    }
