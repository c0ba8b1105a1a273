"""Results of several runs, machines or engines as one: `quorisk merge`."""

import shlex
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.scenarios import ScenarioEvent
from quorisk.analysis.results import provenance
from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs import folder, screen, session, spark_conf
from quorisk.sparkjobs.draw import draw_report
from quorisk.sparkjobs.merge import merge
from quorisk.sparkjobs.sweep import SweepSummary, summarized

JUDGED = tuple(
    f"run.{name}"
    for name in (
        *("confidence", "precision", "relative_precision", "precision_of", "simultaneous", "at_any_time"),
        "time_unit",
    )
)
"""Keys in which experiments must agree, as one report judges all their results and shows all their rates."""


def union(sources: Sequence[Path], out: Path, console: Console) -> SweepSummary:
    """Merges the results in folders that sweeps (or merges) left; leaves tables, figures and a report in `out`.

    A point may be in one folder or in several, with run ranges that lie end to end. Raises ConfigError naming what
    overlaps, is missing or differs.
    """
    experiments = [_experiment(source) for source in sources]
    for source, experiment in zip(sources[1:], experiments[1:], strict=True):
        different = folder.differences(experiments[0], experiment, ("protocol", *JUDGED), f"in {sources[0]}")
        if different:
            raise ConfigError(f"{source}: {different}")
        _check_years(sources[0], experiments[0], source, experiment)
    folder.check_free(out)
    spark_conf.checked_settings(None, ())
    tables = [_rows(source, experiment) for source, experiment in zip(sources, experiments, strict=True)]
    for source, table in zip(sources[1:], tables[1:], strict=True):
        _check_alike(sources[0], tables[0], source, table)
    rows = pa.concat_tables(tables)
    command = shlex.join(["quorisk", "merge", *map(str, sources), "--out", str(out)])
    with folder.gone_if_interrupted(out), folder.taken(out), ThreadPoolExecutor(1) as pool:
        folder.check_free(out)  # another process may have left results until just now
        table = _merged(rows, out, pool)
        folder.keep_experiment(out, experiments[0], folder.merged(sources))
        folder.append(out / folder.TASKS, [row | {"attempt": 0, "host": ""} for row in table.to_pylist()])
        folder.write_results(out, table)
        with console.status("drawing"):
            texts = "\n".join(f"# {source}\n{provenance.experiment_text(source)}" for source in sources)
            drawn = draw_report(table, experiments, texts, out, command)
    screen.print_results(drawn.frame, drawn.words, console)
    console.print(f"report: {out / folder.REPORT}", soft_wrap=True, markup=False)
    return summarized(table)


def _check_years(first: Path, theirs: Experiment, source: Path, ours: Experiment) -> None:
    """Raises ConfigError unless scenarios happen equally often, of which one report adds up losses a year."""
    for name, key in product(dict.fromkeys([*theirs.scenarios, *ours.scenarios]), ScenarioEvent._fields):
        before, now = (
            repr(getattr(each.scenarios[name], key)).removesuffix(".0") if name in each.scenarios else "missing"
            for each in (theirs, ours)
        )
        if before != now:
            raise ConfigError(f"{source}: scenarios.{name}.{key} is {before} in {first} and {now} here")


def _experiment(source: Path) -> Experiment:
    if not (source / folder.RESULTS).exists():
        raise ConfigError(f"{source}: has no results; `quorisk run --resume` finishes the sweep")
    return provenance.experiment_of_folder(source)


def _rows(source: Path, experiment: Experiment) -> pa.Table:
    table = folder.result_rows(source)
    provenance.check_origin(experiment, table, source / folder.RESULTS)
    return table.append_column("source", pa.array([str(source)] * table.num_rows))


def _check_alike(first: Path, theirs: pa.Table, source: Path, ours: pa.Table) -> None:
    """Raises ConfigError unless two tables agree in all that a report says once for all points."""
    for name, said in (("model_version", "model version"), ("seed", "run.seed")):
        before, now = (", ".join(map(str, pc.unique(table[name]).to_pylist())) for table in (theirs, ours))
        if before != now:
            raise ConfigError(f"{source}: {said} is {before} in {first} and {now} here")


def _merged(rows: pa.Table, out: Path, ending: Executor) -> pa.Table:
    """Returns one row a point, in the order in which points first come."""
    with session.spark(None, {}, out / folder.SPARK_LOG, ending) as context:
        table = merge(context, rows)
    order = pc.index_in(table["point_id"], pc.unique(rows["point_id"]))
    return table.take(pc.sort_indices(order))
