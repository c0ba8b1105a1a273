"""What the verbs of the `quorisk` command share."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    from quorisk.analysis.experiment.config import Experiment

_OPTIONS = {"overrides": "set", "keys": "break_even"}
"""Options that are not called as their arguments in Python are."""

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
        help="override a key of the file; may be given several times",
        default_factory=list,
        show_default=False,
    ),
]
Conf = Annotated[
    list[str],
    typer.Option(
        "--conf",
        metavar="spark.KEY=VALUE",
        help="a Spark setting; may be given several times",
        default_factory=list,
        show_default=False,
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="refuse a file that sets the rate of a fault that is switched off")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON on stdout")]
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="number of threads (default: all cores)")]


def load(file: Path, overrides: Sequence[str], strict: bool, one: bool = False) -> "Experiment":
    """Returns the experiment that a verb's arguments describe, and tells on stderr what of it changes nothing. Raises
    ConfigError; for verbs that ask about `one` design, if the grid has several.
    """
    from quorisk.analysis.experiment import config

    experiment = config.load(file, overrides, one)
    tell_idle(experiment, strict)
    tell_notes(experiment)
    return experiment


def tell_idle(experiment: "Experiment", strict: bool) -> None:
    """Prints on stderr, in a line, which rates are set of faults that are switched off. Raises ConfigError if that is
    not to be.
    """
    from quorisk.analysis.experiment import switches

    if idle := switches.idle(experiment):
        line = f"switched off, so that these change nothing: {'; '.join(idle)}"
        if strict:
            raise ConfigError(f": {experiment.path}: {line}", "strict")
        typer.echo(f"note: {experiment.path}: {line}", err=True)


def tell_notes(*experiments: "Experiment") -> None:
    """Prints what overrides leave unchanged, and keys that have other names now, on stderr, each line once."""
    for note in dict.fromkeys(note for experiment in experiments for note in experiment.notes):
        typer.echo(f"note: {note}", err=True)


def as_text(value: Any) -> str:
    """Returns what --json prints; named tuples become objects."""
    from quorisk.say.plain import plain

    return f"{json.dumps(plain(value), indent=2)}\n"


def print_json(value: Any) -> None:
    """Prints what --json asks for."""
    print(as_text(value), end="")


def by_option(line: str) -> str:
    """Returns a line with the Python names of arguments, in backticks, replaced by their options."""
    return re.sub(r"`(\w+)`", lambda name: "--" + _OPTIONS.get(name[1], name[1]).replace("_", "-"), line)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"quorisk {version('quorisk')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="print the version", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """How likely a replicated log is to lose acknowledged data, for a quorum configuration and its faults."""
