#!/usr/bin/env python3
"""Flips bits of a sweep's tables, one at a time, and counts those that reading does not notice. None may pass.

scripts/robustness/flip_bits.py results/demo --count 10000 --seed 1
"""

import argparse
import random
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from quorisk.kernels.errors import ConfigError, ResultError, RunError
from quorisk.sparkjobs import folder


def said(copy: Path) -> str:
    """How reading a folder's tables fails, in a line; empty if it does not."""
    try:
        folder.result_rows(copy)
    except (ConfigError, ResultError, RunError) as error:
        return str(error)
    except Exception as error:
        return f"traceback: {error!r:.300}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a sweep")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, passed = random.Random(given.seed), 0
    with TemporaryDirectory() as temporary:
        copy = Path(temporary, "copy")
        shutil.copytree(given.results, copy)
        files = [copy / folder.RESULTS, *sorted((copy / folder.TASKS).glob("*.parquet"))]
        if wrong := said(copy):
            sys.exit(f"{given.results}: damaged already: {wrong}")
        for _ in range(given.count):
            file = chance.choice(files)
            whole = file.read_bytes()
            at = chance.randrange(8 * len(whole))
            file.write_bytes(whole[: at // 8] + bytes([whole[at // 8] ^ 1 << at % 8]) + whole[at // 8 + 1 :])
            wrong = said(copy)
            if not wrong.startswith(f"{file}: ") or "\n" in wrong:
                passed += 1
                print(f"unnoticed: bit {at} of {file.relative_to(copy)}: {wrong or 'read'}")
            file.write_bytes(whole)
    print(f"{given.count:,} bits flipped in {len(files)} files, seed {given.seed}: {passed} unnoticed")
    sys.exit(passed > 0)


if __name__ == "__main__":
    main()
