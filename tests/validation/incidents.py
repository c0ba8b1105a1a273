"""Writes docs/incidents.md and the diagrams that it shows: python tests/validation/incidents.py [NAME ...]

Each incident's counterexample is found, and its probability estimated, as it was and with what prevents it, under the
file's rates and under draws of what is known of them. With names, only these diagrams and figures are made again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template
from rich.progress import track

from quorisk.analysis import incidents
from quorisk.analysis.estimate.estimate import Risk, estimate
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.rates import draws
from quorisk.analysis.traces import find
from quorisk.analysis.traces.formats import picture
from quorisk.kernels.cores import num_cores
from quorisk.say import numbers

ROOT = Path(__file__).parents[2]
PAGE, GALLERY = ROOT / "docs" / "incidents.md", ROOT / "docs" / "gallery" / "incidents"
TEMPLATE = Path(__file__).with_suffix(".md.j2")
FIGURES = GALLERY / "figures.json"
"""What was estimated, so that one incident can be made again without the others."""
NUM_DRAWS, DRAWN_RUNS = 31, 200_000


def risk(experiment: Experiment, invariant: str) -> Risk:
    """The risk of the incident in its one scenario."""
    answer = estimate(experiment, num_cores())
    return answer.data_loss if invariant == DATA_LOSS else answer.invariants[invariant]


def drawn(experiment: Experiment, invariant: str) -> tuple[float, float] | None:
    """5 % and 95 % of losses a year under draws of the rates; None if they are bounds alone."""
    [point] = experiment.points
    few = experiment._replace(run=experiment.run._replace(runs=min(DRAWN_RUNS, experiment.run.runs // 5)))
    values = draws.draw_unknowns(experiment, NUM_DRAWS).values(draws.unknowns(experiment, point))
    found = []
    for row in draws.by_draw(values):
        changed = point._replace(point=draws.with_values(point.point, row))
        p = risk(few._replace(points=(changed,)), invariant)
        if p.bounds or not p.p:
            return None
        found.append(p.p * touched(experiment, row.get(draws.PER_YEAR)))
    low, high = np.quantile(found, (0.05, 0.95))
    return float(low), float(high)


def touched(experiment: Experiment, per_year: float | None = None) -> float:
    """How many objects the incident's scenario touches in a year of so many events, or of as many as the file says."""
    [scenario] = experiment.scenarios.values()
    event = scenario.event(None)
    return (event.per_year if per_year is None else per_year) * event.hits


def figures(experiment: Experiment) -> list[dict[str, Any]]:
    """A row for the protocol as it was, and one with what prevents the incident."""
    incident = experiment.tables["incident"]
    rows = []
    for what, given in (("as it was", experiment), ("prevented", experiment.changed(*incident.fixed_by))):
        found = risk(given, incident.invariant)
        known = drawn(given, incident.invariant) if not found.bounds and found.p else None
        rows.append({"what": what, **found._asdict(), "per_year": touched(given), "drawn": known})
    return rows


def story(name: str, experiment: Experiment, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns an incident as the template tells it."""
    incident, [scenario] = experiment.tables["incident"], experiment.scenarios.values()
    lossless = {each.name for each in experiment.model.invariants if not each.data_loss}
    event, events = ("loss", "losses")
    if incident.invariant in lossless:
        event, events = f"breach of {incident.invariant}", "breaches"
    told = {"incident": incident, "scenario": scenario, "event": event, "events": events}
    return told | {"name": name, "rows": rows}


def write_page(made: dict[str, list[dict[str, Any]]]) -> None:
    """Writes the page of all incidents whose figures there are."""
    files = {name: incidents.FOLDER / f"{name}.toml" for name in incidents.incident_names() if name in made}
    stories = [story(name, config.load(file), made[name]) for name, file in files.items()]
    template = Template(TEMPLATE.read_text("utf-8"), trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    PAGE.write_text(template.render(stories=stories, plain=numbers.plain), "utf-8")


def main(wanted: list[str]) -> None:
    """Makes diagrams and figures of some incidents, or of all, and the page of all."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    made = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name in track(wanted or incidents.incident_names(), "incidents"):
        experiment = config.load(incidents.FOLDER / f"{name}.toml")
        found = find.of_incident(experiment)
        if not found.trace:
            sys.exit(f"{name}: {found.reason}")
        (GALLERY / f"{name}.svg").write_text(picture(found.trace), "utf-8")
        made[name] = figures(experiment)
        FIGURES.write_text(f"{json.dumps({each: made[each] for each in sorted(made)}, indent=1)}\n")
    write_page(made)


if __name__ == "__main__":
    main(sys.argv[1:])
