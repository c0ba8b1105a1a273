"""Clusters on Spark: designs by strata and ranges of years as tasks, rows of years kept as they come, and merged.

A year is a function of the cluster, the seed and its number, and sums of years are integers: so the answers are those
of `quorisk cluster` without Spark, whichever tasks there were, and whether or not they were interrupted.
"""

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import SparkContext

from quorisk.analysis.cluster import rows
from quorisk.analysis.cluster.answer import (
    ClusterAnswer,
    Effort,
    as_json,
    cluster_of,
    effort_of,
    from_losses,
    placed_designs,
    solved,
    wants_years,
)
from quorisk.analysis.cluster.figures import Losses
from quorisk.analysis.decision.weigh import MEMORY, Weigher
from quorisk.analysis.decision.whole import with_scenarios
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.placed import Placed
from quorisk.analysis.results import provenance, sealed, sweeps
from quorisk.kernels.cluster.setting import Cluster
from quorisk.kernels.cluster.years import draw_years
from quorisk.kernels.compiled import once
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.job import Job
from quorisk.kernels.errors import ConfigError, ResultError
from quorisk.kernels.progress import Progress
from quorisk.sparkjobs import files, folder, session, spark_conf
from quorisk.sparkjobs.plan import cut_tasks
from quorisk.sparkjobs.run import gather
from quorisk.sparkjobs.watch import LOG, log_to

ANSWERS, MERGED = folder.ANSWERS, "clusters.parquet"
"""Files of the folder: the answer as `--json` prints it, and a row for each cluster with drawn years."""
_FIRST_PILOT, _PILOT_S = 16, 0.05


class ClusterPiece(NamedTuple):
    """A task's share of a design: years to draw, or, if there are none, the strata to solve."""

    design: int
    first_year: int = 0
    num_years: int = 0


class ClusterDone(NamedTuple):
    """The result of a piece: losses by strata, or a row of years."""

    piece: ClusterPiece
    losses: Losses | None
    row: Mapping[str, Any] | None


class Worker(NamedTuple):
    """The work of a worker on pieces of these designs."""

    placed: tuple[Placed, ...]
    effort: Effort

    def do(self, piece: ClusterPiece, attempt: int) -> ClusterDone:
        """Returns the result of a piece, computed on one thread."""
        of = self.placed[piece.design]
        if not piece.num_years:
            return ClusterDone(piece, solved(of, self.effort), None)
        cluster, seed = cluster_of(of), self.effort.seed
        once("cluster", "years", lambda: draw_years(cluster, 0, 1, seed))
        tally = draw_years(cluster, piece.first_year, piece.num_years, seed)
        return ClusterDone(piece, None, rows.row_of_years(cluster, seed, piece.first_year, tally))


def clusters(
    experiment: Experiment,
    out: Path,
    master: str | None = None,
    conf: Sequence[str] = (),
    resume: bool = False,
    progress: Progress | None = None,
) -> list[ClusterAnswer]:
    """Computes on Spark the losses of an experiment's designs on their clusters; leaves years and answers in `out`.

    `master`, `conf` and `resume` are as in `sweep.Options`, and `progress` is called as by `answer.answers`. Raises
    ConfigError, before anything is written, if the folder cannot be used, and RunError if the computation cannot go on;
    what is there by then is kept.
    """
    placed, effort = placed_designs(experiment), effort_of(experiment, 1)
    spark = spark_conf.checked_settings(master, conf)
    folder.check_writable(out)
    _check(out, placed, effort, resume)
    with folder.taken(out), log_to(out / folder.LOG), ThreadPoolExecutor(1) as pool:
        there = _check(out, placed, effort, resume)  # again: another process may have added years until now
        LOG.info("started: %s", experiment.command("cluster", "--out", str(out)))
        folder.keep_experiment(out, experiment, folder.as_run(experiment))
        worker = Worker(placed, effort)
        with session.spark(master, spark, out / folder.SPARK_LOG, pool, "quorisk cluster") as context:
            found = _strata(context, worker, progress)
            open_designs = [i for i, of in enumerate(placed) if wants_years(found[i], effort)]
            new = _years(context, worker, open_designs, there, out, progress)
        merged = rows.merge_years([*there, *new])
        answers = _answers(experiment, worker, found, merged)
        _write(out, merged, answers)
        LOG.info("finished: %d designs, %d of them by drawn years", len(placed), len(open_designs))
    return answers


def union_of_years(sources: Sequence[Path], out: Path) -> tuple[list[ClusterAnswer], float]:
    """Merges the years of folders of `clusters` into `out`, a folder of the same form. Returns the answers, and the
    confidence of their intervals.

    Raises ConfigError if the folders are about different designs, or if their years overlap or leave gaps.
    """
    experiments = [provenance.experiment_of_folder(source) for source in sources]
    placed, effort = placed_designs(experiments[0]), effort_of(experiments[0], 1)
    for source, experiment in zip(sources[1:], experiments[1:], strict=True):
        if set(map(cluster_of, placed_designs(experiment))) != set(map(cluster_of, placed)):
            raise ConfigError(f"{source}: is about other designs or clusters than {sources[0]}")
    folder.check_free(out)
    try:
        merged = rows.merge_years(row for source in sources for row in _read(source))
    except ResultError as error:
        raise ConfigError(f"{', '.join(map(str, sources))}: {error}") from None
    with folder.gone_if_interrupted(out), folder.taken(out):
        folder.check_free(out)
        folder.keep_experiment(out, experiments[0], folder.merged(sources))
        if merged:
            folder.append(out / folder.YEARS, merged, rows.SCHEMA)
        worker = Worker(placed, effort)
        answers = _answers(experiments[0], worker, [solved(each, effort) for each in placed], merged)
        _write(out, merged, answers)
    return answers, effort.confidence


def is_of_clusters(path: Path) -> bool:
    """Whether a folder is one that `clusters` left."""
    return (path / ANSWERS).exists() or (path / folder.YEARS).exists()


def _check(out: Path, placed: Sequence[Placed], effort: Effort, resume: bool) -> list[dict[str, Any]]:
    """Returns the rows that the folder holds. Raises ConfigError unless they are of these designs' years."""
    if folder.has_results(out):
        raise ConfigError(f" {out}: holds results of `quorisk run`; choose another folder", "out")
    there = _read(out)
    known = {rows.cluster_id(rows.canonical_cluster(cluster_of(each))) for each in placed}
    end = effort.first_year + effort.years
    for row in there:
        if row["cluster_id"] not in known or row["seed"] != effort.seed:
            raise ConfigError(f" {out}: holds years of another cluster or seed; choose another folder", "out")
        if row["first_year"] < effort.first_year or row["first_year"] + row["num_years"] > end:
            said = "holds other years than run.first_run and run.runs ask for (years can be added, but not removed)"
            raise ConfigError(f" {out}: {said}; choose another folder", "out")
    if is_of_clusters(out) and not resume:
        raise ConfigError(f" {out}: holds years of clusters; `resume` keeps them and draws what is missing", "out")
    return there


def _read(out: Path) -> list[dict[str, Any]]:
    """Returns the rows of a folder. Raises ConfigError if a file is damaged."""
    found = []
    for path in sweeps.numbered(out / folder.YEARS):
        try:
            mine = sealed.read_sealed(path, rows.SCHEMA).to_pylist()
            for row in mine:
                rows.tally_of_row(row)
            found += mine
        except ResultError as error:
            said = str(error).removeprefix(f"{path}: ")
            raise ConfigError(f"{path}: {said}; delete this file, and `resume` draws its years again") from None
    return found


def _strata(context: SparkContext, worker: Worker, progress: Progress | None) -> list[Losses | None]:
    """Returns each design's losses by strata. `progress` counts all years of a design that needs none as done."""
    found: list[Losses | None] = [None] * len(worker.placed)

    def take(done: list[ClusterDone]) -> None:
        for each in done:
            found[each.piece.design] = each.losses
            if progress and not wants_years(each.losses, worker.effort):
                progress(worker.effort.years)

    tasks = [[ClusterPiece(design)] for design in range(len(worker.placed))]
    gather(context, tasks, worker.do, math.inf, take, f"strata of {len(tasks)} designs")
    return found


def _years(
    context: SparkContext,
    worker: Worker,
    open_designs: Sequence[int],
    there: Sequence[Mapping[str, Any]],
    out: Path,
    progress: Progress | None,
) -> list[Mapping[str, Any]]:
    """Draws the missing years of some designs; returns their rows, which are on disk by then."""
    new: list[Mapping[str, Any]] = []
    waiting = folder.Waiting(out / folder.YEARS, rows.SCHEMA)

    def take(done: list[ClusterDone]) -> None:
        for each in done:
            assert each.row
            new.append(each.row)
            waiting.add(each.row)
            if progress:
                progress(each.piece.num_years)

    wanted = [piece for design in open_designs for piece in _missing(design, worker, there)]
    if progress:
        progress(len(open_designs) * worker.effort.years - sum(piece.num_years for piece in wanted))
    tasks = [[piece] for piece in _cut(wanted, worker, context.defaultParallelism)]
    if tasks:
        try:
            gather(context, tasks, worker.do, math.inf, take, f"years of {len(open_designs)} designs")
        finally:
            waiting.commit()
    return new


def _missing(design: int, worker: Worker, there: Sequence[Mapping[str, Any]]) -> Iterator[ClusterPiece]:
    """Yields the years of a design that no row has."""
    own = rows.cluster_id(rows.canonical_cluster(cluster_of(worker.placed[design])))
    at, end = worker.effort.first_year, worker.effort.first_year + worker.effort.years
    for row in sorted((row for row in there if row["cluster_id"] == own), key=lambda row: row["first_year"]):
        if row["first_year"] > at:
            yield ClusterPiece(design, at, row["first_year"] - at)
        at = max(at, row["first_year"] + row["num_years"])
    if at < end:
        yield ClusterPiece(design, at, end - at)


def _cut(wanted: Sequence[ClusterPiece], worker: Worker, cores: int) -> list[ClusterPiece]:
    """Cuts years into pieces of about equal cost, as runs are."""
    year_s = np.zeros(len(worker.placed))
    for design in {piece.design for piece in wanted}:
        year_s[design] = _year_s(cluster_of(worker.placed[design]), worker.effort)
    cut = cut_tasks([Job(*piece) for piece in wanted], year_s, cores)
    return [ClusterPiece(*each) for each in zip(*(cut[name].to_pylist() for name in Job._fields), strict=True)]


def _year_s(cluster: Cluster, effort: Effort) -> float:
    """Returns the seconds that a year takes on one core, by timing some years."""
    draw_years(cluster, effort.first_year, 1, effort.seed)
    tried = _FIRST_PILOT
    while True:
        start = time.perf_counter()
        draw_years(cluster, effort.first_year, tried, effort.seed)
        took_s = time.perf_counter() - start
        if took_s > _PILOT_S or tried >= effort.years:
            return took_s / tried
        tried *= 4


def _answers(
    experiment: Experiment, worker: Worker, found: Sequence[Losses | None], merged: Sequence[Mapping[str, Any]]
) -> list[ClusterAnswer]:
    tallies = {rows.cluster_of_row(row): rows.tally_of_row(row) for row in merged}
    answers = [
        from_losses(placed, worker.effort, losses, tallies.get(cluster_of(placed)))
        for placed, losses in zip(worker.placed, found, strict=True)
    ]
    return with_scenarios(experiment, answers, Weigher(MEMORY, num_cores()))


def _write(out: Path, merged: Sequence[Mapping[str, Any]], answers: Sequence[ClusterAnswer]) -> None:
    """Writes the answers, and the rows that they follow from. Raises RunError."""
    if merged:
        folder.write_table(out / MERGED, pa.Table.from_pylist(list(merged), rows.SCHEMA))
    files.write_in_folder(out / ANSWERS, f"{json.dumps(as_json(answers), indent=2)}\n".encode())
