#!/usr/bin/env python3
"""How long a command takes at several commits, which take turns on this machine.

    python scripts/by_commit.py HEAD~20 HEAD -- estimate configs/defect1.toml --set runs=1e5
    python scripts/by_commit.py HEAD --cold --keep -- run configs/pulsar.toml --out {out}

Each commit lies in a folder of its own and keeps its own machine code. A round that compiles comes first and does not
count; with --cold nothing is compiled in any round. Of the others the best counts. `{out}` is a new folder in each.
With --keep, the table of scripts/by_commit.tsv gets a row for each commit.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import llvmlite.binding as llvm

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "scripts" / "by_commit.tsv"
COLUMNS = ("date", "commit", "processor", "cores", "command", "compiled", "seconds", "processor_seconds")
QUORISK = (sys.executable, "-c", "from quorisk.command.main import main; main()")


class Took(NamedTuple):
    """What a command took."""

    seconds: float
    processor_seconds: float
    """Of its processes, by those that were waited for."""


def git(*args: str) -> str:
    """What git says. Exits where it complains."""
    done = subprocess.run(["git", "-C", ROOT, *args], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"by_commit.py: git {args[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def laid_out(commit: str, folder: Path) -> Path:
    """The files of a commit, in a folder of its own."""
    there = folder / commit
    there.mkdir()
    git("archive", "--output", f"{there}.tar", commit)
    subprocess.run(["tar", "-xf", f"{there}.tar", "-C", there], check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", there], check=True)
    return there


def run(tree: Path, command: Sequence[str], cold: bool) -> Took:
    """Runs a command of that tree. Exits where it fails."""
    with TemporaryDirectory() as fresh:
        cache = fresh if cold else f"{tree}.cache"
        environment = os.environ | {
            "PYTHONPATH": str(tree),
            "QUORISK_CACHE_DIR": cache,
            "PYSPARK_PYTHON": sys.executable,
        }
        given = [word.replace("{out}", f"{fresh}/out") for word in command]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [*QUORISK, *given], check=False, cwd=tree, env=environment, capture_output=True, text=True
        )
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"by_commit.py: {tree.name}: quorisk {' '.join(given)}: {done.stderr.strip()}")
    return Took(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measured(trees: Sequence[Path], command: Sequence[str], cold: bool, rounds: int) -> list[Took]:
    """The least that the command took in each tree."""
    found: list[list[Took]] = [[] for _ in trees]
    for number in range(rounds if cold else rounds + 1):
        for tree, its in zip(trees, found, strict=True):
            took = run(tree, command, cold)
            print(f"{tree.name}: {took.seconds:.2f} s, {took.processor_seconds:.2f} s of processors", file=sys.stderr)
            if cold or number:
                its.append(took)
    return [Took(*map(min, zip(*its, strict=True))) for its in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="+", help="as git names them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="with nothing compiled")
    parser.add_argument("--keep", action="store_true", help=f"write to {TABLE.relative_to(ROOT)}")
    if "--" not in sys.argv:
        parser.error("what quorisk is asked comes after --")
    at = sys.argv.index("--")
    given, command = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    commits = [git("rev-parse", "--short", commit) for commit in given.commits]
    with TemporaryDirectory() as folder:
        trees = [laid_out(commit, Path(folder)) for commit in commits]
        found = measured(trees, command, given.cold, given.rounds)
    told = llvm.get_host_cpu_name(), os.cpu_count(), f"quorisk {' '.join(command)}", "nothing" if given.cold else "all"
    rows = [
        [f"{datetime.now(UTC):%Y-%m-%d}", commit, *told, f"{took.seconds:.2f}", f"{took.processor_seconds:.2f}"]
        for commit, took in zip(commits, found, strict=True)
    ]
    lines = ["\t".join(map(str, row)) for row in rows]
    print("\t".join(COLUMNS), *lines, sep="\n")
    if given.keep:
        before = TABLE.read_text().splitlines() if TABLE.exists() else ["\t".join(COLUMNS)]
        TABLE.write_text("\n".join([*before, *lines]) + "\n")


if __name__ == "__main__":
    main()
