#!/usr/bin/env python3
"""Damages the files of sweeps' folders, and asks them everything: never a traceback, nor another number unsaid.

    scripts/robustness/fuzz_folders.py results/one results/two --count 300 --seed 1
    scripts/robustness/fuzz_folders.py results/one results/two --count 30 --seed 1 --spark

A folder is copied, and a file of it changed: bits flipped, cut, emptied, gone, swapped with the other folders', or in
its place a folder, a pipe, or a link; tables written anew, with right checksums, after rows went, came twice, changed
places or lost a column; lines of the experiment's file changed. Then it is loaded, drawn and compared, or with --spark
merged and resumed, each of which has to end in time with 0 or with one line and 1 or 2. What is loaded all the same is
compared with what the folder said before: every difference is printed with what was changed, for somebody to judge.
"""

import argparse
import io
import os
import random
import shutil
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from quorisk.analysis.decision import frames
from quorisk.analysis.results import sealed, sweeps
from quorisk.command.main import main as quorisk
from quorisk.kernels.errors import QuoriskError
from quorisk.sparkjobs.folder import PLAN, REPORT

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.robustness.fuzz_files import damaged

MOST_S = 120
TOLD = ("point_id", "invariant", "runs", "losses", "p", "low", "high", "confidence", "per_year", "run.scenario")
"""What of a frame must not change unsaid."""


class Late(BaseException):
    """A command that did not end in time."""


def _late(*_: object) -> None:
    raise Late


def raw(path: Path, others: Sequence[Path], chance: random.Random) -> str:
    """Changes a file as disks, people and other programs do; says how."""
    whole = path.read_bytes()
    match chance.randrange(12):
        case 0 | 1:
            flipped = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
            path.write_bytes(bytes(flipped))
            return "bits flipped"
        case 2:
            path.write_bytes(whole[: chance.randrange(len(whole))])
            return "cut"
        case 3:
            path.write_bytes(b"")
            return "emptied"
        case 4:
            path.unlink()
            return "removed"
        case 5:
            path.write_bytes(whole + whole[: chance.randint(1, 20)])
            return "longer"
        case 6 | 7:
            other = chance.choice(others)
            shutil.copy(other, path)
            return f"that of {other.parent.name}/{other.name}"
        case 8:
            path.unlink()
            path.mkdir()
            return "a folder"
        case 9:
            path.unlink()
            os.mkfifo(path)
            return "a pipe"
        case 10:
            path.unlink()
            to = chance.choice(["nowhere", path.name, "/dev/zero", "/dev/null", "/proc/self/mem", str(others[0])])
            path.symlink_to(to)
            return f"a link to {to}"
        case _:
            path.rename(path.with_name(chance.choice(["000009.parquet", "9999999999999999999999.parquet", "x.part"])))
            return "renamed"


def rewritten(path: Path, chance: random.Random) -> str:
    """Changes a table and seals it again; says how."""
    table = pq.read_table(path)
    rows, schema = table.to_pylist(), table.schema
    one = chance.randrange(len(rows))
    match how := chance.choice(
        ["a row dropped", "a row doubled", "rows reversed", "a column dropped", "none", "value"]
    ):
        case "a row dropped":
            del rows[one]
        case "a row doubled":
            rows.insert(chance.randrange(len(rows)), rows[one])
        case "rows reversed":
            rows.reverse()
        case "a column dropped":
            schema = schema.remove(chance.randrange(len(schema)))
        case "none":
            name = chance.choice(schema.names)
            rows[one][name] = None
            how = f"{name} is null"
        case _:
            name = chance.choice([name for name in schema.names if isinstance(rows[one][name], int)])
            rows[one][name] = chance.choice([0, 1, -1, rows[one][name] + 1, 2**53, 2**63 - 1])
            how = f"{name} is {rows[one][name]}"
    with path.open("wb") as file:
        sealed.write(pa.Table.from_pylist(rows, schema=schema), file)
    return how


def change(folder: Path, others: Sequence[Path], chance: random.Random) -> str:
    """Changes a file of a folder; says which, and how."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".svg"]
    weights = [0.3 if path.name in (PLAN, REPORT) or path.suffix == ".log" else 3.0 for path in files]
    (path,) = chance.choices(files, weights)
    name = str(path.relative_to(folder))
    if path.suffix == ".parquet" and chance.random() < 0.5:
        return f"{name}: {rewritten(path, chance)}"
    if path.name == sweeps.EXPERIMENT and chance.random() < 0.6:
        path.write_bytes(damaged(path.read_text("utf-8"), chance))
        return f"{name}: lines changed"
    return f"{name}: {raw(path, [other / name for other in others if (other / name).is_file()] or files, chance)}"


def half_finished(folder: Path, chance: random.Random) -> None:
    """Leaves of a folder what a killed sweep does."""
    for name in (sweeps.RESULTS, REPORT):
        (folder / name).unlink()
    tasks = sweeps.task_files(folder)
    for path in tasks[1:]:
        if chance.random() < 0.5:
            path.unlink()


def told(folder: Path) -> dict[tuple[Any, ...], int]:
    """How often a folder says each row of numbers. Raises QuoriskError."""
    frame = frames.load(folder).frame
    return Counter(tuple(map(str, row)) for row in frame[[name for name in TOLD if name in frame]].itertuples(False))


def ended(arguments: Sequence[str]) -> tuple[str, int]:
    """What is wrong with how a command ended, empty if nothing; and its exit status."""
    out, err, code = io.StringIO(), io.StringIO(), -1
    signal.alarm(MOST_S)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            quorisk(list(arguments))
    except SystemExit as end:
        code = int(end.code or 0)
    except Late:
        return f"took more than {MOST_S} s", code
    except BaseException:
        return traceback.format_exc(limit=-4), code
    finally:
        signal.alarm(0)
    said = err.getvalue()
    if code not in (0, 1, 2) or "Traceback" in said + out.getvalue():
        return f"exit {code}: {said}", code
    if code and sum(line.startswith("error: ") for line in said.splitlines()) != 1:
        return f"badly told: {said!r}", code
    return ("" if code == 0 or said.splitlines()[-1].startswith("error: ") else f"badly told: {said!r}"), code


def trial(sources: Sequence[Path], place: Path, chance: random.Random, spark: bool, verbose: bool) -> list[str]:
    """What is wrong, or worth a look, with what comes of one change."""
    source, folder = chance.choice(sources), place / "sweep"
    others = [each for each in sources if each != source]
    shutil.copytree(source, folder, symlinks=True)
    half = spark and chance.random() < 0.5
    if half:
        half_finished(folder, chance)
    how = f"{source.name}{' (half)' if half else ''}: {change(folder, others, chance)}"
    before, found = told(source), []
    commands = {
        "plot": ["plot", str(folder), "--format", "svg", "--only", "loss", "--only", "frontier", "--only", "outcomes"],
        "diff": ["diff", *map(str, chance.sample([folder, source], 2))],
    }
    if spark:
        asked = ["run", str(source / sweeps.EXPERIMENT), "--out", str(folder), "--resume"]
        commands = {"resume": asked} if half or chance.random() < 0.5 else {}
        other = chance.choice(others)
        commands |= (
            {} if half else {"merge": ["merge", *map(str, chance.sample([folder, other], 2)), "--out", f"{place}/out"]}
        )
    for verb, arguments in commands.items():
        wrong, code = ended(arguments)
        if verbose:
            print(how, verb, code, flush=True)
        if wrong:
            found.append(f"{how}: {verb}: {wrong}")
        if verb in ("resume", "plot") and code == 0:
            found += _other_numbers(f"{how}: {verb}", folder, before)
        if verb == "merge" and code == 0 and other in others:
            with suppress(QuoriskError):
                found += _other_numbers(f"{how}: merge with {other.name}", place / "out", before + told(other))
    return found


def _other_numbers(how: str, folder: Path, before: Counter[tuple[Any, ...]]) -> list[str]:
    try:
        now = told(folder)
    except QuoriskError as error:
        return [f"{how}: drawn, but not loaded: {error}"]
    except Exception:
        return [f"{how}: loaded: {traceback.format_exc(limit=-4)}"]
    gone, new = before - now, now - before
    return [f"{how}: {gone.total()} rows gone, {new.total()} new: {list(new)[:1]}"] if gone or new else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="folders of sweeps")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark", action="store_true", help="merge and resume, too")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    wrong = 0
    sources = [path.absolute() for path in given.results]
    for number in range(given.first, given.first + given.count):
        chance = random.Random(f"{given.seed} {number}")
        with TemporaryDirectory() as temporary:
            for line in trial(sources, Path(temporary), chance, given.spark, given.verbose):
                wrong += 1
                print(f"{number}: {line}", flush=True)
    print(f"{given.count:,} changes, seed {given.seed}: {wrong:,} to look at")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
