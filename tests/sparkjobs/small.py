"""A small grid for sweeps, and the table that one should give."""

import pyarrow as pa

from quorisk.analysis.results import schema
from quorisk.kernels.engines import registry
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.tally import named_tally
from quorisk.sparkjobs.state import identity
from quorisk.sparkjobs.sweep import work_of
from tests.support import SMALL_FILE

RUNS = 300
AUTO = registry.engine_of("auto").NAME
FILE = f"""{SMALL_FILE}[run]
runs = {RUNS}
seed = 5
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.1, 1.0]
"""


def rows(experiment, engine=AUTO, wall_s=0.0, threads=1):
    """The rows that a sweep should give, from one call of the engine."""
    work, run = work_of(experiment), experiment.run
    jobs = [Job(point, run.first_run, run.runs) for point in range(len(experiment.points))]
    tallies = simulate(experiment.model, work.points, jobs, run.seed, threads).tolist()
    for each, sums in zip(experiment.points, tallies, strict=True):
        tally = named_tally(experiment.model, sums)
        row = schema.row(identity(experiment, each), experiment.model, run.first_run, tally, engine, wall_s)
        yield row | {"stopped": ["runs"]}


def directly(experiment, threads=1):
    """The table of these rows."""
    return pa.Table.from_pylist(list(rows(experiment, threads=threads)), schema=schema.SCHEMA)
