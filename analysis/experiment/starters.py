"""Experiment files to start from: one for each protocol, and those about a cluster, filled with answers about it.

The files are in configs/starters; those about a cluster are templates, with the questions that fill them.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.cluster import MOST_DISKS, MOST_NODES, cluster_keys
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.errors import ConfigError
from quorisk.say.templates import templates

FOLDER = Path(__file__).absolute().parents[2] / "configs" / "starters"
"""The folder of starters, beside the packages, or in the one that a wheel installs."""
_TEMPLATES = templates(FOLDER / "cluster", keep_trailing_newline=True)
OF_CLUSTERS = "bookkeeper", "kraft"
"""Protocols with a file about a cluster."""
MOST_ENSEMBLE, MOST_FACTOR = 5, 5
"""The models have six bookies, one of them to spare, and room for a roll of five brokers that a zone outage meets."""
_PER_LEDGER = 50_000
_LEAST_KEPT = 1000
"""Fewest entries at a time: each partition has one, and each write set of a ledger."""

_QUORUMS = {
    "bookkeeper": re.compile(r"(?:E *)?(\d+)(?: *[,/] *| +)(?:WQ *)?(\d+)(?: *[,/] *| +)(?:AQ *)?(\d+)", re.IGNORECASE),
    "kraft": re.compile(
        r"(?:RF *)?(\d+)(?: *[,/] *| +)(?:min ISR *)?(\d+)(?: *[,/] *| +)(?:acks *)?(all|-1|1)", re.IGNORECASE
    ),
}
_EXAMPLES = {"bookkeeper": '"E 3, WQ 3, AQ 2"', "kraft": '"RF 3, min ISR 2, acks all"'}
_OPTIONAL = {
    "partitions": "",
    "entry_bytes": "cluster.entry_bytes",
    "disks": "",
    "node_loss": "cluster.node_loss",
    "outages": "cluster.events.power_outage.per_year",
    "failovers": "cluster.events.power_outage.per_year",
}
"""Optional answers, and the keys whose values they have."""


class OperatorAnswers(NamedTuple):
    """An operator's answers about a cluster, as text."""

    nodes: str
    racks: str
    entries_per_second: str
    retention: str
    quorums: str
    partitions: str = ""
    entry_bytes: str = ""
    disks: str = ""
    node_loss: str = ""
    outages: str = ""
    failovers: str = ""
    """These six, if empty, are as in USUAL."""


_ABOUT = tomllib.loads((FOLDER / "cluster" / "questions.toml").read_text("utf-8"))
USUAL: Mapping[str, Mapping[str, str]] = {protocol: told["usual"] for protocol, told in _ABOUT.items()}
"""Default answers."""


def questions(protocol: str) -> Mapping[str, str]:
    """Returns the questions about a protocol's cluster, in words, by the names of `OperatorAnswers`."""
    return dict(_ABOUT[protocol]["questions"])


def checked_answers(protocol: str, answers: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of answers, by name. Raises ConfigError where one is invalid, or some do not go together."""
    values = {name: _value(protocol, name, answer) for name, answer in answers.items()}
    nodes = values.get("nodes", MOST_NODES)
    if values.get("racks", 1) > nodes:
        raise ConfigError(f" {values['racks']}: at most as many as nodes ({nodes})", "racks")
    if "entries_per_second" in values and "retention" in values:
        kept = _kept(values)
        if kept < _LEAST_KEPT:
            allowed = f"at least {_LEAST_KEPT:,} entries are kept at a time, and these would be {kept:.3g}"
            raise ConfigError(f" {answers['retention'].strip()}: {allowed}", "retention")
    if others := [name for name in values if name in _OPTIONAL and name not in USUAL[protocol]]:
        of = next(each for each, usual in USUAL.items() if others[0] in usual)
        raise ConfigError(f" {answers[others[0]]}: for {of} only", others[0])
    for each in values.get("quorums", ()):
        _CHECKS[protocol](*each, nodes)
    return values


def _kept(values: Mapping[str, Any]) -> float:
    """Entries that are stored at a time."""
    return float(values["entries_per_second"]) * float(values["retention"])


def _value(protocol: str, name: str, answer: str) -> Any:
    readers: dict[str, tuple[Callable[[str], Any], str]] = {
        "nodes": (lambda text: _count(text, MOST_NODES), f"an integer from 1 to {MOST_NODES}"),
        "racks": (lambda text: _count(text, MOST_NODES), "an integer from 1 up"),
        "entries_per_second": (_per_second, 'a number above 0, and 1e12 at most, such as "1,600" or "1e4"'),
        "retention": (lambda text: units.read_time(text) or None, units.TIME),
        "disks": (lambda text: _count(text, MOST_DISKS), f"an integer from 1 to {MOST_DISKS}"),
        "partitions": (lambda text: _count(_ungrouped(text), 10**6), "an integer from 1 to 1,000,000"),
        "quorums": (lambda text: _quorums(protocol, text), f"three figures from 1 up, such as {_EXAMPLES[protocol]}"),
        **{name: _figure(key) for name, key in _OPTIONAL.items() if key},
    }
    read, allowed = readers[name]
    with suppress(ConfigError):
        if (value := read(answer.strip())) is not None:
            return value
    raise ConfigError(f" {answer}: {allowed}", name)


def _figure(name: str) -> tuple[Callable[[str], Any], str]:
    """The reader of a figure of [cluster] as a file writes it, and the allowed values in words."""
    kind = cluster_keys(("power_outage",))[name].kind

    def read(answer: str) -> str | None:
        number = _ungrouped(answer)
        value = float(number) if re.fullmatch(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,2})?", number, re.I) else answer
        text = json.dumps(value) if isinstance(value, str) else f"{value:.15g}"
        return None if kind.read_or_none(value) is None else text

    return read, kind.allowed


def starter_text(protocol: str) -> str:
    """Returns a protocol's file."""
    return (FOLDER / f"{protocol}.toml").read_text("utf-8")


def filled_template(protocol: str, answers: OperatorAnswers) -> str:
    """Returns a protocol's file about a cluster. Raises ConfigError where answers do not go together."""
    given = {name: answer for name, answer in answers._asdict().items() if answer or name not in _OPTIONAL}
    values = checked_answers(protocol, {**USUAL[protocol], **given})
    names = {
        **values,
        **(_bookkeeper if protocol == "bookkeeper" else _kraft)(values),
        "given": [name for name in _OPTIONAL if getattr(answers, name) not in ("", USUAL[protocol].get(name))],
        "retention": answers.retention.strip(),
        "entries": f"{_kept(values):.4g}",
        "num_bytes": f"{_number('entry_bytes', values['entry_bytes']):.15g}",
    }
    text = _TEMPLATES.get_template(f"{protocol}.toml.j2").render(names)
    try:
        build_experiment(tomllib.loads(text), "with these answers")
    except ConfigError as error:  # repair takes longer than a year
        why = str(error).partition(" (at the grid point ")[0]
        raise ConfigError(f" {names['retention']}: {why}", "retention") from None
    return text


def _number(name: str, value: str) -> float:
    """A figure of [cluster], given as a file writes it, as a number of times a year or of bytes."""
    return float(cluster_keys()[f"cluster.{name}"].kind.read_or_none(json.loads(value)))


def _bookkeeper(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Today's design, and those with a copy more or fewer, with any ack quorum from 2 on."""
    nodes, racks, kept = values["nodes"], values["racks"], _kept(values)
    ensemble, write_quorum, ack_quorum = values["quorums"][0]
    around = range(min(2, write_quorum), min(write_quorum + 1, MOST_ENSEMBLE, nodes) + 1)
    ensembles = sorted({ensemble, *around})
    alternates = racks > 2 or not (ensemble > write_quorum == 2 and ensemble % 2)  # a ring, between two racks
    return {
        "today": f"E {ensemble}, WQ {write_quorum}, AQ {ack_quorum}",
        "per_ledger": f"{min(_PER_LEDGER, int(kept)):_}",
        "fills_ledger": kept >= _PER_LEDGER,
        "placement": "two_racks" if racks > 1 and write_quorum > 1 and alternates else "random",
        "ensemble": ensemble,
        "ensembles": ensembles,
        "write_quorum": write_quorum,
        "write_quorums": list(around),
        "ack_quorums": list(range(min(2, ack_quorum), around[-1] + 1)),
        "bookies": [each + 1 for each in ensembles],
        "has_failovers": _number("node_loss", values["failovers"]) > 0,
        "has_room": write_quorum > 1 and any(3 <= each <= racks for each in ensembles),
    }


def _kraft(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Today's designs, and those with three replicas, with any min ISR below their number."""
    nodes, racks, partitions, today = (values[name] for name in ("nodes", "racks", "partitions", "quorums"))
    factors = sorted({min(3, nodes), *(factor for factor, _, _ in today)})
    zones = sorted({min(racks, factor) for factor in factors}) if racks > 1 else [0]
    in_racks = "distinct_racks" if racks >= factors[-1] else "two_racks"
    least_of_1 = min((least for _, least, acks in today if acks == "1"), default=0)
    return {
        "today": "; ".join(f"RF {factor}, min ISR {least}, acks {acks}" for factor, least, acks in today),
        "placement": in_racks if racks > 1 else "random",
        "per_partition": f"{_kept(values) / partitions:.4g}",
        "zones": zones,
        "factors": factors,
        "mixed": racks > 1 and in_racks == "two_racks" and factors[0] <= racks,
        "min_isrs": sorted({*(least for _, least, _ in today), *range(1, factors[-1])}),
        "least_of_1": least_of_1,
        "between_writes": 15 if least_of_1 else 5,  # as each takes a dozen steps with acks = 1
        "gap": partitions / float(values["entries_per_second"]),
    }


def _check_bookkeeper(ensemble: int, write_quorum: int, ack_quorum: int, nodes: int) -> None:
    if not ensemble >= write_quorum >= ack_quorum:
        raise _wrong_quorums(f"E {ensemble}, WQ {write_quorum}, AQ {ack_quorum}", "E >= WQ >= AQ")
    _check_room("E", ensemble, MOST_ENSEMBLE, nodes)


def _check_kraft(factor: int, min_isr: int, acks: str, nodes: int) -> None:
    said = f"RF {factor}, min ISR {min_isr}, acks {acks}"
    if min_isr > factor:
        raise _wrong_quorums(said, "min ISR at most RF")
    if factor == 1 < nodes:
        raise _wrong_quorums(said, "RF at least 2, as what one copy loses to each restart and outage is not counted")
    _check_room("RF", factor, MOST_FACTOR, nodes)


_CHECKS: Mapping[str, Callable[..., None]] = {"bookkeeper": _check_bookkeeper, "kraft": _check_kraft}


def _check_room(name: str, copies: int, most: int, nodes: int) -> None:
    if copies > most:
        raise _wrong_quorums(f"{name} {copies}", f"{name} at most {most}, as large as the model is")
    if copies > nodes:
        raise _wrong_quorums(f"{name} {copies}", f"{name} at most as many as nodes ({nodes})")


def _wrong_quorums(said: str, allowed: str) -> ConfigError:
    return ConfigError(f" {said}: {allowed}", "quorums")


def _count(answer: str, most: int) -> int | None:
    return int(answer) if re.fullmatch(r"0*[1-9]\d{0,6}", answer) and int(answer) <= most else None


def _ungrouped(number: str) -> str:
    """The number without the commas between groups of three digits; other commas, which may be decimal ones, stay."""
    is_grouped = re.fullmatch(r"[1-9][0-9]{0,2}(,[0-9]{3})+([.eE][^,]*)?", number)
    return number.replace(",", "") if is_grouped else number


def _per_second(answer: str) -> str | None:
    """A number a second, given as a file writes it; None if it is invalid."""
    number = _ungrouped(answer).replace("_", "")
    is_number = re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,6})?(e[+-]?[0-9]{1,2})?", number, re.IGNORECASE)
    return f"{float(number):.15g}" if is_number and 0 < float(number) <= 1e12 else None


def _quorums(protocol: str, answer: str) -> list[tuple[Any, ...]] | None:
    """Quorums of each kind of topics, or of all ledgers; None if they cannot be read."""
    kinds = answer.split(";") if protocol == "kraft" else [answer]
    matches = [_QUORUMS[protocol].fullmatch(kind.strip()) for kind in kinds]
    found = []
    for match in matches:
        if not match or "0" in match.groups():
            return None
        last = match[3].lower() if protocol == "kraft" else int(match[3])
        found.append((int(match[1]), int(match[2]), "all" if last == "-1" else last))
    return found
