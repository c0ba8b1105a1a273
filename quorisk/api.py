"""The verbs as functions: `quorisk.estimate` and the others. Each returns what its verb prints, as an object that has
the fields of `--json`, a pandas frame, and a table or picture of itself for notebooks."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorisk.analysis import compare as comparing
from quorisk.analysis import estimate as estimating
from quorisk.analysis import explore as exploring
from quorisk.analysis import year as years
from quorisk.analysis.exact import exact as solving
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.traces import find
from quorisk.answers import Comparison, Counterexample, Estimated, Explored, Solved, Sweep, Yearly
from quorisk.command import show
from quorisk.kernels.errors import ConfigError

Source = Experiment | str | Path | Mapping[str, Any]
"""An experiment: as `load_experiment` gave it, as a file, or as a dictionary of the tables that a file would have."""
Overrides = Mapping[str, Any] | Sequence[str]
"""Values by dotted key, `{"run.runs": 1000}`, or as `--set` has them, `["run.runs=1000"]`."""


def load_experiment(source: Source, overrides: Overrides = ()) -> Experiment:
    """An experiment, checked. Raises ConfigError in one line that names file, key, value and what is allowed.

    Example: `load_experiment("configs/defect1.toml", {"run.runs": 100_000})`, or without a file
    `load_experiment({"protocol": "kafka", "model": {"replicas": 3, "log_size": 2, "max_records": 2,
    "max_leader_epoch": 2}})`.
    """
    changes = _as_settings(overrides)
    if isinstance(source, Experiment):
        return source.changed(*changes) if changes else source
    if isinstance(source, Mapping):
        return config.build(source, "experiment", changes)
    return config.load(Path(source), changes)


def estimate(source: Source, overrides: Overrides = (), *, threads: int | None = None) -> Estimated:
    """How likely the one configuration of an experiment is to break each invariant, by random runs.

    The numbers do not depend on `threads` (all cores if None). Raises ConfigError, EngineError.
    """
    experiment = load_experiment(source, overrides)
    with show.estimate_bar(experiment.run.runs) as (progress, solving):
        threads = threads or estimating.num_cores()
        return Estimated(*estimating.estimate(experiment, threads, progress, solving=solving))


def exact(
    source: Source,
    overrides: Overrides = (),
    *,
    memory: str | int = "4GiB",
    by_steps: Sequence[int] = (),
    by_time: Sequence[float] = (),
    storm: bool = False,
) -> Solved:
    """The probabilities themselves, from the Markov chain that a random run of one configuration is.

    `by_steps` and `by_time`: also the probabilities of data loss within this many steps and by these model times.
    `storm`: the model checker Storm solves it, too. Raises ConfigError if the chain does not fit `memory`.
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with show.search_line("transitions") as progress:
        return Solved(*solving.exact(experiment, most, by_steps, by_time, storm, progress))


def year(
    source: Source,
    overrides: Overrides = (),
    *,
    solve: bool = False,
    memory: str | int = "4GiB",
    threads: int | None = None,
) -> Yearly:
    """How much one design of an experiment with scenarios loses in a year, by random runs or, to `solve` it, exactly.

    Raises ConfigError if there are several designs or no scenarios, or if a chain does not fit `memory`.

    Example: `year("configs/pulsar.toml", {"write_quorum": 2, "ack_quorum": 2, "bookies": 3}, solve=True)`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    if solve:
        with show.search_line("transitions") as progress:
            return Yearly(*years.exact_year(experiment, most, progress))
    with show.run_bar(experiment.run.runs * len(experiment.points)) as progress:
        return Yearly(*years.estimate_year(experiment, threads or estimating.num_cores(), progress))


def explore(source: Source, overrides: Overrides = (), *, memory: str | int = "4GiB") -> Explored:
    """Every state that one configuration can reach: how many there are, and how many break which invariant.

    A search that does not fit `memory` says so in `found.complete`. Raises ConfigError.
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with show.search_line() as progress:
        return Explored(experiment, *exploring.explore(experiment, most, progress))


def compare(
    source: Source,
    vary: Mapping[str, Sequence[Any]] | None = None,
    overrides: Overrides = (),
    *,
    all_pairs: bool = False,
    threads: int | None = None,
) -> Comparison:
    """Variants of one configuration, run by run under the same random numbers.

    `vary` has the values of a key, the baseline's first; several keys are crossed. Without it every switch of the
    protocol is turned off in turn and compared with all on. Raises ConfigError.

    Example: `compare("configs/defect1.toml", {"variant.fence_recovery_reads": [True, False]})`
    """
    changed = load_experiment(source, overrides).changed
    options = [f"{key}={','.join(map(_as_toml, values))}" for key, values in (vary or {}).items()]
    plan = comparing.vary(changed, options, all_pairs) if options else comparing.ablation(changed)
    with show.run_bar(plan.experiment.run.runs * len(plan.variants)) as progress:
        return Comparison(*comparing.compare(plan, threads or estimating.num_cores(), progress))


def trace(
    source: Source,
    overrides: Overrides = (),
    *,
    invariant: str = DATA_LOSS,
    run: tuple[int, int] | None = None,
    replay: str | Path | None = None,
    memory: str | int = "4GiB",
) -> Counterexample:
    """How an invariant breaks, step by step: a shortest way if the search of all states fits `memory`, else one from
    the random runs. Or the random run of a (seed, index), or a trace that `quorisk trace --json` wrote.

    `proved` says that nothing breaks it, whatever happens. Raises ConfigError.
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    which = f"{run[0]}:{run[1]}" if run else None
    saved = Path(replay) if replay else None
    with show.status() as tell:
        return Counterexample(*find.asked_for(experiment, invariant, which, saved, most, tell))


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
    """Sweeps a grid on Spark (all cores here if `master` is None); results, figures and a report go to `out`, a folder.

    `conf` has Spark's settings, `budget_s` ends the computing after this many seconds, `resume` keeps what an earlier
    call left there. The experiment has to be a file's.
    Raises ConfigError, RunError.
    """
    from quorisk.sparkjobs import sweep as sweeping

    experiment = load_experiment(source, overrides)
    if not Path(experiment.path).is_file():
        raise ConfigError(
            "a sweep's experiment has to be in a file: its folder keeps a copy, and says how to run it again"
        )
    settings = [f"{key}={value}" for key, value in (conf or {}).items()]
    options = sweeping.Options(master, settings, resume, budget_s)
    console = show.console(stderr=True)
    console.quiet = not console.is_terminal
    sweeping.sweep(experiment, Path(out), options, console)
    return load(out)


def load(path: str | Path) -> Sweep:
    """What a sweep left in a folder (or its results.parquet alone). Raises ResultError if there is nothing to read."""
    from quorisk.analysis import tidy

    return Sweep(Path(path), tidy.load(path))


def _as_settings(overrides: Overrides) -> list[str]:
    if isinstance(overrides, Mapping):
        return [f"{key}={_as_toml(value)}" for key, value in overrides.items()]
    return list(overrides)


def _as_toml(value: Any) -> str:
    """A value as TOML spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
