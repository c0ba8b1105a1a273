"""docs/reality.json, its figure, and the table of docs/reality.md, from the files that scripts/reality/run.py wrote.

python -m tests.reality.page results/reality/*.json
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from quorisk.plots.style import quorisk_style, save
from quorisk.say.colours import FAINT, INK
from tests.reality.compare import CONFIDENCE
from tests.reality.experiments import experiments
from tests.reality.lab import ROOT

JSON, PAGE, FIGURE = (ROOT / "docs" / name for name in ("reality.json", "reality.md", "gallery/reality.svg"))
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->"


def drawn(rows: Sequence[dict[str, Any]]) -> Figure:
    """P(anything is lost) on the left and the age of the oldest loss on the right: predicted beside observed."""
    figure = Figure(figsize=(9.0, 1.2 + 0.3 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    places = range(len(rows), 0, -1)
    for place, row in zip(places, rows, strict=True):
        colour, mark = (INK, "o") if row["agrees"] else ("#d55e00", "s")
        seen = row["trials_with_loss"] / row["trials"]
        for axes, value, low, high, predicted in (
            (left, seen, row["observed_p_low"], row["observed_p_high"], row["predicted_p"]),
            (
                right,
                row["oldest_lost_s"],
                row["oldest_lost_s_low"],
                row["oldest_lost_s_high"],
                row["predicted_oldest_lost_s"],
            ),
        ):
            if low is not None:
                axes.plot([low, high], [place, place], color=colour, linewidth=1.5)
            axes.plot([value], [place], marker=mark, color=colour, markersize=5, linestyle="none")
            axes.plot([predicted], [place], marker="D", color="white", markeredgecolor=colour, markersize=7, zorder=1)
    left.set_yticks(list(places), [f"{row['experiment']} ({row['trials']})" for row in rows])
    left.set_xlim(-0.05, 1.05)
    left.set_ylim(0.4, len(rows) + 0.6)
    left.set_xlabel("P(an acknowledged message is lost)")
    right.set_xscale("symlog", linthresh=0.1)
    oldest = max(max(row["oldest_lost_s"], row["predicted_oldest_lost_s"]) for row in rows)
    right.set_xlim(-0.02, 2 * max(oldest, 0.1))
    ticks = [tick for tick in (0.0, 0.1, 1.0, 10.0, 100.0) if tick <= 2 * oldest]
    right.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    right.set_xlabel("mean age of the oldest loss, s")
    for axes in (left, right):
        axes.grid(axis="y", color=FAINT)
    figure.suptitle(
        f"Predicted (diamonds) and observed (dots, {CONFIDENCE:.0%} intervals); orange squares: they differ", fontsize=9
    )
    return figure


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    lines = [
        "| experiment | fault | P predicted | trials with a loss | oldest loss predicted, s | observed, s | agree |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        low, high = row["oldest_lost_s_low"], row["oldest_lost_s_high"]
        age = f"{row['oldest_lost_s']:.3g}" + ("" if low is None else f" [{low:.3g}, {high:.3g}]")
        interval = f"[{row['observed_p_low']:.3g}, {row['observed_p_high']:.3g}]"
        seen = f"{row['trials_with_loss']} of {row['trials']} {interval}"
        cells = [f"`{row['experiment']}`", row["fault"], f"{row['predicted_p']:.3g}", seen]
        cells += [f"{row['predicted_oldest_lost_s']:.3g}", age, "yes" if row["agrees"] else "**no**"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(files: Sequence[str]) -> None:
    """Writes all three; experiments that are not among the files stay as they are in docs/reality.json."""
    kept = {row["experiment"]: row for row in json.loads(JSON.read_text())} if JSON.exists() else {}
    for file in files:
        found = json.loads(Path(file).read_text())
        found.pop("rows")
        kept[found["experiment"]] = found
    known = experiments()
    rows = [kept[name] | {"why": known[name].why} for name in known if name in kept]
    JSON.write_text(json.dumps(rows, indent=1) + "\n")
    with quorisk_style():
        FIGURE.write_bytes(save(drawn(rows), "svg"))
    between = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(between.sub(lambda _: BEGIN + table(rows) + END, PAGE.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
