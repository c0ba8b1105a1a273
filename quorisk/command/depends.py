"""The verb that says what losses depend on: sensitivity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from quorisk.command.app import File, Json, Overrides, Strict, app, figure_file, load, reply, write_figure


@app.command("sensitivity")
def sensitivity_verb(
    file: File,
    overrides: Overrides,
    memory: Annotated[str, typer.Option(help="memory for states and steps, such as 4GiB")] = "1GiB",
    plot: Annotated[Path | None, figure_file("a tornado figure")] = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Say what the losses of one configuration depend on.

    How much does each rate, each probability and the lifetime change them? Which faults does a run that loses data
    meet, and what is the likeliest path to a loss? Exact where losses are solved, estimated from the losing runs where
    they are counted. If the file has scenarios: what the losses a year depend on.

    \b
    Example: quorisk sensitivity configs/pulsar.toml --set write_quorum=2 --set ack_quorum=2 --set bookies=3
    """
    experiment = load(file, overrides, strict, one=True)
    from quorisk.analysis import explore
    from quorisk.analysis.rates import scores, sensitivity
    from quorisk.command import bars, show, show_sensitivity

    memory_bytes = explore.parse_memory(memory)
    with bars.estimate_bar(scores.MOST_LOSSES) as (progress, solving):
        found = sensitivity.of_experiment(experiment, memory_bytes, progress, solving)
    drawn = _plot(plot, sensitivity.rows(found, experiment)) if plot else ""
    reply(as_json, sensitivity.as_json(found), lambda: show_sensitivity.sensitivity(found, show.console()))
    if drawn and not as_json:
        typer.echo(drawn)


def _plot(path: Path, rows: list[dict[str, Any]]) -> str:
    """Writes the figure. Returns what became of it."""
    import pandas as pd

    from quorisk.plots.tornado import tornado_figure

    figure = tornado_figure(pd.DataFrame(rows)) if rows else None
    if figure is None:
        return f"{path}: not written, since there is nothing that losses depend on"
    write_figure(path, figure)
    return f"{path}: a figure of that"
