"""Runs TLC on a module and reads what it found.

Environment: TLC_CP, the class path of TLC; TLA_LIB, the folder of the community modules; TLC_MEM, the most memory that
Java takes (3g unless given).
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

COMPOSITION = "-Dtlc2.tool.impl.Tool.cdot=true"
"""TLC takes A \\cdot B for one step only if told so."""


class Check(NamedTuple):
    """A module with its constants, of which TLC is to visit every state.

    The module has `Count`, an invariant that counts the states that break each of `breaks`, and `Report`, which prints
    the counts.
    """

    name: str
    modules: Mapping[str, str]  # texts by file
    constants: Mapping[str, Any]
    behaviour: tuple[str, ...]  # lines of TLC's configuration: INIT, NEXT, and what else it is to look at
    breaks: tuple[str, ...]


def run(check: Check) -> dict[str, Any]:
    """All states, breadth first, on one thread. RuntimeError with TLC's words if it does not finish."""
    constants = (f"  {name} = {_text(value)}" for name, value in check.constants.items())
    config = ["CONSTANTS", *constants, *check.behaviour, "INVARIANT Count", "POSTCONDITION Report"]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in check.modules.items():
            Path(folder, file).write_text(text)
        Path(folder, "M.cfg").write_text("\n".join(config) + "\n")
        memory = f"-Xmx{os.environ.get('TLC_MEM', '3g')}"
        java = ["java", "-XX:+UseSerialGC", memory, COMPOSITION, f"-DTLA-Library={os.environ['TLA_LIB']}"]
        options = ["-workers", "1", "-deadlock", "-nowarning", "-noGenerateSpecTE", "-metadir", "states"]
        command = [*java, "-cp", os.environ["TLC_CP"], "tlc2.TLC", *options, "-config", "M.cfg", f"{check.name}.tla"]
        output = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False).stdout
    states = re.search(r"([\d,]+) states generated, ([\d,]+) distinct states found, 0 states left", output)
    depth = re.search(r"depth of the complete state graph search is (\d+)", output)
    counts = re.search(r'BREAKING"((?:, \d+)+)', output)
    if not (states and depth and counts):
        raise RuntimeError(output[-3000:])
    generated, distinct = (int(number.replace(",", "")) for number in states.groups())
    return {
        "distinct_states": distinct,
        "generated_states": generated,
        "depth": int(depth[1]),
        "breaking_states": dict(zip(check.breaks, map(int, re.findall(r"\d+", counts[1])), strict=True)),
    }


def counting(breaks: tuple[str, ...]) -> str:
    """The definitions of `Count` and `Report`."""
    numbers = range(1, len(breaks) + 1)
    notes = "\n".join(f"    /\\ Note({i}, {name})" for i, name in zip(numbers, breaks, strict=True))
    counts = ", ".join(f"TLCGet({i})" for i in numbers)
    return rf"""
ASSUME \A i \in 1..{len(breaks)} : TLCSet(i, 0)
Note(i, ok) == ok \/ TLCSet(i, TLCGet(i) + 1)
Count ==
{notes}
Report == PrintT(<<"BREAKING", {counts}>>)
"""


def _text(value: Any) -> str:
    """A constant in TLC's words; a tuple is a set."""
    if isinstance(value, tuple):
        return "{" + ", ".join(map(_text, value)) + "}"
    return str(value).upper() if isinstance(value, bool) else str(value)
