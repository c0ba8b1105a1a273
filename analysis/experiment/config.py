"""An experiment file and what overrides it, read into grid points that are ready to run. Generic over models."""

import math
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quorisk.analysis.experiment import cluster, file_values, follows, grid, profiles, scenarios, tables
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.experiment.hints import hint
from quorisk.analysis.experiment.keys import Key, as_float, find_key, keys_of
from quorisk.analysis.experiment.placed import TABLE, Placed, is_circumstance, is_key
from quorisk.analysis.experiment.profiles import Profile
from quorisk.analysis.experiment.scenarios import SCENARIO, Scenario
from quorisk.analysis.statistics.known import Known
from quorisk.kernels import declared
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry

__all__ = ["ConfigError", "Experiment", "RunSettings", "build_experiment", "load"]


MOST_BYTES = 1 << 24
UNTIL_PRECISE = 100_000_000
"""Most runs of a point if `run.precision` is given and `run.runs` is not."""


class RunSettings(NamedTuple):
    """Settings of runs: their number, seed and engine, and the method and precision of answers."""

    runs: int
    """Runs of each grid point; their largest number, if a precision is given."""
    seed: int
    confidence: float
    engine: str
    """`auto`, or one of `kernels.engines.ENGINES`."""
    method: str
    """Method by which losses are found: one of keys.METHODS."""
    precision: float
    """Half-width of the interval at which an estimate stops; infinite for none."""
    relative_precision: float
    """Half-width divided by the estimate at which it stops; infinite for none. If both are given, both must be met."""
    precision_of: str
    """The invariant whose interval is meant, or DATA_LOSS."""
    simultaneous: bool
    """The intervals of a grid hold all together, each invariant's over all points, and not one by one."""
    at_any_time: bool
    """The question is a loss at any time: runs that the horizon ends may hide one. Else it is one by the horizon."""
    first_run: int
    """Index of the first run: parts of one job on several machines have run ranges end to end."""
    target: float
    """The probability of data loss that a sweep's report holds configurations to; infinite for none."""


class Experiment(NamedTuple):
    """A checked experiment file."""

    path: str
    protocol: str
    model: Model
    points: tuple[GridPoint, ...]
    """Grid points in the order of the file's grid, the last key varying fastest."""
    run: RunSettings
    varied: tuple[str, ...]
    """Dotted names of the grid's keys, in the file's order."""
    overrides: tuple[str, ...]
    """Values put in the place of the file's, as section.key=value."""
    given: frozenset[str]
    """Dotted names of the keys that the file, its profile or an override sets, the grid's among them."""
    scenarios: Mapping[str, Scenario]
    """Scenarios by name, in the file's order; empty if the file has none."""
    profile: Profile | None
    """The profile from which the file takes its physical figures."""
    tables: Mapping[str, Any]
    """Contents of the tables of `tables.READERS`, by the file and its overrides."""
    document: Mapping[str, Any]
    """The parsed file, before anything overrode it."""
    known: Mapping[str, Known]
    """Distributions of figures that the file states, by its names for these: rates.KEY, faults.KEY,
    scenarios.NAME.rates.KEY, scenarios.NAME.per_year. Each is one unknown, wherever it is used."""
    known_in_grid: Mapping[tuple[str, Any], Known]
    """Distributions of the figures that its grid lists, by key and value."""
    notes: tuple[str, ...]
    """Lines for the user: values that overrides do not change, renamed keys, and figures of the profile replaced."""
    clusters: tuple[Placed, ...] = ()
    """The designs on their clusters, in the grid's order; none if the file has no [cluster]. Keys of that table are no
    part of `varied` or of points, whose runs do not depend on them."""
    own: frozenset[str] = frozenset()
    """Keys of `given` that the file or an override sets outside scenarios, not the profile alone."""
    follows: frozenset[str] = frozenset()
    """Keys of runs whose values [cluster] gives."""
    picked: bool = False
    """Whether one of the scenarios was picked: answers are about that one alone."""
    source: str = ""
    """The file's text, as it was read: the file may change while a sweep runs, or was a pipe."""

    @property
    def asks_year(self) -> bool:
        """Whether answers are about years: there is a cluster or scenarios, and no scenario is picked."""
        return bool(self.clusters or self.scenarios) and not self.picked

    def command(self, verb: str, *options: str, changes: Sequence[str] = ()) -> str:
        """Returns the command that asks this again, under some changes: a line for a shell."""
        settings = [word for override in (*self.overrides, *changes) for word in ("--set", override)]
        return shlex.join(["quorisk", verb, self.path, *options, *settings])

    def side_files(self) -> dict[Path, Path]:
        """Returns the other files that it was read from, by their paths as seen from its folder.

        Built-in profiles are among them: their text is kept with results, whatever it becomes later.
        """
        read = {Path(profiles.FOLDER, path.name): path for path in (self.profile.files if self.profile else ())}
        changed, _ = file_values.with_tables(self.document, self.overrides)
        return read | {Path(file): Path(self.path).parent / file for file in tables.named_files(changed)}

    def changed(self, *overrides: str) -> "Experiment":
        """Returns the same file under more overrides: `experiment.changed("run.runs=1000")`. Raises ConfigError."""
        return build_experiment(self.document, self.path, [*self.overrides, *overrides])._replace(source=self.source)


def load(path: Path, overrides: Sequence[str] = (), one: bool = False) -> Experiment:
    """Reads an experiment from a TOML file, under overrides such as "run.runs=1000"; with `one`, a grid of several
    designs is refused before any is built. Raises ConfigError."""
    source = text_of(path).replace("\r\n", "\n").replace("\r", "\n")
    try:
        document = tomllib.loads(source, parse_float=as_float)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and numbers or nesting beyond Python's limits
        said = str(error)  # which may have a key of any length
        short = said if len(said) < 300 else f"{said[:100]}...{said[-60:]}"
        raise ConfigError(f"{path}: not valid TOML: {short}{hint(source, said)}") from None
    return build_experiment(document, str(path), overrides, one)._replace(source=source)


def text_of(path: Path) -> str:
    """Returns the text of an experiment file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:  # such as /dev/zero, which never ends
            raise ConfigError(f"{path}: an experiment file has at most {MOST_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from None


def build_experiment(
    document: Mapping[str, Any], path: str, overrides: Sequence[str] = (), one: bool = False
) -> Experiment:
    """Returns the experiment of a parsed file; `path` is what errors call it. Raises ConfigError, as `load`, and
    ModelError if a protocol from outside is not what it declares."""
    try:
        return _build(document, path, overrides, one)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: tables and keys are nested too deep") from None


def _build(document: Mapping[str, Any], path: str, overrides: Sequence[str], one: bool) -> Experiment:
    if "protocol" not in document:
        raise ConfigError(f"protocol: missing; one of {', '.join(registry.names())}")
    model, folder = registry.load(document["protocol"]), Path(path).parent
    keys = keys_of(model, scenarios.scenario_names(document))
    overridden = [each.strip().removeprefix("grid.") for each in overrides]
    has_cluster = TABLE in document or any(map(is_key, overridden))
    changed, overriding = file_values.with_tables(document, overrides)
    name, overriding = file_values.profile_of(document, overriding)
    profile = profiles.load_profile(name, model.name, folder) if name is not None else None
    known = profile.figures if profile else {}
    figures = {name: figure.given for name, figure in known.items() if has_cluster or not is_key(name)}
    if has_cluster:
        others = [*(each.partition("=")[0].strip() for each in overriding), *figures]
        keys |= cluster.cluster_keys(cluster.event_names(document, others))
    in_file = file_values.flatten(changed, keys)
    named = [*in_file, *(each.partition("=")[0].strip() for each in overriding)]
    file_values.check_known(named, keys, registry.settings(model.name))
    in_place = file_values.overridden(overriding, keys)
    read = file_values.check_values(figures, in_file, in_place, keys, scenarios.scenario_names(document))
    notes = file_values.overrides_without_effect(read, in_place, keys) + file_values.renamed(document, overrides, keys)
    notes += file_values.unused(name, filter(is_key, figures), in_file)
    time_unit = file_values.time_unit(read, keys)
    read = file_values.as_floats(read)
    found = scenarios.finished(read.scenarios, keys, has_cluster)
    picked = _pick_scenarios(read, found)
    _check_complete(read, found, keys)
    grid.check_size(read)
    values = _values(read, keys)
    own, is_physical = _own([*in_file, *in_place], keys), time_unit == "s"

    def combinations(of_scenarios: bool = True) -> Iterable[grid.Combination]:
        each = grid.combinations(values, read, found, keys)
        each = each if of_scenarios else grid.outside_scenarios(each, values, found)
        return follows.following(each, model.name, own, found, is_physical) if has_cluster else each

    placed = tuple(grid.placed(model.name, combinations(False), is_physical)) if has_cluster else ()
    if one:
        grid.check_one_design(combinations())
    points = tuple(grid.points(model, combinations(), time_unit))
    grid.check_whole(points)
    experiment = Experiment(
        path=path,
        protocol=model.name,
        model=model,
        points=points,
        run=RunSettings(**{name: values[f"run.{name}"] for name in RunSettings._fields}),
        varied=tuple(name for name in read.grid if not is_circumstance(name)),
        overrides=tuple(overrides),
        given=frozenset(read.values | read.grid | {name: 0 for each in found.values() for name in each.values}),
        scenarios=found,
        profile=profile,
        tables={name: tables.read_table(name, changed[name], folder) for name in tables.READERS if name in changed},
        document=document,
        known=read.known,
        known_in_grid=read.known_in_grid,
        notes=notes,
        clusters=placed,
        own=own,
        follows=frozenset(follows.followed(model.name, placed[0].values, is_physical)) if placed else frozenset(),
        picked=picked,
    )
    _check_only(experiment)
    for check in tables.checks(experiment.tables):
        check(experiment)
    if model.name in registry.foreign():
        for at in (points[0], points[-1]):
            declared.check_walks(model, model.make_params(at.point.values))
    return experiment


def _check_only(experiment: Experiment) -> None:
    """Raises ConfigError for a rate that is given though its action never happens: see `Action.only`."""
    for action in experiment.model.actions:
        key, only = f"rates.{action.name}", action.only
        if only and key in experiment.given and not any(only.holds(each.point.values) for each in experiment.points):
            raise ConfigError(f"{key}: goes with {only.key} = {only.allowed}")


def _own(names: Iterable[str], keys: Mapping[str, Key]) -> frozenset[str]:
    """The keys that these names of a file or of overrides stand for, those of scenarios apart."""
    outside = [key.removeprefix("grid.") for key in names if not key.startswith("scenarios.") and key != "grid.where"]
    return frozenset(find_key(name, keys).name for name in outside)


def _pick_scenarios(read: file_values.FileSettings, found: Mapping[str, Scenario]) -> bool:
    """Makes scenarios the last axis of the grid, if there are any: all, unless a file or an override picks some.
    Returns whether one is picked."""
    picked = read.values.pop(SCENARIO, None)
    if found and SCENARIO not in read.grid:
        read.grid[SCENARIO] = [picked] if picked else list(found)
        return bool(picked)
    return len(read.grid.get(SCENARIO, ())) == 1


def _values(read: file_values.FileSettings, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Values of keys outside the grid, or their defaults, by key."""
    values = {key.name: key.default for key in keys.values()} | read.values
    if "run.runs" not in read.values and min(values["run.precision"], values["run.relative_precision"]) < math.inf:
        values["run.runs"] = UNTIL_PRECISE
    return values


def _check_complete(read: file_values.FileSettings, found: Mapping[str, Scenario], keys: Mapping[str, Key]) -> None:
    given = read.values | read.grid
    needed = [key for key in keys.values() if key.default is None and not key.follows and key.name not in given]
    overlaid = [found[name].values for name in read.grid.get(SCENARIO, ())] or [{}]
    missing = [key for key in needed if key.name != SCENARIO and not all(key.name in values for values in overlaid)]
    if missing:
        raise ConfigError(f"missing: {'; '.join(f'{key.name} ({key.kind.allowed})' for key in missing)}")
