"""The verb about incidents: what a cluster loses, how often and how much at once."""

from quorisk.command.app import File, Json, Overrides, Strict, Threads, app, load, print_json


@app.command("cluster")
def cluster_verb(
    file: File, overrides: Overrides, threads: Threads = None, strict: Strict = False, as_json: Json = False
) -> None:
    """Say how likely a cluster is to lose data in a year.

    For the cluster of a file's [cluster]: P(any acknowledged entry lost in a year), how often that happens, how much is
    lost when it does, and because of what. For each design of the grid, and each cluster: [grid] may list both.

    \b
    Example: quorisk cluster configs/cluster.toml --set cluster.nodes=100
    """
    experiment = load(file, overrides, strict)
    from quorisk.analysis.cluster import answer
    from quorisk.analysis.estimate import estimate
    from quorisk.command import show, show_cluster

    effort = answer.effort_of(experiment, threads or estimate.num_cores())
    designs = answer.designs(experiment)
    with show.run_bar(len(designs) * effort.years, "years") as progress:
        found = answer.answers(designs, effort, progress)
    if as_json:
        print_json(answer.as_json(found))
    else:
        show_cluster.show(found, effort.confidence, show.console())
