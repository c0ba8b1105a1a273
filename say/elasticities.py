"""Elasticities in words: losses grow with the square of one rate; twice another would about halve them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from quorisk.say import numbers

SMALL = 0.05
"""Elasticity below which a rate is not worth a sentence: by it, twice the rate would change losses by less than 4 %."""
_NOTHING = 1e-4
"""The greatest relative change of losses that is called none."""
_NEAR = 0.1
_MOST = 6
"""The most sentences on single rates."""
_POWERS = {1: "in proportion to", 2: "with the square of", 3: "with the cube of", 4: "with the fourth power of"}
_PARTS = {1: "about halve", 2: "leave about a quarter of", 3: "leave about an eighth of"}


def elasticity_sentence(key: str, elasticity: float) -> str:
    """Returns the meaning of an elasticity, as a sentence: it holds near the value, and is extrapolated to twice it."""
    nearest = round(abs(elasticity))
    is_near = abs(abs(elasticity) - nearest) <= _NEAR
    if elasticity >= 1.0 - _NEAR:
        power = _POWERS.get(nearest) if is_near else None
        return f"Losses grow {power or f'with the power {abs(elasticity):.2g} of'} {key} near its value."
    if elasticity > 0:
        return f"By its elasticity, twice {key} would add about {_percent(2**elasticity - 1)} to the losses."
    part = _PARTS.get(nearest) if is_near and nearest else None
    return f"By its elasticity, twice {key} would {part or f'take about {_percent(1 - 2**elasticity)} off'} the losses."


def elasticity_sentences(elasticities: Mapping[str, float | None]) -> list[str]:
    """Returns a sentence on each rate that decides losses, the most important first, and one on all others."""
    known = {key: value for key, value in elasticities.items() if value is not None}
    ranked = sorted(known, key=lambda key: -abs(known[key]))
    told = [key for key in ranked if abs(known[key]) >= SMALL][:_MOST]
    said = [elasticity_sentence(key, known[key]) for key in told]
    if others := ranked[len(told) :]:
        most = 2 ** abs(known[others[0]]) - 1
        part = f" by more than about {_percent(_above(most))}" if most > _NOTHING else ""
        said.append(f"By its elasticity, no {'other' if told else 'rate'} would change them{part} if doubled.")
    return said


def _above(part: float) -> float:
    """Returns the next number up of one digit."""
    place = 10.0 ** math.floor(math.log10(part))
    return math.ceil(part / place) * place


def _percent(part: float) -> str:
    """Returns a percentage of two digits."""
    return numbers.share(float(f"{part:.2g}"))


def fault_times(faults: Mapping[str, float]) -> str:
    """Returns how often a losing run meets each kind of fault: "lost bookie 2 times, lost message 4 × 10⁻⁶ times"."""
    ordered = sorted(((kind, float(f"{often:.12g}")) for kind, often in faults.items()), key=lambda each: -each[1])
    return ", ".join(f"{kind} {numbers.plain(often)} times".replace(" 1 times", " once") for kind, often in ordered)


def path(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns the steps of a path, numbered."""
    return [f"{number}. {step['words']}" for number, step in enumerate(steps, 1)]
