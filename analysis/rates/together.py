"""Nodes that were lost together: how often that happened, what they had in common, and which share of all losses it is.

Losses within a minute of each other are one event; so are those of one rack within an hour, and those of one batch of
disks within a day. What struck alone is what [cluster] calls node_loss; events of several nodes become
[cluster.events.NAME] of a profile. That is the field's beta-factor model, counted: see A. Mosleh et al., "Guidelines on
Modeling Common-Cause Failures in Probabilistic Risk Assessment", NUREG/CR-5485 (1998), sections 5.2 and 5.3.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from quorisk.analysis.rates.observed import DAY_S, Observed, day_of, series
from quorisk.kernels.protocols import evidence

_MINUTE_S, _RACK_S, _BATCH_S = 60.0, 3600.0, float(DAY_S)


class Loss(NamedTuple):
    """A node that was lost."""

    node: str
    start_s: float
    has_time: bool
    """Whether the list says the time of the day."""
    rack: str = ""
    """The node's rack; empty, as is `batch`, if the list does not say."""
    batch: str = ""


def losses_by_event(losses: Sequence[Loss]) -> list[list[Loss]]:
    """Returns the losses grouped by the event that took them, each group in order of time.

    An event takes a node once. The loss of a node's replacement is another event.
    """
    ordered = sorted(losses, key=lambda each: each.start_s)
    latest: dict[tuple[str, str], int] = {}
    events = [{loss.node: i} for i, loss in enumerate(ordered)]  # the event of each loss: its losses by their nodes
    for i, loss in enumerate(ordered):
        for tie, within_s in _ties(loss):
            before = latest.get(tie, i)
            is_near = loss.start_s - ordered[before].start_s <= within_s
            if is_near and events[before] is not events[i] and events[before].keys().isdisjoint(events[i]):
                fewer, more = sorted((events[before], events[i]), key=len)
                more.update(fewer)
                for j in fewer.values():
                    events[j] = more
            latest[tie] = i
    return [[ordered[i] for i in sorted(event.values())] for event in {id(each): each for each in events}.values()]


def _ties(loss: Loss) -> Iterator[tuple[tuple[str, str], float]]:
    """Yields traits that a loss may share with others, each with the seconds within which sharing makes one event."""
    if loss.has_time:
        yield ("time", ""), _MINUTE_S
    if loss.has_time and loss.rack:
        yield ("rack", loss.rack), _RACK_S
    if loss.batch:
        yield ("batch", loss.batch), _BATCH_S


def joint_losses(losses: Sequence[Loss], nodes: float, racks: int, watched_s: float, source: str) -> Iterator[Observed]:
    """Yields counts of losses of several nodes at once, if any node was lost: their share of all losses and, for racks
    (if their number is known) and other nodes apart, these events and the nodes lost of those that they could take."""
    if not losses:
        return
    every = losses_by_event(losses)
    groups = [each for each in every if len(each) > 1]
    by_chance = _by_chance(losses, watched_s)
    said = f"{source}; {by_chance:.2g} such pairs would be expected by chance"
    all_of = [(day_of(each.start_s), len(event) > 1) for event in every for each in event]
    days, shared = zip(*all_of, strict=True)
    yield Observed(evidence.SHARE_TOGETHER, series(days, shared, np.ones(len(days))), said)
    of_racks: list[list[Loss]] = []
    others: list[list[Loss]] = []
    for each in groups:
        is_of_a_rack = racks and each[0].rack and len({loss.rack for loss in each}) == 1
        (of_racks if is_of_a_rack else others).append(each)
    largest = max(map(len, others), default=0)
    for kinds, each_of, number, size in (
        ((evidence.RACK_LOSSES, evidence.LOST_IN_RACK), of_racks, racks, round(nodes / max(racks, 1))),
        ((evidence.BATCH_LOSSES, evidence.LOST_IN_BATCH), others, 1, largest),
    ):
        if each_of:
            when = [day_of(group[0].start_s) for group in each_of]
            time = np.full(len(when), number * watched_s / len(when))
            yield Observed(kinds[0], series(when, np.ones(len(when)), time), said)
            lost = [len(group) for group in each_of]
            yield Observed(kinds[1], series(when, lost, np.maximum(size, lost)), said)


def single_losses(losses: Sequence[Loss]) -> list[Loss]:
    """Returns the losses that no other node shared."""
    return [each[0] for each in losses_by_event(losses) if len(each) == 1]


def _by_chance(losses: Sequence[Loss], watched_s: float) -> float:
    """Expected pairs of nodes that would count as one event if each loss came at a random time while watched."""
    shared = [(tie, within_s, each.node) for each in losses for tie, within_s in _ties(each)]
    pairs_s = sum(number**2 * within_s for (_, within_s), number in Counter(each[:2] for each in shared).items())
    of_one_node_s = sum(number**2 * within_s for (_, within_s, _), number in Counter(shared).items())
    return (pairs_s - of_one_node_s) / watched_s
