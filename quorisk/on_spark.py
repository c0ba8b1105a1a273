"""The verbs that Spark computes, as functions: sweeps, their results, and rates from data; see `quorisk.api`."""

import math
from collections.abc import Mapping
from pathlib import Path

from quorisk.answers import Rates, Sweep
from quorisk.command import bars, show
from quorisk.given import PATH, Overrides, Source, checked, load_experiment
from quorisk.kernels.errors import ConfigError


def sweep(
    source: Source,
    out: str | Path,
    overrides: Overrides = (),
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    budget_s: float = math.inf,
    resume: bool = False,
) -> Sweep:
    """Sweeps an experiment's grid on Spark, and writes results, figures and a report to a folder.

    Args:
        source: the experiment, which has to come from a file.
        out: the folder.
        overrides: changed values by dotted key; see `Overrides`.
        master: Spark's master URL; all cores of this machine if None.
        conf: Spark's settings.
        budget_s: seconds after which computing stops, 0 or more.
        resume: whether to keep the results in `out`, and to run what is missing.

    Returns:
        The results.

    Raises:
        ConfigError: before anything is written, if the experiment, `out` or Spark cannot be used.
        RunError: if the sweep cannot go on; results written by then are kept.

    Example: `sweep("configs/demo.toml", "results/demo", budget_s=60).loss()`
    """
    from quorisk.sparkjobs import sweep as sweeping

    experiment = load_experiment(source, overrides)
    if not Path(experiment.path).is_file():
        raise ConfigError(
            "a sweep's experiment has to be in a file: the results keep a copy of it, and say how to run it again"
        )
    settings = _settings(master, conf)
    folder = Path(checked("out", out, PATH, "the path of a folder"))
    allowed = "a number of seconds from 0 up"
    if isinstance(budget_s, bool) or not checked("budget_s", budget_s, int | float, allowed) >= 0.0:
        raise ConfigError(f" {budget_s!r}: {allowed}", "budget_s")
    options = sweeping.Options(master, settings, resume, budget_s)
    console = show.console(stderr=True)
    console.quiet = not console.is_terminal
    sweeping.sweep(experiment, folder, options, console)
    return load(folder)


def _settings(master: str | None, conf: Mapping[str, str] | None) -> list[str]:
    """Returns Spark's settings as the command has them. Raises ConfigError."""
    checked("master", master, str | None, "the URL of a Spark master, or None for this machine")
    return [f"{key}={value}" for key, value in checked("conf", conf or {}, Mapping, "settings by name").items()]


def rates(
    *data: str | Path,
    profile: str = "bookkeeper_ssd",
    of: str = "any",
    nodes: float | None = None,
    since: str = "",
    until: str = "",
    racks: int = 0,
    complete: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Rates:
    """Derives rates, and how well they are known, from data of real clusters.

    Args:
        data: files and folders of drive statistics, lists of incidents and saved range queries of Prometheus.
        profile: the profile with the figures that the data do not tell.
        of: drives whose failure rate is wanted: "any" (a model that is not among the data's), "fleet" (these as they
            are) or one of their models.
        nodes: number of nodes that lists of incidents are about.
        since, until: dates or times between which these were watched.
        racks: number of racks of these nodes; 0 if unknown.
        complete: whether lists have all events, so that others did not happen.
        master, conf: as in `sweep`, for much data, which is read on Spark.

    Returns:
        The rates by key, with what is known of each.

    Raises:
        ConfigError: if something given cannot be used, or if the data say nothing.

    Example: `rates("drive_stats").write("profiles/ours.toml")`
    """
    from quorisk.sparkjobs import rates as from_data

    paths = [Path(checked("data", path, PATH, "the path of a file or folder")) for path in data]
    settings = _settings(master, conf)
    asked = from_data.Asked(paths, profile, of, nodes, since, until, racks, complete, master, settings)
    with bars.run_bar(from_data.bytes_of_data(paths), "bytes") as progress:
        return Rates(*from_data.rates_from_data(asked, progress))


def load(path: str | Path) -> Sweep:
    """Loads the results of a sweep.

    Args:
        path: its folder, or a results.parquet alone.

    Returns:
        The results.

    Raises:
        ResultError: if there are no results that can be read.
        ConfigError: if the experiment file beside them cannot be used.

    Example: `load("results/demo").frame()`
    """
    from quorisk.analysis.decision import frames

    there = Path(checked("path", path, PATH, "the path of a folder or table"))
    return Sweep(there, frames.load_sweep(there))
