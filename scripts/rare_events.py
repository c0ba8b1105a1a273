"""Heads and tails against exact answers, on problems of which counting sees little or nothing.

python scripts/rare_events.py                      # problems of all protocols; exit code 1 if an answer lies outside
python scripts/rare_events.py problems kafka       # those of one protocol
python scripts/rare_events.py pulsar               # every cell of configs/pulsar.toml, as Markdown; see EXACT_S
python scripts/rare_events.py coverage             # how often intervals of 1,000 replicates hold the exact answer
python scripts/rare_events.py times                # seconds until an answer is so narrow
"""

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.estimate import Estimate, estimate, num_cores
from quorisk.analysis.estimate.stopping import estimator_of
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import ConfigError, Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.starts import starts
from quorisk.kernels.model import LOST, Model
from quorisk.kernels.states.exits import exits_of
from quorisk.kernels.states.head import Head

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.external import retransmission, tandem

MEMORY = 1 << 30
RUNS = 1_000_000
REPLICATED, REPLICATES, REPLICATE_RUNS = 6, 1000, 500
"""Problems, how often each of them is repeated, and with how many runs."""
EXACT_S = 60.0
"""Seconds after which no exact answer is waited for. What heads take is bounded by their size."""
PULSAR = Path(__file__).parents[1] / "configs" / "pulsar.toml"

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
    "model": {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
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


def compared(protocols: list[str]) -> int:
    """The answers to all problems, against exact ones."""
    table, outside = _table("protocol", "figures"), 0
    for document in problems():
        if protocols and document["protocol"] not in protocols:
            continue
        run = document.get("run", {}) | {"runs": RUNS, "method": "head"}
        experiment = config.build(document | {"run": run}, "scripts/rare_events.py")
        figures = [*document.get("faults", {}).values(), *document["rates"].values()]
        outside += _row(table, experiment, document["protocol"], ", ".join(f"{each:g}" for each in figures))
    return _end(table, outside)


def pulsar(only: list[str]) -> int:
    """Every cell of configs/pulsar.toml, as `quorisk run` has it, or those of the scenarios named."""
    table, outside = _table("quorum", "scenario"), 0
    whole = config.load(PULSAR)
    for point in sorted(whole.points, key=lambda point: str(point.scenario)):
        if only and point.scenario not in only:
            continue
        quorums = "/".join(str(point.varied[f"model.{name}"]) for name in ("write_quorum", "ack_quorum"))
        outside += _row(table, whole._replace(points=(point,)), quorums, str(point.scenario))
    cells = zip(*([str(each.header), "---", *map(str, each.cells)] for each in table.columns), strict=True)
    for row in cells:
        print("|", " | ".join(row[:-1]), "|")  # without the seconds, which are another machine's
    return _end(table, outside)


def _table(*first: str) -> Table:
    return Table(*first, "exact", "low", "high", "method", "states", "runs", "lost", "s")


def _row(table: Table, experiment: Experiment, *names: str) -> int:
    """Adds a row; 1 if the exact answer, if there is one, lies outside the interval, or the interval is none."""
    start = time.perf_counter()
    found = estimate(experiment, num_cores(), memory_bytes=MEMORY)
    seconds = time.perf_counter() - start
    truth = _exact(experiment)
    risk = found.data_loss
    is_wrong = not 0.0 <= risk.low <= risk.p <= risk.high or (truth is not None and not _holds(found, truth))
    states = f"{found.head.states:,}" if found.head else "-"
    said = "-" if truth is None else f"{truth:.5e}"
    ends = (f"{risk.low:.5e}", f"{risk.high:.5e}", f"{found.method.partition(':')[0]}{' (bounds)' * risk.bounds}")
    table.add_row(*names, said, *ends, states, f"{found.runs:,}", f"{risk.losses:,}", f"{seconds:.1f}")
    print(*names, said, *ends, f"{seconds:.1f} s", "OUTSIDE" if is_wrong else "", file=sys.stderr, flush=True)
    return int(is_wrong)


def _exact(experiment: Experiment) -> float | None:
    """The exact probability; None if the chain is too large, or not built in EXACT_S."""
    deadline = time.perf_counter() + EXACT_S

    def is_late(*_: int) -> None:
        if time.perf_counter() > deadline:
            raise TimeoutError

    try:
        return exact(experiment, MEMORY, progress=is_late, data_loss_alone=True).data_loss.p
    except (ConfigError, TimeoutError):
        return None


def _holds(found: Estimate, truth: float) -> bool:
    return found.data_loss.low <= truth <= found.data_loss.high


def _end(table: Table, outside: int) -> int:
    Console(width=160).print(table)
    print(f"{table.row_count} problems, {outside} outside their intervals")
    return 1 if outside else 0


def coverage(only: list[str]) -> int:
    """How often the intervals of replicates hold the exact answer, of heads cut off long before they are certain."""
    table, short = Table("protocol", "figures", "exact", "cost", "L", "F", "lost", "coverage"), 0
    chosen = [each for each in problems() if not only or each["protocol"] in only]
    step = max(1, len(chosen) // REPLICATED)
    for document in (document for first in range(step) for document in chosen[first::step]):
        if table.row_count == REPLICATED:
            break
        experiment = config.build(document | {"run": document.get("run", {})}, "scripts/rare_events.py")
        (each,), model = experiment.points, experiment.model
        truth, head = exact(experiment, MEMORY).data_loss.p, Head(model, each.point, MEMORY)
        solved = None
        while head.grow(rare.MOST_TRANSITIONS) and (solved := head.solve()) and solved.leaves > 1e3 * truth:
            pass
        if solved is None or not solved.leaves:
            continue
        exits = exits_of(head, solved, MEMORY)
        points = pack(model, [each.point])._replace(starts=starts(exits.rows, exits.layout, exits.flows))
        part = rare.parts(model, solved, exits)[DATA_LOSS]
        jobs = [Job(0, replicate * REPLICATE_RUNS, REPLICATE_RUNS) for replicate in range(REPLICATES)]
        losses = [int(sums[LOST]) for sums in simulate(model, points, jobs, 1, num_cores())]
        intervals = [part.interval(estimator_of(experiment.run), lost, REPLICATE_RUNS, 0) for lost in losses]
        covered = sum(low <= truth <= high for low, high in intervals) / REPLICATES
        short += covered < experiment.run.confidence - 0.02
        figures = ", ".join(f"{value:g}" for value in document["rates"].values())
        ends = (f"{truth:.4e}", str(solved.cost), f"{solved.lost:.3e}", f"{solved.leaves:.3e}", f"{sum(losses):,}")
        table.add_row(document["protocol"], figures, *ends, f"{covered:.3f}")
    Console(width=160).print(table)
    return 1 if short else 0


def times(_: list[str]) -> int:
    """Seconds until an answer is as narrow as was asked for."""
    table = Table("problem", "asked", "low", "high", "half-width", "method", "s")
    larger = BOOKKEEPER["model"] | {"bookies": 3, "write_quorum": 3}
    asked = [
        ("2/2/2/2/1/1", BOOKKEEPER["model"], loss, recovery, 0.01)
        for loss, recovery in ((1e-3, 1.0), (1e-6, 1.0), (1e-6, 1e-6))
    ]
    asked += [("3/2/3/2/1/1", larger, 1e-3, 1.0, 0.01)]
    asked += [("3/2/3/2/2/2", larger | {"entries": 2, "inflight": 2}, 1e-5, 1.0, 0.1)]
    for name, model, loss, recovery, width in asked:
        settings = {"runs": 100_000_000, "method": "head", "relative_precision": width}
        document = BOOKKEEPER | {"model": model, "faults": {"message_loss": loss}, "run": settings}
        document |= {"rates": {"client_starts_recovery": recovery}}
        start = time.perf_counter()
        found = estimate(config.build(document, "scripts/rare_events.py"), num_cores(), memory_bytes=MEMORY)
        seconds, risk = time.perf_counter() - start, found.data_loss
        half = (risk.high - risk.low) / 2.0 / risk.p if risk.p else float("inf")
        row = (f"{name} at {loss:g}, {recovery:g}", f"{width:.0%}", f"{risk.low:.4e}", f"{risk.high:.4e}")
        table.add_row(*row, f"{half:.2%}", found.method.partition(":")[0], f"{seconds:.1f}")
        print(*row, f"{half:.2%} {seconds:.1f} s", file=sys.stderr, flush=True)
    for name, model, point, published in others():
        start = time.perf_counter()
        solved = rare.solve(model, point, MEMORY, rare.MOST_TRANSITIONS)
        assert solved is not None
        inside, leaves = solved[1].broken[model.invariants[0].name]
        low, high = inside, inside + leaves
        row = (name, "", f"{low:.6e}", f"{high:.6e}")
        seconds = f"{time.perf_counter() - start:.1f}"
        table.add_row(*row, f"{(high - low) / 2.0 / low:.2%}", f"{rare.CERTIFIED}; published: {published}", seconds)
    Console(width=160).print(table)
    return 0


def others() -> Iterator[tuple[str, Model, Point, str]]:
    """Problems from elsewhere, with what is published of them."""
    for capacity in (12, 14):
        point = Point({"capacity": capacity}, tandem.RATES, 0.0, 10**6, math.inf)
        yield f"tandem queue, {capacity}", tandem.MODEL, point, tandem.FIGURES[capacity]
    for retries in (5, 9):
        values = {"frames": 16, "max_retries": retries}
        point = Point(values, retransmission.RATES, retransmission.FRAME_LOSS, 10**6, math.inf)
        yield (
            f"retransmission, 16 frames, {retries} retries",
            retransmission.MODEL,
            point,
            retransmission.P1.get(retries, "-"),
        )


MODES = {"problems": compared, "pulsar": pulsar, "coverage": coverage, "times": times}

if __name__ == "__main__":
    words = sys.argv[1:] or ["problems"]
    if words[0] not in MODES:
        sys.exit(__doc__)
    sys.exit(MODES[words[0]](words[1:]))
