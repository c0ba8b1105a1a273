"""docs/validation.md: a section for each check, each with a table, replaced when the check is run again."""

import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "validation.md"
HEAD = """# Validation

This page says what Quorisk was compared with, whose figures those are, and how far apart they were.
`python -m tests.validation` makes the comparisons and writes the page; with `--quick` it makes small ones, in minutes.
Every section says when it was made, with which versions and by which command. None of the figures was typed in by hand.
"""
_SECTION = re.compile(r"<!-- (\w+) -->\n(.*?)\n<!-- /\1 -->\n", re.DOTALL)
CODE = ("quorisk", "kernels", "analysis", "sparkjobs", "plots", "say")
"""Where what is checked lies."""
PACKAGES = ("quorisk", "numpy", "numba", "jax", "scipy", "stormpy", "pyspark", "pyarrow")


class Check(NamedTuple):
    """What a check came to."""

    title: str
    what: str
    """What is compared with what, in sentences."""
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    verdict: str
    """The rows in a sentence, with the largest deviation."""
    holds: bool


def write(name: str, check: Check, command: str, seconds: float, order: Sequence[str]) -> None:
    """Puts a section into the page, in place of the one it had; sections are in `order`."""
    there = dict(_SECTION.findall(PAGE.read_text("utf-8"))) if PAGE.exists() else {}
    there[name] = _section(check, command, seconds)
    parts = [f"\n<!-- {each} -->\n{there[each]}\n<!-- /{each} -->\n" for each in order if each in there]
    missing = ", ".join(f"`{each}`" for each in order if each not in there)
    last = (
        f"\nNot on this page yet: {missing}. `make test` makes small versions of these comparisons.\n"
        if missing
        else ""
    )
    PAGE.write_text(HEAD + "".join(parts) + last, "utf-8")


def _section(check: Check, command: str, seconds: float) -> str:
    lines = [line(check.headings), line(["---"] * len(check.headings)), *map(line, check.rows)]
    state = "Holds" if check.holds else "**Does not hold**"
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {seconds:,.0f} s, `{command}`, {_versions()}"
    return "\n".join(
        [f"## {check.title}", "", check.what, "", *lines, "", f"{state}: {check.verdict}", "", f"<sub>{made}</sub>"]
    )


def line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _versions() -> str:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    system = f"Python {platform.python_version()} on {platform.machine()}"
    return ", ".join(filter(None, [commit(), system, *found]))


def commit() -> str:
    """What was checked: the last commit of `main` in it, which no rebase takes away, and whether code changed since.

    Nothing where git does not know, or is not there.
    """
    if not shutil.which("git"):
        return ""

    def git(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)

    base = git("merge-base", "HEAD", "main").stdout.strip() or git("rev-parse", "HEAD").stdout.strip()
    if not base:
        return ""
    changed = git("diff", "--quiet", base, "--", *CODE).returncode != 0
    return f"commit {git('rev-parse', '--short', base).stdout.strip()}{' with changes' if changed else ''}"


def relative(ours: float, theirs: float) -> float:
    """The deviation of ours from theirs."""
    return abs(ours - theirs) / abs(theirs) if theirs else abs(ours)
