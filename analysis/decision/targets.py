"""The table [targets] of an experiment file: what a design has to be good for.

[targets]
losses_per_year = 1e-3     # entries, over all scenarios, at most
p_any_loss_per_year = 1e-4 # that anything acknowledged is lost; takes [cluster], as does the next
incident_entries_p99 = 1e6 # of a hundred incidents, 99 lose no more entries
write_minutes_lost_per_year = 10   # for which a ledger or partition takes no writes, on average; takes [cluster]
write_p99 = "20 ms"        # the latency that 99 % of writes do not exceed; takes [latency]
copies = 2                 # of an entry, as it is acknowledged
survives = "1 zone"        # what may be lost at once: nodes, by the protocol's own word or not, or zones, also "racks"
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.experiment.keys import Kind, as_toml, check_keys, integer, real
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.promises import several

if TYPE_CHECKING:
    from quorisk.analysis.experiment.config import Experiment

_MOST = 1e15
_KEYS = (
    "losses_per_year",
    "p_any_loss_per_year",
    "incident_entries_p99",
    "write_p99",
    "copies",
    "survives",
    "write_minutes_lost_per_year",
)
_ZONES = ("zone", "rack")
_WRITE = Kind(float, units.TIME, lambda v: float(units.read_time(v) * 1000) if isinstance(v, str) else None)
"""The kind of a latency, read as milliseconds."""


class Targets(NamedTuple):
    """Targets of designs; by default, none."""

    losses_per_year: float = math.inf
    write_p99_ms: float = math.inf
    copies: int = 0
    nodes: int = 0
    """Number of nodes that may be lost at once."""
    node: str = "node"
    """The file's word for a node."""
    zones: int = 0
    zone: str = "zone"
    """The file's word for a zone, which may be "rack"."""
    p_any_loss_per_year: float = math.inf
    incident_entries_p99: float = math.inf
    write_minutes_lost_per_year: float = math.inf


def read_table(table: Mapping[str, Any], folder: Path) -> Targets:
    """Returns the targets of a file. Raises ConfigError."""
    check_keys("targets", table, _KEYS)
    losses_per_year = _at_most(table, "losses_per_year", _MOST)
    p_any, p99 = _at_most(table, "p_any_loss_per_year", 1.0), _at_most(table, "incident_entries_p99", _MOST)
    copies = integer(0, 99).read("targets.copies", table.get("copies", 0))
    survives = _survives(table["survives"]) if "survives" in table else {}
    return Targets(
        losses_per_year,
        _WRITE.read("targets.write_p99", table["write_p99"]) if "write_p99" in table else math.inf,
        copies,
        p_any_loss_per_year=p_any,
        incident_entries_p99=p99,
        write_minutes_lost_per_year=_at_most(table, "write_minutes_lost_per_year", _MOST),
        **survives,
    )


def _at_most(table: Mapping[str, Any], key: str, most: float) -> float:
    if key not in table:
        return math.inf
    limit = real(f"a number above 0, {most:g} at most", lambda v: 0 < v <= most)
    return float(limit.read(f"targets.{key}", table[key]))


def check_table(experiment: "Experiment") -> None:
    """Raises ConfigError if a target does not go with the rest of the file."""
    targets: Targets = experiment.tables["targets"]
    if math.isfinite(targets.losses_per_year) and not experiment.scenarios and not experiment.clusters:
        raise ConfigError(
            "targets.losses_per_year: needs [scenarios.NAME] or [cluster]; for the probability in a run, set run.target"
        )
    for key in ("p_any_loss_per_year", "incident_entries_p99", "write_minutes_lost_per_year"):
        if math.isfinite(getattr(targets, key)) and not experiment.clusters:
            raise ConfigError(f"targets.{key}: needs [cluster], as only a cluster has incidents and restarts")
    promise, first = registry.promises(experiment.protocol), experiment.points[0].point
    own = promise(dotted_values(experiment.model, first)).node if promise else Targets().node
    if targets.node not in (own, Targets().node):
        raise _not_survived(several(targets.nodes, targets.node), own)
    if math.isfinite(targets.write_p99_ms) and "latency" not in experiment.tables:
        raise ConfigError("targets.write_p99: needs [latency]")


def _survives(given: object) -> dict[str, Any]:
    """Fields of `Targets`; whether the protocol has such nodes is seen in `check`."""
    found = re.fullmatch(r"(\d{1,2}) ([^\W\d]{1,30})", given) if isinstance(given, str) else None
    if not found:
        raise _not_survived(given, Targets().node)
    number, word = int(found[1]), found[2].removesuffix("s")
    return {"zones": number, "zone": word} if word in _ZONES else {"nodes": number, "node": word}


def _not_survived(given: object, node: str) -> ConfigError:
    return ConfigError(f'targets.survives = {as_toml(given)}: such as "1 {node}", "2 nodes", "1 zone"')
