"""What a report recommends: sentences from the verdicts on a sweep's designs, no more than the numbers hold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from quorisk.analysis.decision import flips, verdict
from quorisk.analysis.decision.designs import SAME, Design, designs, estimate, loses_at_least
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.doubt import sentences as told
from quorisk.analysis.decision.judging import FAILS, MEETS, UNDECIDED, tail
from quorisk.say import choose, numbers, text
from quorisk.say.quantities import YEAR_S, say_time

_MOST_NAMED = 4


class Recommendation(NamedTuple):
    """What to do, and how far to trust it."""

    headline: str
    sentences: list[str]
    """What the headline rests on, and what qualifies it."""
    flips: list[str]
    """What would change the choice, as far as these results tell."""


def recommend(frame: pd.DataFrame, without_runs: int = 0, sure: Doubt | None = None) -> Recommendation:
    """Returns the recommendation of a result frame, about any data loss; `sure` says how far rates leave it open.

    `without_runs`: this many configurations are not in the frame, as time was up before any of their runs was done.
    """
    rows = choose.of(frame, text.ANY_LOSS)
    found, target = designs(rows), rows["target"].iloc[0]
    if not verdict.has_targets(found, target):
        headline, why, sentences = _without_target(found)
    else:
        headline, why, sentences = _with_target(found, tail(rows), target)
    if sure:
        in_run = "losses a year" if text.is_yearly(rows) else "P(data loss)"
        unit = "P(any loss in a year)" if found[0].is_clustered else in_run
        why += told(sure, verdict.chosen(found, target), unit, verdict.has_targets(found, target))
    sentences = why + sentences
    if without_runs:
        also = ", or of designs that have none in one of the scenarios" if text.is_yearly(rows) else ""
        which = f"{numbers.counted(without_runs, 'configuration')} without any runs yet{also}"
        sentences.insert(0, f"Not covered here: {which}.")
    return Recommendation(headline, sentences + _qualified(rows, found), flips.told(rows, found, target))


def _with_target(found: Sequence[Design], tail: float, target: float) -> tuple[str, list[str], list[str]]:
    """The headline, why, and what else there is to say."""
    by_verdict = {kind: [each for each in found if each.verdict(target) == kind] for kind in (MEETS, FAILS, UNDECIDED)}
    meets, fails, undecided = by_verdict.values()
    goal = _goal(found, target)
    why, said = list[str](), list[str]()
    picks = verdict.choice(list(found), target)
    if len(found) == 1:
        headline = f"This design {'meets' if meets else 'is not shown to meet'} the {goal}."
        why += [f"{_capital(_risk(found[0]))}.", *_placement(found[0]), *found[0].writes_stop()]
        if len(found[0].points) > 1:
            why.append(f"Under its worst faults: {_told(found[0], found[0].telling(target))}.")
    elif picks:
        headline = f"Run {picks[0].settings}."
        why += _why(picks[0], meets, found, goal)
        said += _others(picks, meets, found)
    elif meets:
        headline = f"No design is recommended, though {len(meets)} of {len(found)} meet the {goal}."
        why.append("Each of them has a mechanism off, a risky setting on, or is of an older version.")
    else:
        headline = f"No design is shown to meet the {goal}."
    if fails and len(found) > 1:
        last = max(fails, key=_reach)
        worst = _told(last, last.telling(target))
        said.append(f"Not met by {_names(fails)}. The worst: {worst}.")
    if undecided:
        said.append(_open(undecided, tail, target))
    if short := [each for each in fails if each.shortfalls() and len(found) > 1]:
        told = "; ".join(f"{each.settings} ({', '.join(each.shortfalls())})" for each in short[:_MOST_NAMED])
        said.append(f"Rejected for another target: {told}.")
    return headline, why, said


def _goal(found: Sequence[Design], target: float) -> str:
    """What designs are held to, in words."""
    first = found[0]
    goals = first.wanted()
    if target < math.inf:
        limit = numbers.short(target)
        if first.is_clustered:
            goals.insert(0, f"any loss in a year with a probability of at most {limit}")
        elif "parts" in first.worst:
            goals.insert(0, f"at most {limit} losses a year")
        else:
            goals.insert(0, f"a probability of data loss of at most {limit} a run")
    return f"target{'s' if len(goals) > 1 else ''}: {', '.join(goals)}"


def _risk(design: Design) -> str:
    """What is known of its losses, in a few words."""
    worst = design.worst
    if not design.is_clustered:
        unit = "losses a year" if "parts" in worst else "P(data loss)"
        if design.is_proved:
            return f"{unit}: 0, proved"
        lost = f"{estimate(worst)} {unit}" if "parts" in worst else f"{unit} {estimate(worst)}"
        return f"{lost}, none seen" if design.is_clean else lost
    where = f" ({worst['cluster_at']})" if worst.get("cluster_at") else ""
    least, why = (
        ("at least ", " (a partition that a scenario loses counts as one)") if loses_at_least(worst) else ("", "")
    )
    said = f"Data is lost in a year with probability {numbers.plain(worst['p'])}{where}"
    if worst["incidents"] > 0.0:
        median, most = worst["incident_p50"], worst["incident_p99"]
        entries = f"{least}{numbers.in_full(median)} entr{'y' if median == 1.0 else 'ies'}"
        more = f"; one incident in 100: {numbers.in_full(most)} or more" if most > median else ""
        said += f": once in {say_time(YEAR_S / worst['incidents'])}, and then {entries} at once (median{more})"
    return f"{said}; {least}{numbers.plain(worst['entries'])} entries a year on average{why}"


def _open(undecided: Sequence[Design], tail: float, target: float) -> str:
    """What is said of designs that are neither shown to meet a target nor to miss it."""
    runs = max(each.runs_to_settle(tail, target) for each in undecided)
    made = max(_made(point) for each in undecided for point in each.points)
    needed = (
        f"about {numbers.number(runs)} runs of each configuration would settle them; there are {made:,}"
        if runs < math.inf
        else "more runs of the decisive scenario would settle them, or `quorisk recommend`, which solves small ones"
        if "parts" in undecided[0].worst
        else "more runs alone would not settle all: an estimate is at the target, or runs that ended early hide it"
    )
    return f"Undecided at this precision: {_names(undecided)}; {needed}."


def _why(first: Design, meets: Sequence[Design], found: Sequence[Design], goal: str) -> list[str]:
    """Why a design is the choice: its risk, and what sets it apart from the others that meet the targets."""
    given = f" All designs have {first.worst['given']}." if first.worst.get("given") else ""
    said = [f"{_capital(_risk(first))}. {_promised(first)}{given}".strip()]
    said += [*_placement(first), *first.writes_stop()]
    others = [each for each in meets if each is not first and not each.is_changed]
    stored = first.worst.get("stored", 0)
    if len(meets) == 1:
        one = "The other design does not meet"
        none = one if len(found) == 2 else f"None of the {len(found) - 1} other designs meets"
        return [*said, f"{none} the {goal}."]
    if others and all(each.worst.get("stored", 0) > stored for each in others):
        best = "it stores least"
    elif all(each.rank > first.rank for each in others):
        best = "it loses least"
    else:
        best = "none stores less, or loses less for as much"
    return [*said, f"{len(meets)} of {len(found)} designs meet the {goal}. Of these, {best}."]


def _placement(design: Design) -> list[str]:
    """What placing its copies otherwise than at random is worth."""
    how, at_random = text.PLACEMENTS.get(design.worst.get("placement", "")), design.worst.get("at_random", 0.0)
    if how is None or not at_random:
        return []
    ratio = design.worst["any_loss"] / at_random
    times = "as likely" if abs(ratio - 1.0) < SAME else f"{numbers.plain(ratio, 2)} times as likely"
    return [f"With {how}, a loss is {times} as with random placement ({numbers.plain(at_random)} a year)."]


def _others(picks: Sequence[Design], meets: Sequence[Design], found: Sequence[Design]) -> list[str]:
    """The runner-up, and why others that meet the targets are not chosen."""
    first, *others = picks
    said = []
    if others:
        promised = _promised(others[0])
        said.append(f"The runner-up: {others[0].settings}: {_lowered(_risk(others[0]))}. {promised}".strip())
        said += [f"Of the runner-up: {each[0].lower()}{each[1:]}" for each in others[0].writes_stop()]
        said += _tie(first, others, found)
    if saved := [each for each in meets if each.is_clean and each.promises_less(first) and not each.is_changed]:
        these = "these" if len(saved) > 1 else "this"
        said.append(
            f"{_names(saved)}: no run of {these} lost data either, but that is no reason to have fewer copies. Rarer "
            "events may tell apart what these runs cannot."
        )
    if changed := [each for each in meets if each.is_changed]:
        why = "a mechanism is off, a risky setting is on, or the version is an older one"
        said.append(f"{_names(changed)}: not recommended, because {why}.")
    if first.is_clustered:
        said += _disagreement(first, found)
    return said


def _capital(said: str) -> str:
    return said[:1].upper() + said[1:]


def _lowered(said: str) -> str:
    return said[0].lower() + said[1:] if said.startswith("Data ") else said


def _disagreement(first: Design, found: Sequence[Design]) -> list[str]:
    """Where a design loses fewer entries on average than the chosen one, and loses any more often."""
    better = [
        each
        for each in found
        if each.worst["entries_high"] < first.worst["entries_low"] and each.worst["low"] > first.worst["high"]
    ]
    if not better:
        return []
    other = min(better, key=lambda each: each.worst["entries"])
    mine, its = first.worst, other.worst
    return [
        f"Judged by entries lost on average, {other.settings} would be better ({numbers.plain(its['entries'])} a year "
        f"against {numbers.plain(mine['entries'])}), but it loses data more often ({numbers.plain(its['p'])} against "
        f"{numbers.plain(mine['p'])}), less of it at a time."
    ]


def _made(point: Mapping[str, Any]) -> int:
    """The runs that an interval rests on: those from a head's exits, if it has any."""
    from_exits = point.get("exit_runs")
    return int(point["runs"] if pd.isna(from_exits) or not from_exits else from_exits)


def _tie(first: Design, picks: Sequence[Design], found: Sequence[Design]) -> list[str]:
    """What is said of designs that are as good a choice as the first, as far as losses tell."""
    tied = [each for each in picks if each.rank == first.rank]
    if not tied:
        return []
    why = verdict.deciding(first, tied[0], list(found))
    decides = f"What decides is that it {why}." if why else "Nothing else tells them apart, either."
    how = "as far as these numbers tell: their intervals overlap or lie less than 1% apart"
    return [f"A tie: {first.settings} and {_names(tied)} lose equally much, {how}. {decides}"]


def _reach(design: Design) -> float:
    return float(design.worst["high"])


def _promised(design: Design) -> str:
    """What a design promises, and how often its runs get stuck: a sentence, or nothing."""
    promised = design.worst
    said = []
    if "copies" in promised:
        where = "on disk" if promised["on_disk"] else "in page cache"
        said.append(f"{promised['copies']} of {promised['stored']} copies {where} when acknowledged")
        said.append(f"survives {_survives(promised['survives'])}")
    if 0.0 < (minutes := promised.get("write_minutes_lost_per_year", 0.0)) < math.inf:
        said.append(f"takes no writes for {numbers.plain(minutes, 2)} minutes a year")
    if stuck := design.p_stuck():
        said.append(f"{numbers.number(stuck)} of its runs get stuck")
    if "write_p99_ms" in promised:
        said.append(f"p99 of a write {numbers.number(promised['write_p99_ms'])} ms")
    if "stored_bytes" in promised:
        said.append(f"stores {numbers.size(promised['stored_bytes'])}")
    return f"{'; '.join(said)}." if said else ""


def _survives(what: str) -> str:
    return f"the loss of {what}" if what[:1].isdigit() else what


def _without_target(found: Sequence[Design]) -> tuple[str, list[str], list[str]]:
    best, worst = min(found, key=_reach), max(found, key=_reach)
    key = "losses_per_year in [targets]" if "parts" in best.worst else "run.target"
    headline = f"No target was set ({key}), so designs are only ranked."
    unseen = [each for each in found if each.is_clean]
    said = []
    if best.is_clustered:
        headline = "No target was set in [targets], so designs are only ranked."
        return (
            headline,
            [],
            [f"{each.settings}: {_lowered(_risk(each))}." for each in ([best] if best is worst else [best, worst])],
        )
    if unseen:
        most = numbers.number(numbers.above(max(each.worst["high"] for each in unseen)))
        said.append(f"No run of {_names(unseen)} lost data: all that is known is an upper bound of {most}.")
    else:
        said.append(f"The lowest upper end: {_told(best, best.worst)}.")
    if worst.worst["losses"] and len(found) > 1:
        said.append(f"The highest: {_told(worst, worst.worst)}.")
    return headline, [], said


def _qualified(rows: pd.DataFrame, found: Sequence[Design]) -> list[str]:
    """What all of these sentences are subject to."""
    said, confidence = [], numbers.percent(rows["confidence"].iloc[0])
    if (rows["low"] == rows["high"]).all() and not found[0].is_clustered:
        said.append("All of these numbers are exact.")
    elif found[0].is_clustered:
        said.append(f"Intervals of P(any loss in a year) and of its parts hold with {confidence} confidence each.")
    elif text.is_yearly(rows):
        said.append(f"A design's losses a year lie within their interval with at least {confidence} confidence.")
    elif len(rows) > 1 and text.is_simultaneous(rows):
        said.append(f"With {confidence} confidence, all {len(rows):,} intervals hold together, and so do all verdicts.")
    elif len(rows) > 1:
        wrong = (1.0 - rows["confidence"].iloc[0]) * len(rows)
        said.append(
            f"Each interval on its own holds with {confidence} confidence: about {wrong:.2g} of {len(rows):,} "
            "intervals may miss. With run.simultaneous = true, all hold together."
        )
    if text.is_yearly(rows) and not found[0].is_clustered and "copies" in rows:  # else it goes on no cluster
        said.append(
            "A loss is of one thing that a scenario is about (an entry, a ledger, a partition). A bad day has many: "
            "add [cluster] to the file for incidents and their size."
        )
    if hidden := int(rows["hidden"].sum()):
        said.append(f"{numbers.counted(hidden, 'run')} ended before it was known whether data would be lost; the "
                    "upper ends count each of them as a loss.")  # fmt: skip
    if any(len(each.points) > 1 for each in found):
        said.append("A design is judged by its worst faults: it meets a target only if it does so under all of them.")
    return said


def _names(some: Sequence[Design]) -> str:
    more = f", and {len(some) - _MOST_NAMED:,} more" if len(some) > _MOST_NAMED else ""
    return "; ".join(each.settings for each in some[:_MOST_NAMED]) + more


def _told(design: Design, point: Mapping[str, Any]) -> str:
    at = f" (at {point['at']})" if point["at"] else ""
    interval = numbers.interval(point)
    short = "".join(f", {each}" for each in design.shortfalls())
    return f"{design.settings}: {estimate(point)}{f', interval {interval}' if interval else ''}{at}{short}"
