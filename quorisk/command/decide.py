"""The verbs of the `quorisk` command that lead from a question to a choice: init, recommend, diff."""

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from quorisk.command.app import File, Json, Overrides, Strict, Threads, app, load, print_json
from quorisk.kernels.errors import ConfigError

TARGET_MISSED = 3
"""Exit status."""
STARTERS = Path(__file__).absolute().parents[1] / "configs" / "starters"


_PROTOCOLS = "bookkeeper", "kafka", "kraft", "compaction"
_CHOICES = f"{', '.join(_PROTOCOLS[:-1])} or {_PROTOCOLS[-1]}"
_PULSAR = (
    'Pulsar stores its messages in BookKeeper: `quorisk init bookkeeper`, with profile = "pulsar_cloud" for one in a '
    "cloud; for its topic compaction, `quorisk init compaction`"
)


@app.command("init")
def init_verb(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help=_CHOICES, show_default=False)],
    out: Annotated[Path | None, typer.Option(help="file to write (default: PROTOCOL.toml)", dir_okay=False)] = None,
    as_json: Json = False,
) -> None:
    """Write an experiment file to start from.

    A comment explains every key: what it is, which values it takes, and what to put there. Without --out, the file goes
    to stdout if that is not a terminal: quorisk init bookkeeper > mine.toml

    Example: quorisk init bookkeeper --out mine.toml
    """
    from quorisk.kernels.protocols import registry

    outside = protocol in registry.foreign()
    if protocol not in _PROTOCOLS and not outside:
        choices = ", ".join([_CHOICES, *registry.foreign()])
        raise ConfigError(f"init {protocol}: {_PULSAR if protocol.lower() == 'pulsar' else f'one of {choices}'}")
    if outside:
        from quorisk.analysis.experiment.starter import starter as written

        starter = written(protocol)
    else:
        starter = (STARTERS / f"{protocol}.toml").read_text("utf-8")
    path = out or Path(f"{protocol}.toml")
    if not (out or as_json or sys.stdout.isatty()):
        typer.echo(starter, nl=False)
        return
    from quorisk.analysis import files

    if os.path.lexists(path):
        raise ConfigError(f"--out {path}: exists already; choose another name")
    files.write(path, starter.encode(), "out")
    if as_json:
        print_json({"file": str(path)})
    else:
        typer.echo(f"{path}: change it as you like, then run `quorisk {'estimate' if outside else 'recommend'} {path}`")


@app.command("recommend")
def recommend_verb(
    file: File,
    overrides: Overrides,
    keys: Annotated[
        list[str],
        typer.Option(
            "--break-even",
            metavar="KEY",
            help="scale this rate or other figure, 'all' or 'none'; may be repeated (default: what fits in 10 s)",
            default_factory=list,
            show_default=False,
        ),
    ],
    fail_on_target: Annotated[
        bool, typer.Option("--fail-on-target", help="exit with 3 if no design meets the targets")
    ] = False,
    memory: Annotated[str, typer.Option(help="memory for solving a configuration exactly, such as 128MiB")] = "128MiB",
    threads: Threads = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Say which design to run.

    Weighs every design of the grid over all scenarios: exactly if its Markov chain is small, else by random runs. Ranks
    the designs by losses, checks them against [targets], and names the one to choose and the runner-up. Says how far
    off rates and other figures would have to be to change the choice.

    \b
    Example: quorisk recommend configs/pulsar.toml --break-even faults.message_loss
    """
    experiment = load(file, overrides, strict)
    from quorisk.analysis import explore
    from quorisk.analysis.decision import recommend
    from quorisk.analysis.decision.weigh import Weigher
    from quorisk.analysis.estimate import estimate
    from quorisk.command import show, show_decision

    memory_bytes = explore.parse_memory(memory)
    with show.status() as tell:
        weigher = Weigher(memory_bytes, threads or estimate.num_cores(), tell)
        scaled, within_s = {"": (None, recommend.WITHIN_S), "all": (None, math.inf), "none": ((), math.inf)}.get(
            " ".join(keys), (keys, math.inf)
        )
        advice = recommend.advise(experiment, weigher, scaled, within_s)
    if as_json:
        print_json(recommend.as_json(advice))
    else:
        show_decision.recommend(advice, experiment)
    if fail_on_target and not advice.choice:
        raise typer.Exit(TARGET_MISSED)


@app.command("diff")
def diff_verb(
    before: Annotated[Path, typer.Argument(metavar="DIR1", help="folder of a sweep", show_default=False)],
    after: Annotated[Path, typer.Argument(metavar="DIR2", help="folder of a later sweep", show_default=False)],
    invariant: Annotated[str, typer.Option(help="invariant whose probability to compare")] = "data loss",
    confidence: Annotated[float, typer.Option(help="confidence that all intervals hold together")] = 0.95,
    as_json: Json = False,
) -> None:
    """Compare two sweeps.

    Which configurations lose data more often or less often than before, and by how much?

    Example: quorisk diff results/monday results/tuesday
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"--confidence {confidence}: a number between 0 and 1")
    from quorisk.analysis.decision import diff
    from quorisk.command import show_decision

    found = diff.diff(before, after, invariant, confidence)
    if as_json:
        print_json(found)
    else:
        show_decision.diff(found, invariant)
