"""The verbs about Quorisk itself: whether its intervals hold, and how fast it is."""

from typing import Annotated, Literal

import typer

from quorisk.command.app import Json, Threads, app, print_json
from quorisk.kernels.errors import ConfigError


@app.command("calibrate")
def calibrate_verb(
    repetitions: Annotated[int, typer.Option(min=1, max=10**6, help="repetitions of every kind of interval")] = 1000,
    p: Annotated[str, typer.Option("--p", help="probabilities of loss to try, such as 0.5,0.1")] = "0.5,0.1,0.001",
    runs: Annotated[int, typer.Option(min=1, max=10**9, help="runs, for intervals of a fixed number of runs")] = 10_000,
    confidence: Annotated[float, typer.Option(help="confidence of the intervals, between 0 and 1")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1)] = 0,
    as_json: Json = False,
) -> None:
    """Check that the intervals hold what they promise.

    Repeats every kind of interval on chains whose answer is known. Says how often the interval held it, how wide it
    was, and how many runs it took.

    Example: quorisk calibrate --repetitions 1000 --p 0.5,0.1,0.001
    """
    from quorisk.analysis import calibrate
    from quorisk.command import show

    probabilities = calibrate.parse_probabilities(p)
    if not 0 < confidence < 1:
        raise ConfigError(f"--confidence {confidence}: a number between 0 and 1")
    chosen = list(calibrate.estimators(probabilities, runs, confidence, seed))
    with show.run_bar(len(chosen) * repetitions, "repetitions") as progress:
        result = calibrate.calibrate(chosen, repetitions, confidence, seed, progress)
    if as_json:
        print_json(result)
    else:
        show.calibrate(result, show.console())


@app.command("bench")
def bench_verb(
    engine: Annotated[
        Literal["numba", "lanes", "jax", "search"] | None, typer.Option(help="measure only this one")
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure the engines on this machine.

    Random runs of every protocol (by Numba on one thread and on all; by code compiled for the one configuration, one
    run after another, "scalar", and as many at a time as the CPU's registers hold, "lanes"; by JAX on GPUs or the CPU),
    and the search of all states. compile_s is the time of a first call: set QUORISK_CACHE_DIR to an empty folder to
    measure it with nothing compiled. For jax it also counts the bytes and operations of a step, and what the device
    could do at most.

    Example: quorisk bench --threads 2 --json
    """
    from quorisk.analysis import bench, estimate
    from quorisk.command import show

    with show.status() as tell:
        rows = list(bench.bench(engine, threads or estimate.num_cores(), tell))
    if as_json:
        print_json(rows)
    else:
        show.bench(rows, show.console())
