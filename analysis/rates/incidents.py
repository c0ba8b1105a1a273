"""A list of incidents: CSV with the columns kind, node, start, end and data_lost, a line for each node that one hit.

The columns rack and batch (of disks, or of firmware), if there are any, say what nodes have in common.

A list says what happened, but not to how many nodes it could have, nor for how long nothing did: that is `Watched`.
Times are ISO 8601, UTC unless they say otherwise; an empty end is an incident that is not over.
"""

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quorisk.analysis.files import reason
from quorisk.analysis.rates import together
from quorisk.analysis.rates.observed import DAY_S, Observed, day_of, series
from quorisk.analysis.rates.oddities import Oddities, Oddity, note
from quorisk.analysis.rates.together import Loss
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import evidence
from quorisk.kernels.protocols.evidence import EventKind

COLUMNS = ("kind", "node", "start", "end", "data_lost")
NODE, REPAIR, OUTAGE = ("node", "drive"), "repair", "outage"
"""Kinds of incidents: a node or its drive is gone, with its data or for a while; its copies are made again; all nodes
lose power, with a line for each node that it hit."""
KINDS = (*NODE, REPAIR, OUTAGE)
ONE_OUTAGE_S = 3600.0
_ALL = 0.9
"""Part of the nodes watched that an outage has to list, as their number is an average."""
_A_LEDGERS_PART = 0.5
"""Mean fraction of a repair after which a ledger's copies are made: ledgers are repaired one after another."""
UNREADABLE = Oddity("incidents that cannot be read", "left out")
BACKWARDS = Oddity("incidents that end before they start, as of a clock that was set", "left out")
OUTSIDE = Oddity("incidents that start before the time watched, or after it", "left out")
OTHER = Oddity("incidents of other kinds", "ignored")
PARTIAL = Oddity("outages that do not list all nodes", "nodes lost in them are not counted")
NO_DURATION = Oddity("incidents that end when they start, as of dates alone", "how long they lasted is not counted")
OVERLAPPING = Oddity("incidents of a node that begin before its last one is over", "counted as one with that")
_SAID = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}


class Watched(NamedTuple):
    """Nodes and time that were watched, whether or not anything happened."""

    nodes: float
    """Mean number of nodes."""
    since_s: float
    """Unix time; so is `until_s`, when watching ended."""
    until_s: float
    racks: int = 0
    """Number of racks of the nodes; 0 if unknown."""
    is_complete: bool = False
    """Whether the lists have all incidents of every kind, so that no others happened."""


class IncidentLine(NamedTuple):
    """A line of the list."""

    kind: str
    node: str
    start_s: float
    end_s: float
    """Unix time at which it was over, or watching ended if it was not."""
    is_over: bool
    data_lost: bool
    has_time: bool = True
    """Whether the list says the time of the day at which it started."""
    rack: str = ""
    batch: str = ""


def counts_of_lists(paths: Iterable[Path], watched: Watched, oddities: Oddities) -> list[Observed]:
    """Returns the counts of lists of incidents, and adds oddities in them to `oddities`.

    Raises ConfigError if a list has lines and none of them counts, or if it cannot be read.
    """
    found = [incident for path in paths for incident in _counting(path, watched, oddities)]
    nodes = _merged([each for each in found if each.kind in NODE], oddities)
    lost, stopped = ([each for each in nodes if each.data_lost is lost] for lost in (True, False))
    repairs = _merged([each for each in found if each.kind == REPAIR], oddities)
    outages = _outages([each for each in found if each.kind == OUTAGE])
    losses = [Loss(each.node, each.start_s, each.has_time, each.rack, each.batch) for each in lost]
    source = "a list of incidents"
    observed = list(
        together.joint_losses(losses, watched.nodes, watched.racks, watched.until_s - watched.since_s, source)
    )
    if nodes or not found or watched.is_complete:
        observed += [
            _in_time(evidence.NODE_LOSSES, together.single_losses(losses), watched, watched.nodes, source),
            _in_time(evidence.NODE_STOPS, stopped, watched, watched.nodes, source),
            _durations(evidence.REPLACEMENTS, lost, source),
            _durations(evidence.NODE_RETURNS, stopped, source),
        ]
    if repairs:
        observed.append(_durations(evidence.REPAIRS, repairs, source, _A_LEDGERS_PART))
    if outages or watched.is_complete:
        observed.append(_in_time(evidence.OUTAGES, [hit[0] for hit in outages], watched, 1.0, source))
    whole = [sorted(hit, key=lambda line: line.data_lost) for hit in outages if _is_whole(hit, watched, oddities)]
    # the last of a node's lines counts: it says that data was lost if any of them does
    listed = [line for hit in whole for line in {line.node: line for line in hit}.values()]
    if listed:
        days, lost_in = [day_of(each.start_s) for each in listed], [each.data_lost for each in listed]
        observed.append(Observed(evidence.LOST_IN_OUTAGES, series(days, lost_in, [1] * len(listed)), source))
    return [each for each in observed if each.exposure > 0]


def _counting(path: Path, watched: Watched, oddities: Oddities) -> list[IncidentLine]:
    """The incidents of a list that are of a known kind. Raises ConfigError if it has lines and none of them counts."""
    here: Oddities = {}
    found = []
    try:
        for each in _lines(path, watched, here):
            if each.kind in KINDS:
                found.append(each)
                note(here, NO_DURATION, int(each.start_s == each.end_s and each.kind != OUTAGE), f"{path}: {each.node}")
            else:
                note(here, OTHER, 1, f'{path}: "{each.kind}", where {", ".join(KINDS)} are known')
    except (OSError, csv.Error) as error:
        why = reason(error) if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: cannot be read: {why}") from None
    if here and not found:
        odd, seen = next(iter(here.items()))
        raise ConfigError(f"{path}: nothing that can be counted; {odd.what}: {seen.times:,} (first: {seen.where})")
    for odd, seen in here.items():
        note(oddities, odd, seen.times, seen.where)
    return found


def _is_whole(outage: Sequence[IncidentLine], watched: Watched, oddities: Oddities) -> bool:
    """Whether an outage lists nearly all nodes watched (_ALL). If not, this is noted: who came back is unknown."""
    listed = len({each.node for each in outage})
    is_whole = listed >= _ALL * watched.nodes
    where = f"{datetime.fromtimestamp(outage[0].start_s, UTC):%Y-%m-%d %H:%M}: {listed} of {watched.nodes:g}"
    note(oddities, PARTIAL, int(not is_whole), where)
    return is_whole


def unix_s(text: str) -> float:
    """Returns the Unix time of an ISO 8601 date or time, UTC unless it says otherwise. Raises ValueError."""
    time = datetime.fromisoformat(text.strip())
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _lines(path: Path, watched: Watched, oddities: Oddities) -> Iterable[IncidentLine]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        rows.fieldnames = [name.strip().lower() for name in rows.fieldnames or ()]
        for row in rows:
            where = f"{path}: line {rows.line_num}"
            try:
                kind, node, start, end, said = (row[column].strip() for column in COLUMNS)
                start_s, end_s = unix_s(start), unix_s(end) if end else watched.until_s
                data_lost = _SAID[said.lower()]
            except (ValueError, KeyError, AttributeError, OverflowError) as error:
                note(oddities, UNREADABLE, 1, f"{where}: {'too few columns' if None in row.values() else error}")
                continue
            if end_s < start_s:
                note(oddities, BACKWARDS, 1, where)
            elif not watched.since_s <= start_s < watched.until_s:
                note(oddities, OUTSIDE, 1, where)
            else:
                is_over = bool(end) and end_s <= watched.until_s
                rack, batch = ((row.get(name) or "").strip() for name in ("rack", "batch"))
                until_s, has_time = min(end_s, watched.until_s), len(start) > len("2026-01-01")
                yield IncidentLine(kind.lower(), node, start_s, until_s, is_over, data_lost, has_time, rack, batch)


def _merged(incidents: Sequence[IncidentLine], oddities: Oddities) -> list[IncidentLine]:
    """Incidents of a node that overlap as one, which lost data if one of them did."""
    merged: list[IncidentLine] = []
    for each in sorted(incidents, key=lambda each: (each.node, each.start_s)):
        last = merged[-1] if merged else None
        if last and last.node == each.node and (each.start_s < last.end_s or each.start_s == last.start_s):
            note(oddities, OVERLAPPING, 1, f"{each.node}, {datetime.fromtimestamp(each.start_s, UTC):%Y-%m-%d %H:%M}")
            whole = last._replace(end_s=max(last.end_s, each.end_s), is_over=last.is_over and each.is_over)
            merged[-1] = whole._replace(data_lost=last.data_lost or each.data_lost)
        else:
            merged.append(each)
    return merged


def _outages(incidents: Sequence[IncidentLine]) -> list[list[IncidentLine]]:
    """Lines that start within ONE_OUTAGE_S of the first belong to one outage, however long each node is down."""
    outages: list[list[IncidentLine]] = []
    for each in sorted(incidents, key=lambda each: each.start_s):
        if not outages or each.start_s > outages[-1][0].start_s + ONE_OUTAGE_S:
            outages.append([])
        outages[-1].append(each)
    return outages


def _in_time(
    kind: EventKind, lines: Sequence[IncidentLine | Loss], watched: Watched, number: float, source: str
) -> Observed:
    """Incidents in the time for which `number` nodes, or one cluster, were watched."""
    days = np.arange(day_of(watched.since_s), day_of(watched.until_s - 1e-6) + 1)
    seconds = np.minimum(watched.until_s, (days + 1) * DAY_S) - np.maximum(watched.since_s, days * DAY_S)
    happened = [day_of(each.start_s) for each in lines]
    in_time = np.concatenate([number * seconds, np.zeros(len(happened))])
    whole = series([*days, *happened], [0] * len(days) + [1] * len(happened), in_time)
    return Observed(kind, whole, source)


def _durations(kind: EventKind, incidents: Sequence[IncidentLine], source: str, part: float = 1.0) -> Observed:
    """Ends of incidents in the time that these lasted, or a part of it; one that is not over adds its time alone, and
    one that lasts 0 s nothing: that is no duration."""
    days = [day_of(each.start_s) for each in incidents]
    are_over = [each.is_over and each.end_s > each.start_s for each in incidents]
    return Observed(kind, series(days, are_over, [part * (each.end_s - each.start_s) for each in incidents]), source)
