"""Compares all engines with the generic one, run by run, on random configurations.

    python scripts/fuzz_engines.py 1000000 1 --protocol kafka

makes a million runs of Kafka, in configurations drawn by seed 1, on every engine that this machine has.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.kernels.protocols import registry
from tests.kernels.engines import fuzz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, help="of each protocol")
    parser.add_argument("seed", type=int)
    parser.add_argument("--protocol", action="append", choices=registry.names(), help="only this one")
    parser.add_argument("--engine", action="append", choices=fuzz.engines(), default=[], help="only this one")
    parser.add_argument("--some", type=int, help="so many of them for each configuration, drawn (all)")
    given = parser.parse_args()
    differ = 0
    for name in given.protocol or registry.names():

        def progress(runs: int, name: str = name, start: float = time.monotonic()) -> None:
            print(f"{name}: {runs} runs after {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

        found = fuzz.many(registry.load(name), given.seed, given.runs, progress, given.engine, given.some)
        for engine, its in found.items():
            told = f"{its.runs} runs, {its.lost} of them lost, {its.repeated} repeated, {len(its.differ)} cases differ"
            print(f"{name}, {engine}: {its.configurations} configurations, {told}", *its.differ, sep="\n  ")
            for reason, times in its.without.items():
                print(f"  {times} without a kernel: {reason}")
            differ += len(its.differ)
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
