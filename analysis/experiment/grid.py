"""The points of an experiment's grid: its combinations of values, told apart, checked and made ready to run."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import le
from statistics import median
from typing import Any, NamedTuple

from quorisk.analysis.experiment import cluster, file_values
from quorisk.analysis.experiment.identity import point_ids
from quorisk.analysis.experiment.keys import Key, as_toml
from quorisk.analysis.experiment.placed import PLACEMENT, Placed, is_circumstance
from quorisk.analysis.experiment.scenarios import SCENARIO, Scenario
from quorisk.kernels.engines.points import Point, RateError, rates_in_force, scale_rates
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model

MOST_POINTS, MOST_COMBINATIONS = 100_000, 1_000_000
"""Most points of a grid, which take half a minute to read, and most combinations before conditions leave some out."""
_IN_PARTS = "sweep it in parts, and merge their results"


class GridPoint(NamedTuple):
    """One configuration of a grid."""

    point: Point
    point_id: str
    """See `identity.point_id`."""
    varied: dict[str, Any]
    """The point's values of the grid's keys, by dotted name."""

    @property
    def scenario(self) -> str | None:
        """The name of its scenario; None if its file has none."""
        return self.varied.get(SCENARIO)

    @property
    def design(self) -> tuple[tuple[str, Any], ...]:
        """Its values of the grid's other keys: points whose losses a year add up have the same."""
        return tuple((key, value) for key, value in self.varied.items() if key != SCENARIO)

    def sizes(self, model: Model) -> tuple[int, ...]:
        """Returns the numbers and switches that are no variant, which mostly decide how large a chain is."""
        values = (self.point.values[each.name] for each in model.parameters if each.table != "variant")
        return tuple(int(value) for value in values if isinstance(value, int))

    def figure(self, key: str) -> float:
        """Returns the figure of a key of rates.NAME, faults.NAME (a probability) or run.lifetime."""
        table, _, name = key.partition(".")
        if table == "run":
            return self.point.lifetime
        return float(self.point.p_lost(name) if table == "faults" else self.point.rates[name])


class TooLarge:
    """Sizes of configurations whose chains were too large, by scenario. After MOST_TRIES of them, one that is no
    smaller counts as too large as well, whatever its variant: a try takes seconds."""

    MOST_TRIES = 2

    def __init__(self) -> None:
        self._sizes = defaultdict[str | None, list[tuple[int, ...]]](list)

    def add(self, scenario: str | None, sizes: tuple[int, ...]) -> None:
        """Adds the sizes of a configuration whose chain was too large."""
        self._sizes[scenario].append(sizes)

    def has(self, scenario: str | None, sizes: tuple[int, ...]) -> bool:
        """Whether a configuration of these sizes is too large by those before it."""
        return sum(all(map(le, each, sizes)) for each in self._sizes[scenario]) >= self.MOST_TRIES


def by_design(points: Iterable[GridPoint]) -> dict[tuple[tuple[str, Any], ...], list[GridPoint]]:
    """Returns the points of each design, one for each of its scenarios, in the grid's order."""
    designs: dict[tuple[tuple[str, Any], ...], list[GridPoint]] = {}
    for point in points:
        designs.setdefault(point.design, []).append(point)
    return designs


def check_whole(points: Iterable[GridPoint]) -> None:
    """Raises ConfigError unless each design has the same scenarios: a sum would lack one that a condition took out."""
    scenarios = {design: {each.scenario or "" for each in own} for design, own in by_design(points).items()}
    everywhere = set().union(*scenarios.values())
    for design, there in scenarios.items():
        if there != everywhere:
            missing = ", ".join(sorted(everywhere - there))
            raise ConfigError(
                f"grid.where: leaves out scenario {missing} at {_at(dict(design))}; without it, the losses a year "
                "would be too low"
            )


Combination = tuple[dict[str, Any], dict[str, Any]]
"""A grid point's values of the grid's keys, and those of all keys."""


def check_size(read: file_values.FileSettings) -> None:
    """Raises ConfigError if the grid has too many combinations to look at."""
    size, most = math.prod(map(len, read.grid.values())), MOST_COMBINATIONS if read.where else MOST_POINTS
    if size > most:
        longest = max(read.grid, key=lambda name: len(read.grid[name]))
        raise ConfigError(
            f"grid.{longest} lists {len(read.grid[longest]):,} values, and the grid has {size:,} combinations: at most "
            f"{most:,}; {_IN_PARTS}"
        )


def combinations(
    values: Mapping[str, Any], read: file_values.FileSettings, found: Mapping[str, Scenario], keys: Mapping[str, Key]
) -> Iterable[Combination]:
    """Yields the combinations that meet the grid's conditions. Raises ConfigError if they are too many."""
    num, following = 0, {key.name: key.follows for key in keys.values() if key.follows}
    for combination in itertools.product(*read.grid.values()):
        varied = dict(zip(read.grid, combination, strict=True))
        overlaid = found[varied[SCENARIO]].values if SCENARIO in varied else {}
        here = {**values, **overlaid, **varied}
        here |= {name: here[other] for name, other in following.items() if here[name] is None}
        if all(any(each.holds(here) for each in either) for either in read.where):
            num += 1
            if num > MOST_POINTS:
                raise ConfigError(f"grid.where leaves more than {MOST_POINTS:,} combinations; {_IN_PARTS}")
            yield varied, here


def outside_scenarios(
    combinations: Iterable[Combination], values: Mapping[str, Any], found: Mapping[str, Scenario]
) -> Iterable[Combination]:
    """Yields combinations with the file's own `values` in place of those of a scenario, where the file has any."""
    for varied, here in combinations:
        overlaid = found[varied[SCENARIO]].values if SCENARIO in varied else {}
        own = {name: values[name] for name in overlaid if values[name] is not None}
        yield {name: value for name, value in varied.items() if name != SCENARIO}, {**here, **own}


def placed(protocol: str, combinations: Iterable[Combination], is_physical: bool) -> Iterable[Placed]:
    """Yields each design on its cluster once, whatever its scenarios are. Raises ConfigError if one does not fit."""
    for design, here in _told_apart(combinations, lambda _: True):
        try:
            yield cluster.place_design(protocol, here, design, is_physical)
        except ConfigError as error:
            raise ConfigError(f"{error}{_hint(design)}") from None


def _told_apart(combinations: Iterable[Combination], by: Callable[[str], bool]) -> Iterable[Combination]:
    """The combinations that differ in the keys picked by `by`, with their values of these alone."""
    seen = set()
    for varied, here in combinations:
        mine = {name: value for name, value in varied.items() if by(name)}
        if (identity := tuple(mine.items())) not in seen:
            seen.add(identity)
            yield mine, here


def points(model: Model, combinations: Iterable[Combination], time_unit: str | None) -> Iterable[GridPoint]:
    """Yields the grid's points. Raises ConfigError if one is not possible, or if there are none."""
    seen: dict[str, dict[str, Any]] = {}
    shared: dict[Any, Mapping[str, Any]] = {}
    id_of = point_ids(model)
    weighed: set[tuple[int, int, float]] = set()  # exact fractions take a while, and most axes leave the rates alone
    for varied, here in _told_apart(combinations, lambda name: not is_circumstance(name)):
        point = _shared(_point(model, here, varied)._replace(time_unit=time_unit), shared)
        weighing = id(point.values), id(point.rates), point.lifetime
        if weighing not in weighed:
            _check_rates(model, point)
            weighed.add(weighing)
        identity = id_of(point)
        if identity in seen:
            raise ConfigError(f"scenarios: {_at(seen[identity])} and {_at(varied)} are the same; remove one")
        seen[identity] = varied
        yield GridPoint(point, identity, varied)
    if not seen:
        raise ConfigError("grid.where: no point of the grid meets all the conditions")


def _shared(point: Point, known: dict[Any, Mapping[str, Any]]) -> Point:
    """The point, with those of the `known` mappings that are equal to its own: a large grid keeps each only once."""
    own = point.values, point.rates, point.other_losses
    values, rates, others = (known.setdefault(tuple(each.items()), each) for each in own)
    return point._replace(values=values, rates=rates, other_losses=others)


def check_one_design(combinations: Iterable[Combination]) -> None:
    """Raises ConfigError if there are several designs, whatever their clusters are."""
    designs = [
        design for design, _ in _told_apart(combinations, lambda name: name != SCENARIO and not is_circumstance(name))
    ]
    if len(designs) > 1:
        raise ConfigError(one_wanted(designs))


def one_wanted(varied: Sequence[Mapping[str, Any]]) -> str:
    """Returns the error for several grid points where one is wanted, by the values that their grid gives them."""
    open_keys = [key for key in varied[0] if len({each[key] for each in varied}) > 1]
    if open_keys == [SCENARIO]:
        named = " or ".join(f"scenario={each[SCENARIO]}" for each in varied)
        return f"scenarios: {len(varied):,} scenarios, but one is needed; set {named}, or sweep all with `quorisk run`"
    return (
        f"{', '.join(f'grid.{key}' for key in open_keys)}: {len(varied):,} grid points, but one is needed; "
        f"set {' and '.join(open_keys)} to pick one, or sweep all with `quorisk run`"
    )


def _at(varied: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {as_toml(value)}" for name, value in varied.items())


def _hint(varied: Mapping[str, Any]) -> str:
    return f" (at the grid point {_at(varied)}; grid.where can exclude it)" if varied else ""


def _point(model: Model, values: Mapping[str, Any], varied: Mapping[str, Any]) -> Point:
    parameters = {p.name: values[f"{p.table}.{p.name}"] for p in model.parameters}
    tables = {p.name: p.table for p in model.parameters}
    for condition in model.conditions:
        if not condition.holds(parameters):
            key, value = f"{tables[condition.key]}.{condition.key}", parameters[condition.key]
            # "at most write_quorum" reads better with the number at hand
            limit = condition.allowed.rpartition(" ")[2]
            known = f" ({as_toml(parameters[limit])})" if limit in parameters else ""
            raise ConfigError(f"{key} = {as_toml(value)}: {condition.allowed}{known}{_hint(varied)}")
    rates = {action.name: values[f"rates.{action.name}"] for action in model.actions}
    max_steps, horizon, lifetime = (values[f"run.{name}"] for name in ("max_steps", "horizon", "lifetime"))
    others = {each.name: values[f"faults.{each.name}"] for each in model.probabilities}
    loss = values["faults.message_loss"]
    own = varied.get(PLACEMENT)
    return Point(parameters, rates, loss, max_steps, horizon, lifetime, other_losses=others, placement=own)


def _check_rates(model: Model, point: Point) -> None:
    rates = rates_in_force(model, point)
    try:
        scale_rates(model, rates, point.lifetime)
    except RateError as error:
        raise ConfigError(f"{_apart(rates, point)} {error}") from None


def _apart(rates: Mapping[str, float], point: Point) -> str:
    """The key whose rate lies farthest from the others'; if it is the fastest, also which one is too slow beside it."""
    lifetime, (a_time, time) = point.lifetime, (" / s", " s") if point.time_unit else ("", "")
    by_key = {f"rates.{name} = {as_toml(rate)}{a_time}": math.log(rate) for name, rate in rates.items() if rate > 0}
    by_key |= {f"run.lifetime = {as_toml(lifetime)}{time}": -math.log(lifetime)} if lifetime < math.inf else {}
    slowest, *_, fastest = sorted(by_key, key=by_key.__getitem__)
    middle = median(by_key.values())
    if by_key[fastest] - middle <= middle - by_key[slowest]:
        return f"{slowest}:"
    return f"{fastest}: beside it, {slowest} is"
