"""The verb that says what losses depend on: sensitivity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from quorisk.command.app import File, Json, Overrides, Scenario, Strict, app, figure_file, parsed, reply, write_figure


@app.command("sensitivity")
def sensitivity_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for states and steps, such as 4GiB")] = "1GiB",
    plot: Annotated[Path | None, figure_file("a tornado figure")] = None,
    scenario: Scenario = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Say what the losses of one design depend on.

    How much does each figure of the file change them? Of a file with [cluster] or scenarios: P(any loss in a year),
    and --json has incidents and entries as well. Else, and of one scenario, P(loss): which faults does a run that loses
    data meet, and what is the likeliest path to a loss? Exact where losses are solved, estimated from the losing runs
    where they are counted.

    \b
    Example: quorisk sensitivity configs/pulsar.toml --set write_quorum=2 --set ack_quorum=2 --set bookies=3
    """
    experiment = parsed(file, overrides, strict, True, scenario)
    from quorisk.analysis import explore
    from quorisk.analysis.decision import depends
    from quorisk.analysis.rates import scores
    from quorisk.command import bars, show, show_sensitivity
    from quorisk.kernels.cores import num_cores

    memory_bytes = explore.parse_memory(memory)
    with bars.estimate_bar(scores.MOST_LOSSES) as (progress, solving):
        found = depends.depends(experiment, memory_bytes, num_cores(), progress, solving)
    drawn = _plot(plot, depends.rows(found, experiment)) if plot else ""
    reply(as_json, depends.as_json(found), lambda: show_sensitivity.print_sensitivity(found, show.console()))
    if drawn and not as_json:
        typer.echo(drawn)


def _plot(path: Path, rows: list[dict[str, Any]]) -> str:
    """Writes the figure. Returns a line on whether it was written."""
    import pandas as pd

    from quorisk.plots.tornado import tornado_figure

    figure = tornado_figure(pd.DataFrame(rows)) if rows else None
    if figure is None:
        return f"{path}: not written, since there is nothing that losses depend on"
    write_figure(path, figure)
    return f"{path}: a figure of that"
