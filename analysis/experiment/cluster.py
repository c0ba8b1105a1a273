"""The table [cluster] of an experiment file: the cluster that a design runs on.

docs/cluster.md has an example of every key. The number of copies belongs to the design: it comes from [model]. A rate
without a unit is a year's. Keys that may be left out are 0 where they are not given. `scatter_width` is of copysets
alone, and else without effect.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.keys import PER_YEAR, PROBABILITY, SWITCH, Key, Kind, as_toml, integral, one_of, real
from quorisk.analysis.experiment.placed import COPIES, EVENTS, TABLE, Placed, Source, at_risk, is_key
from quorisk.kernels.cluster.setting import (
    AFTER,
    BATCH,
    CLUSTER,
    COPYSETS,
    DISTINCT_RACKS,
    MOST_COPIES,
    NODE,
    PLACEMENTS,
    RACK,
    RANDOM,
    SCOPES,
    SINGLES,
    THIN,
    TWO_RACKS,
    Cluster,
    Event,
)
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.say.quantities import YEAR_S, written_time

MOST_NODES = 100_000
MOST_DISKS = 64
MOST_GROUPS = 1_000_000
"""Most copysets of a cluster."""
MOST_ALTERNATING = 6
"""Most members of an ensemble whose write sets each have to lie in two racks."""
_OTHER_CAUSES = SINGLES, AFTER, THIN, "unflushed"
"""Names that no event may have."""
_BANDWIDTHS = ("repair_bandwidth", "cluster_repair_bandwidth", "worker_repair_bandwidth")
"""Keys of the bandwidth of repairs; where several are given, the least bandwidth in all counts."""


def _read_as(bare: Kind, parse: Callable[[str], Fraction], times: int, example: str) -> Kind:
    """The kind that takes what `bare` allows, and such quantities with their units, all read as floats."""

    def read(value: object) -> float | None:
        result = bare.read_or_none(float(parse(value) * times) if isinstance(value, str) else value)
        return None if result is None else float(result)

    return Kind(float, f"{bare.allowed}, or {example}", read)


def _read_time(value: object) -> float | None:
    """The seconds of a time; a number without a unit, which might be hours, is refused."""
    if isinstance(value, str):
        return float(units.read_time(value))
    return 0.0 if value == 0 and not isinstance(value, bool) else None


def event_names(document: Mapping[str, Any], others: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of a file's events, and of those that `others` speak of, which are dotted names of overrides
    and of a profile. Raises ConfigError if they cannot be used."""
    table = document.get(TABLE, {})
    tables = table.get("events", {}) if isinstance(table, Mapping) else {}
    if not isinstance(tables, Mapping) or not all(isinstance(each, Mapping) for each in tables.values()):
        raise ConfigError(f"{TABLE}.events: must be tables, each [{EVENTS}NAME]")
    matches = (re.match(rf"(?:grid\.)?(?:{TABLE}\.)?events\.(.+)\.", name) for name in others)
    found = dict.fromkeys([*tables, *(match[1] for match in matches if match)])
    for name in found:
        if not re.fullmatch(r"[A-Za-z]\w{0,39}", name) or name in _OTHER_CAUSES:
            allowed = f"a name of letters, digits and _, but none of {', '.join(_OTHER_CAUSES)}"
            raise ConfigError(f"{EVENTS}{as_toml(name)}: {allowed}")
    return tuple(found)


def cluster_keys(events: Iterable[str] = ()) -> dict[str, Key]:
    """Returns the keys of the table, by dotted name, with those of these events. Rates are a year's, times are in
    seconds."""
    rate = real("a number of times a year from 0 to 1e6", lambda v: 0 <= v <= 1e6)
    rate = _read_as(rate, units.read_rate, YEAR_S, units.RATE)
    time = Kind(float, f"0, or {units.TIME}", _read_time)
    some_time = Kind(float, f"{units.TIME}, above 0", lambda value: _read_time(value) or None)
    size = _read_as(real("a number of bytes above 0", lambda v: 0 < v <= 1e30), units.read_size, 1, units.SIZE)
    some = real("a number above 0, of bytes a second", lambda v: 0 < v <= 1e30)
    bandwidth = _read_as(some, units.read_bandwidth, 1, units.BANDWIDTH)
    probability = real("a probability, from 0 to 1", lambda v: 0 <= v <= 1)
    many = real("a number from 1 to 1e15", lambda v: 1 <= v <= 1e15)
    shape = real("a number from 0.1 to 10", lambda v: 0.1 <= v <= 10)
    kinds: dict[str, tuple[Kind, Any]] = {
        "nodes": (integral(1, MOST_NODES), None),
        "racks": (integral(1, MOST_NODES), 1),
        "placement": (one_of(PLACEMENTS), RANDOM),
        "scatter_width": (integral(1, MOST_NODES), 0),
        "ledgers": (many, 0.0),
        "entries_per_ledger": (many, 0.0),
        "entries_per_second": (real("a number above 0, and 1e15 at most", lambda v: 0 < v <= 1e15), 0.0),
        "retention": (some_time, 0.0),
        "stored_bytes": (size, 0.0),
        "entry_bytes": (size, 0.0),
        "node_loss": (rate, 0.0),
        "disks_per_node": (integral(1, MOST_DISKS), 1),
        "disk_loss": (rate, 0.0),
        "detection_delay": (time, 0.0),
        "node_bytes": (size, 0.0),
        "repair_bandwidth": (bandwidth, 0.0),
        "cluster_repair_bandwidth": (bandwidth, 0.0),
        "repair_workers": (integral(1, MOST_NODES), 0),
        "worker_repair_bandwidth": (bandwidth, 0.0),
        "repair_queue": (SWITCH, False),
        "restarts": (rate, 0.0),
        "restart_time": (time, 0.0),
        "outage_time": (time, 0.0),
        "lifetime_shape": (shape, 1.0),
        "service_life": (some_time, 5.0 * YEAR_S),
        "batches": (integral(1, MOST_NODES), 0),
    }
    for event in events:
        kinds |= {
            f"events.{event}.scope": (one_of(SCOPES), CLUSTER),
            f"events.{event}.nodes": (integral(1, MOST_NODES), 0),
            f"events.{event}.first_node": (integral(1, MOST_NODES), 0),
            f"events.{event}.per_year": (rate, None),
            f"events.{event}.p_lost": (probability, None),
            f"events.{event}.takes_unflushed": (SWITCH, ""),
        }
    figures = {"node_loss": PER_YEAR, "disk_loss": PER_YEAR, "per_year": PER_YEAR, "p_lost": PROBABILITY}
    return {
        f"{TABLE}.{name}": Key(f"{TABLE}.{name}", kind, default, True, figure=figures.get(name.rpartition(".")[2], ""))
        for name, (kind, default) in kinds.items()
    }


def place_design(
    protocol: str, values: Mapping[str, Any], varied: Mapping[str, Any], is_physical: bool = False
) -> Placed:
    """Returns a design, by the values of all keys, on its cluster; `is_physical` says that rates are a second's.

    Raises ConfigError if the design does not fit there.
    """
    mine = _mine(values)
    cluster = arranged(protocol, values)
    entries, entry_bytes, _ = _stored(mine)
    node_bytes = mine["node_bytes"] or entries * entry_bytes * cluster.write_quorum / mine["nodes"]
    entry_bytes = entry_bytes or node_bytes * mine["nodes"] / cluster.write_quorum / entries
    downtimes = mine["restarts"], mine["restart_time"], mine["outage_time"]
    ack_quorum = values.get("model.ack_quorum")
    promise = registry.promises(protocol)
    assert promise is not None  # as its entries have copies
    promised = promise(values)
    least = values.get("model.min_isr", promised.nodes and promised.copies)
    needs = ack_quorum or (1 if values.get("variant.acks") == "1" else least)
    source = Source(protocol, tuple(values.items()), is_physical, promised)
    placed = Placed(dict(varied), cluster, ack_quorum, entry_bytes, *downtimes, write_needs=needs, source=source)
    times = {"replaced_after_s": promised.replaced_after, "leaderless_for_s": promised.leaderless_for}
    known: dict[str, Any] = {
        name: time if is_physical or time in (0.0, math.inf) else math.nan for name, time in times.items()
    }
    return placed._replace(**known, **at_risk(source, cluster))


def _mine(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of [cluster], by key without the table's name."""
    return {name.partition(".")[2]: value for name, value in values.items() if is_key(name)}


def arranged(protocol: str, values: Mapping[str, Any]) -> Cluster:
    """Returns the cluster of a design from the values of all keys, without the figures that rates of runs give.
    Raises ConfigError if the design does not fit on it."""
    promise = registry.promises(protocol)
    copies_key = next((key for key in COPIES if key in values), None)
    if promise is None or copies_key is None:
        raise ConfigError(f"[{TABLE}]: {protocol} keeps no copies of entries; bookkeeper, kafka, kraft and raft do")
    mine = _mine(values)
    promised = promise(values)
    copies = promised.stored
    ensemble = values.get("model.ensemble_size") or copies
    _check_placement(mine, copies, ensemble, "model.ensemble_size" if ensemble > copies else copies_key)
    entries, entry_bytes, per_ledger = _stored(mine)
    _check_ledgers(mine, entries, per_ledger, ensemble if ensemble > copies else 1)
    node_bytes = mine["node_bytes"] or entries * entry_bytes * copies / mine["nodes"]
    cluster = Cluster(
        nodes=mine["nodes"],
        write_quorum=copies,
        ensemble_size=ensemble,
        ledgers=entries / per_ledger,
        entries_per_ledger=per_ledger,
        racks=mine["racks"],
        placement=mine["placement"],
        scatter_width=mine["scatter_width"],
        node_loss=float(mine["node_loss"]),
        detection_delay=mine["detection_delay"] / YEAR_S,
        repair_time=_repair_s(mine, node_bytes) / YEAR_S,
        events=tuple(_events(mine)),
        repair_queue=mine["repair_queue"],
        lifetime_shape=mine["lifetime_shape"],
        service_life=mine["service_life"] / YEAR_S,
        batches=mine["batches"],
        disks_per_node=min(mine["disks_per_node"], max(1, int(entries / per_ledger))),  # others hold nothing
        disk_loss=float(mine["disk_loss"]),
    )
    if mine["disks_per_node"] > 1 and protocol != "bookkeeper":
        raise _wrong(mine, "disks_per_node", f"must be 1 with {protocol}; only bookkeeper takes more")
    _check_losses(mine, cluster)
    return cluster


def _events(mine: Mapping[str, Any]) -> Iterator[Event]:
    """The events of the table. Raises ConfigError."""
    for name in dict.fromkeys(key.split(".")[1] for key in mine if key.startswith("events.")):
        scope, nodes, first, per_year, p_lost, unflushed = (
            mine[f"events.{name}.{field}"]
            for field in ("scope", "nodes", "first_node", "per_year", "p_lost", "takes_unflushed")
        )
        if scope == BATCH and not 1 <= nodes <= mine["nodes"]:
            allowed = f"the nodes of a batch, from 1 to {TABLE}.nodes ({mine['nodes']})"
            raise _wrong(mine, f"events.{name}.nodes", allowed)
        if scope not in (BATCH, NODE) and nodes:
            raise _wrong(mine, f"events.{name}.nodes", f'for scope = "{BATCH}" or "{NODE}" only')
        if first and not (scope == NODE and nodes):
            raise _wrong(mine, f"events.{name}.first_node", f'for scope = "{NODE}" with `nodes` only')
        if scope == NODE and max(first, 1) + nodes - 1 > mine["nodes"]:
            field = "first_node" if nodes <= mine["nodes"] else "nodes"
            allowed = f"first_node + nodes - 1 must be at most {TABLE}.nodes ({mine['nodes']})"
            raise _wrong(mine, f"events.{name}.{field}", allowed)
        if unflushed is True and scope not in (CLUSTER, RACK):
            allowed = f'for scope = "{CLUSTER}" or "{RACK}" only: what single nodes have not flushed is unknown'
            raise _wrong(mine, f"events.{name}.takes_unflushed", allowed)
        takes_unflushed = scope in (CLUSTER, RACK) if unflushed == "" else unflushed
        yield Event(name, scope, float(per_year), float(p_lost), nodes, takes_unflushed, max(first - 1, 0))


def _wrong(mine: Mapping[str, Any], name: str, allowed: str) -> ConfigError:
    return ConfigError(f"{TABLE}.{name} = {as_toml(mine[name])}: {allowed}")


def _check_placement(mine: Mapping[str, Any], copies: int, ensemble: int, key: str) -> None:
    """Raises ConfigError unless there are enough nodes and racks for the copies of each ledger."""
    nodes, racks, placement = mine["nodes"], mine["racks"], mine["placement"]
    if nodes < ensemble:
        raise _wrong(mine, "nodes", f"at least {key} ({ensemble})")
    if racks > nodes:
        raise _wrong(mine, "racks", f"at most {TABLE}.nodes ({nodes})")
    if ensemble > MOST_COPIES:
        raise ConfigError(f"{key} = {ensemble}: at most {MOST_COPIES} with [{TABLE}]")
    if placement == DISTINCT_RACKS and racks < ensemble:
        raise _wrong(mine, "racks", f"at least {key} ({ensemble}) with placement {placement}")
    if placement == TWO_RACKS:
        if racks < 2 or copies < 2:
            name, least = (f"{TABLE}.racks", racks) if copies > 1 else (key, copies)
            raise ConfigError(f"{name} = {least}: at least 2 with placement {placement}")
        if ensemble > copies and ensemble > MOST_ALTERNATING:
            raise ConfigError(f"{key} = {ensemble}: at most {MOST_ALTERNATING} with placement {placement}")
        if copies == 2 and racks == 2 and ensemble % 2 and ensemble > copies:
            raise _wrong(mine, "racks", f"at least 3, as {ensemble} bookies in a ring cannot alternate between two")
    if placement == COPYSETS:
        if mine["scatter_width"] < ensemble - 1:
            raise _wrong(mine, "scatter_width", f"at least {key} - 1 ({ensemble - 1})")
        if mine["scatter_width"] * nodes > MOST_GROUPS * ensemble:
            raise _wrong(mine, "scatter_width", f"at most {MOST_GROUPS:,} copysets, scatter_width x nodes / copies")


def _stored(mine: Mapping[str, Any]) -> tuple[float, float, float]:
    """Entries that are stored, the bytes of one or 0, and entries of a ledger. Raises ConfigError."""
    entry_bytes, per_ledger = mine["entry_bytes"], mine["entries_per_ledger"]
    if not per_ledger:
        raise ConfigError(f"{TABLE}.entries_per_ledger: missing; a number from 1 to 1e15")
    ways = {
        "ledgers": mine["ledgers"] * per_ledger,
        "entries_per_second and retention": mine["entries_per_second"] * mine["retention"],
        "stored_bytes and entry_bytes": mine["stored_bytes"] / entry_bytes if entry_bytes else 0.0,
    }
    given = {names: entries for names, entries in ways.items() if entries}
    if len(given) != 1:
        several = f"only one of {'; '.join(given)}" if given else f"missing; or {'; or '.join(list(ways)[1:])}"
        raise ConfigError(f"{TABLE}.ledgers: {several}")
    return next(iter(given.values())), entry_bytes, per_ledger


def _check_ledgers(mine: Mapping[str, Any], entries: float, per_ledger: float, write_sets: int) -> None:
    """Raises ConfigError if there is less than one ledger, or less than one entry in each write set of one."""
    if entries < per_ledger:
        raise _wrong(mine, "entries_per_ledger", f"at most all that are stored ({entries:.3g})")
    if per_ledger < write_sets:
        why = f"at least model.ensemble_size ({write_sets}), as each write set of a ledger has its part of the entries"
        raise _wrong(mine, "entries_per_ledger", why)


def _repair_s(mine: Mapping[str, Any], node_bytes: float) -> float:
    """The time in which all copying nodes restore one node's data. Raises ConfigError if it is unknown."""
    if not any(mine[key] for key in ("node_loss", "disk_loss", *(key for key in mine if key.endswith(".per_year")))):
        return 0.0
    workers = (mine["repair_workers"] or mine["nodes"]) * mine["worker_repair_bandwidth"]
    limits = [mine["nodes"] * mine["repair_bandwidth"], mine["cluster_repair_bandwidth"], workers]
    if not any(limits):
        raise ConfigError(f"{TABLE}.repair_bandwidth: missing; {units.BANDWIDTH}, of one node")
    if mine["repair_workers"] and not workers:
        raise ConfigError(f"{TABLE}.worker_repair_bandwidth: missing; {units.BANDWIDTH}, of one of the repair_workers")
    if not node_bytes:
        raise ConfigError(f"{TABLE}.node_bytes: missing; what a node stores, {units.SIZE}; or stored_bytes, of all")
    return node_bytes / min(limit for limit in limits if limit)


def _check_losses(mine: Mapping[str, Any], cluster: Cluster) -> None:
    if cluster.window(1) > 1.0:
        given = [f'{name} = "{mine[name] / 1e6:g} MB/s"' for name in _BANDWIDTHS if mine[name]]
        if cluster.detection_delay >= cluster.repair_time:
            given = [f'detection_delay = "{written_time(mine["detection_delay"])}"']
        years = f"{cluster.window(1):.3g} years, but may take one at most"
        raise ConfigError(f"{TABLE}.{given[0]}: to detect a loss and repair a node takes {years}")
    if mine["batches"] and mine["batches"] > mine["nodes"]:
        raise _wrong(mine, "batches", f"at most {TABLE}.nodes ({mine['nodes']})")
    if cluster.repair_queue and cluster.utilization >= 1.0:
        raise _wrong(mine, "repair_queue", f"nodes are lost {cluster.utilization:.3g} times as fast as repaired")
