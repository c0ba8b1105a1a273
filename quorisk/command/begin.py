"""The verb with which everything begins: an experiment file to start from."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from quorisk.command.app import Json, app, reply
from quorisk.kernels.errors import ConfigError

PROTOCOLS = "bookkeeper", "kafka", "kraft", "raft", "compaction"
"""Protocols with starter files of their own."""
_CHOICES = f"{', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}"
_PULSAR = (
    'Pulsar stores its messages in BookKeeper: `quorisk init bookkeeper`, with profile = "pulsar_cloud" for one in a '
    "cloud; for its topic compaction, `quorisk init compaction`"
)


@app.command("init")
def init_verb(
    protocol: Annotated[str | None, typer.Argument(metavar="PROTOCOL", help=_CHOICES, show_default=False)] = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", "--brokers", metavar="N", help="bookies or brokers of the cluster")
    ] = None,
    racks: Annotated[
        str | None,
        typer.Option("--racks", "--zones", metavar="N", help="racks or zones that the placement of copies knows of"),
    ] = None,
    entries_per_second: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="entries or records written, of the whole cluster")
    ] = None,
    retention: Annotated[str | None, typer.Option(metavar="TIME", help='how long they are kept: "3 days"')] = None,
    quorums: Annotated[
        str | None,
        typer.Option(
            "--quorums",
            "--topics",
            help='today\'s: "E 3, WQ 3, AQ 2", or "RF 3, min ISR 2, acks all"; several for Kafka: "3/2/all; 2/1/all"',
        ),
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(metavar="N", help="partitions of a Kafka cluster (default: 1,000)")
    ] = None,
    entry_bytes: Annotated[
        str | None, typer.Option("--entry-size", metavar="SIZE", help='of an entry or record: 1024 or "6.7 kB"')
    ] = None,
    disks: Annotated[
        str | None, typer.Option(metavar="N", help="ledger disks of each bookie, of bookkeeper (default: 1)")
    ] = None,
    node_loss: Annotated[
        str | None, typer.Option(metavar="RATE", help='how often a node loses all its data: "1 % / year"')
    ] = None,
    outages: Annotated[str | None, typer.Option(metavar="N", help="power outages of the whole cluster a year")] = None,
    failovers: Annotated[
        str | None, typer.Option(metavar="N", help="takeovers of a writer's ledger a year, of bookkeeper (default: 0)")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME", help="profile with the figures that the file does not state")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="file to write (default: PROTOCOL.toml)", dir_okay=False)] = None,
    as_json: Json = False,
) -> None:
    """Write an experiment file to start from.

    For bookkeeper and kraft the file can be about your cluster: say what it is with --nodes and the options below it
    (what you leave out is marked as assumed), and `quorisk recommend` weighs today's quorums against others. In a
    terminal you are asked for what is missing. Otherwise it is a file to fill in by hand, with every key explained.
    Without --out, it goes to stdout if that is not a terminal.

    \b
    Example: quorisk init bookkeeper --nodes 40 --racks 3 --entries-per-second 1600 --retention "3 days" --quorums 3/3/2

    \b
    For Kafka: quorisk init kraft --brokers 30 --zones 3 --entries-per-second 1600 --retention "3 days" --topics 3/2/all
    """
    arguments = dict(locals())
    from quorisk.analysis.experiment.starters import OperatorAnswers
    from quorisk.kernels.protocols import registry

    given = {name: arguments[name] for name in OperatorAnswers._fields}
    asks = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    if protocol is None and asks:
        protocol = typer.prompt(f"What kind of cluster: {_CHOICES}", default=PROTOCOLS[0])
    if protocol not in (*PROTOCOLS, *registry.foreign()):
        named, choices = f"init {protocol}" if protocol else "init", ", ".join([_CHOICES, *registry.foreign()])
        raise ConfigError(f"{named}: {_PULSAR if named.lower() == 'init pulsar' else f'one of {choices}'}")
    path, content = out or Path(f"{protocol}.toml"), _content(protocol, given, asks, profile)
    if not (out or as_json or sys.stdout.isatty()):
        typer.echo(content, nl=False)
        return
    from quorisk.analysis import files

    if os.path.lexists(path):
        raise ConfigError(f"--out {path}: exists already; choose another name")
    files.write_whole(path, content.encode(), "out")
    verb = "recommend" if protocol in PROTOCOLS else "estimate"
    line = f"{path}: change it as you like, then run `quorisk {verb} {path}`"
    reply(as_json, {"file": str(path)}, lambda: typer.echo(line))


def _content(protocol: str, given: Mapping[str, str | None], asks: bool, profile: str | None) -> str:
    """Returns the file's text: about a cluster if any answer about one is given. Raises ConfigError."""
    text = _filled(protocol, given, asks)
    if profile is None:
        return text
    from quorisk.analysis.experiment import profiles

    profiles.load_profile(profile, protocol, Path())
    if not re.search(r"^profile = ", text, re.MULTILINE):
        raise ConfigError(f"--profile {profile}: the file for {protocol} takes no profile")
    return re.sub(r'^profile = "\w+"', f'profile = "{profile}"', text, count=1, flags=re.MULTILINE)


def _filled(protocol: str, given: Mapping[str, str | None], asks: bool) -> str:
    """Returns the file's text with the protocol's own profile."""
    from quorisk.analysis.experiment import every_key, starters

    known = {name: answer for name, answer in given.items() if answer is not None}
    if protocol not in starters.OF_CLUSTERS:
        if known:
            of_clusters = " and ".join(starters.OF_CLUSTERS)
            raise ConfigError(f" {next(iter(known.values()))}: for {of_clusters} only", next(iter(known)))
        return starters.starter_text(protocol) if protocol in PROTOCOLS else every_key.starter(protocol)
    starters.checked_answers(protocol, known)
    for name, question in starters.questions(protocol).items():
        if name in known or not (asks or known) or (name in starters.USUAL[protocol] and not asks):
            continue
        if not asks:
            raise ConfigError(f": missing; {question[0].lower()}{question[1:]}", name)
        if not (answer := _asked(protocol, known, name, question)):
            break
        known[name] = answer
    return (
        starters.filled_template(protocol, starters.OperatorAnswers(**known))
        if known
        else starters.starter_text(protocol)
    )


def _asked(protocol: str, known: Mapping[str, str], name: str, question: str) -> str:
    """Returns an answer from the terminal. The question is repeated until the answer goes with the known ones; an empty
    answer to the first question ends the questions."""
    from quorisk.analysis.experiment import starters

    may_be_empty, usual = not known, starters.USUAL[protocol].get(name)
    while True:
        told = f"{question} (Enter: a file to fill in by hand)" if may_be_empty else question
        answer: str = typer.prompt(told, default="" if may_be_empty else usual, show_default=bool(usual))
        try:
            if answer or not may_be_empty:
                starters.checked_answers(protocol, {**known, name: answer})
            return answer
        except ConfigError as error:
            typer.echo(error.text.strip(), err=True)
