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
import time
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryFile

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
    smart = "".join(f",{value}" for value in rng.integers(0, 10**9, num_smart))
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
        lines = [f"{day},{serial}{bay}{head}{int(fails)}{smart}\n" for serial, bay, head, fails in drives]
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
    """Prints seconds, processor seconds, rows a second, and the most memory by kind of process and of all at one time,
    for both ways in turn. In the first round files may come from the disk, in later ones from the system's memory.
    """
    quorisk = [sys.executable, "-c", "from quorisk.command.main import main; main()", "rates", str(folder), "--json"]
    ways = (("quorisk rates", quorisk), ("pandas", [sys.executable, __file__, "pandas", str(folder)]))
    for name, command in ways * rounds:
        start = time.perf_counter()
        output, used = _measured(command)
        seconds, found = time.perf_counter() - start, json.loads(output)
        rows = found["rows"] if "rows" in found else found["drives"]["rows"]
        memory = ", ".join(f"{what} {size / 2**20:,.0f} MiB" for what, size in used.most.items())
        print(
            f"{name}: {seconds:.1f} s, {rows / seconds:,.0f} rows/s, {sum(used.processor_s.values()):.0f} processor "
            f"seconds; memory: {memory}, all at one time {used.together / 2**20:,.0f} MiB",
            flush=True,
        )


class Used:
    """What a process and those that it started took."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self.together = 0
        self.processor_s: dict[int, float] = {}

    def look(self, pid: int) -> None:
        """Looks at all processes as they are now."""
        import psutil

        now: dict[str, list[int]] = {}
        with suppress(psutil.NoSuchProcess):
            for each in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    kind = "driver" if each.pid == pid else "Java" if "java" in each.name() else "a worker"
                    now.setdefault(kind, []).append(each.memory_info().rss)
                    self.processor_s[each.pid] = each.cpu_times().user + each.cpu_times().system
        for kind, sizes in now.items():
            self.most[kind] = max(self.most.get(kind, 0), *sizes)
        self.together = max(self.together, sum(map(sum, now.values())))


def _measured(command: list[str]) -> tuple[str, Used]:
    """What a command printed, and what it took."""
    used, environment = Used(), os.environ | {"PYTHONPATH": str(ROOT)}
    with (
        TemporaryFile("w+") as output,
        subprocess.Popen(command, stdout=output, env=environment) as process,
    ):
        while process.poll() is None:
            used.look(process.pid)
            time.sleep(POLL_S)
        output.seek(0)
        return output.read(), used


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
