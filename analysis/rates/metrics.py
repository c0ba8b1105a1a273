"""What metrics of nodes and of logs tell, counted in series of samples (`prometheus`).

METRICS is the table of docs/rates.md. A metric has one name there, whichever exporter named it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quorisk.analysis.rates import prometheus
from quorisk.analysis.rates.observed import DAY_S, Observed, series
from quorisk.analysis.rates.prometheus import Found, Samples
from quorisk.analysis.rates.told import Odd, Told, tell
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.evidence import Kind

NO_SWITCH = Odd("samples of a switch that are neither 0 nor 1, as of an average", "left out")
GAPS = Odd("gaps in series, longer than a sample and a half", "not counted as time in which nothing happened")
IN_GAP = Odd("stops and ends of spells that a gap hides", "counted when the gap ends")
RESETS = Odd("counters that started again from 0", "counted from there")
NO_TIME = Odd("events in no time that was watched", "counted for nothing")
NEEDS = Odd("series of a metric that needs another one beside it", "counted for nothing")
_GAP = 1.5
_MS = 1e-3


class Metric(NamedTuple):
    """A metric that tells of something: a row of docs/rates.md."""

    name: str
    of: str
    """What exports it."""
    kinds: tuple[Kind, ...]
    how: str
    """How it is counted."""
    tells: Callable[..., Iterator[Observed]]
    """`tells(metric, found, told)`: what was counted, and in what."""
    beside: str = ""
    """Another metric that is needed, as it tells what the events are counted in."""


def read(paths: Iterable[Path], told: Told) -> list[Observed]:
    """Returns what saved range queries count, and tells what was odd in them."""
    known = {name for each in METRICS for name in (each.name, each.beside)}
    found = prometheus.read(paths, known.__contains__, told)
    observed: list[Observed] = []
    for metric in METRICS:
        if metric.name in found and metric.beside and metric.beside not in found:
            tell(told, NEEDS, len(found[metric.name]), f"{metric.name} needs {metric.beside}")
        elif metric.name in found:
            observed += metric.tells(metric, found, told)
    for each in observed:
        if not each.exposure:
            tell(told, NO_TIME, each.events, f"{each.kind.name} of {each.source}")
    return [each for each in observed if each.exposure > 0]


def _days(samples: Samples) -> np.ndarray:
    """The day of each sample but the first."""
    return np.asarray((samples.times[1:] // DAY_S).astype(np.int64))


def _spells(metric: Metric, found: Found, told: Told, well: Callable[[Samples], np.ndarray]) -> Iterator[Observed]:
    """Of gauges: spells that begin, in the time in which all is well, and spells that end, in the time of spells."""
    parts: dict[Kind, list[tuple[np.ndarray, ...]]] = {kind: [] for kind in metric.kinds}
    for each in found[metric.name]:
        is_well, step = well(each), np.diff(each.times)
        seen = step <= _GAP * np.median(step)
        changes = is_well[1:] != is_well[:-1]
        tell(told, GAPS, int((~seen).sum()), str(each))
        tell(told, IN_GAP, int((changes & ~seen).sum()), str(each))
        for kind, before in zip(metric.kinds, (is_well[:-1], ~is_well[:-1]), strict=True):
            parts[kind].append((_days(each), changes & before, np.where(before & seen, step, 0.0)))
    for kind, columns in parts.items():
        yield Observed(kind, series(*map(np.concatenate, zip(*columns, strict=True))), metric.name)


def _ups(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    switches = [_switch(each, told) for each in found[metric.name]]
    usable = [each for each in switches if len(each.times) > 1]
    if usable:
        yield from _spells(metric, {metric.name: usable}, told, lambda samples: samples.values == 1)


def _switch(samples: Samples, told: Told) -> Samples:
    """The samples that are 0 or 1."""
    good = (samples.values == 0) | (samples.values == 1)
    tell(told, NO_SWITCH, int((~good).sum()), str(samples))
    return samples._replace(times=samples.times[good], values=samples.values[good])


def _nodes_ready(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    wanted = {"condition": "Ready", "status": "true"}
    ready = [each for each in found[metric.name] if wanted.items() <= each.labels.items()]
    if ready:
        yield from _ups(metric, {metric.name: ready}, told)


def _fully_replicated(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    yield from _spells(metric, found, told, lambda samples: samples.values == 0)


def _increase(samples: Samples, told: Told) -> np.ndarray:
    """How much a counter went up from each sample to the next."""
    step = np.diff(samples.values)
    tell(told, RESETS, int((step < 0).sum()), str(samples))
    return np.where(step < 0, samples.values[1:], step)


def _counted(
    metric: Metric,
    counters: Sequence[Samples],
    spans: Sequence[Samples],
    amount: Callable[[Samples], np.ndarray],
    told: Told,
) -> Iterator[Observed]:
    """What counters add up to, in the amount that other series, or the same, add up to."""
    days = [_days(each) for each in (*counters, *spans)]
    events = [*(np.rint(_increase(each, told)) for each in counters), *map(_nothing, spans)]
    exposure = [*map(_nothing, counters), *map(amount, spans)]
    if days:
        yield Observed(metric.kinds[0], series(*map(np.concatenate, (days, events, exposure))), metric.name)


def _nothing(samples: Samples) -> np.ndarray:
    return np.zeros(len(samples.times) - 1)


def _lasted(samples: Samples) -> np.ndarray:
    return np.diff(samples.times)


def _restarts(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    yield from _counted(metric, found[metric.name], found[metric.name], _lasted, told)


def _of_cluster(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    """Of processes of which one at a time counts."""
    longest = max(found[metric.name], key=lambda samples: float(np.ptp(samples.times)))
    yield from _counted(metric, found[metric.name], [longest], _lasted, told)


def _shrinks(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    leaders = found[metric.beside]
    yield from _counted(metric, found[metric.name], leaders, lambda each: _lasted(each) * each.values[:-1], told)


def _copied(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    counts, sums = (
        [each for each in found[name] if each.labels.get("success", "true") == "true"]
        for name in (metric.name, metric.beside)
    )
    yield from _counted(metric, counts, sums, lambda each: _increase(each, told) * _MS, told)


METRICS = (
    Metric(
        "up",
        "Prometheus, of each target",
        (evidence.NODE_STOPS, evidence.NODE_RETURNS),
        "1 to 0 is a stop, in the time at 1; 0 to 1 is a return, in the time at 0",
        _ups,
    ),
    Metric(
        "kube_node_status_condition",
        "kube-state-metrics",
        (evidence.NODE_STOPS, evidence.NODE_RETURNS),
        'the same, of series with condition="Ready" and status="true"',
        _nodes_ready,
    ),
    Metric(
        "kube_pod_container_status_restarts_total",
        "kube-state-metrics",
        (evidence.PROCESS_RESTARTS,),
        "increase, in the time that each container's series lasts",
        _restarts,
    ),
    Metric(
        "kafka_server_replicamanager_isrshrinks",
        "Kafka's IsrShrinksPerSec, as the JMX exporter's rules name it",
        (evidence.ISR_SHRINKS,),
        "increase over all brokers, in the time of leaders; brokers that stop shrink ISRs as well: it is too much",
        _shrinks,
        "kafka_server_replicamanager_leadercount",
    ),
    Metric(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Kafka's UnderReplicatedPartitions, likewise",
        (evidence.UNDER_REPLICATION, evidence.FULL_REPLICATION),
        "0 to more is a spell, in the time at 0; back to 0 is its end, in the time above 0",
        _fully_replicated,
    ),
    Metric(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Kafka's UncleanLeaderElectionsPerSec, likewise",
        (evidence.UNCLEAN_ELECTIONS,),
        "increase over all controllers, in the time of the longest series",
        _of_cluster,
    ),
    Metric(
        "replication_worker_rereplicate_count",
        "BookKeeper's auto-recovery",
        (evidence.COPIED_LEDGERS,),
        'increase of series with success="true", in that of their sum, in milliseconds: how long one ledger takes, '
        "without its wait for the others, which is most of a repair: list repairs as incidents",
        _copied,
        "replication_worker_rereplicate_sum",
    ),
)
"""In the order in which they are believed, where two tell the same."""
