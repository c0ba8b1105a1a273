"""Options, arguments and output that the verbs of the `quorisk` command share."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from quorisk.analysis.decision.whole import Whole
    from quorisk.analysis.experiment.config import Experiment

_OPTIONS = {"overrides": "set", "entry_bytes": "entry_size"}
"""Options by the Python arguments whose names differ from theirs."""

app = typer.Typer(
    name="quorisk",
    help="How likely a replicated log is to lose acknowledged data, for a quorum configuration and its faults.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def repeated(*names: str, **told: Any) -> Any:
    """Declares an option that may be given several times; its argument is a list, empty if it is not given."""
    return typer.Option(*names, default_factory=list, show_default=False, **told)


def written_file(name: str, told: str, *endings: str) -> Any:
    """Declares an option for the name of a file that a verb writes, which has one of these endings."""
    allowed = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))

    def check(path: Path | None) -> Path | None:
        if path and path.suffix not in endings:
            raise ConfigError(f"{name} {path}: a file name that ends in {allowed}")
        return path

    return typer.Option(name, metavar="FILE", help=f"{told} ({allowed})", show_default=False, callback=check)


def figure_file(what: str) -> Any:
    """Declares --plot, which has a verb write `what`; see `write_figure`."""
    return written_file("--plot", f"write {what}", ".svg", ".png", ".pdf")


def confidence(told: str) -> Any:
    """Declares --confidence, a number between 0 and 1."""

    def check(given: float) -> float:
        if not 0 < given < 1:
            raise ConfigError(f"--confidence {given}: a number between 0 and 1")
        return given

    return typer.Option(help=told, callback=check)


File = Annotated[Path, typer.Argument(metavar="FILE", help="experiment file (TOML)", show_default=False)]
Overrides = Annotated[
    list[str],
    repeated("--set", metavar="SECTION.KEY=VALUE", help="override a key of the file; may be given several times"),
]
Conf = Annotated[
    list[str], repeated("--conf", metavar="spark.KEY=VALUE", help="a Spark setting; may be given several times")
]
Master = Annotated[str | None, typer.Option(help="Spark master (default: all cores of this machine)")]
Strict = Annotated[
    bool, typer.Option("--strict", help="refuse a file that sets the rate of a fault that is switched off")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON on stdout")]
Scenario = Annotated[
    str | None,
    typer.Option("--scenario", metavar="NAME", help="ask about one scenario of the file alone", show_default=False),
]
NoScenario = Annotated[str | None, typer.Option("--scenario", metavar="NAME", hidden=True)]
"""Option that verbs about a whole year refuse: see `of_a_year`."""
Threads = Annotated[int | None, typer.Option(min=1, max=1024, help="number of threads (default: all cores)")]


def parsed(
    file: Path, overrides: Sequence[str], strict: bool, one: bool = False, scenario: str | None = None
) -> "Experiment":
    """Returns the experiment that a verb's arguments describe, of one `scenario` if its name is given, and notes on
    stderr which of its keys change nothing. Raises ConfigError; for verbs that ask about `one` design, also if the grid
    has several.
    """
    from quorisk.analysis.experiment import config

    experiment = config.load(file, picking(overrides, scenario), one)
    tell_idle(experiment, strict)
    tell_notes(experiment)
    return experiment


def of_a_year(experiment: "Experiment") -> "Experiment":
    """Returns an experiment. Raises ConfigError if one scenario of several is picked: a choice weighs a whole year."""
    if experiment.picked and len(experiment.scenarios) > 1:
        ask = f"ask `quorisk estimate {experiment.path} --scenario {experiment.points[0].scenario}` about one design"
        raise ConfigError(f": designs are weighed by a whole year, of which one scenario is a part; {ask}", "scenario")
    return experiment


def picking(overrides: Sequence[str], scenario: str | None) -> list[str]:
    """Returns overrides that also pick a scenario, if its name is given."""
    return [*overrides, *([f"run.scenario={scenario}"] if scenario else [])]


def whole_of(
    experiment: "Experiment", threads: int | None = None, memory: int = 0, is_exact: bool = False, records: bool = False
) -> "Whole":
    """Returns the losses of an experiment's one design in a year, which every verb says first, and the `records` lost
    if wanted. Raises ConfigError, also if they cannot be solved although `is_exact`."""
    from quorisk.analysis.decision.weigh import MEMORY, Weigher
    from quorisk.analysis.decision.whole import whole_year
    from quorisk.command import bars
    from quorisk.kernels.cores import num_cores

    with bars.status() as tell:
        return whole_year(experiment, Weigher(memory or MEMORY, threads or num_cores(), tell), is_exact, records)


def tell_idle(experiment: "Experiment", strict: bool) -> None:
    """Prints on stderr, in a line, the rates that are set of faults that are switched off. Raises ConfigError instead
    if `strict`.
    """
    from quorisk.analysis.experiment import switches

    if idle := switches.idle(experiment):
        line = f"switched off, so that these change nothing: {'; '.join(idle)}"
        if strict:
            raise ConfigError(f": {experiment.path}: {line}", "strict")
        typer.echo(f"note: {experiment.path}: {line}", err=True)


def tell_notes(*experiments: "Experiment") -> None:
    """Prints notes on overrides, renamed keys and picked scenarios on stderr, each line once."""
    told = [note for experiment in experiments for note in experiment.notes]
    for experiment in experiments:
        for name in {point.scenario for point in experiment.points if experiment.picked and point.scenario}:
            about = experiment.scenarios[name].about or name
            told.append(f"scenario {name} alone, one object in one event, and not a year: {about}")
    for note in dict.fromkeys(told):
        typer.echo(f"note: {note}", err=True)


def as_text(value: Any) -> str:
    """Returns what --json prints; named tuples become objects."""
    from quorisk.say.plain import plain_data

    return f"{json.dumps(plain_data(value), indent=2)}\n"


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(as_text(value), end="")


def reply(as_json: bool, value: Any, show: Callable[[], None]) -> None:
    """Prints a verb's result: `value` if --json asks for it, else what `show` prints."""
    if as_json:
        print_json(value)
    else:
        show()


def write_figure(path: Path, figure: "Figure") -> None:
    """Writes the figure that --plot asks for. Raises ConfigError if nothing can be written there."""
    from quorisk.analysis import files
    from quorisk.plots.style import save

    files.write_whole(path, save(figure, path.suffix.removeprefix(".")), "plot")


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
