"""The verbs of the `quorisk` command that are about grids: run, merge, plot."""

import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorisk.command.app import Conf, File, Json, Master, Overrides, Strict, app, parsed, repeated, reply
from quorisk.kernels.errors import ConfigError
from quorisk.say.numbers import counted

if TYPE_CHECKING:
    from quorisk.sparkjobs.sweep import SweepSummary


@app.command("run")
def run_verb(
    file: File,
    out: Annotated[Path, typer.Option(help="folder for the results", file_okay=False, show_default=False)],
    overrides: Overrides,
    conf: Conf,
    master: Master = None,
    budget_s: Annotated[
        float | None,
        typer.Option(min=0.0, help="stop computing after this many seconds, and report the runs done by then"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="keep what is in the folder; run what is missing")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only plan; say how long the sweep would take")] = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Sweep a grid of configurations on Spark.

    Writes result tables, figures and a report to a folder.

    Example: quorisk run configs/demo.toml --out results/demo
    """
    from quorisk.command import bars, show

    with bars.status() as tell:
        tell(f"reading {file}")
        experiment = parsed(file, overrides, strict)
    from quorisk.sparkjobs import sweep

    start = time.perf_counter()
    if dry_run:
        with bars.status() as tell:
            expected, table = sweep.dry_run(experiment, out, resume, tell)
        show.console(stderr=True).print(table)
        plan = {"out": str(out), "points": len(experiment.points), **expected._asdict()}
        line = (
            f"{counted(expected.tasks, 'task')}, {counted(expected.runs, 'run')}, "
            f"{expected.core_s:.3g} core seconds, {expected.core_s / expected.cores:.3g} s on the "
            f"{expected.cores} cores here (at most {expected.most_core_s:.3g} core seconds): {out / 'plan.parquet'}"
        )
        reply(as_json, plan, lambda: typer.echo(line))
        return
    options = sweep.Options(master, conf, resume, math.inf if budget_s is None else budget_s)
    summary = sweep.sweep(experiment, out, options, show.console(stderr=True))
    seconds = time.perf_counter() - start
    found = {"out": str(out), **summary._asdict(), "seconds": seconds}
    reply(as_json, found, lambda: typer.echo(f"{_size(summary)}, in {seconds:.3g} s: {out}"))


@app.command("merge")
def merge_verb(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="folders with results", show_default=False)],
    out: Annotated[Path, typer.Option(help="folder for the merged results", file_okay=False, show_default=False)],
    as_json: Json = False,
) -> None:
    """Merge the results of several runs, machines or engines.

    Joins points of different grids, and runs of the same point if their ranges lie end to end (see run.first_run).
    Writes tables, figures and a report to a folder. Of folders of `quorisk cluster`, years lie end to end.

    Example: quorisk merge results/monday results/tuesday --out results/both
    """
    from quorisk.command import show
    from quorisk.sparkjobs import clusters
    from quorisk.sparkjobs.union import union

    if all(map(clusters.is_of_clusters, folders)):
        from quorisk.analysis.cluster import answer
        from quorisk.command import show_cluster

        found, confidence = clusters.union_of_years(folders, out)
        reply(as_json, answer.as_json(found), lambda: show_cluster.print_clusters(found, confidence, show.console()))
        return
    summary = union(folders, out, show.console(stderr=True))
    reply(as_json, {"out": str(out), **summary._asdict()}, lambda: typer.echo(f"{_size(summary)}: {out}"))


@app.command("plot")
def plot_verb(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="folder that `quorisk run` made, or its results.parquet")
    ],
    kinds: Annotated[
        list[str],
        repeated("--format", metavar="KIND", help="svg, png or pdf; may be given several times (default: all)"),
    ],
    only: Annotated[
        list[str], repeated(metavar="FIGURE", help="frontier, budget, loss or heat_map; may be given several times")
    ],
    out: Annotated[
        Path | None, typer.Option(help="folder for the figures (default: figures/ beside the results)")
    ] = None,
    invariant: Annotated[str | None, typer.Option(help="draw this invariant (default: those that broke)")] = None,
    x: Annotated[str | None, typer.Option(metavar="KEY", help="key on the x axis of losses and heat maps")] = None,
    hue: Annotated[
        str | None, typer.Option(metavar="KEY", help="key that tells lines apart, or is on the y axis of heat maps")
    ] = None,
    title: Annotated[str | None, typer.Option(help="title to use instead")] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="width and height in inches, such as 8x4.5")] = None,
    no_caption: Annotated[bool, typer.Option("--no-caption", help="leave out the caption below the figure")] = False,
    as_json: Json = False,
) -> None:
    """Draw the figures of a sweep.

    Draws losses, a heat map and more from a sweep's table of results: all of them, or one that suits your slide.

    \b
    Example: quorisk plot results/demo --only loss --x message_loss --hue ack_quorum --size 8x4.5 --no-caption
    """
    from quorisk.command import bars
    from quorisk.plots.canvas import Frame
    from quorisk.plots.figures import FIGURES, Wish
    from quorisk.sparkjobs.draw import plot

    frame = Frame(title, _size_in(size), not no_caption)
    wish = Wish([invariant] if invariant else None, only or FIGURES, x, hue, frame)
    with bars.status() as tell:
        files = plot(results, out, kinds, wish, tell)
    names = [str(file) for file in files]
    reply(as_json, names, lambda: typer.echo("\n".join(names)))


def _size_in(given: str | None) -> tuple[float, float] | None:
    """Returns width and height, from 8x4.5. Raises ConfigError."""
    if given is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)x([0-9]+(?:\.[0-9]+)?)", given)
    width, height = map(float, found.groups()) if found else (0.0, 0.0)
    if not (1 <= width <= 100 and 1 <= height <= 100):
        raise ConfigError(f"--size {given}: width and height in inches from 1 to 100, such as 8x4.5")
    return width, height


def _size(summary: "SweepSummary") -> str:
    return f"{counted(summary.points, 'grid point')}, {counted(summary.runs, 'run')} in total"
