"""The design-review report: one HTML file that needs nothing else, and runs nothing but its own sorting of tables."""

import hashlib
import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from quorisk.analysis.decision import judging, verdict
from quorisk.analysis.decision.advice import Recommendation, recommend
from quorisk.analysis.decision.designs import Design, losses_in_words, measure_of, ranked_designs
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.decision.flips import is_flip
from quorisk.analysis.decision.judging import UNDECIDED
from quorisk.analysis.decision.summary import summary
from quorisk.plots import interactive, tables
from quorisk.say import choose, numbers, text
from quorisk.say.quantities import YEAR_S, say_time
from quorisk.say.scope import Scope
from quorisk.say.templates import templates

MOST_LINES, MOST_DESIGNS = 200, 50
"""Rows of the tables, so that a report of any grid can be opened and read."""
_MOST_NAMED, _MOST_VALUES = 6, 12
RANKING = "ranking"
"""The figure on the first screen: designs on a line of losses."""
EVIDENCE = ("incidents", "tornado", "budget", "frontier")
"""Figures of the second screen, the most telling first."""
_OF_FAULTS = ("loss_data_loss", "heat_map_data_loss")
"""Figures that are evidence where there are fewer than `_FEW_EVIDENCE` others: they repeat the first screen, unless the
grid varies what designs have to live with."""
_FEW_EVIDENCE = 2
_GENERAL = 7
"""Assumptions of every report, in templates/report.html.j2."""
OUT_OF_TIME, SPENT = "time", "budget"
"""Values in `stopped` of a result frame: the number of runs depends on the machines' speed; all runs were made, and the
interval is wider than `run.precision`."""
LEVELS = ("p50", "p99", "p999")
"""Quantiles of write latency, as in names of columns."""
_ABOUT = {
    "": "",
    "exposure": "Exposure: nothing is lost, but the next fault may take the last copies",
    "availability": "Availability: nothing is lost, but part of the system cannot go on",
}
"""Headings of findings, by kind of breach; losses and errors need none."""
_TEMPLATES = Path(__file__).parent / "templates"


class Provenance(NamedTuple):
    """The origin of results."""

    command: str
    experiment: str
    """The experiment file's text."""
    versions: list[str]
    resume: str = ""
    """Command that continues the runs, to which `--set run.runs=N` may be added; empty if none does."""
    date: str = ""
    """Day on which it was drawn: 2026-11-21."""
    ask: str = ""
    """Command that scales all rates until the choice changes; empty if there is none."""
    break_even: Sequence[str] = ()
    """Sentences on the rates, faults and lifetimes at which the choice changes."""
    scope: Scope = Scope()
    name: str = ""
    """Name of the experiment or of the sweep."""


class Picture(NamedTuple):
    """A figure as a report shows it."""

    title: str
    caption: str
    svg: bytes
    name: str = ""
    """Name of the figure: `RANKING` stands on the first screen, some of `EVIDENCE` on the second."""


class LosingTrace(NamedTuple):
    """A run that loses data."""

    svg: bytes
    caption: str
    story: str
    """The same in words."""


class InvariantFinding(NamedTuple):
    """Results on one invariant, in a sentence or two."""

    event: str
    text: str


def report(
    frame: pd.DataFrame,
    pictures: Sequence[Picture],
    provenance: Provenance,
    counterexample: LosingTrace | None = None,
    words: Recommendation | None = None,
    sure: Doubt | None = None,
) -> str:
    """Returns the report of a result frame as HTML: the choice, the evidence, and all else folded.

    Args:
        frame: a result frame (`analysis.results.frame`), of all points and invariants.
        pictures: figures, shown as images, in which browsers run nothing and load nothing.
        provenance: where the results come from.
        counterexample: a run that loses data; None if there is none to show.
        words: the recommendation; by default that of the frame and of `sure`.
        sure: how far the rates leave the choice open; None if nothing is said of them.
    """
    words = words or recommend(frame, sure=sure)
    results, scope = _results(frame), provenance.scope
    listed = [*scope.limits, *scope.latency, *(name for name in ("horizon", "spent") if results[name] > 0)]
    style, sort, decide = ((_TEMPLATES / name).read_text("utf-8") for name in ("report.css", "sort.js", "decide.js"))
    script = sort + decide
    return (
        templates(_TEMPLATES, autoescape=True)
        .get_template("report.html.j2")
        .render(
            policy=f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}",
            style=Markup(style),
            script=Markup(script),
            number=numbers.number,
            plain=numbers.plain,
            cause=text.cause,
            recommendation=words,
            num_left_out=_GENERAL + len(listed),
            **_pictures(pictures),
            counterexample=_counterexample(frame, counterexample),
            provenance=provenance,
            scope=scope,
            **_designs(frame, sure, [*words.flips, *filter(is_flip, provenance.break_even)]),
            **results,
        )
    )


def _pictures(pictures: Sequence[Picture]) -> dict[str, Any]:
    """Returns the figures; sentences that most captions share are said once. Figures of clusters have none of them."""
    captions = [re.split(r"(?<=[.]) ", picture.caption) for picture in pictures]
    times = Counter(each for caption in captions for each in dict.fromkeys(caption))
    shared = [each for each, number in times.items() if number > max(1, len(captions) / 2)]
    shown = [
        {
            "title": picture.title,
            "caption": " ".join(each for each in caption if each not in shared),
            "uri": _uri(picture.svg),
            "name": picture.name,
        }
        for picture, caption in zip(pictures, captions, strict=True)
    ]
    there = {picture.name for picture in pictures}
    evidence = [name for name in EVIDENCE if name in there]
    if len(evidence) < _FEW_EVIDENCE:
        evidence += [name for name in _OF_FAULTS if name in there]
    return {
        "shared": " ".join(shared),
        "pictures": shown,
        "evidence": evidence,
        "more": [each for each in shown if each["name"] not in (RANKING, *evidence)],
    }


def _designs(frame: pd.DataFrame, sure: Doubt | None, flips: Sequence[str]) -> dict[str, Any]:
    """Returns the template's values on designs and targets."""
    rows = choose.rows_of(frame, text.ANY_LOSS)
    target = float(rows["target"].iloc[0])
    found, tail = ranked_designs(rows), judging.tail(rows)
    shown = found[:MOST_DESIGNS]
    return {
        "summary": summary(found, target, sure, flips),
        "data": interactive.data(shown, sure),
        "controls": interactive.controls(shown, target),
        "figures": interactive.slider_figures(shown, sure),
        "yearly": text.is_yearly(rows),
        "clustered": found[0].is_clustered,
        "measure": measure_of(found[0]),
        "allowed": sure is not None and any(each.settings in sure.allowed for each in shown),
        "some_latency": "write_p99_ms" in rows,
        "some_bytes": "stored_bytes" in rows,
        "target": numbers.short(target) if target < math.inf else "",
        "wanted": found[0].wanted(),
        "num_designs": len(found),
        "settling_runs": _settling_runs(found, tail, target),
        "some_messages": bool(rows["messages"].any()),
        "some_faults": any(design.worst["at"] for design in found),
        "some_stuck": any(design.p_stuck() for design in found),
        "promised": "copies" in rows,
        "designs": [_design(design, tail, target, sure) for design in shown],
        "decades": [
            {
                "target": numbers.short(decade.target),
                "num_meets": len(decade.meets),
                "fails": decade.fails,
                "undecided": decade.undecided,
                "names": _names([design.settings for design in decade.meets], len(found)),
            }
            for decade in verdict.decades(found)
        ],
    }


def _incident(design: Design) -> dict[str, str]:
    """Returns the median and the 99th percentile of a cluster's incidents, and the time between them, in words."""
    worst = design.worst
    if not design.is_clustered:
        return {}
    size, most = (numbers.in_full(worst[f"incident_{name}"]) for name in ("p50", "p99"))
    between = say_time(YEAR_S / worst["incidents"]) if worst["incidents"] else "never"
    return {"size": size, "most": most, "between": between}


def _allowed(design: Design, sure: Doubt | None) -> str:
    """Returns the range of losses that the rates allow; empty if it is not known."""
    if sure is None or design.settings not in sure.allowed:
        return ""
    found = sure.allowed[design.settings]
    return numbers.between(numbers.below(found.low), numbers.above(found.high))


def _design(design: Design, tail: float, target: float, sure: Doubt | None) -> dict[str, Any]:
    said = design.verdict(target)
    runs = design.runs_to_settle(tail, target) if said == UNDECIDED else 0.0
    point = design.telling(target)
    return {
        "rank": design.rank,
        "settings": design.settings,
        "copies": _copies(design.worst),
        "survives": design.worst.get("survives"),
        **{level: _latency(design.worst, level) for level in LEVELS},
        "stored_bytes": numbers.size(design.worst["stored_bytes"]) if "stored_bytes" in design.worst else "",
        "stored_sort": design.worst.get("stored_bytes", 0.0),
        "stuck": numbers.number(design.p_stuck()) if design.p_stuck() else "none",
        "stuck_sort": design.p_stuck(),
        "verdict": said,
        "missed": ["loses more than the target"] * (design.interval[0] > target) + design.shortfalls(),
        "p": losses_in_words(point),
        "interval": numbers.interval(point),
        "high": point["high"],
        "allowed": _allowed(design, sure),
        "incident": _incident(design),
        "at": point["at"],
        "runs": "" if runs == 0 else f"about {numbers.number(runs)}" if runs < math.inf else "not by runs alone",
        "runs_sort": "Infinity" if runs == math.inf else runs,
        "messages": _cost(design, "messages"),
        "steps": _cost(design, "steps"),
    }


def _latency(point: Mapping[str, Any], level: str) -> dict[str, Any]:
    """A quantile of the write latency; its interval, if it is of measurements."""
    names = f"write_{level}_ms", f"write_{level}_low_ms", f"write_{level}_high_ms"
    if names[0] not in point:
        return {"ms": "", "interval": "", "sort": 0.0}
    ms, low, high = (point[name] for name in names)
    interval = numbers.between(low, high) if math.isfinite(high) else f"from {numbers.number(low)}"
    return {"ms": numbers.number(ms), "interval": interval if low < high else "", "sort": ms}


def _settling_runs(found: Sequence[Design], tail: float, target: float) -> int:
    """The runs of a configuration that should settle an open verdict, rounded up to two digits; 0 if none would."""
    undecided = [each for each in found if each.verdict(target) == UNDECIDED]
    runs = max((each.runs_to_settle(tail, target) for each in undecided), default=0.0)
    if runs in (0.0, math.inf):
        return 0
    step = 10 ** (len(str(math.ceil(runs))) - 2)
    return math.ceil(runs / step) * step


def _copies(point: Mapping[str, Any]) -> str:
    if "copies" not in point:
        return ""
    return f"{point['copies']} of {point['stored']}, {'on disk' if point['on_disk'] else 'in page cache'}"


def _cost(design: Design, measure: str) -> str:
    return numbers.number(cost) if (cost := design.cost(measure)) < math.inf else "no run succeeds"


def _names(names: Sequence[str], num_all: int) -> str:
    if len(names) == num_all > 1:
        return "all"
    more = f"; {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return "; ".join(names[:_MOST_NAMED]) + more


def _results(frame: pd.DataFrame) -> dict[str, Any]:
    """Returns the template's values on points, model and runs."""
    points = choose.rows_of(frame, text.ANY_LOSS)
    shown = text.shown(frame)
    lines = tables.lines(frame, MOST_LINES)
    return {
        "first": points.iloc[0].to_dict(),
        "num_points": len(points),
        "loses_messages": text.may_lose_messages(points),
        "runs": text.runs_of_points(frame),
        "methods": list(points["method"].unique()),
        "num_solved": sum(map(numbers.is_solved, points["method"])),
        "total_runs": f"{points['runs'].sum():,}",
        "total_steps": numbers.number(points["steps"].sum()),
        "core_s": numbers.number(points["wall_s"].sum()),
        "unfinished": int(points["unfinished"].sum()),
        "horizon": int(points["horizon"].sum()),
        "ended_by": text.ended_by(points),
        "at_any_time": bool((points["hidden"] > points["unfinished"]).any()),
        "out_of_time": _num_stopped(points, OUT_OF_TIME),
        "spent": _num_stopped(points, SPENT),
        "simultaneous": text.is_simultaneous(frame),
        "confidence": numbers.percent(frame["confidence"].iloc[0]),
        "varied": {text.name(key): _values(frame[key].unique()) for key in text.varied(frame)},
        "fixed": text.fixed(frame),
        "found": _found(frame, shown),
        "unbroken": _unbroken(frame, shown),
        "headings": [re.findall(r"[A-Z]?[^A-Z]+|[A-Z]+", invariant) for invariant in shown],
        "data_loss": [name for name in frame["invariant"][frame["data_loss"]].unique() if name != text.ANY_LOSS],
        "outcomes": [name for name in tables.OUTCOMES if name == "unfinished" or points[name].any()],
        "lines": lines,
        "left_out": choose.left_out_note(len(lines), len(points)),
    }


def _unbroken(frame: pd.DataFrame, shown: Sequence[str]) -> list[str]:
    """The invariants that no run broke, but for those that a finding is about."""
    by_name = frame.groupby("invariant", sort=False)["losses"]
    return [name for name, losses in by_name if name not in shown and not losses.any()]


def _num_stopped(points: pd.DataFrame, why: str) -> int:
    return int(points["stopped"].str.contains(why, regex=False).sum())


def _values(values: Sequence[Any]) -> list[str]:
    more = [f"and {len(values) - _MOST_VALUES:,} more"] if len(values) > _MOST_VALUES else []
    return [*map(text.value, values[:_MOST_VALUES]), *more]


def _counterexample(frame: pd.DataFrame, given: LosingTrace | None) -> dict[str, str] | str:
    """Returns the template's values on the counterexample, or why there is none to show."""
    if given is not None:
        return {"uri": _uri(given.svg), "caption": given.caption, "story": given.story}
    if choose.rows_of(frame, text.ANY_LOSS)["losses"].any():
        return "This report was made without one; `quorisk trace` finds one for a configuration that loses data."
    return "None of these runs lost data, so there is none to show."


def _digest(content: str) -> str:
    """Returns the hash by which a content security policy lets in one inline script or style."""
    return f"'sha256-{b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _found(frame: pd.DataFrame, shown: Sequence[str]) -> list[tuple[str, list[InvariantFinding]]]:
    """Returns the findings on these invariants by kind of breach: a heading, and those under it."""
    about = dict(zip(frame["invariant"], frame["about"], strict=True)) if "about" in frame else {}
    groups = {what: [each for each in shown if about.get(each, "") == what] for what in _ABOUT}
    return [
        (heading, [_finding(frame, each) for each in groups[what]]) for what, heading in _ABOUT.items() if groups[what]
    ]


def _finding(frame: pd.DataFrame, invariant: str) -> InvariantFinding:
    rows = choose.rows_of(frame, invariant)
    keys, broke = text.independent(rows, text.varied(frame)), rows[rows["losses"] > 0]
    said = []
    if len(broke):
        most = broke.loc[broke["p"].idxmax()]
        where = f", with {text.settings(most, keys)}" if keys else ""
        interval = numbers.interval(most)
        p = f"{numbers.probability(most)} ({interval})" if interval else numbers.probability(most)
        seen = "all" if len(broke) == len(rows) > 1 else f"{len(broke):,} of {len(rows):,}"
        said.append(f"Seen in {seen} configurations. Highest probability: {p}{where}.")
        if (lasts := most.get("exposed_for")) and not lasts.startswith("0 "):
            said.append(f"It then lasts for {lasts} on average, until it is repaired or the run ends.")
    if len(broke) < len(rows):
        bound = numbers.number(numbers.above(rows["high"][rows["losses"] == 0].max()))
        where = f"in the other {len(rows) - len(broke):,}" if len(broke) else "in any configuration"
        said.append(f"Not seen {where}, where it is at most {bound}.")
    return InvariantFinding(text.event(invariant), " ".join(said))
