"""A report's recommendation: sentences from the verdicts on a sweep's designs, no more than the numbers hold.

The sentences are in `templates/advice.j2`; here are the facts that they state.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from quorisk.analysis.decision import flips, verdict
from quorisk.analysis.decision.designs import Design, loses_at_least, losses_in_words, ranked_designs, runs_of_interval
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.doubt import doubt_sentences as doubts
from quorisk.analysis.decision.judging import FAILS, MEETS, UNDECIDED, tail
from quorisk.say import choose, numbers, text
from quorisk.say.quantities import YEAR_S, say_time
from quorisk.say.templates import templates


class Recommendation(NamedTuple):
    """A recommendation, and how far to trust it."""

    headline: str
    sentences: list[str]
    """Reasons for the headline, and its qualifications."""
    flips: list[str]
    """Sentences on changes that would flip the choice, as far as these results show."""


def recommend(frame: pd.DataFrame, without_runs: int = 0, sure: Doubt | None = None) -> Recommendation:
    """Returns the recommendation of a result frame, about any data loss; `sure` says how far rates leave it open.

    `without_runs`: this many configurations are not in the frame, as time was up before any of their runs was done.
    """
    rows = choose.rows_of(frame, text.ANY_LOSS)
    found, target = ranked_designs(rows), rows["target"].iloc[0]
    has_targets = verdict.has_targets(found, target)
    facts = {"has_targets": has_targets, "without_runs": without_runs, **_of_rows(rows), **_of_designs(found)}
    doubt = doubts(sure, verdict.chosen(found, target), _unit(rows, found), has_targets) if sure else []
    said = _SAYS.get_template("advice.j2").render(
        **facts, **_judged(found, target, tail(rows)), found=found, target=target, doubt=doubt
    )
    headline, *sentences = (re.sub(r"[ \n]+", " ", each.strip()) for each in re.split(r"\n\s*\n", said) if each.strip())
    return Recommendation(headline, sentences, flips.flip_sentences(rows, found, target))


def _unit(rows: pd.DataFrame, found: Sequence[Design]) -> str:
    in_run = "losses a year" if text.is_yearly(rows) else "P(data loss)"
    return "P(any loss in a year)" if found[0].is_clustered else in_run


def _of_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """The reservations that hold for all of a recommendation."""
    return {
        "num_rows": len(rows),
        "confidence": float(rows["confidence"].iloc[0]),
        "is_exact": bool((rows["low"] == rows["high"]).all()),
        "is_yearly": text.is_yearly(rows),
        "is_simultaneous": text.is_simultaneous(rows),
        "has_copies": "copies" in rows,
        "hidden": int(rows["hidden"].sum()),
    }


def _of_designs(found: Sequence[Design]) -> dict[str, Any]:
    """The facts about designs that take no target."""
    unseen = [each for each in found if each.is_clean]
    return {
        "first": found[0],
        "best": min(found, key=_reach),
        "worst": max(found, key=_reach),
        "unseen": unseen,
        "most_unseen": numbers.above(max((each.worst["high"] for each in unseen), default=0.0)),
    }


def _judged(found: Sequence[Design], target: float, tail: float) -> dict[str, Any]:
    """The facts about designs that are held to targets."""
    meets, fails, undecided = (
        [each for each in found if each.verdict(target) == kind] for kind in (MEETS, FAILS, UNDECIDED)
    )
    picks = verdict.choice(list(found), target)
    return {
        **{"meets": meets, "fails": fails, "undecided": undecided, "picks": picks},
        "failing": max(fails, key=_reach, default=None),
        "short": [each for each in fails if each.shortfalls()],
        "runs_needed": max((each.runs_to_settle(tail, target) for each in undecided), default=0.0),
        "runs_made": max((runs_of_interval(point) for each in undecided for point in each.points), default=0),
        **(_beside(picks, meets, found) if picks else {}),
    }


def _beside(picks: Sequence[Design], meets: Sequence[Design], found: Sequence[Design]) -> dict[str, Any]:
    """The facts that set the first of some picks apart, and the others that meet the targets."""
    first, stored = picks[0], picks[0].worst.get("stored", 0)
    others = [each for each in meets if each is not first and not each.is_changed]
    tied = [each for each in picks[1:] if each.rank == first.rank]
    return {
        "stores_least": bool(others) and all(each.worst.get("stored", 0) > stored for each in others),
        "loses_least": all(each.rank > first.rank for each in others),
        "tied": tied,
        "decides": verdict.deciding(first, tied[0], list(found)) if tied else "",
        "saved": [each for each in meets if each.is_clean and each.promises_less(first) and not each.is_changed],
        "changed": [each for each in meets if each.is_changed],
        "better": verdict.better_otherwise(first, found),
    }


def _reach(design: Design) -> float:
    return float(design.worst["high"])


_SAYS = templates(Path(__file__).parent / "templates")
_SAYS.filters |= {
    **{each.__name__: each for each in (numbers.plain, numbers.number, numbers.short, numbers.in_full)},
    **{each.__name__: each for each in (numbers.size, numbers.percent)},
    "time_between": lambda often: say_time(YEAR_S / often),
    "clauses": lambda lines: f"{'; '.join(lines.strip().splitlines())}." if lines.strip() else "",
    "capital": lambda said: said[:1].upper() + said[1:],
    "lowered": lambda said: said[0].lower() + said[1:] if said.startswith("Data ") else said,
}
_SAYS.globals |= {
    **{"estimate": losses_in_words, "interval": numbers.interval, "counted": numbers.counted},
    **{"loses_at_least": loses_at_least, "inf": math.inf},
}
