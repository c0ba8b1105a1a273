"""Predicted beside observed, with intervals: exact binomial for whether anything is lost, bootstrap for how much."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import bootstrap

from quorisk.analysis.statistics.intervals import clopper_pearson
from tests.reality.experiments import Prediction, experiments
from tests.reality.judge import READ, UNANSWERED

CONFIDENCE = 0.99
"""Of each interval: twenty experiments have forty of them."""


def compared(name: str, prediction: Prediction, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the trials come to, beside the prediction. Trials that broke before the fault are in `broken` alone."""
    experiment = experiments()[name]
    judged = [row for row in rows if row["outcome"] in (READ, UNANSWERED)]
    losses = sum(row["lost"] + row["differ"] > 0 for row in judged)
    low, high = clopper_pearson(losses, len(judged), CONFIDENCE) if judged else (0.0, 1.0)
    oldest = _mean([row["oldest_lost_s"] for row in judged])
    found = {
        "experiment": name,
        "system": experiment.system,
        "version": experiment.version,
        "settings": dict(experiment.settings),
        "fault": experiment.about,
        "trials": len(judged),
        "trials_with_loss": losses,
        "unanswered": sum(row["outcome"] == UNANSWERED for row in judged),
        "broken": len(rows) - len(judged),
        "acked": sum(row["acked"] for row in judged),
        "lost": sum(row["lost"] + row["differ"] for row in judged),
        "oldest_lost_s": oldest[0],
        "oldest_lost_s_low": oldest[1],
        "oldest_lost_s_high": oldest[2],
        "predicted_p": prediction.p,
        "predicted_p_low": prediction.low,
        "predicted_p_high": prediction.high,
        "predicted_by": prediction.by,
        "observed_p_low": low,
        "observed_p_high": high,
        "predicted_oldest_lost_s": prediction.oldest_lost_s,
    }
    same_p = prediction.low <= high and low <= prediction.high
    same_age = oldest[1] is None or oldest[2] is None or oldest[1] <= prediction.oldest_lost_s <= oldest[2]
    return found | {"agrees": bool(same_p and same_age) if judged else None, "why": experiment.why}


def _mean(ages: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The mean with its interval, which none or one age or equal ones do not have."""
    if not ages:
        return None, None, None
    mean = float(np.mean(ages))
    if len(set(ages)) == 1:
        return mean, None, None
    interval = bootstrap(
        (ages,), np.mean, confidence_level=CONFIDENCE, rng=np.random.default_rng(1)
    ).confidence_interval
    return mean, float(interval.low), float(interval.high)


def told(found: dict[str, Any]) -> str:
    """A line for whether anything is lost, one for how old it is, and one for whether they agree."""
    age, low, high = (found[key] for key in ("oldest_lost_s", "oldest_lost_s_low", "oldest_lost_s_high"))
    spread = "" if low is None else f" [{low:.3g}, {high:.3g}]"
    lines = [
        f"{found['experiment']}: {found['system']} {found['version']}, {found['fault']}; {found['predicted_by']}",
        f"{'':24}{'predicted':>12}   observed, {CONFIDENCE:.0%} interval",
        f"{'P(any is lost)':24}{found['predicted_p']:12.4g}   {found['trials_with_loss']} of {found['trials']} "
        f"[{found['observed_p_low']:.3g}, {found['observed_p_high']:.3g}]",
        f"{'age of the oldest, s':24}{found['predicted_oldest_lost_s']:12.4g}   "
        + ("nothing seen" if age is None else f"{age:.3g}{spread}"),
        f"{found['lost']} of {found['acked']} acknowledged messages lost; "
        f"{found['unanswered']} trials without an answer, {found['broken']} broken before the fault",
        {True: "They agree.", False: "They DO NOT agree.", None: "No trial so far."}[found["agrees"]],
    ]
    return "\n".join(lines)
