"""The verb that makes a profile of data: rates."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from quorisk.command.app import Conf, Json, Master, app, reply, written_file


@app.command("rates")
def rates_verb(
    data: Annotated[list[Path], typer.Argument(metavar="DATA...", help="files or folders of them", show_default=False)],
    conf: Conf,
    profile: Annotated[str, typer.Option(help="profile for all figures that the data do not tell")] = "bookkeeper_ssd",
    of: Annotated[
        str,
        typer.Option(metavar="WHOSE", help="whose drives: any (another model), fleet (these as they are) or a model"),
    ] = "any",
    nodes: Annotated[float | None, typer.Option(help="nodes that lists of incidents are about, on average")] = None,
    since: Annotated[str, typer.Option(metavar="DATE", help="when they began to be watched", show_default=False)] = "",
    until: Annotated[str, typer.Option(metavar="DATE", help="when that ended", show_default=False)] = "",
    racks: Annotated[int, typer.Option(help="racks that these nodes are in, if lists say the rack", min=0)] = 0,
    complete: Annotated[
        bool, typer.Option("--complete", help="lists have every incident of each kind: no outage listed is none")
    ] = False,
    out: Annotated[Path | None, written_file("--out", "profile to write, such as profiles/ours.toml", ".toml")] = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Make a profile from data of your own.

    Reads drive statistics as Backblaze publishes them (on Spark if they are large), lists of incidents, and saved range
    queries of Prometheus. Says which rates follow from them, how well they are known, and what is odd in the data. An
    experiment file takes them with profile = "ours" if the profile is in profiles/ beside it.

    \b
    Example: quorisk rates drive_stats/ --profile bookkeeper_ssd --out profiles/ours.toml
    """
    from quorisk.analysis.rates import answer
    from quorisk.analysis.rates import profile as profiles
    from quorisk.command import bars, show, show_rates
    from quorisk.sparkjobs.rates import Asked, bytes_of_data, rates_from_data

    asked = Asked(data, profile, of, nodes, since, until, racks, complete, master, conf)
    with bars.run_bar(bytes_of_data(data), "bytes") as progress:
        found = rates_from_data(asked, progress)
    if out:
        profiles.write_profile(found, out, shlex.join(["quorisk", *sys.argv[1:]]))

    def tell() -> None:
        show_rates.print_rates(found, show.console())
        if out:
            typer.echo(f"{out}: a profile")

    reply(as_json, answer.as_json(found) | {"profile": str(out) if out else None}, tell)
