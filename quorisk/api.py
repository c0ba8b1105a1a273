"""The verbs as functions: `quorisk.estimate` and the others. Each returns what its verb prints, as an object that has
the fields of `--json`, a pandas frame, and a table or picture for notebooks. Every verb takes an experiment (`Source`)
and changed values (`Overrides`); `threads` is the number of cores to use, all if None. `on_spark` has the other verbs.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorisk.analysis import explore as exploring
from quorisk.analysis.cluster import answer as clusters
from quorisk.analysis.compare import compare as comparing
from quorisk.analysis.decision import depends as sensing
from quorisk.analysis.decision import recommend as recommending
from quorisk.analysis.decision.weigh import MEMORY, Weigher
from quorisk.analysis.decision.whole import whole_year, with_scenarios
from quorisk.analysis.estimate import amounts
from quorisk.analysis.estimate import estimate as estimating
from quorisk.analysis.exact import exact as solving
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.rates import scores
from quorisk.analysis.traces import find
from quorisk.answers import (
    Comparison,
    Counterexample,
    Depends,
    Estimated,
    Explored,
    Incidents,
    Recommended,
    Solved,
    Yearly,
)
from quorisk.command import bars
from quorisk.given import PATH, Overrides, Source, checked, load_experiment, num_threads, toml_text
from quorisk.kernels.cores import num_cores
from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd


def estimate(
    source: Source, overrides: Overrides = (), *, memory: str | int = "1GiB", threads: int | None = None
) -> Estimated:
    """Estimates by random runs how likely an experiment's one configuration is to break each invariant.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        memory: bytes for the likeliest paths, which are solved exactly if losses are too rare to count, or a text such
            as "512MiB".
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        The probabilities with their intervals; times are in seconds if rates have units, else in units of model time.

    Raises:
        ConfigError: if the experiment cannot be used or has several configurations.
        EngineError: if its engine does not work on this machine.

    Example: `estimate("configs/defect1.toml", {"run.runs": 100_000}).data_loss.high`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with bars.estimate_bar(experiment.run.runs) as (progress, solving):
        result = estimating.estimate(experiment, num_threads(threads), progress, most, solving)
        return Estimated(*amounts.with_amount(experiment, result))


def runs(source: Source, overrides: Overrides = (), *, threads: int | None = None) -> "pd.DataFrame":
    """Makes the runs of an experiment's one configuration from the beginning, for a statistic of one's own.

    They are those of `estimate`, and `trace(..., run=(seed, run))` tells one of them.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        A frame with a row of 64 bytes for each run: its number `run`, from run.first_run on; `outcome`, how it ended (a
        category); `steps`; `messages`, those that were sent; `time`, when it ended, in seconds if rates have units,
        else in units of model time; for each invariant, under its name, whether the run broke it; and `met NAME` for
        each kind of faults, whether it met one.

    Raises:
        ConfigError, EngineError: as `estimate`.

    Example: `runs("configs/defect1.toml", {"run.runs": 100_000}).groupby("outcome")["time"].quantile(0.99)`
    """
    from quorisk.analysis.estimate import records

    return records.rows_of_runs(load_experiment(source, overrides), num_threads(threads))


def recommend(
    source: Source,
    overrides: Overrides = (),
    *,
    break_even: Sequence[str] | None = (),
    memory: str | int = "128MiB",
    threads: int | None = None,
) -> Recommended:
    """Recommends a design of an experiment's grid, weighed over all scenarios.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        break_even: keys of figures that are scaled until the choice changes; all that the experiment sets if None.
        memory: bytes for the chain of a design; one that does not fit is estimated by random runs, or a text such as
            "512MiB".
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        The choice with its reasons, and all designs by rank.

    Raises:
        ConfigError: if the experiment cannot be used.

    Example: `recommend("configs/pulsar.toml", {"run.runs": 131_072}).frame()`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    keys = checked("break_even", break_even, list | tuple | None, "a list of keys, or None for all")
    with bars.status() as tell:
        weigher = Weigher(most, num_threads(threads), tell)
        return Recommended(experiment, recommending.advise(experiment, weigher, keys))


def exact(
    source: Source,
    overrides: Overrides = (),
    *,
    memory: str | int = "4GiB",
    by_steps: Sequence[int] = (),
    by_time: Sequence[float] = (),
    storm: bool = False,
) -> Solved:
    """Solves the whole Markov chain of an experiment's one configuration for its exact probabilities.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        memory: bytes for the chain, or a text such as "512MiB".
        by_steps: numbers of steps within which the probability of data loss is wanted, too.
        by_time: times by which it is wanted, in seconds if rates have units, else in units of model time.
        storm: whether the model checker Storm solves the chain as well.

    Returns:
        The probabilities, and the expected steps and time of a run.

    Raises:
        ConfigError: if the experiment has several configurations or a horizon, or its chain does not fit in `memory`.

    Example: `exact("configs/limbo.toml", by_steps=[14]).p_by_steps[14]`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with bars.chain_line() as progress:
        steps = checked("by_steps", by_steps, Iterable, "a list of numbers of steps")
        times = checked("by_time", by_time, Iterable, "a list of times")
        result = solving.exact(experiment, most, steps, times, storm, progress)
        return Solved(*amounts.with_amount(experiment, result))


def year(
    source: Source,
    overrides: Overrides = (),
    *,
    solve: bool = False,
    memory: str | int = "128MiB",
    threads: int | None = None,
) -> Yearly:
    """Computes the losses of the one design of an experiment with scenarios or [cluster] in a year.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        solve: whether scenarios have to be solved exactly; else those that do not fit in `memory` are estimated.
        memory: bytes for the chain of a scenario, or a text such as "512MiB".
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        P(any loss), incidents and entries lost in a year, and their causes.

    Raises:
        ConfigError: if there are several designs or nothing that happens in a year, or if a chain does not fit.

    Example: `year("configs/pulsar.toml", {"write_quorum": 2, "ack_quorum": 2, "bookies": 3, "run.runs": 131_072})`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    if not experiment.asks_year:
        raise ConfigError(f"{experiment.path}: has neither scenarios nor [cluster], or one scenario is picked")
    with bars.status() as tell:
        return Yearly(experiment, whole_year(experiment, Weigher(most, num_threads(threads), tell), solve, True))


def cluster(source: Source, overrides: Overrides = (), *, threads: int | None = None) -> Incidents:
    """Computes what each design of an experiment loses in a year on the cluster of its [cluster].

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        P(any loss in a year), incidents a year and sizes of incidents in entries, by design.

    Raises:
        ConfigError: if the experiment cannot be used, or has no [cluster].

    Example: `cluster("configs/cluster.toml", {"cluster.nodes": 100}).designs[0].losses.p_any.high`
    """
    experiment = load_experiment(source, overrides)
    designs = clusters.placed_designs(experiment)
    effort = clusters.effort_of(experiment, num_threads(threads))
    with bars.run_bar(len(designs) * effort.years, "years") as progress:
        found = clusters.answers(designs, effort, progress)
    return Incidents(with_scenarios(experiment, found, Weigher(MEMORY, effort.threads)), effort.confidence)


def sensitivity(source: Source, overrides: Overrides = (), *, memory: str | int = "1GiB") -> Depends:
    """Computes what the losses of an experiment's one design depend on: in a year, if it has scenarios.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        memory: bytes for what is solved; what is counted is estimated, or a text such as "512MiB".

    Returns:
        Elasticities of the losses in each rate, each probability and the lifetime; the faults that losing runs meet;
        and the likeliest path to a loss.

    Raises:
        ConfigError: if there are several designs.

    Example: `sensitivity("configs/pulsar.toml", {"write_quorum": 2, "ack_quorum": 2, "bookies": 3}).tornado()`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with bars.estimate_bar(scores.MOST_LOSSES) as (progress, solving):
        return Depends(experiment, sensing.depends(experiment, most, num_cores(), progress, solving))


def explore(source: Source, overrides: Overrides = (), *, memory: str | int = "4GiB") -> Explored:
    """Visits every state that an experiment's one configuration can reach, and counts those that break each invariant.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        memory: bytes for the states, or a text such as "512MiB".

    Returns:
        The counts; `found.complete` is False if the states did not fit in `memory`.

    Raises:
        ConfigError: if there are several configurations, or if not even the beginning of the search fits.

    Example: `explore("configs/limbo.toml").found.distinct_states`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    with bars.search_line() as progress:
        return Explored(experiment, *exploring.explore(experiment, most, progress))


def compare(
    source: Source,
    vary: Mapping[str, Sequence[Any]] | None = None,
    overrides: Overrides = (),
    *,
    threads: int | None = None,
) -> Comparison:
    """Compares variants of one configuration, run by run, with the same random numbers.

    Args:
        source: the experiment; see `Source`.
        vary: values by key, the baseline's first; several keys are crossed. Without it, each switch of the protocol is
            turned off in turn and compared with all of them on.
        overrides: changed values by dotted key; see `Overrides`.
        threads: cores to use, all if None; they change the speed, never the numbers.

    Returns:
        Differences and ratios of probabilities with their intervals, for each pair of variants.

    Raises:
        ConfigError: if the experiment or a value cannot be used.

    Example: `compare("configs/defect1.toml", {"variant.fence_recovery_reads": [True, False]})`
    """
    changed = load_experiment(source, overrides).changed
    wanted = "a dictionary of lists of values by key"
    lists = {
        key: checked("vary", values, list | tuple, wanted)
        for key, values in checked("vary", vary or {}, Mapping, wanted).items()
    }
    options = [f"{key}={','.join(map(toml_text, values))}" for key, values in lists.items()]
    plan = comparing.vary(changed, options) if options else comparing.ablation(changed)
    with bars.estimate_bar(plan.experiment.run.runs * len(plan.variants)) as (progress, solving):
        return Comparison(*comparing.compare(plan, num_threads(threads), progress, solving))


def trace(
    source: Source,
    overrides: Overrides = (),
    *,
    invariant: str = DATA_LOSS,
    run: tuple[int, int] | None = None,
    replay: str | Path | None = None,
    memory: str | int = "4GiB",
) -> Counterexample:
    """Shows how an invariant breaks, step by step.

    A shortest counterexample is found if the search of all states fits in `memory`; else one is taken from the random
    runs and minimised.

    Args:
        source: the experiment; see `Source`.
        overrides: changed values by dotted key; see `Overrides`.
        invariant: the invariant; any data loss if not given.
        run: seed and index of the random run to show instead.
        replay: a trace that `quorisk trace --json` wrote, to show instead.
        memory: bytes for the search, or a text such as "512MiB".

    Returns:
        The trace, if there is one; its `proved` says that no reachable state breaks the invariant.

    Raises:
        ConfigError: if the experiment, the run or the saved trace cannot be used.

    Example: `print(trace("configs/defect1.toml", memory="64MiB"))`
    """
    experiment, most = load_experiment(source, overrides), exploring.parse_memory(str(memory))
    which = ":".join(map(str, checked("run", run, list | tuple, "a seed and an index, (SEED, INDEX)"))) if run else None
    saved = Path(checked("replay", replay, PATH, "the path of a saved trace")) if replay else None
    with bars.status() as tell:
        return Counterexample(*find.requested_trace(experiment, invariant, which, saved, most, tell))
