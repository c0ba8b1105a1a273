"""The verb about incidents: how often a cluster loses data, and how much at once."""

from pathlib import Path
from typing import Annotated

import typer

from quorisk.command.app import (
    Conf,
    File,
    Json,
    Master,
    NoScenario,
    Overrides,
    Strict,
    Threads,
    app,
    of_a_year,
    parsed,
    reply,
)
from quorisk.kernels.errors import ConfigError


@app.command("cluster")
def cluster_verb(
    file: File,
    overrides: Overrides,
    conf: Conf,
    threads: Threads = None,
    out: Annotated[
        Path | None, typer.Option(help="run on Spark, and keep years and answers in this folder", file_okay=False)
    ] = None,
    master: Master = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="keep the years in the folder, and draw what is missing")
    ] = False,
    scenario: NoScenario = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Say how likely a cluster is to lose data in a year.

    For the cluster that [cluster] in the file describes: how likely it is to lose anything acknowledged in a year, how
    often that happens, how much is lost at once, and because of what; and what cannot be read, closed or written while
    nodes or a rack are down. [grid] may list designs and clusters: each combination is answered.

    \b
    Example: quorisk cluster configs/cluster.toml --set cluster.nodes=100
    """
    if out is None and (master or conf or resume):
        raise ConfigError(": say where to keep what Spark finds", "out")
    experiment = of_a_year(parsed(file, overrides, strict, scenario=scenario))
    from quorisk.analysis.cluster import answer
    from quorisk.analysis.decision.weigh import MEMORY, Weigher
    from quorisk.analysis.decision.whole import with_scenarios
    from quorisk.command import bars, show, show_cluster
    from quorisk.kernels.cores import num_cores

    effort = answer.effort_of(experiment, threads or num_cores())
    designs = answer.placed_designs(experiment)
    with bars.run_bar(len(designs) * effort.years, "years") as progress:
        if out is None:
            found = answer.answers(designs, effort, progress)
            found = with_scenarios(experiment, found, Weigher(MEMORY, effort.threads))
        else:
            from quorisk.sparkjobs import clusters

            found = clusters.clusters(experiment, out, master, conf, resume, progress)
    reply(as_json, answer.as_json(found), lambda: show_cluster.print_clusters(found, effort.confidence, show.console()))
