"""The design-review report: one HTML file that needs nothing else, and runs nothing."""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plots import tables, text


class Provenance(NamedTuple):
    """Where results come from."""

    command: str
    experiment: str
    """The experiment file's text."""
    versions: list[str]


class Finding(NamedTuple):
    """What the results say about one invariant, in a sentence or two."""

    event: str
    text: str


def report(frame: pd.DataFrame, figures: Mapping[str, bytes], provenance: Provenance) -> str:
    """The report of a result frame as HTML. `figures` are SVGs by what they show."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    points = frame.drop_duplicates("point_id")
    return templates.get_template("report.html.j2").render(
        first=points.iloc[0].to_dict(),
        num_points=len(points),
        runs=text.runs(frame),
        total_runs=f"{points['runs'].sum():,}",
        total_steps=text.number(points["steps"].sum()),
        core_s=text.number(points["wall_s"].sum()),
        unfinished=int(points["unfinished"].sum()),
        confidence=text.percent(frame["confidence"].iloc[0]),
        varied={text.name(key): [text.value(each) for each in frame[key].unique()] for key in text.varied(frame)},
        fixed=text.fixed(frame),
        findings=[_finding(frame, invariant) for invariant in text.shown(frame)],
        unbroken=[name for name, losses in frame.groupby("invariant", sort=False)["losses"] if not losses.any()],
        headings=[text.humps(invariant) for invariant in text.shown(frame)],
        data_loss=[name for name in frame["invariant"][frame["data_loss"]].unique() if name != text.ANY_LOSS],
        outcomes=[name for name in tables.OUTCOMES if name == "unfinished" or points[name].any()],
        lines=tables.lines(frame),
        figures={
            text.event(name): f"data:image/svg+xml;base64,{b64encode(svg).decode()}" for name, svg in figures.items()
        },
        provenance=provenance,
    )


def _finding(frame: pd.DataFrame, invariant: str) -> Finding:
    rows = frame[frame["invariant"] == invariant]
    keys, broke = text.varied(frame), rows[rows["losses"] > 0]
    said = []
    if len(broke):
        most = broke.loc[broke["p"].idxmax()]
        where = f", with {text.settings(most, keys)}" if keys else ""
        p = f"{text.number(most['p'])} ({text.interval(most)})"
        said.append(f"Seen in {len(broke)} of {len(rows)} configurations. Highest probability: {p}{where}.")
    if len(broke) < len(rows):
        bound = text.number(rows["high"][rows["losses"] == 0].max())
        where = f"in the other {len(rows) - len(broke)}" if len(broke) else "in any configuration"
        said.append(f"Not seen {where}: below {bound} there.")
    return Finding(text.event(invariant), " ".join(said))
