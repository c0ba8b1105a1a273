"""A protocol's figures from data: files sorted out, read by kind (drives on Spark), and weighed."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from quorisk.analysis.experiment import profiles
from quorisk.analysis.experiment.keys import keys_of
from quorisk.analysis.experiment.known import Stated, stated
from quorisk.analysis.experiment.profiles import Profile
from quorisk.analysis.rates import drives, incidents, metrics, prometheus
from quorisk.analysis.rates.answer import RatesAnswer
from quorisk.analysis.rates.files import sorted_out
from quorisk.analysis.rates.findings import ANY, findings
from quorisk.analysis.rates.incidents import Watched
from quorisk.analysis.rates.observed import DAY_S
from quorisk.analysis.rates.oddities import Oddities, merge_oddities
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.progress import Progress
from quorisk.kernels.protocols import registry
from quorisk.sparkjobs import drives as statistics
from quorisk.sparkjobs import spark_conf

HERE_BYTES = 1 << 28
"""The most bytes of drive statistics that this process reads itself: Spark would take longer to start."""
_NODES = 1e-3, 1e9


class Asked(NamedTuple):
    """Paths of the data to read, and the figures to derive from them."""

    data: Sequence[Path]
    """Files and folders."""
    profile: str = "bookkeeper_ssd"
    """The profile of all figures that the data do not tell."""
    of: str = ANY
    """Drives whose failure rate is wanted: `findings.ANY`, `findings.FLEET` or a model."""
    nodes: float | None = None
    """Number of nodes that lists of incidents are about, on average."""
    since: str = ""
    """Start of the watch over these nodes; `until` is its end: dates or times, ISO 8601."""
    until: str = ""
    racks: int = 0
    """Number of racks that these nodes are in; 0 if it is not known."""
    complete: bool = False
    """Whether lists of incidents have every incident of each kind."""
    master: str | None = None
    conf: Sequence[str] = ()


def rates_from_data(asked: Asked, progress: Progress | None = None) -> RatesAnswer:
    """Returns a profile's figures as derived from data. `progress` is called with bytes of drive statistics, once read.

    Raises ConfigError if `asked` is invalid, or if the data say nothing; RunError if Spark fails.
    """
    base = profiles.find_profile(asked.profile, Path())
    oddities: Oddities = {}
    files = sorted_out(asked.data, oddities)
    on_spark = asked.master is not None or bool(asked.conf) or statistics.bytes_of_files(files.drives) > HERE_BYTES
    spark = spark_conf.checked_settings(asked.master, asked.conf) if on_spark else {}
    observed = []
    if files.incidents:
        observed += incidents.counts_of_lists(files.incidents, _watched(asked, files.incidents[0]), oddities)
    if files.metrics:
        observed += (counted := metrics.counts_of_queries(files.metrics, oddities))
        _check_counted(files.metrics, counted, oddities)
    fleet = None
    if files.drives:
        if on_spark:
            fleet = statistics.on_spark(files.drives, drives.today(), asked.master, spark, progress)
        else:
            fleet = statistics.here(files.drives, drives.today(), progress)
        oddities = merge_oddities([oddities, fleet.oddities])
        _check_counted(files.drives, fleet.groups, oddities)
    found = findings(observed, fleet, asked.of, registry.evidence(base.protocol), _defaults(base))
    return RatesAnswer(base, found, fleet, files, oddities)


def _check_counted(paths: Sequence[Path], counted: Sequence[object], oddities: Oddities) -> None:
    """Raises ConfigError if files of a kind have nothing that counts, and says why."""
    if not counted:
        seen = "; ".join(f"{odd.what}: {seen.times:,} (first: {seen.where})" for odd, seen in oddities.items())
        more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
        raise ConfigError(
            f"{paths[0]}{more}: nothing that can be counted{f'; {seen}' if seen else ', as there are no rows'}"
        )


def bytes_of_data(data: Sequence[Path]) -> int:
    """Returns the bytes of files, and of those in folders: how much there is to read."""
    return statistics.bytes_of_files(each for path in data for each in (path.rglob("*") if path.is_dir() else [path]))


def _watched(asked: Asked, path: Path) -> Watched:
    """Returns the nodes that were watched, and the time. Raises ConfigError if one is missing or invalid."""
    if asked.nodes is None or not asked.since or not asked.until:
        raise ConfigError(
            f"{path}: a list of incidents does not say how many nodes were watched, nor for how long: give `nodes`, "
            "`since` and `until`"
        )
    times = []
    for name, text in (("since", asked.since), ("until", asked.until)):
        try:
            times.append(incidents.unix_s(text))
        except ValueError:
            raise ConfigError(f" {text}: a date or time, such as 2026-01-31 or 2026-01-31T12:00", name) from None
    if not _NODES[0] <= asked.nodes <= _NODES[1]:
        raise ConfigError(f" {asked.nodes}: a number above 0, from {_NODES[0]} to {_NODES[1]:g}", "nodes")
    if times[0] >= times[1]:
        raise ConfigError(f" {asked.until}: a time after since ({asked.since})", "until")
    if times[0] < prometheus.FIRST_S:
        raise ConfigError(f" {asked.since}: a time after 2000-01-01", "since")
    if times[1] > time.time() + DAY_S:
        raise ConfigError(f" {asked.until}: a time that has passed", "until")
    return Watched(asked.nodes, times[0], times[1], asked.racks, asked.complete)


def _defaults(base: Profile) -> Mapping[str, Stated | None]:
    """Returns a profile's statement on each figure of its protocol, None where it makes none."""
    keys = keys_of(registry.load(base.protocol))
    figures = {name: stated(keys[name], figure.given) for name, figure in base.figures.items() if name in keys}
    return {name: figures.get(name) for name, key in keys.items() if key.figure}
