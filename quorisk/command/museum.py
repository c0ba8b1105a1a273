"""The verb of the `quorisk` command that tells stories of lost data: incidents."""

from typing import Annotated, Any

import typer

from quorisk.command.app import Json, app, reply


@app.command("incidents")
def incidents_verb(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="an incident (default: list all)")] = None,
    as_json: Json = False,
) -> None:
    """Tell how data was lost in the field.

    Without NAME, lists the incidents. With it, tells what happened, how the model loses data in the same way, what
    prevents it, and which file to start from. docs/incidents.md has them all, with probabilities and diagrams.

    Example: quorisk incidents kafka_last_replica_standing
    """
    from quorisk.analysis import incidents
    from quorisk.analysis.experiment import config

    if name is None:
        stories = {each: config.load(incidents.file_of(each)).tables["incident"] for each in incidents.incident_names()}
        reply(as_json, stories, lambda: _list(stories))
        return
    experiment = config.load(incidents.file_of(name))
    incident = experiment.tables["incident"]
    told = {"name": name, "file": experiment.path, **incident._asdict()}
    reply(as_json, told, lambda: _tell(experiment, incident))


def _list(stories: Any) -> None:
    from rich.table import Table

    from quorisk.command import show

    table = Table(show_header=True)
    table.add_column("name", no_wrap=True)
    table.add_column("incident")
    for name, incident in stories.items():
        table.add_row(name, incident.title)
    show.console().print(table)
    show.console().print("quorisk incidents NAME tells one of them.")


def _tell(experiment: Any, incident: Any) -> None:
    from quorisk.analysis.traces import find, formats
    from quorisk.analysis.traces.trace import replay_in_words
    from quorisk.command import bars

    typer.echo(f"{incident.title}\n\n{incident.happened}\n\nIn one line: {incident.mechanism}\n")
    with bars.status() as tell:
        found = find.of_incident(experiment, tell)
    if found.trace:
        typer.echo(f"How the model does it ({found.reason}):\n")
        typer.echo(formats.step_lines(found.trace, replay_in_words(found.trace)))
    fix = " ".join(f"--set {each}" for each in incident.fixed_by)
    typer.echo(f"\nPrevented by: {incident.prevented_by}")
    typer.echo("What the model leaves out:")
    for each in incident.simplified:
        typer.echo(f"- {each}")
    typer.echo(f"Sources: {', '.join(incident.sources)}")
    typer.echo(f"\nHow likely it is:      quorisk estimate {experiment.path}")
    typer.echo(f"With what prevents it: quorisk estimate {experiment.path} {fix}")
