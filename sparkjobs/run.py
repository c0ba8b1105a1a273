"""Running a plan on Spark: a partition and a core for each task, a result row for each of its ranges of runs."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analysis import protocols, results
from kernels import tally
from kernels.engines import Job, choose
from kernels.points import Points
from sparkjobs.gpu import assigned

SPARK_SCHEMA = from_arrow_schema(results.SCHEMA)
LOSSES = -1
"""Key of `done` under which runs that ended in data loss are counted; the other keys are points."""


class Work(NamedTuple):
    """What the tasks of a sweep share."""

    protocol: str
    engine: str
    seed: int
    points: Points
    identities: Sequence[results.Identity]
    """By point."""


class Counts(AccumulatorParam["Counter[int]"]):
    """Adds up counters across tasks."""

    def zero(self, value: Counter[int]) -> Counter[int]:
        return Counter()

    def addInPlace(self, value1: Counter[int], value2: Counter[int]) -> Counter[int]:
        value1.update(value2)
        return value1


def run(session: SparkSession, work: Work, plan: pa.Table, done: "Accumulator[Counter[int]]") -> DataFrame:
    """The result rows of a plan, unmerged. Nothing runs before they are asked for.

    `done` counts what finished tasks did: runs by point, and LOSSES.
    """

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch["id"]:
                jobs = plan.filter(pc.field("task") == task).to_pylist()
                rows = [run_job(work, Job(job["point"], job["first_run"], job["num_runs"])) for job in jobs]
                for job, row in zip(jobs, rows, strict=True):
                    done.add(Counter({job["point"]: row["num_runs"], LOSSES: row["lost"]}))
                yield pa.RecordBatch.from_pylist(rows, schema=results.SCHEMA)

    num_tasks = len(pc.unique(plan["task"]))
    return session.range(0, num_tasks, 1, num_tasks).mapInArrow(compute, SPARK_SCHEMA)


def run_job(work: Work, job: Job) -> dict[str, object]:
    """The result row of a range of runs, on one thread."""
    model = protocols.load(work.protocol)
    start = time.perf_counter()
    with assigned(work.engine):
        [sums] = choose(work.engine).simulate(model, work.points, [job], work.seed)
    wall_s = time.perf_counter() - start
    return results.row(work.identities[job.point], model, job.first_run, tally.read(model, sums), wall_s)
