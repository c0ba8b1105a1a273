"""Changes from one sweep to another: the same designs, before and after.

Both sweeps' intervals are widened so that all statements about them hold together: with m pairs at confidence c an end
of an interval misses with probability (1 - c) / (4 m) at most, so that the difference lies between low after - high
before and high after - low before. That holds whatever the two have in common: seeds, engines, methods.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quorisk.analysis.cluster.figures import ENDS
from quorisk.analysis.decision import frames
from quorisk.analysis.decision.years import SUMMED, year_of_scenarios
from quorisk.analysis.experiment.scenarios import SCENARIO
from quorisk.analysis.statistics.sequential import simultaneous
from quorisk.kernels.errors import ConfigError, ResultError
from quorisk.say import text
from quorisk.say.text import TIME_UNIT

if TYPE_CHECKING:
    import pandas as pd

FEWER, MORE, NOT_SHOWN = "fewer losses", "more losses", "no difference shown"


class Side(NamedTuple):
    """A probability in one of the sweeps."""

    losses: int
    runs: int
    p: float
    low: float
    high: float


class Change(NamedTuple):
    """The change of one design."""

    settings: dict[str, Any]
    """The values of the keys that either sweep varies, by dotted key."""
    before: Side
    after: Side
    difference: float
    difference_low: float
    difference_high: float
    verdict: str
    """The verdict: FEWER, MORE or NOT_SHOWN."""


class Diff(NamedTuple):
    """The differences of two sweeps."""

    changes: list[Change]
    """The changes, in the order of the second sweep."""
    settings: dict[str, tuple[Any, Any]]
    """Settings that are fixed within each sweep but differ between the two, before and after, by dotted key."""
    only_before: int
    only_after: int
    """Configurations that the other one does not have."""
    confidence: float
    """The confidence with which all statements about `changes` hold together."""
    physical: bool
    """Whether rates are per second, and times in seconds, in both."""
    p_any_loss_per_year: list[Change]
    """Changes of designs' P(any loss in a year); empty without scenarios or a cluster."""


def diff(before: Path, after: Path, invariant: str, confidence: float = 0.95) -> Diff:
    """Compares two sweeps' results on an invariant, at their common configurations.

    Raises ConfigError if there are none, or no results that can be read.
    """
    frames = [_rows(path, invariant, confidence) for path in (before, after)]
    keys, settings = _keys(*frames)
    for path, frame, other in zip((before, after), frames, reversed(frames), strict=True):
        _check_told_apart(path, frame, other)
    first, second = (_by(keys, frame) for frame in frames)
    common = [key for key in second if key in first]
    if not common:
        raise ConfigError(f"{before}, {after}: they have no configuration in common")
    num = len(common)
    surer = simultaneous(confidence, 2 * num)
    frames = [_rows(path, invariant, surer) for path in (before, after)]
    first, second = (_by(keys, frame) for frame in frames)
    changes = [_change(dict(zip(keys, key, strict=True)), first[key], second[key]) for key in common]
    physical = all(TIME_UNIT in frame for frame in frames)
    return Diff(changes, settings, len(first) - num, len(second) - num, confidence, physical, _years(frames, keys))


def _years(frames: Sequence["pd.DataFrame"], keys: list[str]) -> list[Change]:
    """Designs with all of their scenarios in both sweeps."""
    if any(SCENARIO not in frame or not text.is_yearly(frame) for frame in frames):
        return []
    own = [key for key in keys if key != SCENARIO]
    sides: list[dict[tuple[Any, ...], list[dict[str, Any]]]] = [{}, {}]
    for side, frame in zip(sides, frames, strict=True):
        for row in frame.to_dict("records"):
            side.setdefault(tuple(row[key] for key in own), []).append(row)
    first, second = sides
    pairs = {key: (first[key], rows) for key, rows in second.items() if _scenarios(first.get(key)) == _scenarios(rows)}
    years = {key: (_p_any(one), _p_any(other)) for key, (one, other) in pairs.items()}
    return [_change(dict(zip(own, key, strict=True)), *both) for key, both in years.items()]


def _p_any(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A design's year, with `p` and its interval of any loss."""
    year = year_of_scenarios(rows)
    return year | {name: year[f"p_any{end}"] for name, end in zip(SUMMED, ENDS, strict=True)}


def _scenarios(rows: list[dict[str, Any]] | None) -> set[str]:
    return {row[SCENARIO] for row in rows or ()}


def _rows(path: Path, invariant: str, confidence: float) -> "pd.DataFrame":
    try:
        frame = frames.load_sweep(path, confidence).frame
    except ResultError as error:
        raise ConfigError(str(error)) from None
    known = list(frame["invariant"].unique())
    if invariant not in known:
        raise ConfigError(f" {invariant}: {path} has {', '.join(known)}", "invariant")
    return frame[frame["invariant"] == invariant]


def _check_told_apart(path: Path, frame: "pd.DataFrame", other: "pd.DataFrame") -> None:
    """Raises ConfigError if the other sweep is of another protocol, or lacks a key that tells this one's rows apart."""
    protocols = sorted({*frame["protocol"], *other["protocol"]})
    if len(protocols) > 1:
        raise ConfigError(f"{path}: the two sweeps are of {' and '.join(protocols)}: give two of one protocol")
    for key in frame.columns:
        if "." in key and key not in other.columns and frame[key].nunique(dropna=False) > 1:
            raise ConfigError(f"{path}: its configurations differ in {key}, which the other sweep does not have")


def _by(keys: list[str], rows: "pd.DataFrame") -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows by the values of these keys."""
    return {tuple(row[key] for key in keys): row for row in rows.to_dict("records")}


def _keys(before: "pd.DataFrame", after: "pd.DataFrame") -> tuple[list[str], dict[str, tuple[Any, Any]]]:
    """The keys that tell configurations apart, and the other settings in which the sweeps differ.

    Keys that a scenario sets are none of these, as its name tells it apart: changed rates would hide it otherwise.
    """
    both = [column for column in after.columns if "." in column and column in before.columns]
    keys = [key for key in both if max(before[key].nunique(), after[key].nunique()) > 1]
    inner = [key for key in keys if key != SCENARIO and _is_set_by_scenario(key, before, after)]
    differ = _differ([key for key in both if key not in keys], before, after)
    for name in after[SCENARIO].unique() if inner else ():
        one, other = (frame[frame[SCENARIO] == name] for frame in (before, after))
        if len(one):
            differ |= {f"scenarios.{name}.{key}": values for key, values in _differ(inner, one, other).items()}
    return [key for key in keys if key not in inner], differ


def _is_set_by_scenario(key: str, *frames: "pd.DataFrame") -> bool:
    return all(SCENARIO in frame and frame.groupby(SCENARIO)[key].nunique().max() <= 1 for frame in frames)


def _differ(keys: list[str], before: "pd.DataFrame", after: "pd.DataFrame") -> dict[str, tuple[Any, Any]]:
    """The values of these keys, which all rows of a frame have in common, where they differ between the frames."""
    one, other = (frame[keys].head(1).to_dict("records")[0] for frame in (before, after))  # of Python's own types
    return {key: (one[key], other[key]) for key in keys if one[key] != other[key]}


def _change(settings: dict[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    one, other = (Side(**{name: row[name] for name in Side._fields}) for row in (before, after))
    low, high = other.low - one.high, other.high - one.low
    verdict = FEWER if high < 0 else MORE if low > 0 else NOT_SHOWN
    return Change(settings, one, other, other.p - one.p, low, high, verdict)
