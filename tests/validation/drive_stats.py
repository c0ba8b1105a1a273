#!/usr/bin/env python3
"""A made-up year of drive statistics, in the form in which Backblaze publishes its own, to try `quorisk rates` on.

    python tests/validation/drive_stats.py DIR [--drives 100000] [--days 365] [--smart 4] [--seed 1]

Drives are of a dozen models, whose failure rates differ as much as real ones do; a drive that fails is replaced the
next day. Printed are the failures and rows that were written, which is what `quorisk rates` has to find.
"""

import argparse
import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np

FIRST = date(2025, 1, 1)
NUM_MODELS = 12
AFR_MEDIAN, AFR_SIGMA = 0.012, 0.7


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, default in (("drives", 100_000), ("days", 365), ("smart", 4), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    make(given.folder, given.drives, given.days, given.smart, given.seed)


if __name__ == "__main__":
    main()
