"""The table [cluster] of an experiment file: the cluster that a design runs on.

    [cluster]
    nodes = 20
    ledgers = 1e6                       # or entries_per_second and retention, or stored_bytes and entry_bytes
    entries_per_ledger = 1000
    node_loss = "2 % / year"            # of each node: all that it stores
    detection_delay = "1 h"
    node_bytes = "24 TB"                # what a node stores
    repair_bandwidth = "125 MB/s"       # of one node; all repair

    [cluster.events.power_outage]       # as many events as one likes, each with a name
    scope = "cluster"                   # or "rack", "batch" (of so many random `nodes`), "node"
    per_year = 1                        # of each rack or node, if that is the scope
    p_lost = 0.0075                     # of each node in it: it does not come back

How many copies there are is the design's: it comes from [model]. A rate without a unit is a year's. What may be left
out is 0 where it is not given. `scatter_width` is of copysets alone, and else without effect.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.keys import PER_YEAR, PROBABILITY, SWITCH, Key, Kind, choice, count, number, show
from quorisk.kernels.cluster.placement import p_in_rack
from quorisk.kernels.cluster.setting import (
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
    Thin,
)
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.promises import Promise
from quorisk.say.quantities import YEAR_S

TABLE = "cluster"
MOST_NODES = 100_000
MOST_GROUPS = 1_000_000
"""Copysets that are kept."""
MOST_ALTERNATING = 6
"""Members of an ensemble whose write sets each have to lie in two racks."""
EVENTS = f"{TABLE}.events."
_FORMER = {
    "outages": ("power_outage", CLUSTER),
    "p_lost_in_outage": ("power_outage", CLUSTER),
    "rack_outages": ("rack_outage", RACK),
    "p_lost_in_rack_outage": ("rack_outage", RACK),
}
"""Keys that the table had before, and the event that says the same."""
_OTHER_CAUSES = SINGLES, THIN, "unflushed"
"""Names that no event may have."""
_COPIES = ("model.write_quorum", "model.replicas", "model.replication_factor")
"""By which key a design says how many copies there are."""


_BANDWIDTHS = ("repair_bandwidth", "cluster_repair_bandwidth", "worker_repair_bandwidth")
"""Of repairs; where several are given, the least of them counts."""


class Source(NamedTuple):
    """From what a design's entries with few copies, or not on disk, follow."""

    protocol: str
    values: tuple[tuple[str, Any], ...]
    """Of all keys, by dotted name."""
    is_physical: bool
    """Whether rates are a second's."""
    promised: Promise


class Placed(NamedTuple):
    """A design and the cluster that it runs on."""

    varied: dict[str, Any]
    """Its values of the grid's keys, by dotted name."""
    cluster: Cluster
    ack_quorum: int | None
    """None if the protocol has none."""
    entry_bytes: float
    """0 if neither the table nor the size of a node says it."""
    restarts: float
    """Of each node, a year."""
    restart_time_s: float
    outage_time_s: float
    thin: tuple[Thin, ...] | None = ()
    """Acknowledged entries that have fewer copies than the write quorum; None if the file does not tell how many."""
    unflushed: float = 0.0
    """Acknowledged entries that are not on disk, on average: an outage of the whole cluster takes them."""
    refused: str = ""
    """Why its losses cannot be told; empty if they can."""
    write_needs: int | None = None
    """The fewest replicas with which a write is acknowledged: the ack quorum, or min.insync.replicas; None if the
    protocol's model has neither."""
    replaced_after_s: float = math.inf
    """How long a write waits for a node that is down until another one takes its place; NaN if that is not known."""
    source: Source | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The values of all keys, by dotted name."""
        return dict(self.source.values) if self.source else {}

    @property
    def per_second(self) -> float:
        """Entries a second; 0 if the file does not tell."""
        return _per_second(self.values, self.cluster) if self.source else 0.0

    def figure(self, name: str) -> float:
        """Returns a figure of it by its dotted name: of [cluster], or of what runs depend on; 0 if it has none."""
        table, _, field = name.partition(".")
        if name.startswith(EVENTS):
            _, event, field = field.split(".")
            return float(next((getattr(each, field) for each in self.cluster.events if each.name == event), 0.0))
        if table == TABLE:
            return float(getattr(self.cluster, field))
        return float(dict(self.source.values).get(name, 0.0)) if self.source else 0.0

    def with_figures(self, figures: Mapping[str, float]) -> "Placed":
        """Returns the design under other figures, by dotted name, with the entries that have few copies then or are
        not on disk."""
        mine = {name.partition(".")[2]: value for name, value in figures.items() if is_key(name)}
        plain = {name: value for name, value in mine.items() if "." not in name}
        events = [
            each._replace(
                per_year=mine.get(f"events.{each.name}.per_year", each.per_year),
                p_lost=mine.get(f"events.{each.name}.p_lost", each.p_lost),
            )
            for each in self.cluster.events
        ]
        placed = self._replace(cluster=self.cluster._replace(**plain, events=tuple(events)))  # type: ignore[arg-type]
        if self.source is None or len(mine) == len(figures):
            return placed
        source = self.source._replace(values=tuple({**dict(self.source.values), **figures}.items()))
        return placed._replace(source=source, **_at_risk(source, placed.cluster))

    def figure_in_file(self, name: str) -> float:
        """Returns the value that the file gives a figure: a year's, in seconds or in bytes."""
        return float(self.values[name])

    def figures(self, given: Iterable[str]) -> list[str]:
        """Returns the figures among these keys on which its losses may depend: those of [cluster] that are numbers and
        not how nodes are arranged, and rates and probabilities of runs; that are not 0, or infinite."""
        values = self.values
        return [
            name
            for name in sorted(given)
            if name.startswith((f"{TABLE}.", "rates.", "faults."))
            and name not in _ARRANGED
            and not (name.startswith(EVENTS) and name.endswith(".nodes"))
            and not isinstance(values.get(name, True), bool | str)
            and 0.0 < values[name] < math.inf
            and (is_key(name) or isinstance(values[name], float))
        ]

    def is_other(self, other: "Placed") -> bool:
        """Returns whether what it may lose differs from what another may."""
        return self._replace(source=None) != other._replace(source=None)


COUNTS = frozenset({f"{TABLE}.nodes", f"{TABLE}.repair_workers"})
_ARRANGED = frozenset(f"{TABLE}.{name}" for name in ("racks", "scatter_width", "batches", "lifetime_shape"))
_TIMES = frozenset(
    f"{TABLE}.{name}" for name in ("retention", "detection_delay", "restart_time", "outage_time", "service_life")
)


def written(key: str, value: float) -> str:
    """Returns a figure of [cluster], in its own unit, as an override has it."""
    return f"{value!r} s" if key in _TIMES else f"{value:.0f}" if key in COUNTS else repr(value)


RATES: Mapping[str, Callable[[Placed], float]] = {
    "node_losses": lambda placed: placed.cluster.node_loss * placed.cluster.nodes,
    "node_restarts": lambda placed: placed.restarts * placed.cluster.nodes,
    "writes": lambda placed: placed.per_second * YEAR_S,
}
"""How often a scenario happens, by the word for it: of all nodes together, a year."""


def rate_of(word: str, placed: Placed) -> float:
    """Returns how often something happens that has a word of RATES, or is an event of the table, such as
    "events.power_outage": of all nodes and racks together, a year."""
    if word in RATES:
        return RATES[word](placed)
    [event] = [each for each in placed.cluster.events if f"events.{each.name}" == word]
    return event.per_year * {RACK: placed.cluster.racks, NODE: placed.cluster.nodes}.get(event.scope, 1)


def _hits() -> Iterator[tuple[str, Callable[[Placed], float]]]:
    """How many entries or ledgers an event touches: all of them, or those with a copy on one node, or in one rack."""

    def told(kind: str, where: Callable[[Cluster], float]) -> Callable[[Placed], float]:
        def count(placed: Placed) -> float:
            cluster = placed.cluster
            if kind == "entries":  # on the nodes of its write set alone
                cluster = cluster._replace(ensemble_size=cluster.write_quorum)
            return float(getattr(cluster, kind)) * where(cluster)

        return count

    for kind, words in {"entries": ("entries", "records"), "ledgers": ("ledgers", "partitions")}.items():
        on_node = told(kind, lambda cluster: cluster.ensemble_size / cluster.nodes)
        in_rack = told(kind, p_in_rack)
        for word in words:
            yield word, told(kind, lambda _: 1.0)
            yield from ((f"{node}_{word}", on_node) for node in ("node", "bookie", "broker"))
            yield from ((f"{rack}_{word}", in_rack) for rack in ("rack", "zone"))


HITS: Mapping[str, Callable[[Placed], float]] = dict(_hits())
"""How many objects each event of a scenario touches, by the words for it."""


def _read_as(bare: Kind, parse: Callable[[str], Fraction], times: int, example: str) -> Kind:
    """The kind that takes what `bare` allows, and such quantities with their units, all read as floats."""

    def read(value: object) -> float | None:
        result = bare.read(float(parse(value) * times) if isinstance(value, str) else value)
        return None if result is None else float(result)

    return Kind(float, f"{bare.allowed}, or {example}", read)


def _read_time(value: object) -> float | None:
    """The seconds of a time; a bare number, which might be hours, is none."""
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
            raise ConfigError(f"{EVENTS}{show(name)}: {allowed}")
    return tuple(found)


def check_former(names: Iterable[str]) -> None:
    """Raises ConfigError if one of these dotted names is a key that the table had before."""
    for name in names:
        own = name.removeprefix("grid.")
        event, scope = _FORMER.get(own.removeprefix(f"{TABLE}."), ("", ""))
        if event and (is_key(own) or not own.startswith("p_lost")):  # which are keys of [faults], too
            said = f'[{EVENTS}{event}] with scope = "{scope}", per_year and p_lost'
            raise ConfigError(f"{name}: is an event now; write {said}")


def keys(events: Iterable[str] = ()) -> dict[str, Key]:
    """Returns the keys of the table, by dotted name, with those of these events. Rates are a year's, times are in
    seconds."""
    rate = number("a number of times a year from 0 to 1e6", lambda v: 0 <= v <= 1e6)
    rate = _read_as(rate, units.read_rate, YEAR_S, units.RATE)
    time = Kind(float, f"0, or {units.TIME}", _read_time)
    some_time = Kind(float, f"{units.TIME}, above 0", lambda value: _read_time(value) or None)
    size = _read_as(number("a number of bytes above 0", lambda v: 0 < v <= 1e30), units.read_size, 1, units.SIZE)
    some = number("a number above 0, of bytes a second", lambda v: 0 < v <= 1e30)
    bandwidth = _read_as(some, units.read_bandwidth, 1, units.BANDWIDTH)
    probability = number("a probability, from 0 to 1", lambda v: 0 <= v <= 1)
    many = number("a number from 1 to 1e15", lambda v: 1 <= v <= 1e15)
    shape = number("a number from 0.1 to 10", lambda v: 0.1 <= v <= 10)
    kinds: dict[str, tuple[Kind, Any]] = {
        "nodes": (count(1, MOST_NODES), None),
        "racks": (count(1, MOST_NODES), 1),
        "placement": (choice(PLACEMENTS), RANDOM),
        "scatter_width": (count(1, MOST_NODES), 0),
        "ledgers": (many, 0.0),
        "entries_per_ledger": (many, 0.0),
        "entries_per_second": (number("a number above 0, and 1e15 at most", lambda v: 0 < v <= 1e15), 0.0),
        "retention": (some_time, 0.0),
        "stored_bytes": (size, 0.0),
        "entry_bytes": (size, 0.0),
        "node_loss": (rate, 0.0),
        "detection_delay": (time, 0.0),
        "node_bytes": (size, 0.0),
        "repair_bandwidth": (bandwidth, 0.0),
        "cluster_repair_bandwidth": (bandwidth, 0.0),
        "repair_workers": (count(1, MOST_NODES), 0),
        "worker_repair_bandwidth": (bandwidth, 0.0),
        "repair_queue": (SWITCH, False),
        "restarts": (rate, 0.0),
        "restart_time": (time, 0.0),
        "outage_time": (time, 0.0),
        "lifetime_shape": (shape, 1.0),
        "service_life": (some_time, 5.0 * YEAR_S),
        "batches": (count(1, MOST_NODES), 0),
    }
    for event in events:
        kinds |= {
            f"events.{event}.scope": (choice(SCOPES), CLUSTER),
            f"events.{event}.nodes": (count(1, MOST_NODES), 0),
            f"events.{event}.per_year": (rate, None),
            f"events.{event}.p_lost": (probability, None),
            f"events.{event}.takes_unflushed": (SWITCH, ""),
        }
    figures = {"node_loss": PER_YEAR, "per_year": PER_YEAR, "p_lost": PROBABILITY}
    return {
        f"{TABLE}.{name}": Key(f"{TABLE}.{name}", kind, default, True, figure=figures.get(name.rpartition(".")[2], ""))
        for name, (kind, default) in kinds.items()
    }


def is_key(name: str) -> bool:
    """Returns whether a dotted name is one of this table."""
    return name.startswith(f"{TABLE}.")


def place(protocol: str, values: Mapping[str, Any], varied: Mapping[str, Any], is_physical: bool = False) -> Placed:
    """Returns a design, by the values of all keys, on its cluster; `is_physical` says that rates are a second's.

    Raises ConfigError if it does not go there.
    """
    mine = _mine(values)
    cluster = arranged(protocol, values)
    entries, entry_bytes, _ = _stored(mine)
    node_bytes = mine["node_bytes"] or entries * entry_bytes * cluster.write_quorum / mine["nodes"]
    entry_bytes = entry_bytes or node_bytes * mine["nodes"] / cluster.write_quorum / entries
    downtimes = mine["restarts"], mine["restart_time"], mine["outage_time"]
    ack_quorum = values.get("model.ack_quorum")
    needs = ack_quorum or (1 if values.get("variant.acks") == "1" else values.get("model.min_isr"))
    promise = registry.promises(protocol)
    assert promise is not None  # as its entries have copies
    promised = promise(values)
    source = Source(protocol, tuple(values.items()), is_physical, promised)
    placed = Placed(dict(varied), cluster, ack_quorum, entry_bytes, *downtimes, write_needs=needs, source=source)
    after = promised.replaced_after if is_physical or math.isinf(promised.replaced_after) else math.nan
    return placed._replace(replaced_after_s=after, **_at_risk(source, cluster))


def _mine(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the table, by their own names."""
    return {name.partition(".")[2]: value for name, value in values.items() if is_key(name)}


def arranged(protocol: str, values: Mapping[str, Any]) -> Cluster:
    """Returns the cluster of a design, by the values of all keys, without what follows from rates of runs. Raises
    ConfigError if the design does not go there."""
    promise = registry.promises(protocol)
    copies_key = next((key for key in _COPIES if key in values), None)
    if promise is None or copies_key is None:
        raise ConfigError(f"[{TABLE}]: {protocol} keeps no copies of entries; bookkeeper, kafka and kraft do")
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
    )
    _check_losses(mine, cluster)
    return cluster


def _events(mine: Mapping[str, Any]) -> Iterator[Event]:
    """The events of the table. Raises ConfigError."""
    for name in dict.fromkeys(key.split(".")[1] for key in mine if key.startswith("events.")):
        scope, nodes, per_year, p_lost, unflushed = (
            mine[f"events.{name}.{field}"] for field in ("scope", "nodes", "per_year", "p_lost", "takes_unflushed")
        )
        if scope == BATCH and not 1 <= nodes <= mine["nodes"]:
            allowed = f"the nodes of a batch, from 1 to {TABLE}.nodes ({mine['nodes']})"
            raise _wrong(mine, f"events.{name}.nodes", allowed)
        if scope != BATCH and nodes:
            raise _wrong(mine, f"events.{name}.nodes", f'for scope = "{BATCH}" only')
        if unflushed is True and scope not in (CLUSTER, RACK):
            allowed = f'for scope = "{CLUSTER}" or "{RACK}" only, as it is not told how much lies on such nodes alone'
            raise _wrong(mine, f"events.{name}.takes_unflushed", allowed)
        takes_unflushed = scope in (CLUSTER, RACK) if unflushed == "" else unflushed
        yield Event(name, scope, float(per_year), float(p_lost), nodes, takes_unflushed)


def _at_risk(source: Source, cluster: Cluster) -> dict[str, Any]:
    """What `Placed` says of entries that have few copies or are not on disk."""
    values = dict(source.values)
    ack_quorum = values.get("model.ack_quorum") or cluster.write_quorum
    is_thin = ack_quorum < cluster.write_quorum
    thin = _thin(source.protocol, values, cluster, source.is_physical) if is_thin else ()
    unflushed, refused = _unflushed(source.protocol, values, cluster, source.is_physical, source.promised)
    return {"thin": thin, "unflushed": unflushed, "refused": refused}


def _thin(protocol: str, values: Mapping[str, Any], cluster: Cluster, is_physical: bool) -> tuple[Thin, ...] | None:
    """Entries on few copies, by Little's law: entries a second x mean time; and of those stored, what stays so."""
    few_copies, per_second = registry.few_copies(protocol), _per_second(values, cluster)
    if not (few_copies and is_physical and per_second):
        return None
    found: list[Thin] = []
    for copies, few in few_copies(values).items():
        found += [Thin(copies, per_second * few.time, True), Thin(copies, cluster.entries * few.p_stays, False)]
    return tuple(each for each in found if each.number > 0.0)


def _per_second(values: Mapping[str, Any], cluster: Cluster) -> float:
    """Entries a second; 0 if the file does not tell."""
    per_second, retention_s = values[f"{TABLE}.entries_per_second"], values[f"{TABLE}.retention"]
    return float(per_second or (cluster.entries / retention_s if retention_s else 0.0))


def _unflushed(
    protocol: str, values: Mapping[str, Any], cluster: Cluster, is_physical: bool, promised: Promise
) -> tuple[float, str]:
    """Acknowledged entries that are not on disk, by Little's law; and why losses cannot be told, empty if they can."""
    if promised.asked < promised.stored:
        told = "what only its leader has is lost when that fails, which no cluster counts yet"
        return 0.0, f'variant.acks = "1": {told}; with [{TABLE}], give "all"'
    events = [event for event in cluster.events if event.takes_unflushed and event.per_year]
    if promised.on_disk or not events:
        return 0.0, ""
    first, racks = f"{EVENTS}{events[0].name}", [event for event in events if event.scope == RACK]
    unflushed_for, per_second = registry.unflushed_for(protocol), _per_second(values, cluster)
    told = "it takes what is acknowledged and not on disk yet"
    if unflushed_for is None:
        return 0.0, f"{first}: {told}, and {protocol} does not tell how much that is; let it be on disk first"
    if racks and cluster.placement not in (TWO_RACKS, DISTINCT_RACKS):
        allowed = f"{TWO_RACKS} or {DISTINCT_RACKS}, as {told}, and all copies may be in that rack"
        return 0.0, f'{TABLE}.placement = "{cluster.placement}": with [{EVENTS}{racks[0].name}], {allowed}'
    if not (is_physical and per_second):
        wanted = f"{TABLE}.entries_per_second and {TABLE}.retention, and from rates in seconds (a profile)"
        return 0.0, f"{first}: {told}; how much that is follows from {wanted}: give these"
    unflushed = per_second * unflushed_for(values)
    if unflushed > cluster.entries:
        return unflushed, f"{first}: {told}, and by the rate of flushes that is more than is stored"
    return unflushed, ""


def _wrong(mine: Mapping[str, Any], name: str, allowed: str) -> ConfigError:
    return ConfigError(f"{TABLE}.{name} = {show(mine[name])}: {allowed}")


def _check_placement(mine: Mapping[str, Any], copies: int, ensemble: int, key: str) -> None:
    """Raises ConfigError unless there are nodes and racks for so many copies of each ledger."""
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
    """The time to copy what a node stores by all that copy. Raises ConfigError if that is not known."""
    if not mine["node_loss"] and not any(mine[key] for key in mine if key.endswith(".per_year")):
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
        slow = max(("detection_delay", "repair_time"), key=lambda name: getattr(cluster, name))
        given = [name for name in _BANDWIDTHS if mine[name]] if slow == "repair_time" else [slow]
        years = f"{cluster.window(1):.3g} years, but may take one at most"
        raise _wrong(mine, given[0], f"to detect a loss and repair a node takes {years}")
    if mine["batches"] and mine["batches"] > mine["nodes"]:
        raise _wrong(mine, "batches", f"at most {TABLE}.nodes ({mine['nodes']})")
    if cluster.repair_queue and cluster.utilization >= 1.0:
        raise _wrong(
            mine, "repair_queue", f"nodes are lost {cluster.utilization:.3g} times as fast as they are repaired"
        )
