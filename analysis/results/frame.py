"""Probabilities with their intervals from rows of results, as a data frame."""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quorisk.analysis.experiment.identity import later_defaults
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.results import heads, schema
from quorisk.kernels.engines.tally import TIME_TICK
from quorisk.kernels.model import OUTCOMES
from quorisk.kernels.protocols import registry

if TYPE_CHECKING:
    import pandas as pd

    from quorisk.analysis.statistics.estimator import Estimator


def frame(
    table: pa.Table,
    confidence: float,
    simultaneous: bool = False,
    at_any_time: bool = False,
    target: float = math.inf,
    num_scenarios: int = 1,
) -> "pd.DataFrame":
    """Returns one row for each point and invariant, before them one for any data loss (`invariant` is DATA_LOSS).

    Columns: the identity (but `parameters`), every parameter under its dotted key (`model.write_quorum`), `runs`,
    `steps`, `messages`, `wall_s`, the outcomes' counts, `engine` and `stopped`, and for the invariant: `invariant`,
    `data_loss`, `about` (exposure, availability, or nothing), `losses` (runs that broke it), `mean_exposed` (of
    exposure: the model time for which it was broken in one of these runs, on average), `hidden` (runs that may hide a
    loss: every unfinished one, with `at_any_time` every run that the horizon ended, too), `p` = losses / runs, `low`
    and `high` of its interval, in which every hidden run may be one; and of the interval its `method` in words, its
    `confidence`, the number of intervals that hold `together` with it (1, or if `simultaneous` one invariant's at all
    points), and whether its method is `sequential`.

    `target` is the probability of data loss that configurations are held to, in a column of that name; infinite if
    there is none. Of `num_scenarios` rows that add up to a design's year the intervals hold together in any case.

    Where losses were too rare to count, `p`, `low`, `high` and `method` follow from the head and the runs from its
    exits; `losses` is p times `runs` then, the expectation for the pilot's runs, or 0 if only an upper bound is known.
    Runs from exits sample data loss alone: other invariants are counted in the pilot's runs, within the head's bounds.
    `bounds` says of every row whether its high end is more than ten times its low end. `inside` and `leaves` are the
    head's L and F, and `exit_runs`, `exit_losses` and `exit_hidden` count its exits' runs: 0 without a head.

    If the number of runs was not fixed before, at any point, all intervals are those of the confidence sequence, which
    holds at every number of runs at once, and so whatever it was that stopped them.
    """
    import pandas as pd  # here, since Spark's workers get along without

    rows = []
    estimator = estimator_of_table(table, confidence, table.num_rows if simultaneous else num_scenarios)
    for each in table.to_pylist():
        shared = {name: each[name] for name in schema.IDENTITY_COLUMNS if name != "parameters"}
        shared |= _later(each["protocol"]) | json.loads(each["parameters"]) | {"runs": each["num_runs"]}
        shared |= {key: math.inf for key in ("run.horizon", "run.lifetime") if shared[key] is None}
        shared |= {name: each[name] for name in ("wall_s", *OUTCOMES)}
        shared |= {name: int(each[name]) for name in ("steps", "messages")}
        shared |= {"engine": ", ".join(each["engines"]), "stopped": ", ".join(each["stopped"]), "target": target}
        any_loss = {"name": DATA_LOSS, "data_loss": True, "about": "", "broken": each["lost"], "exposed_ticks": None}
        hidden = each["unfinished"] + (each["horizon"] if at_any_time else 0)
        rows += [shared | _estimate(each, broken, estimator, hidden) for broken in (any_loss, *each["invariants"])]
    return pd.DataFrame(rows)


@cache
def _later(protocol: str) -> Mapping[str, Any]:
    """Defaults of the keys that rows leave out if they are at these; empty for a protocol that is not installed."""
    return later_defaults(registry.load(protocol)) if protocol in registry.names() else {}


def estimator_of_table(table: pa.Table, confidence: float, together: int = 1) -> "Estimator":
    """Returns the estimator of a table's intervals: the confidence sequence unless all numbers of runs were fixed."""
    from quorisk.analysis.statistics.estimator import Estimator

    fixed = all(set(reasons) <= {schema.BY_RUNS, schema.CERTAIN} for reasons in table["stopped"].to_pylist())
    return Estimator(confidence, together, not fixed)


def _estimate(
    each: Mapping[str, Any], invariant: Mapping[str, Any], estimator: "Estimator", hidden: int
) -> dict[str, Any]:
    broken, runs, ticks = invariant["broken"], each["num_runs"], invariant["exposed_ticks"]
    losses, method = broken, estimator.method
    beyond = dict.fromkeys(heads.BEYOND, 0.0)
    if each["head"]:
        name = invariant["name"]
        if invariant["data_loss"]:
            p, low, high, method = heads.interval_of(each["head"], name, estimator)
        else:
            p, low, high, method = heads.answer_from_beginning(each["head"], name, estimator, broken, runs, hidden)
        losses = p * runs if low > 0.0 else 0
        beyond = heads.terms_of_answer(each["head"], name)
    else:
        p, (low, high) = losses / runs, estimator.interval(losses, runs, hidden)
    return {
        "invariant": invariant["name"],
        "data_loss": invariant["data_loss"],
        "about": invariant["about"],
        "losses": losses,
        "mean_exposed": math.nan if ticks is None or not broken else int(ticks) * TIME_TICK / broken,
        "hidden": hidden,
        "p": p,
        "low": low,
        "high": high,
        "method": method,
        "bounds": estimator.far_apart(low, high),
        **beyond,
        "confidence": estimator.confidence,
        "together": estimator.together,
        "sequential": estimator.is_sequential,
    }
