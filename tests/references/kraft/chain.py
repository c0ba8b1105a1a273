"""The Markov chain of random runs, over the literal interpreter alone: what each rate counts, and P(a run loses data).

It shares nothing with the program that it judges: no state, no rule of a step and no solver. All rates are floats, and
elimination (Grassmann, Taksar and Heyman) only adds, multiplies and divides what is positive.
"""

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any

from quorisk.kernels.protocols.kraft.spec import SpecState
from tests.references.kraft.actions import ACTIONS
from tests.references.kraft.properties import PROPERTIES
from tests.references.kraft.state import Values, initial, offline, subsets

LOST, ENDED = -1, -2
"""What a run comes to: it loses data; or it ends otherwise, as its life does or as nothing is left to do."""
Rows = list[dict[int, float]]
"""By state the probabilities of what comes next."""


def went_down(before: SpecState, after: SpecState) -> list[int]:
    return [b for b in range(1, len(before.broker_state) + 1) if offline(after, b) and not offline(before, b)]


def fenced(before: SpecState, after: SpecState) -> Any:
    return before.con_unfenced - after.con_unfenced


def asked(before: SpecState, after: SpecState) -> Any:
    return [p != q for p, q in zip(before.partition_pending_ap, after.partition_pending_ap, strict=True)]


def answered(before: SpecState, after: SpecState) -> Any:
    return before.messages - after.messages


def all_together(before: SpecState, after: SpecState) -> Any:
    return ""


SHARE: Mapping[str, Callable[[SpecState, SpecState], Any]] = {
    "data_loss_shutdown": went_down,
    "no_data_loss_shutdown": went_down,
    "no_data_loss_unclean_shutdown": went_down,
    "fence_broker": fenced,
    "leader_shrink_isr": asked,
    "receive_alter_partition_request": answered,
    "write_record_to_leader": all_together,
    "perform_partition_reassignment": all_together,
    "cluster_loses_power": all_together,
    "zone_loses_power": went_down,
    "tail_loss_shutdown": went_down,
    "roll_restarts": went_down,
    "session_times_out": fenced,
}
"""By action, what its rate belongs to, as a step of it shows: ways that have this in common are equally likely, but for
what an outage takes. Of any other action each way has the rate."""


def odds(s: SpecState, v: Values, rates: Mapping[str, float], p_lost: Mapping[str, float]) -> list[tuple[float, Any]]:
    """The rate of every step from here, and the state that it leads to."""
    found = []
    for name, action in ACTIONS.items():
        rate = rates.get(name, 1.0)
        ways: dict[str, list[SpecState]] = {}
        for i, after in enumerate(action(s, v) if rate else ()):
            key = repr(SHARE[name](s, after)) if name in SHARE else str(i)
            ways.setdefault(key, []).append(after)
        for group in ways.values():
            fates = cycle(fates_of(went_down(s, group[0]), p_lost[name]) if name in p_lost else [1.0])
            weights = [weight for weight, _ in zip(fates, group, strict=False)]
            found += [(rate * weight / sum(weights), after) for weight, after in zip(weights, group, strict=True)]
    return found


def fates_of(brokers: list[int], p: float) -> list[float]:
    """The probabilities with which an outage takes each subset of these brokers' logs, in the order of the ways."""
    return [p ** len(lost) * (1.0 - p) ** (len(brokers) - len(lost)) for lost in subsets(brokers)]


def rows(v: Values, rates: Mapping[str, float], lifetime: float, p_lost: Mapping[str, float]) -> Rows:
    """The chain from the initial state, which is number 0, on."""
    number = {initial(v): 0}
    states = list(number)
    found: Rows = []
    for s in states:
        if not PROPERTIES["AckedRecordsSurvive"](s, v):
            found.append({LOST: 1.0})
            continue
        steps = [(rate, after) for rate, after in odds(s, v, rates, p_lost) if rate > 0.0]
        total = sum(rate for rate, _ in steps) + 1.0 / lifetime
        row = {ENDED: 1.0 / lifetime / total} if steps else {ENDED: 1.0}
        for rate, after in steps:
            if after not in number:
                number[after] = len(states)
                states.append(after)
            row[number[after]] = row.get(number[after], 0.0) + rate / total
        found.append(row)
    return found


def p_loss(v: Values, rates: Mapping[str, float], lifetime: float, **p_lost: float) -> float:
    """P(a run loses data); rates a second, 1 if not given. `p_lost`: what `cluster_loses_power` and `zone_loses_power`
    take of each log."""
    chain = rows(v, rates, lifetime, p_lost)
    into: list[set[int]] = [set() for _ in chain]
    for i, row in enumerate(chain):
        for j in row:
            if j >= 0:
                into[j].add(i)
    for i in range(len(chain) - 1, 0, -1):  # the latest first: they lead to few that are left
        row = chain[i]
        row.pop(i, None)
        leaves = sum(row.values())
        into[i].discard(i)
        for j in into[i]:
            p = chain[j].pop(i) / leaves
            for k, q in row.items():
                chain[j][k] = chain[j].get(k, 0.0) + p * q
                if k >= 0:
                    into[k].add(j)
        for k in row:
            if k >= 0:
                into[k].discard(i)
    first = chain[0]
    return first.get(LOST, 0.0) / (first.get(LOST, 0.0) + first.get(ENDED, 0.0))
