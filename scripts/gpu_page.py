"""What the steps of scripts/gpu.py came to, as a section of docs/gpus.md. Needs Python alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- measured -->\n", "<!-- /measured -->\n"
Results = Mapping[str, Mapping[str, Any]]
"""What each step left, by its name; nothing where it is not done."""


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


def section(results: Results) -> str:
    """Markdown: of each step that was done its figures, of each other one why not."""
    parts = [_head(results), _equal(results), _speed(results), _profile(results), _spark(results), _rest(results)]
    return "\n".join(part for part in parts if part)


def _head(results: Results) -> str:
    install = results["install"]
    commits = sorted({str(its["commit"]) for its in results.values() if its.get("commit")})
    made = sorted(str(its["made"]) for its in results.values() if its.get("made"))
    machine = [f"{install.get('devices', 0)} × {install.get('device', 'unknown')}", f"driver {install.get('driver')}"]
    machine += [str(install.get("versions")), f"{install.get('cores')} cores of {install.get('processor')}"]
    rehearsed = "**A rehearsal, on a CPU.** " if any(its.get("rehearsed") for its in results.values()) else ""
    when = f"{made[0]} to {made[-1]}" if made else "never"
    made_of = f"{', '.join(machine)}; commit {', '.join(commits) or 'unknown'}; {when}"
    return f"{rehearsed}Made by `scripts/gpu.py`: {made_of}.\n"


def _equal(results: Results) -> str:
    rows = []
    for protocol, its in _done(results, "equal"):
        for engine, found in its["engines"].items():
            counts = found["configurations"], found["runs"], found["lost"], found["repeated"], len(found["differ"])
            without = "; ".join(f"{times}: {reason}" for reason, times in found["without"].items())
            variants = f"{its['variants']} of {its['of_variants']}"
            rows.append((protocol, engine, variants, *(f"{each:,}" for each in counts), without))
            rows += [(protocol, *[""] * 6, f"**{each}**", "") for each in found["differ"]]
    heads = ["protocol", "engine", "variants", "all configurations", "runs", "lost data", "repeated", "differ"]
    told = "Run by run against the generic engine, on the variants that tests know and on random configurations:\n\n"
    return told + _table([*heads, "without a kernel"], rows) if rows else ""


def _speed(results: Results) -> str:
    rows = []
    counted = results["count"].get("kernels", {})
    for protocol, its in _done(results, "speed"):
        best = {way: max(speeds) for way, speeds in its["steps_per_s"].items()}
        limits = {"XLA": its["most_by_operations"], "kernel": counted.get(protocol, {}).get("most_steps_per_s")}
        cores = max(best["numba, two cores"], best["lanes, two cores"])
        cells = [_number(best["numba, two cores"]), _number(best["lanes, two cores"])]
        for way in ("XLA", "kernel"):
            limit = limits[way]
            cells += [_number(best[way]), f"{best[way] / limit:.1%}" if limit else "–", f"{best[way] / cores:.3g}"]
        rows.append((protocol, *cells, "yes" if its["same"] else "**no**"))
    heads = ["steps/s:", "numba, two cores", "lanes, two cores"]
    heads += [f"{way}{what}" for way in ("XLA", "kernel") for what in ("", ", of its bound", ", times two cores")]
    told = "\nSteps a second, the best of turns, of the models of `quorisk bench`; one job by all four ways:\n\n"
    return told + _table([*heads, "the same sums"], rows) if rows else ""


def _profile(results: Results) -> str:
    rows = []
    for protocol, its in _done(results, "profile"):
        for way, found in its["ways"].items():
            top = ", ".join(f"`{name}` {share:.0%}" for name, share in found["top"])
            rows.append((protocol, way, f"{found['busy']:.0%}", top))
    told = "\nWhat the device's time went to (`jax.profiler`), and for which share of the time it was busy:\n\n"
    return told + _table(("model", "way", "busy", "most of it"), rows) if rows else ""


def _spark(results: Results) -> str:
    its = results["spark"]
    if not its or "failed" in its:
        return ""
    same = "the same results as" if its["same"] else "**other results than**"
    told = f"A sweep of {its['points']} points, {its['runs']:,} runs each, on Spark (`{its['master']}`), which assigned"
    return f"\n{told} GPU {its['gpus']}: {same} on the CPU, in {its['gpu_s']:.0f} s against {its['cpu_s']:.0f} s.\n"


def _rest(results: Results) -> str:
    said = [
        f"- `{name}`: {its.get('failed', 'not done yet')}"
        for name, its in results.items()
        if not its or "failed" in its
    ]
    return "\n".join(["\nLeft:\n", *said, ""]) if said else ""


def _done(results: Results, what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The protocols with which a step was done, and what it came to."""
    for name, its in results.items():
        kind, _, protocol = name.partition("-")
        if kind == what and its and "failed" not in its:
            yield protocol, its


def _number(value: float) -> str:
    return f"{value / 1e6:,.3g} million" if value < 1e9 else f"{value / 1e9:,.3g} billion"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (heads, ["---"] * len(heads), *rows)]
    return "".join(f"| {line} |\n" for line in lines)
