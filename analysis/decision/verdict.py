"""Choice of designs at a target, and verdicts on them at others."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from quorisk.analysis.decision import years
from quorisk.analysis.decision.designs import Design
from quorisk.analysis.decision.judging import FAILS, MEETS, UNDECIDED
from quorisk.analysis.statistics import yearly

_MOST_DECADES = 10


def choice(found: list[Design], target: float) -> list[Design]:
    """Returns the designs that meet a target, in the order in which to choose them.

    Not among them are designs with a mechanism off, or an older version. Nor are those that promise fewer copies than
    another one that meets the target, if no run of the two lost data: such runs do not tell the two apart, and so are
    no reason to save copies, unless there are targets on copies or failures.

    At a target come first those that store least, then the safest; those whose writes stop at any restart come last.
    Designs that losses do not tell apart share a rank. What is certain decides between them: writes that go on while a
    node is down, copies, unless there are targets on copies or failures, loss of a rack, then speed, then steps.
    Without a target the order is that of the ranks.
    """
    meets = [design for design in found if design.verdict(target) == MEETS and not design.is_changed]
    clean = [design for design in meets if design.is_clean]
    said = _said(meets)
    kept = [each for each in meets if said or not each.is_clean or not any(map(each.promises_less, clean))]
    if math.isinf(target):
        return kept

    def order(design: Design) -> tuple[float, ...]:
        return design.stops_writes, design.worst.get("stored", 0), design.rank, *_certain(design, said).values()

    return sorted(kept, key=order)


def chosen(found: list[Design], target: float, now: str = "") -> str:
    """Returns the design to choose at a target, empty if there is none. It is the one that is chosen `now` as long as
    that meets the target, stores no more than the first to choose, stops at a restart only if that one does, too, and
    losses do not tell it from that one.
    """
    picks = choice(found, target)
    if not picks:
        return ""
    first = picks[0]
    for each in found:
        stands = each.settings == now and each.verdict(target) == MEETS and not each.is_changed
        as_cheap = each.worst.get("stored", 0) <= first.worst.get("stored", 0)
        if stands and each.is_tied(first) and as_cheap and each.stops_writes <= first.stops_writes:
            return now
    return first.settings


def deciding(first: Design, other: Design, found: list[Design]) -> str:
    """Returns why a design comes before another one with which it is tied, in words; empty if nothing tells them apart.

    `found` are the designs that they were chosen from.
    """
    if first.worst.get("stored", 0) < other.worst.get("stored", 0):
        return "stores less"
    said = _said([each for each in found if not each.is_changed])
    mine, its = (_certain(each, said) for each in (first, other))
    return next((why for why, value in mine.items() if value < its[why]), "")


def _said(found: list[Design]) -> bool:
    """Whether there are targets on copies or failures."""
    return any(design.worst.get(f"wants_{what}", 0) for design in found for what in ("copies", "nodes", "zones"))


def _certain(design: Design, said: bool) -> dict[str, float]:
    """Criteria between designs that losses do not tell apart, in words: the lower value comes first."""
    copies = 0 if said else -design.worst.get("copies", 0)
    return {
        "takes writes while any one node is down": float(design.stops_writes),
        "has more copies when acknowledged": copies,
        "survives the loss of a rack": 0 if design.worst.get("wants_zones") else -design.worst.get("zones", 0),
        "is faster": design.worst.get("write_p99_ms", 0.0),
        "needs fewer messages and other steps to do its work": design.steps,
    }


def better_otherwise(first: Design, found: Sequence[Design]) -> Design | None:
    """Returns the best design by the measure of a year that does not rank designs, among those that are worse than
    `first` by the one that does: entries lost on a cluster, P(any loss) without one. None if there is none."""
    other = "entries" if first.is_clustered else "p_any"

    def both(design: Design) -> tuple[yearly.Ends, yearly.Ends]:
        return yearly.Ends(*(design.worst[name] for name in years.SUMMED)), years.ends(design.worst, other)

    better = [each for each in found if other in first.worst and yearly.disagree(both(first), both(each))]
    return min(better, key=lambda each: float(each.worst[other]), default=None)


def has_targets(found: list[Design], target: float) -> bool:
    """Whether these designs have any targets."""
    wanted = (value for name, value in found[0].worst.items() if name.startswith("wants_"))
    return target < math.inf or any(not isinstance(each, str) and 0 < each < math.inf for each in wanted)


class Decade(NamedTuple):
    """Verdicts on designs at one target."""

    target: float
    meets: list[Design]
    fails: int
    undecided: int


def decades(found: list[Design]) -> list[Decade]:
    """Returns verdicts at powers of ten, from the target that all of these designs meet down to one that none does."""
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
