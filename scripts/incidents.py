"""Writes docs/incidents.md and the diagrams that it shows: python scripts/incidents.py [NAME ...]

Each incident's counterexample is found, and its probability estimated, as it was and with what prevents it, under the
file's rates and under draws of what is known of them. With names, only these diagrams and figures are made again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
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

ROOT = Path(__file__).parent.parent
PAGE, GALLERY = ROOT / "docs" / "incidents.md", ROOT / "docs" / "gallery" / "incidents"
FIGURES = GALLERY / "figures.json"
"""What was estimated, so that one incident can be made again without the others."""
NUM_DRAWS, DRAWN_RUNS = 31, 200_000
INTRODUCTION = """# The museum of lost data

Stories of acknowledged data that were lost, each as a model loses them too. `quorisk incidents` lists them, and
`quorisk incidents NAME` tells one. The files are in `configs/incidents`, and every verb answers for them.
`python scripts/incidents.py` makes this page.

How to read the tables: P is the probability that the data of the story are lost, each time that what stands above the
table happens. Its interval is that of the computation (95 %). Losses a year are P times how often that is. Their range
(90 %) is what is known of the rates: every figure is drawn from what the file and its profile say is known of it, and
has a source or is marked "assumed". There are 31 draws, so its ends may be off by a factor of two; `quorisk recommend`
draws 256. A bound is written with <.
"""
BEYOND = """
## What the models cannot say

Some stories need what no model here has. They are not bent to fit:

- Acknowledgements on an ensemble that the metadata do not have yet, and will not get (BookKeeper
  [1591](https://github.com/apache/bookkeeper/issues/1591),
  [4651](https://github.com/apache/bookkeeper/issues/4651)): here the metadata store never refuses for long.
- Files of one broker that are damaged and read as if they were whole (the second half of
  [Jepsen's report on NATS](https://jepsen.io/analyses/nats-2.12.1)): there is no model of JetStream.
"""


def risk(experiment: Experiment, invariant: str) -> Risk:
    """The risk of the incident in its one scenario."""
    answer = estimate(experiment, num_cores())
    return answer.data_loss if invariant == DATA_LOSS else answer.invariants[invariant]


def drawn(experiment: Experiment, invariant: str) -> tuple[float, float] | None:
    """5 % and 95 % of losses a year under draws of the rates; None if they are bounds alone."""
    [point] = experiment.points
    few = experiment._replace(run=experiment.run._replace(runs=DRAWN_RUNS))
    values = draws.draw(experiment, NUM_DRAWS).values(draws.unknowns(experiment, point))
    found = []
    for row in draws.rows(values):
        changed = point._replace(point=draws.with_values(point.point, row))
        p = risk(few._replace(points=(changed,)), invariant)
        if p.bounds or not p.p:
            return None
        found.append(p.p * row.get(draws.PER_YEAR, per_year(experiment)))
    low, high = np.quantile(found, (0.05, 0.95))
    return float(low), float(high)


def per_year(experiment: Experiment) -> float:
    """How often the incident's scenario happens."""
    [scenario] = experiment.scenarios.values()
    return scenario.per_year


def figures(experiment: Experiment) -> list[dict[str, Any]]:
    """A row for the protocol as it was, and one with what prevents the incident."""
    incident = experiment.tables["incident"]
    rows = []
    for what, given in (("as it was", experiment), ("prevented", experiment.changed(*incident.fixed_by))):
        found = risk(given, incident.invariant)
        known = drawn(given, incident.invariant) if not found.bounds and found.p else None
        rows.append({"what": what, **found._asdict(), "per_year": per_year(given), "drawn": known})
    return rows


def story(name: str, experiment: Experiment, rows: list[dict[str, Any]]) -> str:
    """The incident's section of the page."""
    incident = experiment.tables["incident"]
    [scenario] = experiment.scenarios.values()
    lossless = {each.name for each in experiment.model.invariants if not each.data_loss}
    is_loss = incident.invariant not in lossless
    event, events = ("loss", "losses") if is_loss else (f"breach of {incident.invariant}", "breaches")
    sources = ", ".join(f"[{place}]({source})" for place, source in enumerate(incident.sources, 1))
    lines = [
        f"\n## {incident.title}\n",
        f"{incident.happened} (Sources: {sources}.)\n",
        f"**In one line:** {incident.mechanism}\n",
        f"![{incident.mechanism}](gallery/incidents/{name}.svg)\n",
        f"Each time that {scenario.about}:\n",
        f"| | P({event}) | 95 % interval | times a year | {events} a year, 90 % by what is known of the rates |",
        "|---|---|---|---|---|",
        *(_row(row) for row in rows),
        f"\n**Prevented by** {incident.prevented_by}: `{' '.join(f'--set {each}' for each in incident.fixed_by)}`\n",
        "What the model simplifies:\n",
        *(f"- {each}." for each in (*incident.simplified, *scenario.simplifications)),
        f"\nStart from `configs/incidents/{name}.toml`.",
    ]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    is_zero = row["high"] == 0
    p = "0 (proved)" if is_zero else f"< {numbers.plain(row['high'])}" if row["bounds"] else numbers.plain(row["p"])
    interval = "" if is_zero else f"{numbers.plain(row['low'])} to {numbers.plain(row['high'])}"
    if is_zero:
        losses = "0"
    elif row["bounds"]:
        losses = f"< {numbers.plain(row['high'] * row['per_year'])}"
    else:
        losses = numbers.plain(row["p"] * row["per_year"])
        losses += f" ({numbers.plain(row['drawn'][0])} to {numbers.plain(row['drawn'][1])})" if row["drawn"] else ""
    return f"| {row['what']} | {p} | {interval} | {numbers.plain(row['per_year'])} | {losses} |"


def write_page(made: dict[str, list[dict[str, Any]]]) -> None:
    """Writes the page of all incidents whose figures there are."""
    files = {name: incidents.FOLDER / f"{name}.toml" for name in incidents.names() if name in made}
    sections = [story(name, config.load(file), made[name]) for name, file in files.items()]
    PAGE.write_text(f"{INTRODUCTION}{chr(10).join(sections)}\n{BEYOND}")


def main(wanted: list[str]) -> None:
    """Makes diagrams and figures of some incidents, or of all, and the page of all."""
    GALLERY.mkdir(parents=True, exist_ok=True)
    made = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for name in track(wanted or incidents.names(), "incidents"):
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
