"""How numbers and settings read, in figures, reports and on screen."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

MESSAGE_LOSS = "faults.message_loss"
_SHORT = {
    "model.write_quorum": "WQ",
    "model.ack_quorum": "AQ",
    "faults.message_loss": "message loss",
}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 2) -> str:
    """A few significant digits: 0.012, 1.2 × 10⁻⁵, 1.2 × 10⁶."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if 1e-3 <= abs(value) < 1e4:
        exponent = math.floor(math.log10(abs(value)))
        return f"{value:.{max(digits - 1 - exponent, 0)}f}"
    mantissa, _, exponent_text = f"{value:.{digits - 1}e}".partition("e")
    return f"{mantissa} × 10{str(int(exponent_text)).translate(_SUPERSCRIPTS)}"


def probability(losses: int, p: float, high: float) -> str:
    """The estimate; without losses its upper bound, since nothing seen is not nothing there."""
    return number(p) if losses else f"< {number(high)}"


def interval(low: float, high: float) -> str:
    """Both ends of an interval."""
    return f"{number(low)} – {number(high)}"


def percent(confidence: float) -> str:
    """A confidence level: 95 %, 99.9 %."""
    return f"{100 * confidence:.10g} %"


def name(key: str) -> str:
    """A dotted key for people: WQ, fence recovery reads."""
    return _SHORT.get(key) or key.rpartition(".")[2].replace("_", " ")


def value(given: Any) -> str:
    """A parameter's value for people."""
    if isinstance(given, bool):
        return "on" if given else "off"
    if isinstance(given, float):
        return f"{given:g}" if math.isfinite(given) else "none"
    return str(given)


def settings(given: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Some parameters for people: WQ 3, AQ 2, fence recovery reads off."""
    return ", ".join(f"{name(key)} {value(given[key])}" for key in keys)


def parameters(frame: pd.DataFrame) -> list[str]:
    """The columns of a result frame that are parameters: those with a dotted key."""
    return [column for column in frame.columns if "." in column]


def varied(frame: pd.DataFrame) -> list[str]:
    """The parameters that differ between rows."""
    return [key for key in parameters(frame) if frame[key].nunique(dropna=False) > 1]


def configurations(frame: pd.DataFrame, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The combinations of these parameters that occur, in the order in which they do."""
    return frame[list(keys)].drop_duplicates().to_dict("records") if keys else [{}]


def fixed(frame: pd.DataFrame) -> dict[str, str]:
    """The parameters that all rows share, for people, by the table of the experiment file that they are in."""
    same = [key for key in parameters(frame) if key not in varied(frame)]
    first = frame.iloc[0]
    tables: dict[str, list[str]] = {}
    for key in same:
        tables.setdefault(key.partition(".")[0], []).append(key)
    return {table: _READ.get(table, settings)(first, keys) for table, keys in tables.items()}


def _switches(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Choices, and which mechanisms are off."""
    switches = [key for key in keys if isinstance(given[key], bool | np.bool_)]
    off = ", ".join(name(key) for key in switches if not given[key])
    choices = settings(given, [key for key in keys if key not in switches])
    return "; ".join(filter(None, [choices, f"off: {off}" if off else "all other mechanisms on"]))


def _rates(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Rates, without listing all that are 1."""
    unusual = settings(given, [key for key in keys if given[key] != 1])
    return f"1 but for {unusual}" if unusual else "1"


_READ = {"variant": _switches, "rates": _rates}


def runs(frame: pd.DataFrame) -> str:
    """The number of runs of each point: 1,000,000 runs, or 500 to 1,000,000 runs."""
    low, high = frame["runs"].min(), frame["runs"].max()
    return f"{low:,} runs" if low == high else f"{low:,} to {high:,} runs"
