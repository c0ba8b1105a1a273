"""Figures and reports of a sweep's results."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure

from quorisk.analysis.cluster.curves import curve_rows
from quorisk.analysis.decision import frames, verdict
from quorisk.analysis.decision.advice import Recommendation, recommend
from quorisk.analysis.decision.budget import with_solved
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.doubt import Doubt, tornado_rows
from quorisk.analysis.decision.recommend import doubted
from quorisk.analysis.decision.scope import scope_of
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.errors import ConfigError, QuoriskError, ResultError
from quorisk.plots import canvas
from quorisk.plots.figures import FIGURES, Wish, figures
from quorisk.plots.incidents import sizes_figure
from quorisk.plots.looks import of_designs
from quorisk.plots.ranking import ranking_figure
from quorisk.plots.report import RANKING, Picture, Provenance, report
from quorisk.plots.style import KINDS, save
from quorisk.plots.tornado import tornado_figure
from quorisk.say import choose, text
from quorisk.say.waiting import Tell
from quorisk.sparkjobs import break_even, files, folder
from quorisk.sparkjobs.counterexample import counterexample

_LONGEST = 60
"""The most characters of a report's name."""


class Drawn(NamedTuple):
    """The contents of a report."""

    frame: pd.DataFrame
    words: Recommendation


def draw_report(
    table: pa.Table,
    experiments: Sequence[Experiment],
    source: str,
    out: Path,
    command: str | None = None,
    within_s: float = 0.0,
    tell: Tell | None = None,
) -> Drawn:
    """Writes figures and the report of a merged table to `out`; returns what they show.

    `experiments` are those whose points the table has; the first says how they are judged. `source` is their text;
    `command` made the table, if not `quorisk run` with the first. The search for break-even points takes `within_s`
    seconds at the most; `tell` is called with lines of progress.
    """
    experiment = experiments[0]
    sweep = frames.tidy(table, experiment)
    sure = _sure(sweep.frame, experiments)
    with ThreadPoolExecutor(1) as beside:  # the search leaves a core idle
        drawing = beside.submit(_pictures, sweep, experiment, sure, out, tell)
        flips = break_even.break_even_sentences(sweep.frame, experiment, out, within_s, tell) if within_s > 0 else []
        pictures = drawing.result()
    shown = counterexample(table, experiments)
    if shown:
        files.write_in_folder(out / folder.FIGURES / "counterexample.svg", shown.svg)
    today = datetime.now(UTC).date().isoformat()
    versions = sorted({version for row in table["versions"].to_pylist() for version in row})
    run_it = experiment.command("run", "--out", str(out))
    resume = "" if command else f"{run_it} --resume"
    ask = "" if command else experiment.command("recommend", "--break-even", "all")
    name = _name(out, experiment, command)
    provenance = Provenance(command or run_it, source, versions, resume, today, ask, flips, scope_of(experiment), name)
    wanted = {point.point_id for each in experiments for point in each.points}
    without_runs = len(wanted.difference(sweep.frame["point_id"]))
    words = recommend(sweep.frame, without_runs, sure)
    files.write_in_folder(out / folder.REPORT, report(sweep.frame, pictures, provenance, shown, words, sure).encode())
    return Drawn(sweep.frame, words)


def _pictures(
    sweep: frames.SweepTables, experiment: Experiment, sure: Doubt | None, out: Path, tell: Callable[[str], None] | None
) -> list[Picture]:
    """Writes the figures to `out`, and returns them as the report shows them."""
    rows, made_of = choose.rows_of(sweep.frame, text.ANY_LOSS), sweep.losses_by_faults
    if not (text.is_clustered(rows) or text.is_yearly(rows)):  # these show losses by cause, or by scenario
        made_of = with_solved(made_of, rows, experiment, tell)
    drawn = figures(_with_allowed(sweep.frame, sure), losses_by_faults=made_of)
    first = *_ranking(sweep.frame, sure), *_incidents(sweep.frame, experiment), *_depends(sweep.frame, sure)
    pictures = []
    for name, figure in (*first, *drawn):
        whole = save(figure, "svg")
        files.write_in_folder(out / folder.FIGURES / f"{name}.svg", whole)
        bare = canvas.without_caption(whole, figure)
        pictures.append(Picture(canvas.title_of(figure), canvas.caption_of(figure), bare, name))
    return pictures


def _ranking(frame: pd.DataFrame, sure: Doubt | None) -> Iterator[tuple[str, Figure]]:
    """Yields the figure of designs on a line of losses, if there is one."""
    rows = choose.rows_of(frame, text.ANY_LOSS)
    caption = f"{text.terms(rows)} Intervals: {text.intervals(rows)}."
    figure = ranking_figure(ranked_designs(rows), float(rows["target"].iloc[0]), text.measure(rows), caption, sure)
    if figure is not None:
        yield RANKING, figure


def _incidents(frame: pd.DataFrame, experiment: Experiment) -> Iterator[tuple[str, Figure]]:
    """Yields the figure of the designs' clusters, the safest designs first; none if there is no cluster."""
    rows = choose.rows_of(frame, text.ANY_LOSS)
    if not text.is_clustered(rows):
        return
    design_of = {point.point_id: point.design for point in experiment.points}
    looks = of_designs(rows)
    names = {design_of[each.worst["parts"][0]["point_id"]]: each.settings for each in ranked_designs(rows)}
    if (figure := sizes_figure(curve_rows(experiment, names), looks)) is not None:
        yield "incidents", figure


def _with_allowed(frame: pd.DataFrame, sure: Doubt | None) -> pd.DataFrame:
    """Returns the frame with the range of losses that the rates allow each design, `allowed_low` to `allowed_high`."""
    if sure is None:
        return frame
    ends = {}
    for each in ranked_designs(choose.rows_of(frame, text.ANY_LOSS)):
        found = sure.allowed.get(each.settings)
        for row in each.worst.get("parts", [each.worst]):
            ends[row["point_id"]] = (found.low, found.high) if found else (0.0, 0.0)
    low, high = zip(*(ends.get(point_id, (0.0, 0.0)) for point_id in frame["point_id"]), strict=True)
    return frame.assign(allowed_low=low, allowed_high=high)


def _depends(frame: pd.DataFrame, sure: Doubt | None) -> Iterator[tuple[str, Figure]]:
    """Yields the tornado chart of the chosen design: its losses by the figures that are not known exactly."""
    rows = choose.rows_of(frame, text.ANY_LOSS)
    chosen = verdict.chosen(ranked_designs(rows), float(rows["target"].iloc[0]))
    shown = tornado_rows(sure, chosen) if sure and chosen in sure.allowed else []
    figure = tornado_figure(pd.DataFrame(shown), f"Of {chosen}, {text.measure(rows)}.") if shown else None
    if figure is not None:
        yield "tornado", figure


def _sure(frame: pd.DataFrame, experiments: Sequence[Experiment]) -> Doubt | None:
    """Returns how far the rates leave the choice open; None for merged results, which have no one list of rates."""
    if len(experiments) > 1:
        return None
    rows = choose.rows_of(frame, text.ANY_LOSS)
    found = ranked_designs(rows)
    return doubted(experiments[0], rows, found, float(rows["target"].iloc[0]))


def _name(out: Path, experiment: Experiment, command: str | None) -> str:
    """Returns a report's name: that of the experiment's file if it has one of its own, else the folder's."""
    path = Path(experiment.path)
    is_own = not command and path.suffix == ".toml" and path.name != folder.EXPERIMENT
    return text.shortened(path.stem if is_own else out.resolve().name, _LONGEST).replace("_", " ")


def plot(
    path: Path, out: Path | None, kinds: Sequence[str], wish: Wish, tell: Callable[[str], None] | None
) -> list[Path]:
    """Writes the figures of a sweep's results at `path` to `out`, or beside them, and returns their files.

    `kinds` are of `style.KINDS`, all if empty; in `wish` parameters may go without their table's name. A link that is
    `out` is followed, but none in the folder. Raises ConfigError and RunError.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f" {kind}: one of {', '.join(KINDS)}", "format")
    try:
        sweep = frames.load_sweep(path)
    except ResultError as error:
        raise ConfigError(str(error)) from None
    wish = _checked(wish, sweep.frame)
    if out is None:
        out = (path if path.is_dir() else path.parent) / folder.FIGURES
    elif out.is_symlink():
        out = Path(os.path.realpath(out))
    folder.create(out)
    try:
        written = _drawn(sweep, out, list(kinds or KINDS), wish, tell)
    except frames.NOT_OURS as error:
        if isinstance(error, QuoriskError):
            raise
        raise ConfigError(f"{path}: cannot be drawn: {error!r}") from None
    if not written:
        raise ConfigError(f" {', '.join(wish.only)}: this grid varies too little for that", "only")
    return written


def _drawn(
    sweep: frames.SweepTables, out: Path, kinds: Sequence[str], wish: Wish, tell: Callable[[str], None] | None
) -> list[Path]:
    written = []
    for name, figure in figures(sweep.frame, wish, sweep.losses_by_faults):
        for kind in kinds:
            file = out / f"{name}.{kind}"
            if tell:
                tell(f"drawing {file.name}")
            files.write_in_folder(file, save(figure, kind))
            written.append(file)
    return written


def _checked(wish: Wish, frame: pd.DataFrame) -> Wish:
    """Returns the wish with dotted names of parameters. Raises ConfigError if the frame cannot grant it."""
    for kind in wish.only:
        if kind not in FIGURES:
            raise ConfigError(f" {kind}: one of {', '.join(FIGURES)}", "only")
    known = list(frame["invariant"].unique())
    for invariant in wish.invariants or ():
        if invariant not in known:
            raise ConfigError(f" {invariant}: one of {', '.join(known)}", "invariant")
    x, hue = (_varied(argument, key, frame) for argument, key in (("x", wish.x), ("hue", wish.hue)))
    if x is not None and x == hue:
        raise ConfigError(f" {wish.hue}: must differ from `x`", "hue")
    if x is not None and "loss" in wish.only and not _has_places(frame[x].infer_objects()):
        lacks = "has values that are no numbers from 0 up, which figures of losses need"
        raise ConfigError(f" {wish.x}: {lacks}; `only` heat_map does not", "x")
    return wish._replace(x=x, hue=hue)


def _has_places(values: "pd.Series[Any]") -> bool:
    """Whether a logarithmic axis has places for values: 0 is given one."""
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return is_number and bool(values.between(0, math.inf, inclusive="left").all())


def _varied(argument: str, key: str | None, frame: pd.DataFrame) -> str | None:
    """Returns the varied parameter of that name, or last part of a name. Raises ConfigError."""
    varied = text.varied(frame)
    found = [each for each in varied if key in (each, each.partition(".")[2])]
    if key is not None and len(found) != 1:
        raise ConfigError(f" {key}: one of {', '.join(varied) or 'none, because nothing varies'}", argument)
    return found[0] if found else None
