"""The `quorisk` command. Everything heavy is imported by the verb that needs it, so that --help is there at once."""

import atexit
import gc
import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer.exceptions import TyperException

from quorisk.command import decide, grids  # noqa: F401  # their verbs come first
from quorisk.command.app import File, Json, Overrides, Threads, app, as_text, load, load_one, print_json
from quorisk.kernels.errors import ConfigError, QuoriskError

if TYPE_CHECKING:
    from quorisk.analysis.experiment.config import Experiment

FAILED, INTERRUPTED = 1, 130
_OPTIONS = {"overrides": "set", "keys": "break_even"}
"""Options that are not called as their arguments in Python are."""
MOST_CHARACTERS = 2000
"""Of an error's line."""


@app.command("estimate")
def estimate_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for the likeliest paths, where losses are rare")] = "1GiB",
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Estimate one configuration's risk by random runs.

    How likely is a run to break each invariant, how far can that number be trusted, and how do runs end? Losses too
    rare for runs are solved along the likeliest paths. For a file with scenarios: how many losses a year, and in which
    of them?

    \b
    Example: quorisk estimate configs/defect1.toml --set run.runs=100000 --set faults.message_loss=0.2
    """
    experiment = load_one(file, overrides)
    from quorisk.analysis import estimate, explore, year
    from quorisk.command import show, show_year

    memory_bytes = explore.parse_memory(memory)
    cores = threads or estimate.num_cores()
    if year.has_year(experiment):
        with show.run_bar(experiment.run.runs * len(experiment.points)) as progress:
            whole = year.estimate_year(experiment, cores, progress, memory_bytes)
        print_json(year.as_json(whole)) if as_json else show_year.year(whole, show.console())
        return
    with show.estimate_bar(experiment.run.runs) as (progress, solving):
        result = estimate.estimate(experiment, cores, progress, memory_bytes, solving)
    if as_json:
        print_json(result)
    else:
        show.estimate(result, show.console())


@app.command("explore")
def explore_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for states, such as 512MiB")] = "4GiB",
    as_json: Json = False,
) -> None:
    """Search every state of one configuration.

    How many states can it reach, and how many of them break which invariant?

    Example: quorisk explore configs/defect1.toml --memory 8GiB
    """
    experiment = load_one(file, overrides)
    from quorisk.analysis import explore
    from quorisk.command import show

    memory_bytes = explore.parse_memory(memory)
    with show.search_line() as progress:
        found, seconds = explore.explore(experiment, memory_bytes, progress)
    if as_json:
        print_json(explore.as_json(experiment, found, seconds))
    else:
        show.explore(found, seconds, explore.left_out(experiment), show.console())


@app.command("exact")
def exact_verb(
    file: File,
    overrides: Overrides,
    by_steps: Annotated[
        list[int],
        typer.Option(
            min=0,
            help="also print the probability of data loss within this many steps",
            default_factory=list,
            show_default=False,
        ),
    ],
    by_time: Annotated[
        list[float],
        typer.Option(
            min=0.0,
            help="also print the probability of data loss by this model time",
            default_factory=list,
            show_default=False,
        ),
    ],
    memory: Annotated[str, typer.Option(help="memory for states and transitions, such as 512MiB")] = "4GiB",
    storm: Annotated[bool, typer.Option("--storm", help="let the model checker Storm solve it as well")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the chain to a .umb or .drn file", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Solve one configuration exactly.

    Builds the Markov chain that a random run is, with every state, and solves it. A probability of zero is proved.
    For a file with scenarios: losses a year, of each scenario and in all.

    \b
    Example: quorisk exact configs/defect1.toml --set model.bookies=2 --set model.write_quorum=2 --by-steps 14
    """
    experiment = load_one(file, overrides)
    from quorisk.analysis import explore, year
    from quorisk.analysis.exact import exact
    from quorisk.command import show, show_year

    memory_bytes = explore.parse_memory(memory)
    if year.has_year(experiment):
        if by_steps or by_time or storm or export:
            raise ConfigError(
                "--by-steps, --by-time, --storm, --export: of one scenario; pick it with --set scenario=NAME"
            )
        with show.search_line("transitions") as progress:
            whole = year.exact_year(experiment, memory_bytes, progress)
        print_json(year.as_json(whole)) if as_json else show_year.year(whole, show.console())
        return
    with show.search_line("transitions") as progress:
        result = exact.exact(experiment, memory_bytes, by_steps, by_time, storm, progress, export)
    if as_json:
        print_json(result)
    else:
        show.exact(result, show.console())


@app.command("compare")
def compare_verb(
    file: File,
    overrides: Overrides,
    vary: Annotated[
        list[str],
        typer.Option(
            metavar="SECTION.KEY=VALUE,VALUE",
            help="a key and its values, the baseline first; several keys are crossed",
            default_factory=list,
            show_default=False,
        ),
    ],
    ablation: Annotated[
        bool, typer.Option("--ablation", help="turn every switch off in turn, and compare with all on")
    ] = False,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="compare every pair, not only each with the first")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="forest plot to write (.svg, .png or .pdf)", show_default=False)
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Compare variants of one configuration, run by run.

    All variants see the same random numbers. Says by how much they differ and how far that can be trusted; with
    --ablation, what each safety mechanism is worth. For a file with scenarios, in losses a year.

    \b
    Example: quorisk compare configs/defect1.toml --vary variant.fence_recovery_reads=true,false
    """
    if ablation == bool(vary) or (ablation and all_pairs):
        raise ConfigError("--vary or --ablation: one of the two (--all-pairs goes with --vary)")
    if plot and plot.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigError(f"--plot {plot}: a file name that ends in .svg, .png or .pdf")
    from quorisk.analysis import compare, compare_years, estimate
    from quorisk.command import show, show_year

    def changed(*more: str) -> "Experiment":
        return load(file, [*overrides, *more])

    def planned(changed: compare.Changed) -> compare.Plan:
        return compare.ablation(changed) if ablation else compare.vary(changed, vary, all_pairs)

    if plans := compare_years.plans(changed, planned):
        if plot:
            raise ConfigError("--plot: of one scenario; pick it with --set scenario=NAME")
        runs = sum(plan.experiment.run.runs * len(plan.variants) for plan in plans.values())
        with show.run_bar(runs) as progress:
            years = compare_years.compare_years(
                plans, changed().run.confidence, threads or estimate.num_cores(), progress
            )
        print_json(compare_years.as_json(years)) if as_json else show_year.differences(years, show.console())
        return
    plan = planned(changed)
    with show.run_bar(plan.experiment.run.runs * len(plan.variants)) as progress:
        result = compare.compare(plan, threads or estimate.num_cores(), progress)
    if plot:
        _plot(plot, compare.rows(result))
    if as_json:
        print_json(result)
        return
    show.compare(result, show.console())
    if plot:
        typer.echo(f"{plot}: the differences as a figure")


@app.command("trace")
def trace_verb(
    file: File,
    overrides: Overrides,
    invariant: Annotated[
        str, typer.Option(help="the invariant to break; 'data loss' is any whose breach is data loss")
    ] = "data loss",
    form: Annotated[
        Literal["words", "tlc", "mermaid", "sequencediagram", "svg"] | None,
        typer.Option(
            "--format", help="default: words, or what the ending of --out says (.svg, .mmd, .json)", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="file to write", dir_okay=False, show_default=False)] = None,
    run: Annotated[
        str | None, typer.Option(metavar="SEED:INDEX", help="show this random run instead", show_default=False)
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--replay", metavar="JSON", help="show a trace saved with --json", show_default=False)
    ] = None,
    memory: Annotated[str, typer.Option(help="memory for the search of all states, such as 512MiB")] = "4GiB",
    as_json: Json = False,
) -> None:
    """Show how an invariant breaks, step by step.

    A shortest counterexample if all states fit the memory; else one from random runs, minimised. Or any random run, or
    a saved trace. As words, TLC's states, Mermaid, sequencediagram.org source, or a picture.

    \b
    Example: quorisk trace configs/defect1.toml --memory 64MiB --format sequencediagram
    """
    if run and saved:
        raise ConfigError("--run, --replay: one of the two")
    experiment = load_one(file, overrides)
    from quorisk.analysis import explore
    from quorisk.analysis.traces import find, formats, json_file, trace
    from quorisk.command import show

    memory_bytes, chosen = explore.parse_memory(memory), formats.chosen(form, out)
    with show.status() as tell:
        found = find.asked_for(experiment, invariant, run, saved, memory_bytes, tell)
    replayed = found.trace and trace.replay(found.trace)
    answer = json_file.as_json(*found, replayed.verdict if replayed else "")
    if found.trace and replayed:
        text = as_text(answer) if chosen == "json" else formats.FORMATS[chosen](found.trace, replayed)
        if out:
            _write(out, text)
        elif not as_json:
            typer.echo(text, nl=False)
    if as_json:
        print_json(answer)
    elif out or not found.trace:
        typer.echo(_by_option(found.reason) if not found.trace else f"{out}: {found.reason}")


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


def main(arguments: Sequence[str] | None = None) -> None:
    """The console entry: exits with 0 if done, else after one line on stderr: 1 failed, 2 bad input, 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    atexit.register(gc.freeze)  # or else Python looks through all objects as it ends, for half a second
    try:
        _check_text(given)
        code = app(args=given or ["--help"], prog_name="quorisk", standalone_mode=False)
        sys.stdout.flush()
    except QuoriskError as error:
        _exit(f"error: {_said(error)}", error.exit_code)
    except TyperException as error:
        _exit(f"error: {error.format_message()}", error.exit_code)
    except OSError as error:  # such as a full disk under stdout
        _exit(f"error: {error}", FAILED)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # which is also how Typer tells of Ctrl-C
        _exit("interrupted", INTERRUPTED)
    sys.exit(code)


def _said(error: QuoriskError) -> str:
    """An error's line, in which an argument is called by the option that gives it."""
    line = f"`{error.argument}`{error.text}" if isinstance(error, ConfigError) and error.argument else str(error)
    return _by_option(line)


def _by_option(line: str) -> str:
    """A line in which arguments that are called as in Python are called by their options."""
    return re.sub(r"`(\w+)`", lambda name: "--" + _OPTIONS.get(name[1], name[1]).replace("_", "-"), line)


def _check_text(arguments: Sequence[str]) -> None:
    """Raises ConfigError if an argument would make a terminal do something, or cannot be written into a report."""
    for argument in arguments:
        if any(_is_control(character) for character in argument):
            raise ConfigError(f"{argument}: control characters, or no UTF-8; rename what is named so")


def _is_control(character: str) -> bool:
    """Whether it makes a terminal do something, or stands for a byte of a file name that is not UTF-8."""
    return unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"


def _exit(line: str, code: int) -> NoReturn:
    said = "".join(ascii(c)[1:-1] if _is_control(c) else c for c in " ".join(line.split()))
    print(said if len(said) <= MOST_CHARACTERS else f"{said[: MOST_CHARACTERS - 3]}...", file=sys.stderr)
    sys.exit(code)


def _plot(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    import pandas as pd

    from quorisk.plots.forest import forest_figure
    from quorisk.plots.style import save

    try:
        path.write_bytes(save(forest_figure(pd.DataFrame(rows)), path.suffix.removeprefix(".")))
    except OSError as error:
        raise ConfigError(f"--plot {path}: cannot be written: {error.strerror}") from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {error.strerror}") from None
