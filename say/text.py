"""Settings and results in words, for figures, reports and the screen."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from quorisk.say import numbers, quantities

MESSAGE_LOSS, SCENARIO = "faults.message_loss", "run.scenario"
ANY_LOSS = "data loss"
"""Name in the place of an invariant's: the breach of any invariant whose breach is data loss."""
_SHORT = {
    "model.ensemble_size": "E",
    "model.write_quorum": "WQ",
    "model.replication_factor": "RF",
    "model.min_isr": "min ISR",
    "variant.unclean_leader_election": "unclean elections",
    "model.ack_quorum": "AQ",
    "faults.message_loss": "message loss",
    "variant.follower_fsync_before_reply": "followers' fsync",
    "variant.leader_fsync_before_include_in_quorum": "leader's fsync",
    "variant.rejoin_as_new": "rejoining as new",
}
_EVENTS = "cluster.events."
_QUORUMS = ("model.ensemble_size", "model.write_quorum", "model.ack_quorum")
"""Sizes that are named together where all are known: 3/3/2."""
_FSYNCS = ("variant.follower_fsync_before_reply", "variant.leader_fsync_before_include_in_quorum")
"""Switches that are named together where both are alike, also where they are on: fsync, fsync off."""
CAUSES = {
    "single_losses": "a node lost alone",
    "single_losses_after_event": "a node lost alone after an event",
    "thin_entries": "entries with copies still missing",
    "unflushed": "an outage that took what was not on disk",
}
"""Causes of the loss of a last copy, besides the events of a cluster."""
PLACEMENTS = {
    "random": "copies at random",
    "two_racks": "copies in two racks",
    "distinct_racks": "copies in racks of their own",
    "copysets": "copysets",
}
"""Ways to place copies."""
_MEANT = {"kip966": "ELR", "v3_5": "without ELR"} | PLACEMENTS
"""Versions of a protocol by their features, and placements: such a value needs no key beside it."""
FOLLOWS = {"model.ensemble_size": "model.write_quorum"}
"""Parameters that are named only where they differ from another one."""
TIME_UNIT = "run.time_unit"
"""Key of rows whose rates and times are in seconds."""
_TIMES = ("run.lifetime", "run.horizon")
_A_YEAR = ("node_loss", "disk_loss", "cluster.restarts")
_CLUSTER_TIMES = ("retention", "detection_delay", "restart_time", "outage_time", "service_life")
_MOST_RATES = 8
"""Fewest unusual rates that a caption does not list; with a profile there are dozens."""
_LONGEST = 60
"""The most characters of a name or a value."""


def name(key: str) -> str:
    """Returns a dotted key for people: WQ, fence recovery reads."""
    table, _, inner = key.rpartition(".")
    event = f"{table.removeprefix(_EVENTS)} " if table.startswith(_EVENTS) else ""
    return _SHORT.get(key) or _clean(f"{event}{inner}".replace("_", " "))


def cause(name: str) -> str:
    """Returns the cause of incidents for people: one of CAUSES, else an event's own name."""
    return CAUSES.get(name) or _clean(name.replace("_", " "))


def value(given: Any) -> str:
    """Returns a parameter's value for people."""
    if isinstance(given, bool | np.bool_):
        return "on" if given else "off"
    if isinstance(given, float):
        return numbers.short(given) if math.isfinite(given) else "none"
    return _clean(_MEANT.get(str(given), f"{given:,}" if isinstance(given, int | np.integer) else str(given)))


def _clean(given: str) -> str:
    """Returns words of a table for people, without letters that a picture or a screen cannot show, and cut off."""
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in given)
    return shortened(shown, _LONGEST)


def shortened(given: str, longest: int) -> str:
    """Returns words of this many characters at most."""
    return given if len(given) <= longest else f"{given[: longest - 1]}…"


def settings(given: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Returns some parameters for people: 3/3/2 (E/WQ/AQ), fence recovery reads off; rates and times have units."""
    named = list(keys)
    parts = []
    if set(_QUORUMS[1:]) <= set(named) and _QUORUMS[0] in given:
        parts.append("/".join(value(given[key]) for key in _QUORUMS))
        named = [key for key in named if key not in _QUORUMS]
    fsync = []
    if set(_FSYNCS) <= set(named) and len({bool(given[key]) for key in _FSYNCS}) == 1:
        fsync = ["fsync" if given[_FSYNCS[0]] else "fsync off"]
        named = [key for key in named if key not in _FSYNCS]
    return ", ".join([*parts, *(_setting(key, given[key], TIME_UNIT in given) for key in named), *fsync])


def _setting(key: str, given: Any, physical: bool) -> str:
    if key == "model.servers":
        return numbers.counted(int(given), "server")
    return _MEANT.get(str(given)) or f"{name(key)} {said(key, given, physical)}"


def said(key: str, given: Any, physical: bool) -> str:
    """Returns the value of a key, or of a scenario's, for people; rates and times have units if time is `physical`."""
    if key == SCENARIO:
        return cause(str(given))
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    if physical and is_number:
        if "rates" in key.split(".")[:-1]:
            return quantities.say_rate(given)
        if key.endswith(_TIMES):
            return quantities.say_time(given)
    if is_number and key.startswith("cluster.") and key.endswith(_CLUSTER_TIMES):
        return quantities.say_time(given)
    if is_number and key.endswith(("_bytes", "bandwidth")):
        return f"{numbers.size(given)}{'' if key.endswith('_bytes') else ' / s'}"
    return f"{value(given)} / year" if key.endswith(_A_YEAR) else value(given)


def design(given: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Returns a design's settings for people: switches are named where they differ from their defaults, or if nothing
    else is there to name.

    `changed` of `given` says which are not (`analysis.decision.promises`); without it, all are on by default.
    """
    told = set(given.get("changed", "").split(", ")) if "changed" in given else None

    def is_default(key: str) -> bool:
        if not key.startswith("variant.") or not isinstance(given[key], bool | np.bool_):
            return False
        return bool(given[key]) if told is None else settings(given, [key]) not in told

    keys = list(keys)
    with_fsync = _FSYNCS if all(key in keys and given[key] for key in _FSYNCS) else ()
    named = [key for key in keys if key in with_fsync or not is_default(key)]
    if not named and len(keys) > 1 and all(given[key] for key in keys):
        return "all mechanisms on"
    return settings(given, named or keys) or "this design"


def parameter_keys(frame: pd.DataFrame) -> list[str]:
    """Returns the columns of a result frame that are parameters: those with a dotted key."""
    return [column for column in frame.columns if "." in column]


def varied(frame: pd.DataFrame) -> list[str]:
    """Returns the parameters that differ between rows, but for those that a scenario fixes."""
    keys = [key for key in parameter_keys(frame) if frame[key].nunique(dropna=False) > 1 and not _follows(frame, key)]
    if SCENARIO not in keys:
        return keys
    by_scenario = frame.groupby(SCENARIO)
    return [key for key in keys if key == SCENARIO or (by_scenario[key].nunique(dropna=False) > 1).any()]


def _follows(frame: pd.DataFrame, key: str) -> bool:
    """Whether a parameter equals the one that it follows in all rows, and need not be named."""
    return key in FOLLOWS and bool((frame[key] == frame[FOLLOWS[key]]).all())


def independent(frame: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Returns these parameters without those whose value an earlier one fixes."""
    kept: list[str] = []
    for key in keys:
        if not any((frame.groupby(earlier)[key].nunique(dropna=False) == 1).all() for earlier in kept):
            kept.append(key)
    return kept


def configurations(frame: pd.DataFrame, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the combinations of these parameters that occur, in the order in which they do."""
    return frame[list(keys)].drop_duplicates().to_dict("records") if keys else [{}]


def fixed(frame: pd.DataFrame) -> dict[str, str]:
    """Returns the parameters that all rows share, for people, by the table of the experiment file that they are in.

    Those that scenarios fix are named without a value.
    """
    told = {table: [shared, _own(own)] for table, shared, own in _fixed(frame)}
    return {table: "; ".join(filter(None, parts)) for table, parts in told.items()}


def _fixed(frame: pd.DataFrame) -> Iterator[tuple[str, str, list[str]]]:
    """Yields each table with parameters, words for those that all rows share, and names of those that scenarios fix."""
    first, differ = frame.iloc[0].to_dict(), varied(frame)
    given = [key for key in parameter_keys(frame) if not _follows(frame, key)]
    for table, read in _TABLES.items():
        keys = [key for key in given if key.startswith(f"{table}.") and key not in differ and key != TIME_UNIT]
        own = [key for key in keys if frame[key].nunique(dropna=False) > 1]
        shared = [key for key in keys if key not in own]
        if keys:
            yield table, read(first, shared) if shared else "", [name(key) for key in own]


def _own(names: Iterable[str]) -> str:
    """Returns words for the parameters that scenarios fix; empty if there are none."""
    *most, last = sorted(names) or [""]
    return f"each scenario has its own {', '.join(most)}{' and ' if most else ''}{last}" if last else ""


def _switches(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Returns choices, and the mechanisms that are off; `keys` are those that do not vary."""
    switches = [key for key in keys if isinstance(given[key], bool | np.bool_)]
    off = ", ".join(name(key) for key in switches if not given[key])
    choices = settings(given, [key for key in keys if key not in switches])
    some_vary = any(key.startswith("variant.") and key not in keys for key in given)
    others = off or choices or some_vary
    rest = "all other safety mechanisms on" if others else "all safety mechanisms on"
    return "; ".join(filter(None, [choices, f"off: {off}" if off else "", rest]))


def _rates(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Returns rates in words, without listing all that are 1."""
    unusual = settings(given, [key for key in keys if given[key] != 1])
    usual = "1 / s" if TIME_UNIT in given else "1"
    return f"{usual}, except {unusual}" if unusual else usual


_TABLES: Mapping[str, Callable[[Mapping[str, Any], Sequence[str]], str]] = {
    "model": settings,
    "variant": _switches,
    "faults": settings,
    "rates": _rates,
    "run": settings,
}


def runs_of_points(frame: pd.DataFrame) -> str:
    """Returns the number of runs of each point: 1,000,000 runs, or 500 to 1,000,000 runs."""
    low, high = frame["runs"].min(), frame["runs"].max()
    return numbers.counted(low, "run") if low == high else f"{low:,} to {high:,} runs"


def shown(frame: pd.DataFrame) -> list[str]:
    """Returns the invariants worth showing: any data loss, then each that broke, unless it alone is that data loss."""
    counts = {str(name): list(rows["losses"]) for name, rows in frame.groupby("invariant", sort=False)}
    any_loss = counts.pop(ANY_LOSS)
    losing = set(frame["invariant"][frame["data_loss"]])
    same = {name for name in losing & counts.keys() if counts[name] == any_loss}
    return [ANY_LOSS, *(name for name in counts if any(counts[name]) and name not in same)]


def event(invariant: str) -> str:
    """Returns the event that a probability is about, as a verb: loses data, or breaks an invariant."""
    return "loses data" if invariant == ANY_LOSS else f"breaks {_clean(invariant)}"


def measure(frame: pd.DataFrame) -> str:
    """Returns the label of the axis of `p`."""
    if is_clustered(frame):
        return "P(any loss in a year)"
    if not is_yearly(frame):
        return "probability in a run"
    return "losses a year" if frame["invariant"].iloc[0] == ANY_LOSS else "times a year"


def question(frame: pd.DataFrame, invariant: str) -> str:
    """Returns the title of a figure about an invariant."""
    if invariant == ANY_LOSS and is_clustered(frame):
        return "P(any loss in a year)"
    if is_yearly(frame):
        return "Losses a year" if invariant == ANY_LOSS else f"How often a year a run {event(invariant)}"
    return f"Probability that a run {event(invariant)}"


def scheduler(frame: pd.DataFrame) -> str:
    """Returns a sentence for a caption on how a run's next action is drawn."""
    lost = "; messages are lost independently of each other" if may_lose_messages(frame) else ""
    return f"At each step, one of the actions that may happen next is drawn in proportion to its rate{lost}."


def may_lose_messages(frame: pd.DataFrame) -> bool:
    """Whether messages may be lost at some point."""
    return bool(frame[MESSAGE_LOSS].any())


def ended_by(rows: pd.DataFrame) -> str:
    """Returns a word for the end of runs that are watched for some time: a lifetime, the horizon, or either."""
    lifetime, horizon = ((rows[key] < math.inf).any() for key in _TIMES)
    if not lifetime:
        return "horizon"
    return "horizon or lifetime" if horizon else "lifetime"


def terms(frame: pd.DataFrame) -> str:
    """Returns model, faults and runs of a figure: what all rows share."""
    first, keys = frame.iloc[0], varied(frame)
    shared: dict[str, str] = {}
    own: list[str] = []
    for table, what, names in _fixed(frame):
        shared |= {table: what} if what else {}
        own += names
    said = [f"Model {_clean(first['protocol'])}, version {first['model_version']}: {shared.pop('model', 'as above')}."]
    if shared.get("rates", "").count(", ") >= _MOST_RATES:
        shared["rates"] = "as in the experiment file and its profile"
    said += [f"{table.capitalize()}: {what}." for table, what in shared.items()]
    said += [f"E{_own(own)[1:]}."] if own else []  # its names keep their capitals
    kept = independent(frame, keys)
    said += [f"Not named, because others determine it: {name(key)}." for key in keys if key not in kept]
    return " ".join([*said, f"{runs_of_points(frame)} a point, seed {first['seed']}."])


def intervals(frame: pd.DataFrame, of_runs: bool = False) -> str:
    """Returns the kind of intervals, and what they promise: 95% intervals (Clopper-Pearson), each on its own.

    Designs on clusters have the intervals of these, with those of scenarios beside them, unless intervals `of_runs` are
    meant.
    """
    first, clustered = frame.iloc[0], is_clustered(frame) and not of_runs
    together = "for all points together" if is_simultaneous(frame) else "each on its own"
    together = "for all scenarios of a design together" if is_yearly(frame) and not clustered else together
    rows = frame[frame["incident"].astype(bool)] if clustered else frame
    methods = {each for methods in rows["method"].unique() for each in methods.split(" or ")}  # a year has several
    listed = "; or ".join(sorted(sorted(methods), key=numbers.is_solved))
    if clustered:
        of_clusters = f"the cluster's: {' or '.join(sorted(frame['any_loss_method'].unique()))}"
        listed = f"{of_clusters}; those of scenarios beside it: {listed}" if listed else of_clusters
    return f"{numbers.percent(first['confidence'])} intervals ({listed}), {together}"


def is_simultaneous(frame: pd.DataFrame) -> bool:
    """Whether the intervals of an invariant hold simultaneously."""
    return bool(frame["together"].iloc[0] > 1) and not is_yearly(frame)


def is_yearly(frame: pd.DataFrame) -> bool:
    """Whether scenarios add up to losses a year."""
    return "per_year" in frame


def is_clustered(frame: pd.DataFrame) -> bool:
    """Whether designs are judged on their clusters, and these rows are of any data loss there."""
    return "any_loss" in frame and bool((frame["invariant"] == ANY_LOSS).all())
