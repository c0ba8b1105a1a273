"""A design on its cluster: the properties that decide which entries are lost, and the entries at risk at any time."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from quorisk.kernels.cluster.racks import p_in_rack
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, RACK, TWO_RACKS, Cluster, Thin
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.promises import Promise
from quorisk.say.quantities import YEAR_S

TABLE = "cluster"
EVENTS, PLACEMENT = f"{TABLE}.events.", f"{TABLE}.placement"
COPIES = ("model.write_quorum", "model.replicas", "model.replication_factor", "model.servers")
"""Keys that give the number of copies of a design."""
DESIGN = frozenset({*COPIES, "model.ensemble_size", "model.ack_quorum", "model.min_isr"})
"""Keys that a design has one value of, in its scenarios as on its cluster."""


def is_key(name: str) -> bool:
    """Returns whether a dotted name is one of this table."""
    return name.startswith(f"{TABLE}.")


def most_of(name: str) -> float:
    """Returns the largest value of a figure of `Placed.figures`: 1 for a probability."""
    return 1.0 if name.startswith("faults.") or name.endswith(".p_lost") else math.inf


def is_circumstance(name: str) -> bool:
    """Returns whether a dotted name is one of this table that no design chooses: all but the placement of copies."""
    return is_key(name) and name != PLACEMENT


class Source(NamedTuple):
    """Settings from which a design's entries with few copies, or not on disk, follow."""

    protocol: str
    values: tuple[tuple[str, Any], ...]
    """Values of all keys, by dotted name."""
    is_physical: bool
    """Whether rates are a second's."""
    promised: Promise


class Placed(NamedTuple):
    """A design and the cluster that it runs on."""

    varied: dict[str, Any]
    """The design's values of the grid's keys, by dotted name."""
    cluster: Cluster
    ack_quorum: int | None
    """The ack quorum; None if the protocol has none."""
    entry_bytes: float
    """Bytes of an entry; 0 if neither the table nor the size of a node gives it."""
    restarts: float
    """Restarts of each node, a year."""
    restart_time_s: float
    outage_time_s: float
    thin: tuple[Thin, ...] | None = ()
    """Acknowledged entries that have fewer copies than the write quorum; None if their number is unknown."""
    unflushed: float = 0.0
    """Acknowledged entries that are not on disk, on average: an outage of the whole cluster takes them."""
    refused: str = ""
    """Reason why its losses cannot be computed; empty if they can."""
    write_needs: int | None = None
    """The fewest replicas with which a write is acknowledged: the ack quorum, or min.insync.replicas; None if the
    protocol's model has neither."""
    replaced_after_s: float = math.inf
    """Time until another node takes the place of one that is down, for which a write waits; NaN if unknown."""
    leaderless_for_s: float = 0.0
    """Time without a leader after one stops; NaN if unknown."""
    source: Source | None = None

    @property
    def design(self) -> tuple[tuple[str, Any], ...]:
        """The design, as `GridPoint.design`."""
        return tuple((key, value) for key, value in self.varied.items() if not is_circumstance(key))

    @property
    def values(self) -> dict[str, Any]:
        """The values of all keys, by dotted name."""
        return dict(self.source.values) if self.source else {}

    @property
    def per_second(self) -> float:
        """Entries a second; 0 if unknown."""
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
        return placed._replace(source=source, **at_risk(source, placed.cluster))

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
            and not (name.startswith(EVENTS) and name.endswith((".nodes", ".first_node")))
            and not isinstance(values.get(name, True), bool | str)
            and 0.0 < values[name] < math.inf
            and (is_key(name) or isinstance(values[name], float))
        ]

    def is_other(self, other: "Placed") -> bool:
        """Returns whether its losses may differ from those of another one."""
        return self._replace(source=None) != other._replace(source=None)


COUNTS = frozenset({f"{TABLE}.nodes", f"{TABLE}.repair_workers"})
_ARRANGED = frozenset(
    f"{TABLE}.{name}" for name in ("racks", "scatter_width", "batches", "lifetime_shape", "disks_per_node")
)
_TIMES = frozenset(
    f"{TABLE}.{name}" for name in ("retention", "detection_delay", "restart_time", "outage_time", "service_life")
)


def as_override(key: str, value: float) -> str:
    """Returns a figure of [cluster], in its own unit, as an override has it."""
    return f"{value!r} s" if key in _TIMES else f"{value:.0f}" if key in COUNTS else repr(value)


RATES: Mapping[str, Callable[[Placed], float]] = {
    "node_losses": lambda placed: placed.cluster.lost_alone * placed.cluster.nodes,
    "node_restarts": lambda placed: placed.restarts * placed.cluster.nodes,
    "writes": lambda placed: placed.per_second * YEAR_S,
}
"""Times a year that a scenario happens, of all nodes together, by the word for it."""


def rate_of(words: str, placed: Placed) -> float:
    """Returns the times a year, of all nodes and racks together, that something happens: a word of RATES, or an event
    of the table, such as "events.power_outage"; divided by numbers and keys of [model], as in "node_losses / 730 /
    brokers"."""
    word, *divisors = words.split(" / ")
    values = placed.values
    divisor = math.prod(float(each) if each[0].isdigit() else max(1, values[f"model.{each}"]) for each in divisors)
    if word in RATES:
        return RATES[word](placed) / divisor
    [event] = [each for each in placed.cluster.events if f"events.{each.name}" == word]
    return event.per_year * sum(placed.cluster.scopes_of(event).values()) / divisor


def _hits() -> Iterator[tuple[str, Callable[[Placed], float]]]:
    """Yields words for entries or ledgers that an event touches, and their number: all, on one node, or in one rack."""

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
"""Number of objects that each event of a scenario touches, by the words for it."""


def at_risk(source: Source, cluster: Cluster) -> dict[str, Any]:
    """Returns the fields of a `Placed` on entries that have few copies or are not on disk."""
    values = dict(source.values)
    per_second = _per_second(values, cluster) if source.is_physical else 0.0
    promised = source.promised
    ack_quorum = values.get("model.ack_quorum") or (promised.copies if promised.by_majority else cluster.write_quorum)
    thin = _thin(source.protocol, values, cluster, per_second) if ack_quorum < cluster.write_quorum else ()
    unflushed, refused = (0.0, "") if promised.on_disk else _unflushed(source, values, cluster, per_second)
    return {"thin": thin, "unflushed": unflushed, "refused": refused or promised.uncounted}


def _thin(protocol: str, values: Mapping[str, Any], cluster: Cluster, per_second: float) -> tuple[Thin, ...] | None:
    """Entries on few copies, by Little's law: entries a second x mean time; and the stored ones that stay so."""
    few_copies = registry.few_copies(protocol)
    if not (few_copies and per_second):
        return None
    found: list[Thin] = []
    for copies, few in few_copies(values).items():
        found += [Thin(copies, per_second * few.time, True), Thin(copies, cluster.entries * few.p_stays, False)]
    return tuple(each for each in found if each.number > 0.0)


def _per_second(values: Mapping[str, Any], cluster: Cluster) -> float:
    """Entries a second; 0 if unknown."""
    per_second, retention_s = values[f"{TABLE}.entries_per_second"], values[f"{TABLE}.retention"]
    return float(per_second or (cluster.entries / retention_s if retention_s else 0.0))


def _unflushed(source: Source, values: Mapping[str, Any], cluster: Cluster, per_second: float) -> tuple[float, str]:
    """Acknowledged entries that are not on disk, by Little's law; and the `refused` of a `Placed`."""
    events = [event for event in cluster.events if event.takes_unflushed and event.per_year]
    if not events:
        return 0.0, ""
    first, racks = f"{EVENTS}{events[0].name}", [event for event in events if event.scope == RACK]
    unflushed_for = registry.unflushed_for(source.protocol)
    told = "it takes what is acknowledged and not on disk yet"
    if unflushed_for is None:
        return 0.0, f"{first}: {told}, and {source.protocol} does not tell how much that is; let it be on disk first"
    safe = (DISTINCT_RACKS,) if source.promised.by_majority else (TWO_RACKS, DISTINCT_RACKS)
    if racks and cluster.placement not in safe:
        those = "a majority of the servers" if source.promised.by_majority else "all copies"
        allowed = f"{' or '.join(safe)}, as {told}, and {those} may be in that rack"
        return 0.0, f'{TABLE}.placement = "{cluster.placement}": with [{EVENTS}{racks[0].name}], {allowed}'
    if not per_second:
        wanted = f"{TABLE}.entries_per_second and {TABLE}.retention, and from rates in seconds (a profile)"
        return 0.0, f"{first}: {told}; how much that is follows from {wanted}: give these"
    unflushed = per_second * unflushed_for(values)
    if unflushed > cluster.entries:
        return unflushed, f"{first}: {told}, and by the rate of flushes that is more than is stored"
    return unflushed, ""
