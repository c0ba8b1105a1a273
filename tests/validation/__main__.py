"""Compares Quorisk with everything there is to compare it with, and writes docs/validation.md.

    python -m tests.validation            all of it: hours on a small machine
    python -m tests.validation --quick    small counts, in minutes; prints, and leaves the page alone
    python -m tests.validation --only flips --count 10000 --seed 2

Exits with 1 if something does not hold.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.validation import (
    answers,
    clusters,
    crafted_tables,
    damaged_files,
    engines,
    flips,
    kills,
    mutants,
    probabilities,
)
from tests.validation.page import Check, write


class Runs(NamedTuple):
    """A check, and how often it looks if nothing else is said."""

    check: Callable[..., Check]
    usual: int = 0
    """0 if it takes no count."""
    quick: int = 0


CHECKS = {
    "tlc": Runs(lambda quick, count, seed: probabilities.tlc(quick)),
    "published": Runs(lambda quick, count, seed: probabilities.published(quick)),
    "clusters": Runs(lambda quick, count, seed: clusters.clusters(quick)),
    "majorities": Runs(lambda quick, count, seed: clusters.majorities(quick)),
    "storm": Runs(lambda quick, count, seed: probabilities.by_storm(quick)),
    "latency": Runs(lambda quick, count, seed: probabilities.latency(quick)),
    "sampling": Runs(lambda quick, count, seed: probabilities.sampling(quick)),
    "answers": Runs(answers.answers, 32, 8),
    "coverage": Runs(probabilities.coverage, 1000, 50),
    "engines": Runs(lambda quick, count, seed: engines.engines(quick)),
    "fuzz": Runs(engines.fuzz_engines, 1_000_000, 4000),
    "flips": Runs(lambda quick, count, seed: flips.flips(count, seed), 10_000, 200),
    "files": Runs(lambda quick, count, seed: damaged_files.files(count, seed), 10_000, 200),
    "mutants": Runs(lambda quick, count, seed: mutants.mutants(count, seed), len(mutants.MUTANTS), 3),
    "tables": Runs(lambda quick, count, seed: crafted_tables.tables(count, seed), 1000, 30),
    "kills": Runs(lambda quick, count, seed: kills.kills(count, seed), 100, 1),
    "cluster": Runs(lambda quick, count, seed: kills.kills(count, seed, on_cluster=True), 20, 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=CHECKS, help="this check; may be given several times")
    parser.add_argument("--quick", action="store_true", help="small counts, and nothing written")
    parser.add_argument("--count", type=int, help="how often a check looks that takes a count")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    failed = []
    for name in given.only or CHECKS:
        runs, start = CHECKS[name], time.perf_counter()
        count = given.count or (runs.quick if given.quick else runs.usual)
        found = runs.check(given.quick, count, given.seed)
        seconds = time.perf_counter() - start
        print(f"{name}: {'holds' if found.holds else 'DOES NOT HOLD'}: {found.verdict} ({seconds:.0f} s)", flush=True)
        if not found.holds:
            failed.append(name)
        if not given.quick:
            counted = f" --count {count} --seed {given.seed}" if runs.usual else ""
            write(name, found, f"python -m tests.validation --only {name}{counted}", seconds, list(CHECKS))
    sys.exit(len(failed) > 0)


if __name__ == "__main__":
    main()
