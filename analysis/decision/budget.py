"""Losses by the kinds of faults that losing runs met, where losses are solved and not counted."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.analysis.rates.causes import p_loss_by_faults
from quorisk.analysis.rates.sensitivity import grown_head

if TYPE_CHECKING:
    import pandas as pd

LITTLE = 0.1
"""Largest F/L at which shares of losses may be taken from the head alone."""
MEMORY = 1 << 26
"""Bytes for the steps of a head: a quarter of a million transitions, a second. Larger ones are not solved again."""
MOST_POINTS = 48
"""Most points whose heads are solved again: those that add most to losses."""


def with_solved(
    counted: "pd.DataFrame", rows: "pd.DataFrame", experiment: Experiment, tell: Callable[[str], None] | None = None
) -> "pd.DataFrame":
    """Returns losses by faults (`results.sweeps.losses_by_faults`), replaced by solved ones where these exist: there
    `p` and `share` are exact, `low` and `high` equal `share`, and `losses` is the expected number in the point's runs.

    `rows` are those of any data loss. Heads are solved again, of MOST_POINTS points at the most.
    """
    import pandas as pd

    known = {point.point_id: point for point in experiment.points}
    rows = rows[(rows["inside"] > 0.0) & (rows["leaves"] <= LITTLE * rows["inside"]) & rows["point_id"].isin(known)]
    weights = rows["p"] * rows["per_year"] * rows["hits"] if "per_year" in rows else rows["p"]
    found: list[pd.DataFrame] = []
    for row in rows.loc[weights.nlargest(MOST_POINTS).index].to_dict("records"):
        if tell:
            tell(f"what losses are made of: {len(found)} of {min(len(rows), MOST_POINTS)} designs and scenarios")
        found.append(_solved(known[row["point_id"]], experiment, row["p"], row["runs"]))
    solved = [each for each in found if not each.empty]
    if not solved:
        return counted
    again = {point_id for each in solved for point_id in each["point_id"]}
    return pd.concat([counted[~counted["point_id"].isin(again)], *solved], ignore_index=True)


def _solved(point: GridPoint, experiment: Experiment, p: float, runs: int) -> "pd.DataFrame":
    """The rows of a point; none if its head is too large."""
    import pandas as pd

    grown = grown_head(experiment._replace(points=(point,)), MEMORY, certain=LITTLE)
    made_of = p_loss_by_faults(experiment.model, grown.moves()) if grown else {}
    total = sum(made_of.values())
    if not grown or grown.solved.leaves > LITTLE * total:
        made_of = {}
    return pd.DataFrame(
        {
            "point_id": point.point_id,
            "faults": tuple(sorted(faults)),
            "losses": p * runs * part / total,
            "share": part / total,
            "low": part / total,
            "high": part / total,
            "p": p * part / total,
        }
        for faults, part in sorted(made_of.items(), key=lambda each: -each[1])
    )
