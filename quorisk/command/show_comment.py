"""Comments for pull requests: Markdown files, each with the picture of designs beside it."""

import math
from collections.abc import Sequence
from pathlib import Path

from quorisk.analysis import files
from quorisk.analysis.decision import frames
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import measure_of, ranked_designs
from quorisk.analysis.statistics.sequential import simultaneous
from quorisk.plots.comment import Judged, comment
from quorisk.plots.ranking import ranking_figure
from quorisk.plots.style import save
from quorisk.say import choose, text


def write_comment(
    path: Path, after: Judged, sentences: Sequence[str], before: Judged | None = None, confidence: float = 0.95
) -> None:
    """Writes the comment to `path`, and the picture beside it, under the same name with the ending .svg."""
    said = comment(after, sentences, before, confidence)
    figure = ranking_figure(after.designs, after.target, measure_of(after.designs[0]), "")
    if figure is not None:
        files.write_whole(path.with_suffix(".svg"), save(figure, "svg"), "markdown")
    files.write_whole(path, said.encode(), "markdown")


def write_diff(path: Path, before: Path, after: Path, confidence: float) -> None:
    """Writes the changes between two sweeps; all intervals hold together with `confidence`."""
    num = max(
        len(ranked_designs(choose.rows_of(frames.load_sweep(each).frame, text.ANY_LOSS))) for each in (before, after)
    )
    surer = simultaneous(confidence, 2 * num)
    old, new = (choose.rows_of(frames.load_sweep(each, surer).frame, text.ANY_LOSS) for each in (before, after))
    sides = [
        Judged(ranked_designs(rows), float(rows["target"].iloc[0]) if "target" in rows else math.inf)
        for rows in (old, new)
    ]
    write_comment(path, sides[1], recommend(new).sentences, sides[0], confidence)
