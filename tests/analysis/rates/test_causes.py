"""What solved losses are made of: as counted, and all of them."""

import math
from typing import Any

import pytest

from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.rates.causes import p_loss_by_faults
from quorisk.analysis.rates.sensitivity import sensitivity
from quorisk.kernels.states.head import Head
from quorisk.kernels.states.moves import moves_of

FILE: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 3, "write_quorum": 2, "ack_quorum": 1, "clients": 1, "entries": 1, "inflight": 1},
    "faults": {"max_lost": 2, "message_loss": 0.1},
    "rates": {"bookie_is_lost": 0.1},
    "run": {"runs": 300_000},
}


def test_sets_of_faults_are_those_of_counted_runs_and_add_up_to_all_losses():
    experiment = build_experiment(FILE, "x.toml")
    model, point = experiment.model, experiment.points[0].point
    head = Head(model, point, 1 << 29)
    while head.grow(10**9):
        pass
    solved: Any = head.solve()
    found, counted = p_loss_by_faults(model, moves_of(head, solved.states)), estimate(experiment, 2)
    assert math.fsum(found.values()) == pytest.approx(solved.lost, rel=1e-12)
    assert len(counted.losses_by_faults) == len(found) > 1
    for each in counted.losses_by_faults:
        share = found[frozenset(each.faults)] / math.fsum(found.values())
        assert abs(each.share - share) < 4.0 * math.sqrt(share * (1.0 - share) / (each.losses / each.share))


def test_what_cannot_be_lost_without_a_fault_is_lost_by_no_other():
    """Each of two copies has to be lost: one kind of fault, whatever else happens on the way."""
    single = FILE | {"faults": {"max_lost": 2}, "model": {**FILE["model"], "ack_quorum": 2}}
    made_of = sensitivity(build_experiment(single, "x.toml")).losses_by_faults
    assert made_of == [(["lost bookie"], 1.0)]
