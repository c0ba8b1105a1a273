"""Heads and tails against exact answers, on problems of which counting sees little or nothing.

python tests/validation/rare_events.py             problems of all protocols; exit code 1 if an answer lies outside
... rare_events.py problems kafka                  those of one protocol
... rare_events.py coverage                        how often intervals of 1,000 replicates hold the exact answer
... rare_events.py cells configs/x.toml            every cell of a file, by Quorisk's own choice of method
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from quorisk.analysis.estimate import method, rare
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.estimate.stopping import estimator_of_run
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.kernels.cores import num_cores
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import pack
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import LOST
from quorisk.kernels.states.exits import exits_of, from_exits
from quorisk.kernels.states.head import Head

MEMORY = 1 << 30
CELL_BYTES = 1 << 27
"""For the chain of a cell."""
RUNS = 1_000_000
REPLICATED, REPLICATES, REPLICATE_RUNS = 6, 1000, 500
"""Problems, how often each of them is repeated, and with how many runs."""

BOOKKEEPER: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    "variant": {"semantics": "literal", "fence_recovery_reads": False},
}
LOST_BOOKIES: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1},
    "faults": {"max_lost": 3, "auto_recovery": True, "replacement": True},
}
KAFKA: dict[str, Any] = {
    "protocol": "kafka",
    "model": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 3},
    "variant": {"truncation": "kip101"},
}
COMPACTION: dict[str, Any] = {
    "protocol": "compaction",
    "model": {"messages": 2, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1},
    "variant": {"persist_cursor_before_delete": False},
}
KRAFT: dict[str, Any] = {
    "protocol": "kraft",
    "model": {"brokers": 2, "replication_factor": 2, "min_isr": 1, "values": 1},
    "faults": {"max_lossy_shutdowns": 1, "max_fencings": 1},
}


def problems() -> Iterator[dict[str, Any]]:
    """Experiments of one point; none was chosen for how it comes out."""
    for loss in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        for recovery in (1.0, 1e-3, 1e-6):
            yield BOOKKEEPER | {"faults": {"message_loss": loss}, "rates": {"client_starts_recovery": recovery}}
    for lost in (1e-3, 1e-5, 1e-7):
        for loss in (0.0, 1e-4):
            faults = LOST_BOOKIES["faults"] | {"message_loss": loss}
            yield LOST_BOOKIES | {"faults": faults, "rates": {"bookie_is_lost": lost}, "run": {"lifetime": 100.0}}
    for elections in (1e-2, 1e-4, 1e-6, 1e-8):
        for shrinks in (1e-2, 1e-5):
            rates = {"controller_elect_leader": elections, "controller_shrink_isr": shrinks}
            yield KAFKA | {"rates": rates}
    for crashes in (1e-4, 1e-8, 1e-11, 1e-14):
        for slow in (1.0, 1e-2):
            yield COMPACTION | {"rates": {"broker_crash": crashes, "compactor_phase_two_write": slow}}
    for shutdowns in (1e-3, 1e-6, 1e-9, 1e-12):
        for fence in (1.0, 1e-3):
            rates = {"data_loss_shutdown": shutdowns, "fence_broker": fence}
            yield KRAFT | {"rates": rates}


ANSWERS = "exact", "low", "high", "method", "states", "runs", "lost"


def answers(experiment: Experiment, exact_bytes: int) -> tuple[bool, list[str]]:
    """Whether the exact answer to an experiment of one point lies in its interval, or its chain takes more memory than
    that; and the columns ANSWERS."""
    found = estimate(experiment, num_cores(), memory_bytes=MEMORY)
    risk, truth = found.data_loss, None
    with suppress(ConfigError):
        truth = exact(experiment, exact_bytes, data_loss_alone=True).data_loss.p
    ends = ("-" if each is None else f"{each:.5e}" for each in (truth, risk.low, risk.high))
    states = f"{found.head.states:,}" if found.head else "-"
    inside = truth is None or risk.low <= truth <= risk.high
    method = found.method.partition(":")[0] + (" (bounds)" if Estimator.far_apart(risk.low, risk.high) else "")
    return inside, [*ends, method, states, f"{found.runs:,}", f"{risk.losses:,}"]


def compared(protocols: list[str]) -> int:
    """The answers to all problems, against exact ones; 1 if one lies outside its interval."""
    table, outside = Table("protocol", "figures", *ANSWERS), 0
    for document in problems():
        if protocols and document["protocol"] not in protocols:
            continue
        run = document.get("run", {}) | {"runs": RUNS, "method": "head"}
        inside, columns = answers(
            config.build_experiment(document | {"run": run}, "tests/validation/rare_events.py"), MEMORY
        )
        outside += not inside
        figures = ", ".join(f"{each:g}" for each in [*document.get("faults", {}).values(), *document["rates"].values()])
        table.add_row(document["protocol"], figures, *columns)
    Console(width=160).print(table)
    print(f"{table.row_count} problems, {outside} outside their intervals")
    return 1 if outside else 0


def cells(files: list[str]) -> int:
    """The answers to every cell of experiment files, in Markdown, beside exact ones where a chain takes little memory;
    1 if one lies outside its interval."""
    outside = 0
    for experiment in map(config.load, map(Path, files)):
        columns = [*(name.rpartition(".")[2] for name in experiment.varied), *ANSWERS]
        print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
        for point in experiment.points:
            alone = experiment._replace(points=(point,), run=experiment.run._replace(runs=RUNS))
            inside, columns = answers(alone, CELL_BYTES)
            outside += not inside
            print(f"| {' | '.join([*map(str, point.varied.values()), *columns])} |", flush=True)
    return 1 if outside else 0


def coverage(only: list[str]) -> int:
    """How often the intervals of replicates hold the exact answer, of heads cut off long before they are certain."""
    table, short = Table("protocol", "figures", "exact", "cost", "L", "B", "lost", "coverage"), 0
    chosen = [each for each in problems() if not only or each["protocol"] in only]
    step = max(1, len(chosen) // REPLICATED)
    for document in (document for first in range(step) for document in chosen[first::step]):
        if table.row_count == REPLICATED:
            break
        experiment = config.build_experiment(
            document | {"run": document.get("run", {})}, "tests/validation/rare_events.py"
        )
        (each,), model = experiment.points, experiment.model
        truth, head = exact(experiment, MEMORY).data_loss.p, Head(model, each.point, MEMORY, by_margin=True)
        solved = None
        while head.grow(rare.MOST_TRANSITIONS) and (solved := head.solve()) and solved.beyond > 1e3 * truth:
            pass
        if solved is None or not solved.leaves:
            continue
        exits = exits_of(head, solved, MEMORY)
        points = from_exits(pack(model, [each.point]), exits)
        part = rare.parts_by_invariant(model, method.sampled_head(solved, exits), exits)[DATA_LOSS]
        jobs = [Job(0, replicate * REPLICATE_RUNS, REPLICATE_RUNS) for replicate in range(REPLICATES)]
        losses = [int(sums[LOST]) for sums in simulate(model, points, jobs, 1, num_cores())]
        intervals = [part.interval(estimator_of_run(experiment.run), lost, REPLICATE_RUNS, 0) for lost in losses]
        covered = sum(low <= truth <= high for low, high in intervals) / REPLICATES
        short += covered < experiment.run.confidence - 0.02
        figures = ", ".join(f"{value:g}" for value in document["rates"].values())
        ends = (f"{truth:.4e}", str(solved.cost), f"{part.inside:.3e}", f"{part.leaves:.3e}", f"{sum(losses):,}")
        table.add_row(document["protocol"], figures, *ends, f"{covered:.3f}")
    Console(width=160).print(table)
    return 1 if short else 0


MODES = {"problems": compared, "coverage": coverage, "cells": cells}

if __name__ == "__main__":
    words = sys.argv[1:] or ["problems"]
    if words[0] not in MODES:
        sys.exit(__doc__)
    sys.exit(MODES[words[0]](words[1:]))
