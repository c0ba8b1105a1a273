"""Prometheus range queries, saved as JSON as the HTTP API answers them: what metrics of nodes and of logs tell.

METRICS is the table of docs/rates.md. A metric is known by its `__name__` or, where a query's function took that away,
by the name of its file. Files of one metric may follow each other in time, since Prometheus answers at most 11,000
samples at a time.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.rates.observed import DAY_S, Observed, series
from quorisk.analysis.rates.told import Odd, Told, tell
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.evidence import Kind

NOT_A_QUERY = Odd("files that are no answer to a range query", "left out")
OTHER = Odd("series of other metrics", "counted for nothing")
NOT_A_NUMBER = Odd("samples that are no numbers", "left out")
JUMPS = Odd("samples that go back in time, as of a clock that was set", "put in order")
REPEATED = Odd("samples that come again", "counted once")
GAPS = Odd("gaps in series, longer than a sample and a half", "not counted as time in which nothing happened")
IN_GAP = Odd("stops and ends of spells that a gap hides", "counted when the gap ends")
RESETS = Odd("counters that started again from 0", "counted from there")
ALONE = Odd("series of a metric that needs another one beside it", "counted for nothing")
_GAP = 1.5
_MS = 1e-3
_IN_A_BOOKIE = "replication_replication_worker", "replication_worker"
"""What auto-recovery's metrics begin with if it runs within a bookie, and if it runs alone."""


class Samples(NamedTuple):
    """A series: what a metric was, for one set of labels."""

    name: str
    labels: Mapping[str, str]
    times: np.ndarray
    """float64: Unix times, rising."""
    values: np.ndarray


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


Found = Mapping[str, Sequence[Samples]]
"""All series, by their metric."""


def read(paths: Iterable[Path], told: Told) -> list[Observed]:
    """Returns what saved range queries count, and tells what was odd in them."""
    found: dict[str, list[Samples]] = defaultdict(list)
    for samples in _joined((each for path in paths for each in _series(path, told)), told):
        if len(samples.times) > 1:  # one sample alone spans no time
            found[samples.name].append(samples)
    for name in sorted(found.keys() - {name for each in METRICS for name in (each.name, each.beside)}):
        tell(told, OTHER, len(found[name]), name)
    observed: list[Observed] = []
    for metric in METRICS:
        if metric.name in found and metric.beside and metric.beside not in found:
            tell(told, ALONE, len(found[metric.name]), f"{metric.name} needs {metric.beside}")
        elif metric.name in found:
            observed += metric.tells(metric, found, told)
    return observed


def _series(path: Path, told: Told) -> Iterator[Samples]:
    try:
        answer = json.loads(path.read_bytes())
        if answer["data"]["resultType"] != "matrix":
            raise ValueError(f"resultType {answer['data']['resultType']}, not matrix: save /api/v1/query_range")
        results = [(each["metric"], each["values"]) for each in answer["data"]["result"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        tell(told, NOT_A_QUERY, 1, f"{path}: {error}")
        return
    for labels, values in results:
        times, numbers = _numbers(values)
        good = np.isfinite(times) & np.isfinite(numbers)
        tell(told, NOT_A_NUMBER, int((~good).sum()), str(path))
        others = {name: value for name, value in labels.items() if name != "__name__"}
        name = str(labels.get("__name__", path.name.partition(".")[0])).lower()
        yield Samples(name.replace(*_IN_A_BOOKIE), others, times[good], numbers[good])


def _numbers(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Times and values; NaN for what is no number."""
    pairs = np.full((len(values), 2), np.nan)
    for row, sample in enumerate(values):
        try:
            pairs[row] = sample
        except (TypeError, ValueError):
            continue
    return pairs[:, 0], pairs[:, 1]


def _joined(parts: Iterable[Samples], told: Told) -> Iterator[Samples]:
    """One series for each metric and set of labels, in order of time, each time once."""
    whole: dict[tuple[str, frozenset[tuple[str, str]]], list[Samples]] = defaultdict(list)
    for part in parts:
        tell(told, JUMPS, int((np.diff(part.times) < 0).sum()), _name(part))
        whole[part.name, frozenset(part.labels.items())].append(part)
    for same in whole.values():
        times = np.concatenate([part.times for part in same])
        order = np.argsort(times, kind="stable")
        is_new = np.append(True, np.diff(times[order]) > 0)[: len(order)]
        tell(told, REPEATED, int((~is_new).sum()), _name(same[0]))
        values = np.concatenate([part.values for part in same])
        yield same[0]._replace(times=times[order][is_new], values=values[order][is_new])


def _name(samples: Samples) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(samples.labels.items()))
    return f"{samples.name}{{{labels}}}"


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
        tell(told, GAPS, int((~seen).sum()), _name(each))
        tell(told, IN_GAP, int((changes & ~seen).sum()), _name(each))
        for kind, before in zip(metric.kinds, (is_well[:-1], ~is_well[:-1]), strict=True):
            parts[kind].append((_days(each), changes & before, np.where(before & seen, step, 0.0)))
    for kind, columns in parts.items():
        yield Observed(kind, series(*map(np.concatenate, zip(*columns, strict=True))), metric.name)


def _ups(metric: Metric, found: Found, told: Told) -> Iterator[Observed]:
    yield from _spells(metric, found, told, lambda samples: samples.values >= 1)


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
    tell(told, RESETS, int((step < 0).sum()), _name(samples))
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
        "kafka_server_replicamanager_isrshrinks_total",
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
        "kafka_controller_controllerstats_uncleanleaderelections_total",
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
