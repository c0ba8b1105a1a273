"""Counts from metrics of nodes and of logs, in series of samples (`prometheus`).

Metrics are listed in metrics.toml, which is the table of docs/rates.md. A metric has one name there, whichever exporter
named it.
"""

import functools
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import binary_dilation, binary_propagation, median_filter

from quorisk.analysis.rates import prometheus, rolls
from quorisk.analysis.rates.observed import DAY_S, Observed, Series, series
from quorisk.analysis.rates.oddities import Oddities, Oddity, note
from quorisk.analysis.rates.prometheus import Found, Samples
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.evidence import EventKind

NO_SWITCH = Oddity("samples of a switch that are neither 0 nor 1, as of an average", "left out")
GAPS = Oddity("gaps in series, longer than 1.5 times the steps around them", "their time is not counted")
IN_GAP = Oddity("stops and ends of spells that a gap hides", "not counted, as the gap's time is not")
RESETS = Oddity("counters that started again from 0", "counted from there")
NO_TIME = Oddity("events outside the time watched", "ignored")
NEEDS = Oddity("series of a metric that needs another one beside it", "ignored")
NOT_BOTH = Oddity("steps of a metric in a time that the one it is counted with does not cover", "not counted")
NOT_KNOWN = Oddity("samples at times at which it is not known whether all nodes were up", "their time is not counted")
TOO_MANY = Oddity("more time-outs than messages", "ignored")
_GAP, _AROUND = 1.5, 11
"""Least length of a gap, in medians of the steps around it, and the number of these. Joined files may differ."""
_NEAR = 2
"""Samples around a node's stop in which a gauge may be above 0 because of it."""
_OLD = 0.5
"""State of a node whose last sample is too old: neither up nor down."""
_MS = 1e-3


class Metric(NamedTuple):
    """A metric that counts something: a row of docs/rates.md."""

    name: str
    of: str
    """The exporter of the metric."""
    kinds: tuple[EventKind, ...]
    how: str
    """Words on how it is counted."""
    tells: Callable[..., Iterator[Observed]]
    """`tells(metric, found, oddities)` yields the events counted, and the exposure that they are counted in."""
    beside: str = ""
    """Another metric that is needed."""
    ways: tuple[str, ...] = ("begin", "end")
    """The end of a spell that each kind counts: where it begins, or where it ends."""
    labels: Mapping[str, str] = {}
    """Labels of the series that are counted."""


def counts_of_queries(paths: Iterable[Path], oddities: Oddities) -> list[Observed]:
    """Returns the counts of saved range queries, and adds oddities in them to `oddities`."""
    known = {name for each in METRICS for name in (each.name, each.beside)}
    found = prometheus.read_series(paths, known.__contains__, oddities)
    observed: list[Observed] = []
    for metric in METRICS:
        if metric.name in found and metric.beside and metric.beside not in found:
            note(oddities, NEEDS, len(found[metric.name]), f"{metric.name} needs {metric.beside}")
        elif metric.name in found:
            wanted = [each for each in found[metric.name] if metric.labels.items() <= each.labels.items()]
            observed += metric.tells(metric, {**found, metric.name: wanted}, oddities)
    for each in observed:
        if not each.exposure:
            note(oddities, NO_TIME, each.events, f"{each.kind.name} of {each.source}")
    return [each for each in observed if each.exposure > 0]


def _days(samples: Samples) -> np.ndarray:
    """The day of each sample but the first."""
    return np.asarray((samples.times[1:] // DAY_S).astype(np.int64))


class Spells(NamedTuple):
    """A gauge as times in which all is well, and spells in which it is not."""

    samples: Samples
    is_well: np.ndarray
    """bool[samples]."""
    counts: np.ndarray | bool = True
    """bool[samples - 1], or one for all: steps from a sample to the next that count."""
    number: np.ndarray | float = 1.0
    """float64[samples - 1], or one for all: how many may begin a spell."""


def _begun_and_ended(
    metric: Metric, each_of: Iterable[Spells], oddities: Oddities, part: float = 1.0
) -> Iterator[Observed]:
    """Spells that begin, in the time in which all is well, and spells that end, in a part of the time of spells. One
    that is not over adds its time alone. Gaps are left out: both their time, and what happened in them."""
    columns: dict[str, list[tuple[np.ndarray, ...]]] = {"begin": [], "end": []}
    for samples, is_well, counts, number in each_of:
        step = np.diff(samples.times)
        seen = _seen(step)
        changes = (is_well[1:] != is_well[:-1]) & counts
        note(oddities, GAPS, int((~seen).sum()), str(samples))
        note(oddities, IN_GAP, int((changes & ~seen).sum()), str(samples))
        for way, before, many in (("begin", is_well[:-1], number), ("end", ~is_well[:-1], part)):
            lasted = np.where(before & seen & counts, step * many, 0.0)
            columns[way].append((_days(samples), changes & seen & before, lasted))
    for kind, way in zip(metric.kinds, metric.ways, strict=True):
        if columns[way]:
            yield Observed(kind, series(*map(np.concatenate, zip(*columns[way], strict=True))), metric.name)


def _ups(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    up = [each for each in (_switch(each, oddities) for each in found[metric.name]) if len(each.times) > 1]
    by_job = rolls.by_job(up)
    rolled = [stop for nodes in by_job for roll in rolls.found(nodes) for stop in roll]
    parts = (Spells(each, each.values == 1, rolls.steps_outside(each, rolled)) for each in up)
    yield from _begun_and_ended(metric, parts, oddities)
    yield from rolls.roll_counts(by_job, metric.name)


def _switch(samples: Samples, oddities: Oddities) -> Samples:
    """The samples that are 0 or 1."""
    good = (samples.values == 0) | (samples.values == 1)
    note(oddities, NO_SWITCH, int((~good).sum()), str(samples))
    return samples._replace(times=samples.times[good], values=samples.values[good])


def _above_0(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    yield from _begun_and_ended(metric, (Spells(each, each.values == 0) for each in found[metric.name]), oddities)


def _ledgers(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    """Spells until all ledgers are whole again; one ledger waits for half of a spell, on average."""
    spells = (Spells(each, each.values == 0) for each in found[metric.name])
    yield from _begun_and_ended(metric, spells, oddities, 0.5)


def _while_up(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    """Spells of a cluster's gauge that no node's stop explains: all nodes are up, from a while before to the end."""
    up = [each for each in (_switch(each, oddities) for each in found[metric.beside]) if len(each.times) > 1]
    if not up:
        return
    times = np.unique(np.concatenate([each.times for each in found[metric.name]]))
    above = np.nansum([_at(times, each) for each in found[metric.name]], axis=0) > 0
    nodes = np.array([_at(times, each, _GAP * np.diff(times, prepend=-np.inf)) for each in up])
    number = np.where((nodes == _OLD).any(axis=0), 0.0, (nodes >= 0).sum(axis=0))
    note(oddities, NOT_KNOWN, int((number == 0).sum()), metric.name)
    is_down = (nodes == 0).any(axis=0)
    is_near = binary_dilation(is_down, iterations=_NEAR)
    explained = binary_propagation(is_near & above, mask=above) | is_near
    whole = Samples(metric.name, {}, times, above.astype(float))
    number = np.minimum(number[1:], number[:-1])
    spells = Spells(whole, ~above, ~(explained[1:] | explained[:-1]) & (number > 0), number)
    yield from _begun_and_ended(metric, [spells], oddities)


def _seen(step: np.ndarray) -> np.ndarray:
    """Whether each step from a sample to the next is no gap."""
    return np.asarray(step <= _GAP * median_filter(step, _AROUND, mode="mirror"))


def _at(times: np.ndarray, samples: Samples, oldest: np.ndarray | float = np.inf) -> np.ndarray:
    """The series' last values at these times: 0 within a gap, _OLD if older than `oldest`, NaN outside the series."""
    place = np.searchsorted(samples.times, times, "right") - 1
    age = times - samples.times[place]
    is_outside = (times < samples.times[0]) | (times > samples.times[-1])
    is_gap = ~np.append(_seen(np.diff(samples.times)), True)[place] & (age > 0)
    return np.select([is_outside, is_gap, age > oldest], [np.nan, 0.0, _OLD], samples.values[place])


def _increase(samples: Samples, others: Iterable[Samples], oddities: Oddities) -> np.ndarray:
    """Increase of a counter from each sample to the next, in the part of that time that one of the others covers."""
    step = np.diff(samples.values)
    note(oddities, RESETS, int((step < 0).sum()), str(samples))
    ranges = {(each.times[0], each.times[-1]) for each in others}
    both = (np.minimum(samples.times[1:], last) - np.maximum(samples.times[:-1], first) for first, last in ranges)
    part = functools.reduce(np.maximum, both, np.zeros(len(step))) / np.diff(samples.times)
    note(oddities, NOT_BOTH, int((part < 1).sum()), str(samples))
    return np.asarray(part * np.where(step < 0, samples.values[1:], step))


def _counted(
    metric: Metric, counters: Sequence[Samples], spans: Sequence[Samples], oddities: Oddities, unit: float = 1.0
) -> Iterator[Observed]:
    """Events, the increase of `counters`, in an exposure, that of `spans` in this unit. Only time of both counts."""
    parts = [series(_days(each), np.rint(_increase(each, spans, oddities)), 0) for each in counters]
    parts += [series(_days(each), 0, unit * _increase(each, counters, oddities)) for each in spans]
    if parts:
        yield Observed(metric.kinds[0], functools.reduce(Series.plus, parts), metric.name)


def _clock(samples: Samples) -> Samples:
    """A counter of the seconds for which a series lasts."""
    return samples._replace(values=samples.times)


def _restarts(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    yield from _counted(metric, found[metric.name], [*map(_clock, found[metric.name])], oddities)


def _of_cluster(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    """Events of processes that take turns, in the time of the longest series."""
    longest = max(found[metric.name], key=lambda samples: float(np.ptp(samples.times)))
    yield from _counted(metric, found[metric.name], [_clock(longest)], oddities)


def _shrinks(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    """Shrinks of ISRs in the time of leaders, counted up."""
    lasted = [np.cumsum(np.diff(each.times) * each.values[:-1]) for each in found[metric.beside]]
    led = [each._replace(values=np.append(0, time)) for each, time in zip(found[metric.beside], lasted, strict=True)]
    yield from _counted(metric, found[metric.name], led, oddities)


def _timed_out(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    """Adds that timed out, of all messages of adds: a request each, and an answer."""
    for each in _counted(metric, found[metric.name], found[metric.beside], oddities, unit=2.0):
        if each.events <= each.exposure:
            yield each
        else:
            note(oddities, TOO_MANY, 1, f"{metric.name}: {each.events:,} of {each.exposure:,.0f}")


def _copied(metric: Metric, found: Found, oddities: Oddities) -> Iterator[Observed]:
    counts, sums = (
        [each for each in found[name] if each.labels.get("success", "true") == "true"]
        for name in (metric.name, metric.beside)
    )
    yield from _counted(metric, counts, sums, oddities, _MS)


_TELLS = {
    each.__name__.removeprefix("_"): each
    for each in (_ups, _above_0, _ledgers, _while_up, _restarts, _of_cluster, _shrinks, _timed_out, _copied)
}


def _metric(row: Mapping[str, Any]) -> Metric:
    """A metric from its table in metrics.toml."""
    lists = {"kinds": tuple(evidence.KINDS[kind] for kind in row["kinds"]), "tells": _TELLS[row["tells"]]}
    return Metric(**{**row, **lists, "ways": tuple(row.get("ways", ("begin", "end")))})


METRICS = tuple(map(_metric, tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["metrics"]))
"""All metrics; where two count the same, the earlier one is believed."""
