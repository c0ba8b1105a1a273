"""Runs of several configurations under the same random numbers, counted pair by pair."""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from quorisk.analysis.estimate.method import unknown_outcomes
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.statistics.paired import PairTable, PairTables
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.points import Points
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.model import LOST
from quorisk.kernels.progress import Progress

CHUNK_RUNS = 1 << 16
"""Runs of each configuration that are held at a time."""
_EVERYTHING = -1


class PairedRuns(NamedTuple):
    """Counts of pairs of runs."""

    by_event: list[list[PairTables]]
    """Counts by event and pair; the events are any data loss, and then the model's invariants."""
    cut_off: list[int]
    """Number of runs that may hide a loss, by point."""


def count_pairs(
    experiment: Experiment,
    points: Points,
    pairs: Sequence[tuple[int, int]],
    runs: range,
    threads: int,
    progress: Progress | None = None,
) -> PairedRuns:
    """Makes these runs of every point, and counts for each of `pairs`, a variant's place in `points` and a baseline's,
    which runs were lost under which of the two.

    `progress` is called with the number of runs that ended since its last call. The result does not depend on
    `threads`.
    """
    num_points, num_events = len(points.losses), 1 + len(experiment.model.invariants)
    tables = np.zeros((num_events, len(pairs), len(PairTables._fields), len(PairTable._fields)), np.int64)
    cut_off = np.zeros(num_points, np.int64)

    def work(job: Job) -> tuple[np.ndarray, np.ndarray]:
        seen = [_events(experiment, points, job._replace(point=place)) for place in range(num_points)]
        counted = [[_tables(*seen[variant], *seen[baseline], event) for variant, baseline in pairs]
                   for event in range(num_events)]  # fmt: skip
        return np.array(counted), np.array([np.count_nonzero(unknown) for _, unknown in seen])

    with ThreadPoolExecutor(threads) as pool:
        parts = (runs[at : at + CHUNK_RUNS] for at in range(0, len(runs), CHUNK_RUNS))
        chunks = (Job(0, part.start, len(part)) for part in parts)
        while batch := list(itertools.islice(chunks, threads)):
            for counted, unknown in pool.map(work, batch):
                tables += counted
                cut_off += unknown
            if progress:
                progress(sum(job.num_runs for job in batch) * num_points)
    by_event = [
        [PairTables(*(PairTable(*table) for table in three)) for three in of_pairs] for of_pairs in tables.tolist()
    ]
    return PairedRuns(by_event, cut_off.tolist())


def _events(experiment: Experiment, points: Points, job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Masks by run: one of the events in it, any data loss in bit 0; and one of all bits if it may hide a loss."""
    engine = engine_of(experiment.run.engine)
    records = engine.record(experiment.model, points, job, experiment.run.seed)
    columns = dict(zip(RECORD, records.T, strict=True))
    unknown = np.isin(columns["outcome"], unknown_outcomes(experiment.run))
    return columns["broken_mask"] << 1 | (columns["outcome"] == LOST), np.where(unknown, _EVERYTHING, 0)


def _tables(
    variant: np.ndarray, variant_unknown: np.ndarray, baseline: np.ndarray, baseline_unknown: np.ndarray, event: int
) -> list[list[int]]:
    """The tables of `Counts` for one event of one pair."""
    return [
        _table(variant, baseline, event),
        _table(variant, baseline | baseline_unknown, event),
        _table(variant | variant_unknown, baseline, event),
    ]


def _table(variant: np.ndarray, baseline: np.ndarray, event: int) -> list[int]:
    masks = variant & baseline, variant & ~baseline, baseline & ~variant, ~(variant | baseline)
    return [int(np.count_nonzero(mask >> event & 1)) for mask in masks]
