"""Checks of engines: against each other, run by run."""

import time
from functools import partial

from quorisk.kernels.engines import jax_engine, numba_engine, points
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.protocols import registry
from tests.kernels.engines import fuzz
from tests.kernels.engines.test_agreement import POINTS, RERUNS, SEED
from tests.support import point_of
from tests.validation.page import Check


def engines(quick: bool) -> Check:
    """Engines on configurations that show what they have to cope with."""
    rows: list[tuple[str, str, str, int]] = []
    fixed = {f"{model.name}, {name}": (model, point) for name, (model, point) in POINTS.items()}
    for name in registry.names():
        fixed[f"{name}, every default"] = (registry.load(name), point_of(registry.load(name)))
    for name, (model, point) in fixed.items():
        if quick and model.name != "compaction":
            continue
        packed, runs = points.pack(model, [point]), 2000 if quick else 20_000
        by_numba, by_jax = (each.record(model, packed, Job(0, 5, runs), SEED) for each in (numba_engine, jax_engine))
        rows.append((name, "numba and jax", f"{runs:,}", int((by_numba != by_jax).any(1).sum())))
        again = sum(rerun(model, point, SEED, 5 + i).record() != tuple(by_numba[i].tolist()) for i in range(RERUNS))
        rows.append((name, "numba and plain Python", str(RERUNS), again))
    return Check(
        "Engines, against each other",
        "With one seed, run number i is the same run on every engine: outcome, invariants, steps, messages and time "
        "are compared run by run, bit for bit.",
        ("configuration", "engines", "runs", "runs that differ"),
        rows,
        f"{len(rows)} comparisons, in which no run may differ.",
        all(row[3] == 0 for row in rows),
    )


SOME = 4
"""Engines that repeat the runs of a random configuration: more configurations tell more than more engines do."""


def fuzz_engines(quick: bool, count: int, seed: int) -> Check:
    """`count` runs of every protocol on every engine, in random configurations."""
    rows: list[tuple[str, ...]] = []
    differ = list[str]()
    for name in ["compaction"] if quick else registry.names():
        found = fuzz.many(registry.load(name), seed, count, partial(_say, name), some=None if quick else SOME)
        for engine, its in found.items():
            counts = its.configurations, its.runs, its.lost, its.repeated, len(its.differ)
            without = f" ({its.without.total()} not: {'; '.join(its.without)})" if its.without else ""
            cells = [f"{each:,}" for each in counts]
            rows.append((name, engine, cells[0] + without, *cells[1:]))
            differ += its.differ
    told = f" The first: {differ[0]}." if differ else ""
    return Check(
        "Engines, on random configurations",
        f"Every protocol in configurations of random sizes, variants, rates, message loss, lifetimes, horizons and "
        f"most steps, {count:,} runs of each protocol in all, at most {fuzz.MOST_RUNS:,} or some "
        f"{fuzz.MOST_STEPS:,} steps of one configuration. In half of the configurations faults are seldom and nothing "
        "ends a run early, so that there is something to lose once one comes. The generic engine's runs are repeated "
        f"by {SOME} engines, drawn for each configuration: lanes of each width for "
        "AVX-512 and, compiled as for CPUs with narrower registers, for AVX2 and SSE4, and JAX, which "
        f"takes no more than {fuzz.JAX_STEPS:,} steps of a configuration. All sums are compared, and records of "
        "single runs wherever an engine keeps them: JAX always, and kernels in the half of the configurations for "
        "which it was drawn that they keep the time. Repeated are runs that left what a kernel was compiled for: the "
        "generic engine makes them anew, and sums and records are those of both together.",
        (
            "protocol",
            "engine",
            "configurations",
            "runs",
            "of them lost data",
            "of them repeated",
            "kernels that differ",
        ),
        rows,
        f"no kernel and no run may differ from the generic engine's, in {len(rows)} rows.{told}",
        not differ and all(row[3] != "0" for row in rows),
    )


def _say(name: str, runs: int) -> None:
    print(f"{name}: {runs:,} runs, {time.process_time():,.0f} s of processor time so far", flush=True)
