"""Checks of what a sweep survives: each is a script of its own under scripts/robustness."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.validation.page import ROOT, Check

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def _script(name: str, *arguments: str) -> tuple[int, list[str]]:
    """Exit status and lines of a script."""
    command = [sys.executable, str(ROOT / "scripts" / "robustness" / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    return done.returncode, done.stdout.splitlines() or ["it said nothing"]


def _small_sweep(out: Path) -> None:
    """The results of a sweep that the other scripts damage."""
    file = out.parent / "small.toml"
    sizes = {"messages": 3, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 2}
    model = "".join(f"{key} = {value}\n" for key, value in sizes.items())
    grid = '"rates.broker_crash" = [0.1, 0.5, 1.0]\n"variant.persist_cursor_before_delete" = [true, false]\n'
    file.write_text(f'protocol = "compaction"\n[model]\n{model}[run]\nruns = 20000\n[grid]\n{grid}')
    command = [sys.executable, "-m", "quorisk", "run", str(file), "--out", str(out), "--master", "local[2,4]"]
    subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def flips(count: int, seed: int) -> Check:
    """Bits of result tables."""
    with TemporaryDirectory() as temporary:
        _small_sweep(Path(temporary, "out"))
        code, said = _script("flip_bits", str(Path(temporary, "out")), "--count", str(count), "--seed", str(seed))
    passed = sum(line.startswith("unnoticed") for line in said)
    return Check(
        "Damage: flipped bits",
        "Each time, one bit of a sweep's tables is flipped, and the tables are read. That has to fail, in one line "
        "that begins with the file's name.",
        ("bits flipped", "noticed", "read as if nothing were wrong"),
        [(f"{count:,}", f"{count - passed:,}", passed)],
        f"{said[-1]}.",
        code == 0,
    )


def files(count: int, seed: int) -> Check:
    """Experiment files."""
    code, said = _script("fuzz_files", "--count", str(count), "--seed", str(seed))
    found = {what: number for number, what in re.findall(r"([\d,]+) (read|refused|wrong)", said[-1])}
    return Check(
        "Damage: experiment files",
        "Files of configs/, and one with every table that they lack, with bytes, lines and values changed: each is "
        "read, or refused in one short line that names the file, within 30 s of processor time.",
        ("files", "read", "refused in a line", "traceback, long line or slow"),
        [(f"{count:,}", *(found.get(each, "0") for each in ("read", "refused", "wrong")))],
        f"{said[-1]}.",
        code == 0,
    )


def tables(count: int, seed: int) -> Check:
    """Crafted result tables."""
    with TemporaryDirectory() as temporary:
        _small_sweep(Path(temporary, "out"))
        code, said = _script("fuzz_results", str(Path(temporary, "out")), "--count", str(count), "--seed", str(seed))
    found = {what: number for number, what in re.findall(r"([\d,]+) (drawn|refused|wrong|not a table)", said[-1])}
    return Check(
        "Damage: crafted results",
        "Tables of results whose values were changed, or bits of their files flipped, and that were sealed again, as "
        "an attacker might do: `quorisk plot` draws them or refuses them in one line, within 60 s. Values that Parquet "
        "cannot hold make no table.",
        ("tables", "drawn", "refused in a line", "not a table", "traceback or slow"),
        [(f"{count:,}", *(found.get(each, "0") for each in ("drawn", "refused", "not a table", "wrong")))],
        f"{said[-1]}.",
        code == 0,
    )


def kills(count: int, seed: int) -> Check:
    """Killed sweeps."""
    return _kills(
        ("--count", str(count), "--seed", str(seed)),
        "Damage: killed sweeps",
        "Sweeps on one machine, whose driver, Java process or Python worker is killed (SIGKILL) at a random moment, "
        "while they plan, run, merge or draw. A driver dies alone, or all that it started with it. ",
    )


def cluster(count: int, seed: int) -> Check:
    """Killed sweeps on a cluster."""
    return _kills(
        ("--count", str(count), "--seed", str(seed), "--cluster"),
        "Damage: killed sweeps on a cluster",
        "The same on a Spark cluster of a master and two workers: the driver, an executor or a worker is killed. ",
    )


def _kills(arguments: Sequence[str], title: str, what: str) -> Check:
    code, said = _script("kill_sweeps", *arguments)
    told = [re.match(r"\d+: (\w+) while (\w+): exit (-?\d+).*; resumed: (True|False)", line) for line in said]
    by: dict[tuple[str, str], Counter[str]] = {}
    for each in filter(None, told):
        counts = by.setdefault((each[1], each[2]), Counter())
        counts["kills"] += 1
        counts["survived"] += each[3] == "0"
        counts["same"] += each[4] == "True"
    rows = [(*key, by[key]["kills"], by[key]["survived"], by[key]["same"]) for key in sorted(by)]
    return Check(
        title,
        f"{what}With `--resume` they have to give the results of an undisturbed sweep, to the byte, and the same "
        "figures; those that survive, because Spark starts again what was killed, have to have them at once.",
        ("killed", "while", "kills", "sweeps that survived", "the same bytes"),
        rows,
        f"{said[-1]}.",
        code == 0,
    )
