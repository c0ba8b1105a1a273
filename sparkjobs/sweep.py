"""A parameter sweep from the experiment to its report: plan -> run -> merge -> draw."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from rich.console import Console

from analysis import results
from analysis.config import Experiment
from analysis.errors import ConfigError
from analysis.identity import canonical_parameters
from kernels.engines import choose
from kernels.points import pack
from sparkjobs import folder, screen
from sparkjobs.draw import draw
from sparkjobs.merge import merge
from sparkjobs.plan import num_tasks, pilot, plan
from sparkjobs.run import Counts, Work, run
from sparkjobs.session import check, interruptible, session

MAX_SEED = 2**63 - 1  # Spark has no unsigned integers


def sweep(experiment: Experiment, out: Path, master: str | None, resume: bool, console: Console) -> None:
    """Runs on Spark what `out` lacks of the experiment's runs; leaves results, figures and a report in `out`.

    `master` is a Spark master URL, None for all cores of this machine. Raises ConfigError, before anything is written,
    if `out` cannot be used or there is no Java that Spark runs on.
    """
    work = prepare(experiment)
    source = Path(experiment.path).read_text("utf-8")
    table = folder.earlier(out, work.identities, experiment.run.runs, resume)
    there = dict(zip(table["point_id"].to_pylist(), table["num_runs"].to_pylist(), strict=True))
    ranges = [range(there.get(each.point_id, 0), experiment.run.runs) for each in work.identities]
    if any(ranges):
        check(master)
        folder.create(out)
        with session(master, out / folder.LOG) as spark:
            fresh = compute(spark, work, ranges, console)
        table = _in_order(results.merge(pa.concat_tables([table, fresh])), work)
        results.write(table, out / folder.RESULTS)
    as_run = "".join(f"# --set {line}\n" for override in experiment.overrides for line in override.splitlines())
    folder.write(out / folder.EXPERIMENT, (as_run + source).encode())
    with console.status("drawing"):
        frame = draw(table, experiment, source, out)
    console.print(screen.summary(frame))
    console.print(f"report: {out / folder.REPORT}", soft_wrap=True, markup=False)


def prepare(experiment: Experiment) -> Work:
    """What the tasks of an experiment share. Raises ConfigError."""
    model, seed = experiment.model, experiment.run.seed
    if seed > MAX_SEED:
        raise ConfigError(f"{experiment.path}: run.seed = {seed}: at most {MAX_SEED} in a sweep, for its table's sake")
    engine = choose(experiment.run.engine).NAME
    identities = [
        results.Identity(
            point_id=each.point_id,
            protocol=experiment.protocol,
            model_version=model.version,
            parameters=canonical_parameters(model, each.point),
            seed=seed,
            engine=engine,
        )
        for each in experiment.points
    ]
    return Work(experiment.protocol, engine, seed, pack(model, [each.point for each in experiment.points]), identities)


def compute(spark: SparkSession, work: Work, ranges: Sequence[range], console: Console) -> pa.Table:
    """The result rows of the runs in `ranges`, one for each point that has any there."""
    with console.status("compiling the model, unless that is done, and timing a few runs"):
        run_s = pilot(work, ranges)
    tasks = plan(ranges, run_s, num_tasks(ranges, run_s, spark.sparkContext.defaultParallelism))
    done = spark.sparkContext.accumulator(Counter(), Counts())
    with interruptible(), screen.progress_bar(console, ranges, run_s, lambda: done.value):
        return merge(run(spark, work, tasks, done)).toArrow().cast(results.SCHEMA)


def _in_order(table: pa.Table, work: Work) -> pa.Table:
    """A merged table in the order of the experiment's points."""
    point_ids = pa.array([each.point_id for each in work.identities])
    return table.take(pc.sort_indices(pc.index_in(table["point_id"], point_ids)))
