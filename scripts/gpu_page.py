"""What the steps of scripts/gpu.py came to, as a section of docs/gpus.md.

Both stay apart from scripts/validate.py: a machine with a GPU is lent for minutes, and one command that can be
resumed has to do all that takes one.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from scripts.validation.page import line

BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"
Found = Mapping[str, Any]
"""What a step left."""


def read(out: Path, name: str) -> dict[str, Any]:
    """What a step left; nothing if it left nothing that can be read."""
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((out / f"{name}.json").read_text("utf-8"))
        return found
    return {}


def placed(page: str, section: str) -> str:
    """The page with another section between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}{section}{END}{rest.split(END)[1]}"


def section(results: Mapping[str, Found]) -> str:
    """Markdown: of each step that was done its figures, of each other one why not."""
    done = {name: its for name, its in results.items() if its and "failed" not in its}
    parts = [_head(list(done.values()))]
    for what, (told, heads, rows_of) in _TABLES.items():
        cells = [
            row for name, its in done.items() if name.startswith(what) for row in rows_of(name.partition("-")[2], its)
        ]
        parts += [f"{told}:\n\n{_table(heads, cells)}"] if cells else []
    waiting = [
        f"- `{name}`: {its.get('failed', 'not done yet')}\n" for name, its in results.items() if name not in done
    ]
    return "\n".join([*parts, "Left:\n\n" + "".join(waiting)] if waiting else parts)


def _head(done: Sequence[Found]) -> str:
    rehearsed = "**A rehearsal, on a CPU.** " if any(its["rehearsed"] for its in done) else ""
    machines, commits = ("; ".join(sorted({str(its[key]) for its in done})) for key in ("machine", "commit"))
    made = sorted(str(its["made"]) for its in done)
    when = f"{machines}; {commits}; {made[0]} to {made[-1]}" if made else "nothing yet"
    return f"{rehearsed}Made by `scripts/gpu.py`: {when}.\n"


def _equal(protocol: str, its: Found) -> Iterator[Sequence[str]]:
    for engine, found in its["engines"].items():
        counts = found["configurations"], found["runs"], found["lost"], found["repeated"], len(found["differ"])
        without = "; ".join(f"{times}: {reason}" for reason, times in found["without"].items())
        yield protocol, engine, f"{its['variants']} of {its['of_variants']}", *(f"{n:,}" for n in counts), without
        yield from ([protocol, *[""] * 6, f"**{each}**", ""] for each in found["differ"])


def _speed(protocol: str, its: Found) -> Iterator[Sequence[str]]:
    best = {way: max(speeds) for way, speeds in its["steps_per_s"].items()}
    cores, bound = max(best["numba, two cores"], best["lanes, two cores"]), its["most_by_operations"]
    times = [f"{best[way] / cores:.3g}" for way in ("XLA", "kernel")]
    of_bound = f"{best['XLA'] / bound:.1%}" if bound else "–"
    yield protocol, *(_number(best[way]) for way in best), *times, of_bound, "yes" if its["same"] else "**no**"


def _profile(protocol: str, its: Found) -> Iterator[Sequence[str]]:
    for way, found in its["ways"].items():
        top = ", ".join(f"`{name}` {share:.0%}" for name, share in found["top"])
        yield protocol, way, f"{found['busy']:.0%}", top


def _spark(_: str, its: Found) -> Iterator[Sequence[str]]:
    points, runs, seconds = f"{its['points']}", f"{its['runs']:,}", (f"{its[key]:.0f}" for key in ("gpu_s", "cpu_s"))
    yield its["master"], its["gpus"], points, runs, *seconds, "yes" if its["same"] else "**no**"


_TABLES: dict[str, tuple[str, Sequence[str], Callable[[str, Found], Iterator[Sequence[str]]]]] = {
    "equal": (
        "Run by run against the generic engine, on the variants that tests know and on random configurations",
        ("protocol", "engine", "variants", "all configurations", "runs", "lost data", "repeated", "differ")
        + ("without a kernel",),
        _equal,
    ),
    "speed": (
        "Steps a second, the best of turns, of the models of `quorisk bench`; one job by all four ways",
        ("model", "numba, two cores", "lanes, two cores", "XLA", "kernel", "XLA, times two cores")
        + ("kernel, times two cores", "XLA, of its bound", "the same sums"),
        _speed,
    ),
    "profile": (
        "What the device's time went to (`jax.profiler`), and for which share of the time it was busy",
        ("model", "way", "busy", "most of it"),
        _profile,
    ),
    "spark": (
        "A sweep on Spark, which assigned a GPU to its tasks, against one on the CPU",
        ("master", "GPU", "points", "runs of each", "seconds", "on the CPU", "the same results"),
        _spark,
    ),
}


def _number(value: float) -> str:
    return f"{value / 1e6:,.3g} million" if value < 1e9 else f"{value / 1e9:,.3g} billion"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"{line(row)}\n" for row in (heads, ["---"] * len(heads), *rows))
