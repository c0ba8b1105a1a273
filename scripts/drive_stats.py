#!/usr/bin/env python3
"""A made-up year of drive statistics, in the form in which Backblaze publishes its own, to try `quorisk rates` on.

    python scripts/drive_stats.py make DIR [--drives 100000] [--days 365] [--smart 4] [--seed 1]
    python scripts/drive_stats.py time DIR [--rounds 3]   rows/s and memory of `quorisk rates`, on Spark and by pandas
    python scripts/drive_stats.py pandas DIR              the same count by pandas, in as many lines as it takes

Drives are of a dozen models, whose failure rates differ as much as real ones do; a drive that fails is replaced the
next day. `make` also prints the failures and rows that it wrote, which is what `quorisk rates` has to find.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
FIRST = date(2025, 1, 1)
NUM_MODELS = 12
AFR_MEDIAN, AFR_SIGMA = 0.012, 0.7
POLL_S = 0.1


def make(folder: Path, num_drives: int, num_days: int, num_smart: int, seed: int) -> None:
    """Writes a file for each day, and prints what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    models = [f"MAKER{i % 4} X{i:02}A" for i in range(NUM_MODELS)]
    afr = AFR_MEDIAN * np.exp(AFR_SIGMA * rng.standard_normal(NUM_MODELS))
    capacity = (4 + 2 * np.arange(NUM_MODELS)) * 10**12
    model_of = rng.choice(NUM_MODELS, num_drives, p=np.arange(1, NUM_MODELS + 1) / (NUM_MODELS * (NUM_MODELS + 1) / 2))
    generation = np.zeros(num_drives, np.int64)
    smart = ",".join(str(value) for value in rng.integers(0, 10**9, num_smart))
    heads = [f",{models[m]},{capacity[m]}," for m in model_of]
    serials = [f"Z{i:07}" for i in range(num_drives)]
    header = ",".join(
        ["date", "serial_number", "model", "capacity_bytes", "failure", *(f"smart_{i}_raw" for i in range(num_smart))]
    )
    failures = np.zeros(NUM_MODELS, np.int64)
    for number in range(num_days):
        day = (FIRST + timedelta(days=number)).isoformat()
        failed = rng.random(num_drives) < afr[model_of] / 365
        drives = zip(serials, generation, heads, failed, strict=True)
        lines = [f"{day},{serial}{bay}{head}{int(fails)},{smart}\n" for serial, bay, head, fails in drives]
        (folder / f"{day}.csv").write_text(f"{header}\n{''.join(lines)}")
        generation[failed] += 1
        failures += np.bincount(model_of[failed], minlength=NUM_MODELS)
    size = sum(path.stat().st_size for path in folder.glob("*.csv"))
    print(json.dumps({"rows": num_drives * num_days, "failures": int(failures.sum()), "bytes": size}))


def by_pandas(folder: Path) -> None:
    """Counts with pandas: reads the columns that are needed, drops repeated rows, and adds up by model and capacity."""
    import pandas as pd

    needed = ["date", "serial_number", "model", "capacity_bytes", "failure"]
    rows = pd.concat([pd.read_csv(path, usecols=needed) for path in sorted(folder.glob("*.csv"))])
    rows = rows.drop_duplicates(["date", "serial_number"])
    found = rows.groupby(["model", "capacity_bytes"])["failure"].agg(["sum", "size"])
    print(json.dumps({"rows": int(found["size"].sum()), "failures": int(found["sum"].sum())}))


def timed(folder: Path, rounds: int) -> None:
    """Prints seconds, rows a second, and the most memory of a process and of all together, for both ways in turn.

    In the first round files may come from the disk, in later ones from the system's memory.
    """
    quorisk = [sys.executable, "-c", "from quorisk.command.main import main; main()", "rates", str(folder), "--json"]
    ways = (("quorisk rates", quorisk), ("pandas", [sys.executable, __file__, "pandas", str(folder)]))
    for name, command in ways * rounds:
        seconds, most, together, output = _measured(command)
        found = json.loads(output)
        rows = found["rows"] if "rows" in found else found["drives"]["rows"]
        print(
            f"{name}: {seconds:.1f} s, {rows / seconds:,.0f} rows/s; memory: "
            + ", ".join(f"{what} {size / 2**20:,.0f} MiB" for what, size in most.items())
            + f", all together {together / 2**20:,.0f} MiB",
            flush=True,
        )


def _measured(command: list[str]) -> tuple[float, dict[str, int], int, str]:
    """Seconds of a command, the most memory by kind of process and of all at one time, and what it printed."""
    most: dict[str, int] = {}
    together = [0]
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        ended = threading.Event()
        watching = threading.Thread(target=_watch, args=(process.pid, most, together, ended))
        watching.start()
        output = process.stdout.read() if process.stdout else ""
        ended.set()
        watching.join()
    return time.perf_counter() - start, most, together[0], output


def _watch(pid: int, most: dict[str, int], together: list[int], ended: threading.Event) -> None:
    import psutil

    while not ended.wait(POLL_S):
        now: dict[str, list[int]] = {}
        try:
            whole = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for each in whole:
            try:
                kind = "driver" if each.pid == pid else "Java" if "java" in each.name() else "a worker"
                now.setdefault(kind, []).append(each.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        for kind, sizes in now.items():
            most[kind] = max(most.get(kind, 0), *sizes)
        together[0] = max(together[0], sum(sum(sizes) for sizes in now.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "time", "pandas"])
    parser.add_argument("folder", type=Path)
    for name, default in (("drives", 100_000), ("days", 365), ("smart", 4), ("seed", 1), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder, given.drives, given.days, given.smart, given.seed)
    elif given.what == "pandas":
        by_pandas(given.folder)
    else:
        timed(given.folder, given.rounds)


if __name__ == "__main__":
    main()
