"""What a design promises, whatever runs say: how many copies, where they are, and what they survive."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.kernels.model import Model

if TYPE_CHECKING:
    import pandas as pd


class Promise(NamedTuple):
    """Of a configuration."""

    copies: int
    """Of an entry that is acknowledged, as it is, at least."""
    stored: int
    """Of an entry in the end, while nothing is broken: what storage is paid for."""
    on_disk: bool
    """Whether the copies outlive a power cut as the entry is acknowledged; else they are in the page cache."""
    survives: str
    """What may be lost at once, whatever of it, as the entry is acknowledged: "1 bookie", "1 bookie or 1 zone"."""


def promise(protocol: str, values: Mapping[str, Any]) -> Promise | None:
    """The promise of a configuration, from its parameters by dotted key; None of protocols that replicate nothing."""
    make = _BY_PROTOCOL.get(protocol)
    return make(values) if make else None


def changed(model: Model, values: Mapping[str, Any]) -> str:
    """The mechanisms that are off, and the versions that are not today's, for people; empty if there are none."""
    said = []
    for parameter in model.parameters:
        value = values[f"{parameter.table}.{parameter.name}"]
        today = True if parameter.allowed is None else parameter.allowed[0]
        if parameter.table == "variant" and value != today:
            said.append(f"{parameter.name} {'off' if value is False else value}".replace("_", " "))
    return ", ".join(said)


def with_promises(frame: "pd.DataFrame", model: Model) -> "pd.DataFrame":
    """A result frame with a column for each field of `Promise`, if its protocol has them, and one `changed`."""
    points = frame.drop_duplicates("point_id")
    found = {}
    for values in points.to_dict("records"):
        promised = promise(model.name, values)
        fields = promised._asdict() if promised else {}
        found[values["point_id"]] = fields | {"changed": changed(model, values)}
    names = next(iter(found.values()))
    return frame.assign(**{name: [found[point_id][name] for point_id in frame["point_id"]] for name in names})


def _bookkeeper(values: Mapping[str, Any]) -> Promise:
    write_quorum, ack_quorum = values["model.write_quorum"], values["model.ack_quorum"]
    survives = _several(ack_quorum - 1, "bookie")
    # all bookies of an ensemble but one may be in one rack, as it spans two at least
    if values.get("model.racks", 0) > 1 and values.get("variant.rack_aware") and ack_quorum == write_quorum > 1:
        survives += " or 1 zone"
    return Promise(ack_quorum, write_quorum, values.get("faults.max_amnesias", 0) == 0, survives)


def _kafka(values: Mapping[str, Any]) -> Promise:
    # the in-sync set may shrink to the leader; brokers flush nothing before they acknowledge it
    least = values.get("model.min_insync_replicas", 1)
    return Promise(least, values["model.replicas"], False, _several(least - 1, "broker"))


_BY_PROTOCOL: Mapping[str, Callable[[Mapping[str, Any]], Promise]] = {"bookkeeper": _bookkeeper, "kafka": _kafka}


def _several(num: int, what: str) -> str:
    return f"{num or 'no'} {what}{'s' if num > 1 else ''}"
