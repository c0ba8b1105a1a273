"""Estimates by head and tail against exact answers, on problems of which counting sees few.

python scripts/rare_events.py             # every problem: truth, interval, seconds; exit code 1 if one lies outside
python scripts/rare_events.py kafka       # those of one protocol
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from quorisk.analysis.estimate import estimate, num_cores
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config

MEMORY = 1 << 31
RUNS = 1_000_000

BOOKKEEPER: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1},
    "variant": {"semantics": "literal", "fence_recovery_reads": False},
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


def problems() -> Iterator[dict[str, Any]]:
    """Experiments of one point; none was chosen for how it comes out."""
    for loss in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        for recovery in (1.0, 1e-3, 1e-6):
            yield BOOKKEEPER | {"faults": {"message_loss": loss}, "rates": {"client_starts_recovery": recovery}}
    for elections in (1e-2, 1e-4, 1e-6, 1e-8):
        for shrinks in (1e-2, 1e-5):
            rates = {"controller_elect_leader": elections, "controller_shrink_isr": shrinks}
            yield KAFKA | {"rates": rates}
    for crashes in (1e-4, 1e-8, 1e-11, 1e-14):
        for slow in (1.0, 1e-2):
            yield COMPACTION | {"rates": {"broker_crash": crashes, "compactor_phase_two_write": slow}}


def main(protocols: list[str]) -> int:
    table = Table("protocol", "rates", "exact", "low", "high", "method", "head", "runs", "lost", "s")
    outside = 0
    for document in problems():
        if protocols and document["protocol"] not in protocols:
            continue
        experiment = config.build(document | {"run": {"runs": RUNS, "method": "head"}}, "scripts/rare_events.py")
        truth = exact(experiment, MEMORY).data_loss.p
        start = time.perf_counter()
        found = estimate(experiment, num_cores(), memory_bytes=MEMORY)
        seconds = time.perf_counter() - start
        risk, head = found.data_loss, found.head
        outside += not risk.low <= truth <= risk.high
        given = [*document.get("faults", {}).values(), *document["rates"].values()]
        table.add_row(
            document["protocol"],
            ", ".join(f"{each:g}" for each in given),
            f"{truth:.5e}",
            f"{risk.low:.5e}",
            f"{risk.high:.5e}",
            found.method.partition(":")[0],
            f"{head.states:,}" if head else "-",
            f"{found.runs:,}",
            f"{risk.losses:,}",
            f"{seconds:.1f}",
        )
        print(f"{document['protocol']} {given}: {truth:.4e} in [{risk.low:.4e}, {risk.high:.4e}]", file=sys.stderr)
    Console(width=150).print(table)
    print(f"{table.row_count} problems, {outside} outside their intervals")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
