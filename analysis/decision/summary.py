"""The first screen of a report: the choice, its risk with both kinds of error, the size, the doubt and the costs."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from quorisk.analysis.cluster.figures import ENDS
from quorisk.analysis.decision import verdict, years
from quorisk.analysis.decision.designs import EXACT, Design, loses_at_least, losses_in_words, measure_of
from quorisk.analysis.decision.doubt import Doubt, learned, of_draws
from quorisk.analysis.decision.judging import MEETS, UNDECIDED
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time

_MOST_FLIPS = 2
_UNCERTAIN = "uncertain rates"
_OBJECTS = {"kafka": "partition", "kraft": "partition", "raft": "log"}
"""The object that an event of a scenario may take, by protocol."""


class Summary(NamedTuple):
    """The first screen on one design: the choice, or else the safest."""

    standing: str
    """The design's short name and whether it is recommended."""
    measure: str
    """Name of the measure `risk`: "P(any loss in a year)", "losses a year" or "P(data loss) of a run"."""
    risk: str
    """The estimate, or the upper bound."""
    facts: list[tuple[str, str]]
    """Further facts: a label and a short sentence each; without a label, one more of the label before."""


def summary(found: Sequence[Design], target: float, sure: Doubt | None, flips: Sequence[str] = ()) -> Summary:
    """Returns the first screen on designs.

    Args:
        found: the designs, by rank.
        target: the largest loss that is allowed.
        sure: the effect of uncertain rates; None if no uncertainty is given.
        flips: what would change the choice, in sentences.
    """
    picks = verdict.choice(list(found), target)
    open_to = [each for each in found if each.verdict(target) == UNDECIDED]
    design = next(iter([*picks, *open_to]), found[0])
    standing = "recommended" if picks else "the safest, not recommended" if len(found) > 1 else "not recommended"
    if not picks and design.verdict(target) == UNDECIDED:
        high = numbers.plain(numbers.above((_p_any(design) or design.worst)["high"]))
        standing = f"undecided, up to {high}" if design.worst["losses"] else "undecided"  # else the risk is the bound
    if not verdict.has_targets(list(found), target):
        standing = "the first by rank; no target is set" if len(found) > 1 else "no target is set"
    named = f"{design.settings} ({standing})"
    p_any = _p_any(design)
    facts = [
        *_quorums(design),
        *_errors(design, sure, p_any),
        *_incident(design),
        *(_why(design, found, target) if picks else ()),
        *_disagreement(design, found),
        *_choice(design, picks, sure),
        *(("" if place else "what changes it", flip) for place, flip in enumerate(flips[:_MOST_FLIPS])),
        *_costs(design),
    ]
    measure = "P(any loss in a year)" if p_any else measure_of(design)
    return Summary(named, measure, losses_in_words(p_any or design.worst), facts)


def _quorums(design: Design) -> Iterator[tuple[str, str]]:
    """The names of the three numbers of a short name."""
    if (name := re.match(r"\d+/\d+/\d+", design.settings)) and "model.ack_quorum" in design.worst:
        words = zip(("ensemble", "write quorum", "ack quorum"), name[0].split("/"), strict=True)
        yield name[0], ", ".join(f"{word} {value}" for word, value in words)


def _p_any(design: Design) -> dict[str, Any]:
    """P(any loss in a year) of a design without a cluster, as a row of a frame; nothing if that ranks it already, or is
    not known."""
    worst = design.worst
    if design.is_clustered or "p_any" not in worst:
        return {}
    return {**worst, **dict(zip(years.SUMMED, (worst[f"p_any{end}"] for end in ENDS), strict=True)), "yearly": False}


def _errors(design: Design, sure: Doubt | None, p_any: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The computation's interval, losses a year if not the measure, and the interval due to uncertain rates."""
    if design.is_proved:
        yield "how sure", "proved, whatever the rates"
        return
    risk, level = p_any or design.worst, numbers.percent(design.worst.get("confidence", 0.95))
    if interval := numbers.interval(risk):
        fates = f"{interval}: the file does not say whether what an event touches shares one fate"
        found = f"{level} interval", f"{interval}, at the rates given"
        yield ("range", fates) if risk.get("method") == EXACT else found
    elif not risk["losses"]:
        yield f"{level} bound", "no loss was seen, at the rates given"
    of = ""
    if p_any:
        of, interval = " losses a year", numbers.interval(design.worst)
        yield "losses a year", f"{losses_in_words(design.worst)}{f' ({interval})' if interval else ''}"
    if sure is None:
        yield _UNCERTAIN, "effect not known: the file does not say how well its rates are known"
    elif known := sure.allowed.get(design.settings):
        ends = numbers.between(numbers.below(known.low), numbers.above(known.high))
        yield _UNCERTAIN, f"{ends}{of}, nine times in ten"
    else:
        yield _UNCERTAIN, f"effect not known: {sure.open.get(design.settings, 'its losses were not solved')}"


def _incident(design: Design) -> Iterator[tuple[str, str]]:
    worst = design.worst
    if design.is_clustered and worst["incidents"]:
        yield "happens", f"about once in {say_time(YEAR_S / worst['incidents'])}"
        median, most = numbers.in_full(worst["incident_p50"]), numbers.in_full(worst["incident_p99"])
        if loses_at_least(worst):
            yield "lost at once", f"at least {numbers.entries(median)} (median); a lost partition counts as one"
        else:
            yield "lost at once", f"{numbers.entries(median)} (median); in 99 of 100 incidents at most {most}"
    elif "parts" in worst:
        protocol, most = worst.get("protocol", ""), max(row.get("hits", 1.0) for row in worst["parts"])
        objects = numbers.counted(int(most), _OBJECTS.get(protocol, "object"))
        how = "a file of `quorisk init kraft`" if protocol == "kafka" else "a file with [cluster]"
        yield "lost at once", f"at most {objects}; {how} also tells how many entries"
    if causes := design.by_cause:
        most = max(causes, key=lambda cause: causes[cause])
        part = numbers.share(causes[most] / math.fsum(causes.values()))
        yield "main cause", f"{text.cause(most)} ({part} of the {'incidents' if design.is_clustered else 'losses'})"


def _why(design: Design, found: Sequence[Design], target: float) -> Iterator[tuple[str, str]]:
    """The designs that meet the targets, and whether any stores less than the choice."""
    meets = [each for each in found if each.verdict(target) == MEETS]
    if len(found) > 1 and math.isfinite(target):
        stored = [each.worst.get("stored", 0) for each in meets if not each.is_changed]
        less = "" if min(stored) < design.worst.get("stored", 0) else "; none of these stores less"
        many = f"{len(meets)} of {len(found)} designs meet the targets{less}"
        yield "why", many if len(meets) > 1 else "no other design meets the targets"


def _disagreement(design: Design, found: Sequence[Design]) -> Iterator[tuple[str, str]]:
    """The design that would be better by the other measure, where P(any loss) and losses a year disagree."""
    if other := verdict.better_otherwise(design, found):
        name = "entries" if design.is_clustered else "p_any"
        mine, its = (numbers.plain(each.worst[name]) for each in (design, other))
        if design.is_clustered:
            said = f"{its} a year on average against {mine}, though it loses data more often"
            yield "fewest entries", f"{other.settings} loses {said}"
        else:
            said = f"anything with probability {its} a year against {mine}, though it loses more on average"
            yield "least often", f"{other.settings} loses {said}"


def _choice(design: Design, picks: Sequence[Design], sure: Doubt | None) -> Iterator[tuple[str, str]]:
    """Facts on the choice: the share of draws that choose this design, the runner-up, placements, and the next figure
    to measure."""
    if picks and sure is not None and design.settings in sure.allowed and len(sure.allowed) > 1:
        often = of_draws(sure.choice.get(design.settings, 0.0))
        yield "still the choice", f"in {often} of the draws from what is known of the rates"
    if len(picks) > 1:
        tie = f", {said}" if (said := picks[1].tie(picks[0])) else ""
        stops = "; any restart stops its writes" if picks[1].stops_writes else ""
        yield "runner-up", f"{picks[1].settings}{tie}{stops}"
    if placed := design.placed():
        yield "by placement", placed
    if sure is not None and sure.learn:
        yield "what decides", learned(sure.learn)


def _costs(design: Design) -> Iterator[tuple[str, str]]:
    worst = design.worst
    yield from (("writes", said) for said in design.writes_stop())
    if "stored" in worst:
        size = f", {numbers.size(worst['stored_bytes'])} in all" if "stored_bytes" in worst else ""
        yield "it stores", f"{numbers.counted(int(worst['stored']), 'copy', 'copies')} of each entry{size}"
        yield "it survives", f"the loss of {worst.get('survives')}"
    if "write_p50_ms" in worst:
        half, most = numbers.number(worst["write_p50_ms"]), numbers.number(worst["write_p99_ms"])
        yield "a write takes", f"{half} ms (median); 99 of 100 at most {most} ms"
