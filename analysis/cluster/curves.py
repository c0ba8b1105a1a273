"""What figures of a cluster show: how often so much is lost at once, and P(any loss in a year) over its size."""

from functools import partial
from typing import TYPE_CHECKING

from quorisk.analysis.cluster.joined import Key, answer_of, p_any_of, quick_effort, worst_clusters
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.cores import side_by_side
from quorisk.kernels.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

SIZES = (0.5, 1, 2, 5, 10)
"""Times as many nodes."""
_PRECISION = 0.01
"""Of a curve, which nobody can read more closely."""


def at_least(experiment: Experiment, names: dict[Key, str]) -> "pd.DataFrame":
    """Returns how often at least so many entries are lost at once: `design`, `entries`, `per_year`, `low`, `high`."""
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


def over_nodes(experiment: Experiment, names: dict[Key, str]) -> "pd.DataFrame":
    """Returns P(any loss in a year) of the same entries on other numbers of nodes: `design`, `nodes`, `p`, `low`,
    `high`."""
    import pandas as pd

    effort = quick_effort(experiment, _PRECISION)
    nodes = max(each.cluster.nodes for each in experiment.clusters)
    rows = []
    for number in dict.fromkeys(max(1, round(times * nodes)) for times in SIZES):
        try:
            there = experiment.changed(f"cluster.nodes={number}")
        except ConfigError:  # too few for a design, or too many for the copysets
            continue
        placed = worst_clusters(there, _PRECISION)
        shown = side_by_side(partial(p_any_of, effort=effort), [placed[each] for each in names], effort.threads)
        for name, p_any in zip(names.values(), shown, strict=True):
            rows.append({"design": name, "nodes": number, "p": p_any.value, "low": p_any.low, "high": p_any.high})
    return pd.DataFrame(rows, columns=["design", "nodes", "p", "low", "high"])
