"""Compares the engine of compiled kernels with the generic one, run by run, on random configurations.

    python scripts/fuzz_engines.py 50 1

runs 50 configurations of every protocol, drawn by seed 1, on the traced scalar loop and on lanes of 16 and 32 runs.
"""

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.kernels.protocols import registry
from tests.kernels.engines import fuzz


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="configurations of each protocol")
    parser.add_argument("seed", type=int)
    parser.add_argument("--runs", type=int, default=4096, help="runs of each")
    parser.add_argument("--lanes", default="1,16,32", help="kernels: 1 is the traced scalar loop")
    parser.add_argument("--protocol", action="append", help="only this one")
    given = parser.parse_args()
    for name in given.protocol or registry.names():
        model, chance, start = registry.load(name), random.Random(f"{name} {given.seed}"), time.monotonic()
        runs = repeated = lost = failed = 0
        for point, seed in fuzz.cases(model, chance, given.count):
            for lanes in map(int, given.lanes.split(",")):
                for timed in (True, False):
                    if not fuzz.supports(point, timed):
                        continue
                    try:
                        compared = fuzz.compare(model, point, lanes, timed, seed, given.runs)
                    except AssertionError as error:
                        failed += 1
                        print(f"{name} differs: {error}", flush=True)
                        continue
                    except RuntimeError as error:
                        print(f"{name} has no kernel: {error}: {point}", flush=True)
                        continue
                    runs, repeated, lost = runs + compared.runs, repeated + compared.repeated, lost + compared.lost
        took = time.monotonic() - start
        print(
            f"{name}: {runs} runs equal, {lost} of them lost, {repeated} repeated; {failed} cases differ; {took:.0f} s"
        )


if __name__ == "__main__":
    main()
