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
AUTO = registry.choose("auto").NAME
FILE = f"""{SMALL_FILE}[run]
runs = {RUNS}
seed = 5
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.1, 1.0]
"""


def directly(experiment, threads=1):
    """The table that a sweep should give, from one call of the engine."""
    work, num_runs = work_of(experiment), experiment.run.runs
    jobs = [Job(point, experiment.run.first_run, num_runs) for point in range(len(experiment.points))]
    tallies = simulate(experiment.model, work.points, jobs, work.run.seed, threads)
    rows = [
        schema.row(
            identity(experiment, each),
            experiment.model,
            experiment.run.first_run,
            named_tally(experiment.model, sums),
            AUTO,
            0.0,
        )
        for each, sums in zip(experiment.points, tallies.tolist(), strict=True)
    ]
    return pa.Table.from_pylist([row | {"stopped": ["runs"]} for row in rows], schema=schema.SCHEMA)
