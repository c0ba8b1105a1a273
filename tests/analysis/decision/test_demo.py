"""What the demo recommends, as a storage engineer would read it."""

import pandas as pd
import pytest

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.frames import described
from quorisk.analysis.decision.verdict import choice
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.statistics.intervals import clopper_pearson
from tests.support import ROOT


@pytest.mark.parametrize("losses", [0, 3000])
def test_the_demo_chooses_neither_one_acknowledgement_nor_a_mechanism_off_whatever_their_runs_lost(losses):
    experiment = config.load(ROOT / "configs" / "demo.toml")
    runs = experiment.run.runs
    rows = []
    for point in experiment.points:
        values = dotted_values(experiment.model, point.point)
        unsafe = values["model.ack_quorum"] == 1 or not values["variant.fence_recovery_reads"]
        lost = losses * unsafe
        low, high = clopper_pearson(lost, runs, 0.95)
        counted = {"losses": lost, "hidden": 0, "runs": runs, "messages": runs, "steps": runs, "completed": runs - lost}
        interval = {"p": lost / runs, "low": low, "high": high, "method": "", "sequential": False}
        rows.append({"point_id": point.point_id, "horizon": 0, "stuck": 0, **values, **counted, **interval})
    found = choice(ranked_designs(described(pd.DataFrame(rows), experiment)), experiment.run.target)
    assert [each.settings for each in found] == ["3/3/2"]
