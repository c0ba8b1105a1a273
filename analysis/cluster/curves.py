"""The figure of a cluster's incidents: their rate by the least number of entries that is lost at once."""

from typing import TYPE_CHECKING

from quorisk.analysis.cluster.answer import answer_of, quick_effort
from quorisk.analysis.cluster.joined import Key, worst_clusters
from quorisk.analysis.experiment.config import Experiment

if TYPE_CHECKING:
    import pandas as pd


def curve_rows(experiment: Experiment, names: dict[Key, str]) -> "pd.DataFrame":
    """Returns the incidents a year with at least `entries` lost: `design`, `entries`, `per_year`, `low`, `high`."""
    import pandas as pd

    effort = quick_effort(experiment)
    there = worst_clusters(experiment)
    rows = [
        {"design": name, "entries": entries, "per_year": rate.value, "low": rate.low, "high": rate.high}
        for design, name in names.items()
        for entries, rate in answer_of(there[design], effort).losses.at_least.items()
        if rate.value > 0.0
    ]
    return pd.DataFrame(rows, columns=["design", "entries", "per_year", "low", "high"])
