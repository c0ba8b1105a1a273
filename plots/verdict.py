"""Which designs to choose at a target, and what they come to at others."""

import math
from typing import NamedTuple

from quorisk.plots.designs import Design
from quorisk.plots.judging import FAILS, MEETS, UNDECIDED

_MOST_DECADES = 10


def choice(found: list[Design], target: float) -> list[Design]:
    """Returns the designs that meet a target, in the order in which to choose them.

    Not among them are designs with a mechanism off, or an older version. Nor are those that promise fewer copies than
    another one that meets the target, if no run of the two lost data: what such runs cannot tell apart they are no
    reason to save on, unless the copies or failures that are wanted were said.

    At a target come first those that store least, then the safest, then the fastest, or cheapest. Without one the order
    is that of the ranks.
    """
    meets = [design for design in found if design.verdict(target) == MEETS and not design.is_changed]
    clean = [design for design in meets if design.is_clean]
    said = any(design.worst.get(f"wants_{what}", 0) for design in meets for what in ("copies", "nodes", "zones"))
    kept = [each for each in meets if said or not each.is_clean or not any(map(each.promises_less, clean))]
    if math.isinf(target):
        return kept
    measure = "messages" if any(point["messages"] for design in found for point in design.points) else "steps"
    return sorted(
        kept,
        key=lambda each: (
            each.worst.get("stored", 0),
            each.rank,
            each.worst.get("write_p99_ms", 0.0),
            each.cost(measure),
        ),
    )


def has_targets(found: list[Design], target: float) -> bool:
    """Whether these designs are held to anything."""
    wanted = ("wants_write_p99_ms", "wants_copies", "wants_nodes", "wants_zones")
    beside = (found[0].worst.get(name, 0) for name in wanted)
    return target < math.inf or any(0 < each < math.inf for each in beside)


class Decade(NamedTuple):
    """What designs come to at one target."""

    target: float
    meets: list[Design]
    fails: int
    undecided: int


def decades(found: list[Design]) -> list[Decade]:
    """Targets at powers of ten, from the one that all of these designs meet down to one that none does."""
    highs = [design.worst["high"] for design in found if design.worst["high"] > 0] or [1.0]
    most = math.inf if any("parts" in design.worst for design in found) else 0  # losses a year may be more than 1
    first, last = (int(min(most, math.ceil(math.log10(high)))) for high in (max(highs), min(highs)))
    result = []
    for exponent in range(first, max(last - 2, first - _MOST_DECADES), -1):
        target = 10.0**exponent
        verdicts = [design.verdict(target) for design in found]
        meets = [design for design, verdict in zip(found, verdicts, strict=True) if verdict == MEETS]
        result.append(Decade(target, meets, verdicts.count(FAILS), verdicts.count(UNDECIDED)))
    return result
