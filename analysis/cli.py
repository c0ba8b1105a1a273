"""The `quorisk` command. Everything heavy is imported by the verb that needs it, so that --help is there at once."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer.exceptions import TyperException

from analysis.errors import ConfigError

if TYPE_CHECKING:
    from analysis.config import Experiment

BAD_INPUT, INTERRUPTED = 2, 130

app = typer.Typer(
    name="quorisk",
    help="How likely a replicated log is to lose acknowledged data, for a quorum configuration and its faults.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="experiment file (TOML)", show_default=False)]
Overrides = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="set a key of the file to another value; may be given several times",
        default_factory=list,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print JSON on stdout")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="threads (all cores if not given)")]


@app.command("run")
def run_verb(
    file: File,
    out: Annotated[Path, typer.Option(help="folder for the results", file_okay=False, show_default=False)],
    overrides: Overrides,
    master: Annotated[str | None, typer.Option(help="Spark master (all cores here if not given)")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="keep what an earlier run left in the folder")] = False,
    as_json: Json = False,
) -> None:
    """Sweep a grid of configurations on Spark.

    Result tables, figures and a report go to a folder.

    Example: quorisk run configs/demo.toml --out results/demo
    """
    experiment = _load(file, overrides)
    from analysis import show
    from sparkjobs.sweep import sweep

    start = time.perf_counter()
    sweep(experiment, out, master, resume, show.console(stderr=True))
    seconds = time.perf_counter() - start
    num_points, runs = len(experiment.points), experiment.run.runs
    if as_json:
        _print_json({"out": str(out), "points": num_points, "runs_per_point": runs, "seconds": seconds})
    else:
        typer.echo(f"{num_points} grid points, {runs:,} runs each, in {seconds:.3g} s: {out}")


@app.command("estimate")
def estimate_verb(file: File, overrides: Overrides, threads: Threads = None, as_json: Json = False) -> None:
    """Estimate one configuration's risk by random runs.

    How likely is a run to break each invariant, how far is that number to be trusted, and how do runs end?

    Example: quorisk estimate configs/defect1.toml --set run.runs=100000 --set faults.message_loss=0.2
    """
    experiment = _load(file, overrides)
    from analysis import estimate, show

    with show.run_bar(experiment.run.runs) as progress:
        result = estimate.estimate(experiment, threads or estimate.num_cores(), progress)
    if as_json:
        _print_json(estimate.as_json(result))
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
    experiment = _load(file, overrides)
    from analysis import explore, show

    memory_bytes = explore.parse_memory(memory)
    with show.status() as tell:
        progress = _states_line(tell) if tell else None
        found, seconds = explore.explore(experiment, memory_bytes, progress)
    if as_json:
        _print_json(explore.as_json(experiment, found, seconds))
    else:
        show.explore(found, seconds, show.console())


@app.command("bench")
def bench_verb(
    engine: Annotated[Literal["numba", "search"] | None, typer.Option(help="this one only")] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Measure the engines on this machine.

    Random runs of every model (numba) on one thread and on all, and the exhaustive search. compile_s is the time of a
    first call: point QUORISK_CACHE_DIR to an empty folder to see what it is with nothing compiled before.

    Example: quorisk bench --threads 2 --json
    """
    from analysis import bench, estimate, show

    with show.status() as tell:
        rows = list(bench.bench(engine, threads or estimate.num_cores(), tell))
    if as_json:
        _print_json([row._asdict() for row in rows])
    else:
        show.bench(rows, show.console())


def main(arguments: Sequence[str] | None = None) -> None:
    """The console entry: exits with 0 if done, 2 on bad input, 130 on Ctrl-C, after one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=given or ["--help"], prog_name="quorisk", standalone_mode=False)
    except ConfigError as error:
        _exit(f"error: {error}", BAD_INPUT)
    except TyperException as error:
        _exit(f"error: {error.format_message()}", error.exit_code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED:  # which is also how Typer tells of Ctrl-C
        _exit("interrupted", INTERRUPTED)
    sys.exit(code)


def _exit(line: str, code: int) -> NoReturn:
    print(" ".join(line.split()), file=sys.stderr)
    sys.exit(code)


def _load(file: Path, overrides: Sequence[str]) -> "Experiment":
    from analysis import config

    return config.load(file, overrides)


def _states_line(tell: Callable[[str], None]) -> Callable[[int, int], None]:
    return lambda num_states, depth: tell(f"{num_states:,} states, depth {depth}")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))
