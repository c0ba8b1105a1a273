"""Batches of runs in lockstep: what the XLA engine does on a device.

A lane of a batch holds one run. A round gives free lanes to the next runs of the queue, takes some steps with every
lane, and adds up the runs that ended, so that no lane waits for the longest run. Queue, lanes and sums stay on the
device.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quorisk.kernels.engines import jax_step
from quorisk.kernels.engines.jax_step import Table
from quorisk.kernels.engines.job import RECORD
from quorisk.kernels.engines.step import IDLE, RUNNING, Run, Settings, lasted
from quorisk.kernels.engines.tally import bins, num_columns, parts, sums
from quorisk.kernels.model import Model

MAX_JOBS = 1 << 10
"""Jobs in the queue at a time: tables have this length, so that one compiled program serves any number of them."""
MAX_RECORDS = 1 << 17
STEPS = 8
"""Steps of a round."""
_LANES_PER_TALLY = 1 << 14
"""Number of lanes that add to the same sums; on a GPU, additions to one place wait."""
_OPTIONS: dict[str, dict[str, str | bool | int | float]] = {
    "cpu": {"xla_disable_hlo_passes": "fusion"},
    "gpu": {"xla_gpu_enable_while_loop_unrolling": "WHILE_LOOP_UNROLLING_DOUBLE_BUFFER"},
}
"""XLA's options by platform. On CPUs, fusion computes shared values anew for each that needs them: BookKeeper takes
nine times as long to compile and 2.7 times as long to step. On GPUs, two steps write by turns to two copies of the
lanes; else XLA copies 25 arrays after each step of BookKeeper."""


class Queue(NamedTuple):
    """A queue of up to MAX_JOBS jobs, their runs laid end to end: the first run of a job is at place `starts[job]`."""

    settings: Settings
    time_units: Any  # float64, by job
    first_runs: Any  # int64, by job
    starts: Any  # int64, by job; rows without a job start beyond all places
    seed: Any  # uint64
    recording: Any  # bool
    table: Table | None = None
    """Table of the states in which runs start; None if they start at the beginning."""


class Batch(NamedTuple):
    """Runs under way, and what those that have ended come to."""

    lanes: Run
    next: Any  # int64: the place in the queue of the next run
    end: Any  # int64: the place after the last run
    running: Any  # int64: lanes under way
    tallies: Any  # int64 (sums * MAX_JOBS, columns)
    records: Any  # int64 (MAX_RECORDS, len(RECORD)), by place in the queue


def fresh(model: Model, num_lanes: int, num_runs: int) -> Batch:
    """A batch of that many lanes, none of these runs begun."""

    def zeros(kind: Any, *shape: int) -> Any:
        return jnp.zeros(shape or num_lanes, kind)

    lanes: Run = jax.tree.map(zeros, jax_step.types(model))
    lanes = lanes._replace(outcome=lanes.outcome + IDLE)
    tallies = zeros(np.int64, max(1, num_lanes // _LANES_PER_TALLY) * MAX_JOBS, num_columns(model))
    next_run, end, running = (jnp.asarray(number, np.int64) for number in (0, num_runs, 0))
    return Batch(lanes, next_run, end, running, tallies, zeros(np.int64, MAX_RECORDS, len(RECORD)))


@cache
def advance(model: Model) -> Any:
    """`advance(batch, queue, rounds)`: the batch after that many rounds, or fewer if all its runs have ended.

    Compiled once for each number of lanes, whatever the queue holds.
    """
    options = _OPTIONS.get(jax.local_devices()[0].platform)
    return jax.jit(partial(_advance, model), donate_argnums=0, compiler_options=options)


def _advance(model: Model, batch: Batch, queue: Queue, rounds: Any) -> Batch:
    def goes_on(carry: tuple[Any, Batch]) -> Any:
        done, batch = carry
        return (done < rounds) & ((batch.running > 0) | (batch.next < batch.end))

    def one_round(carry: tuple[Any, Batch]) -> tuple[Any, Batch]:
        done, batch = carry
        batch = _refill(model, queue, batch)
        lanes = jax.lax.fori_loop(0, STEPS, lambda _, lanes: _step(model, queue, lanes), batch.lanes)
        return done + 1, _collect(model, queue, batch._replace(lanes=lanes))

    return jax.lax.while_loop(goes_on, one_round, (jnp.int64(0), batch))[1]


def _step(model: Model, queue: Queue, lanes: Run) -> Run:
    return jax.vmap(lambda lane: jax_step.step(model, _settings(queue, lane.job), queue.seed, lane))(lanes)


def _settings(queue: Queue, job: Any) -> Settings:
    return jax.tree.map(lambda column: _look_up(column, job), queue.settings)


def _look_up(column: Any, job: Any) -> Any:
    return column.at[job].get(mode="promise_in_bounds")


def _refill(model: Model, queue: Queue, batch: Batch) -> Batch:
    """Gives the next runs, in order, to idle lanes."""
    idle = batch.lanes.outcome == IDLE
    ranks = jnp.cumsum(idle, dtype=np.int32)
    places = batch.next + ranks - 1
    taken = idle & (places < batch.end)
    job = _look_up(_jobs_from(queue.starts, batch.next, len(idle)), jnp.maximum(ranks - 1, 0))
    run = places - _look_up(queue.starts, job) + _look_up(queue.first_runs, job)
    begin = jax.vmap(lambda job, run: jax_step.start(model, _settings(queue, job), queue.table, queue.seed, job, run))
    lanes = jax.tree.map(lambda new, old: jnp.where(taken, new, old), begin(job, run), batch.lanes)
    return batch._replace(lanes=lanes, next=jnp.minimum(batch.next + ranks[-1], batch.end))


def _jobs_from(starts: Any, place: Any, num: int) -> Any:
    """The job of each of the `num` places from `place` on: how many jobs start there or before, less one."""
    begun = jnp.zeros(num, np.int32).at[jnp.clip(starts - place, 0, num)].add(1, mode="drop")
    return jnp.cumsum(begun, dtype=np.int32) - 1


def _collect(model: Model, queue: Queue, batch: Batch) -> Batch:
    """Adds up the runs that ended, as `numba_run._batch` does, and leaves their lanes idle."""
    lanes = batch.lanes
    ended = (lanes.outcome != RUNNING) & (lanes.outcome != IDLE)
    unit = _look_up(queue.time_units, lanes.job)
    time = parts(lanes.time * unit)
    exposed = [part for each in lasted(model, lanes) for part in parts(each * unit)]
    tallies = _add(model, batch.tallies, lanes, ended, time, exposed)
    place = lanes.run - _look_up(queue.first_runs, lanes.job) + _look_up(queue.starts, lanes.job)
    rows = jnp.stack([lanes.outcome, lanes.broken_mask, lanes.met_mask, lanes.steps, lanes.messages, *time], 1)
    records = jax.lax.cond(
        queue.recording,
        lambda: batch.records.at[jnp.where(ended, place, MAX_RECORDS)].set(rows, mode="drop"),
        lambda: batch.records,
    )
    lanes = lanes._replace(outcome=jnp.where(ended, IDLE, lanes.outcome))
    running = jnp.sum(lanes.outcome == RUNNING)
    return batch._replace(lanes=lanes, running=running, tallies=tallies, records=records)


def _add(model: Model, tallies: Any, lanes: Run, ended: Any, time: tuple[Any, Any], exposed: list[Any]) -> Any:
    copies = len(tallies) // MAX_JOBS
    row = lanes.job + MAX_JOBS * (jnp.arange(len(lanes.job)) % copies)
    row = jnp.where(ended, row, len(tallies))  # out of bounds, so nothing is added
    for first, columns in sums(lanes, time, exposed):
        added = jnp.stack([column.astype(np.int64) for column in columns], 1)
        tallies = tallies.at[row, first : first + len(columns)].add(added, mode="drop")
    for among, column in bins(model, lanes, time):
        tallies = tallies.at[jnp.where(among, row, len(tallies)), column].add(1, mode="drop")
    return tallies
