"""The verbs about Quorisk itself: whether its intervals hold, and how fast it is."""

from typing import Annotated, Literal

import typer

from quorisk.command.app import Json, Threads, app, reply


@app.command("check-protocol")
def check_protocol_verb(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a protocol, for instance your own", show_default=False)],
    as_json: Json = False,
) -> None:
    """Check that a protocol keeps to the contract.

    Is it what it declares, in every step of random walks? Does compiled code do what plain Python does? Are the exact
    answers those of counted runs, and those with states put together? Ends at the first thing that is wrong, with the
    state or the run where it is. docs/adding-a-protocol.md has the contract.

    Example: quorisk check-protocol compaction
    """
    from quorisk.analysis import protocol_check
    from quorisk.command import bars

    found = []
    with bars.status() as tell:
        for each in protocol_check.check_protocol(name):
            found.append(each)
            tell(f"{each.name}: {each.found}")
    lines = [f"{each.name}: {each.found}" for each in found]
    lines.append(
        f"{name} keeps to the contract, as far as this can see. Only its specification says whether it is right."
    )
    checked = {"protocol": name, "checked": {each.name: each.found for each in found}}
    reply(as_json, checked, lambda: typer.echo("\n".join(lines)))


@app.command("calibrate")
def calibrate_verb(
    repetitions: Annotated[int, typer.Option(min=1, max=10**6, help="repetitions of every kind of interval")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1)] = 0,
    as_json: Json = False,
) -> None:
    """Check that the intervals keep their promise.

    Makes every kind of interval many times, on chains whose answer is known. Says how often the interval contained it,
    how wide it was, and how many runs it took.

    Example: quorisk calibrate --repetitions 1000
    """
    from quorisk.analysis import calibrate
    from quorisk.command import show
    from quorisk.command.bars import status

    rows = []
    with status() as tell:
        for kind in calibrate.kinds(seed=seed):
            tell(f"{kind.method}, {kind.chain}")
            rows.append(calibrate.calibrate(kind, repetitions))
    reply(as_json, rows, lambda: show.print_calibration(rows, show.console()))


@app.command("bench")
def bench_verb(
    engine: Annotated[
        Literal["numba", "lanes", "jax", "search"] | None, typer.Option(help="measure only this engine")
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure the engines on this machine.

    Measures random runs of every protocol and the search of all states. Numba runs on one thread and on all. Code
    compiled for one configuration ("lanes") makes as many runs at a time as one or two of the CPU's registers hold, or,
    in large models, many together that draw the same action ("queued"). JAX runs on GPUs or on the CPU. compile_s is
    the time of a first call: set QUORISK_CACHE_DIR to an empty folder to measure it with nothing compiled.

    Example: quorisk bench --threads 2 --json
    """
    from quorisk.analysis import bench
    from quorisk.command import bars, show
    from quorisk.kernels.cores import num_cores

    with bars.status() as tell:
        rows = list(bench.bench(engine, threads or num_cores(), tell))
    reply(as_json, rows, lambda: show.print_speeds(rows, show.console()))
