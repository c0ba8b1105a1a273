"""Nodes that are lost together: which are one event, and what such events count."""

import random

import numpy as np
import pytest

from quorisk.analysis.rates import incidents, together
from quorisk.analysis.rates.incidents import Watched, unix_s
from quorisk.analysis.rates.oddities import Oddities
from quorisk.analysis.rates.together import Loss
from quorisk.kernels.protocols import evidence

YEAR_S = 365 * 86_400
YEAR = Watched(20, unix_s("2025-01-01"), unix_s("2026-01-01"), racks=4)


def loss(name, start_s, rack="", batch="", has_time=True):
    return Loss(name, start_s, has_time, rack, batch)


def names(losses):
    return sorted("".join(sorted(each.node for each in event)) for event in together.losses_by_event(losses))


@pytest.mark.parametrize(
    ("losses", "events"),
    [
        ([loss("a", 0), loss("b", 60), loss("c", 121)], ["ab", "c"]),
        ([loss("a", 0), loss("b", 60), loss("c", 120)], ["abc"]),
        ([loss("a", 0, has_time=False), loss("b", 0, has_time=False)], ["a", "b"]),
        ([loss("a", 0, "r1"), loss("b", 3600, "r1"), loss("c", 3600 + 61, "r2")], ["ab", "c"]),
        ([loss("a", 0, "r1"), loss("b", 3601, "r1")], ["a", "b"]),
        ([loss("a", 0, "", "x", False), loss("b", 86_400, "", "x", False), loss("c", 9, "", "y")], ["ab", "c"]),
        ([loss("a", 0, "r1"), loss("b", 30, "r2"), loss("c", 3000, "r1"), loss("d", 3001, "r2")], ["abcd"]),
        ([loss("a", 0), loss("b", 0), loss("b", 10**6)], ["ab", "b"]),
        ([loss("a", 0), loss("a", 59)], ["a", "a"]),
        ([loss("a", 0, "r1"), loss("a", 3599, "r1")], ["a", "a"]),
        ([loss("a", 0, "", "x"), loss("a", 9 * 3600, "", "x"), loss("b", 10 * 3600, "", "x")], ["a", "ab"]),
        ([loss("a", 0), loss("b", 1), loss("a", 40), loss("b", 41)], ["ab", "ab"]),
        ([loss("a", 0, "r1"), loss("b", 1, "r2"), loss("c", 90, "r2"), loss("d", 95, "r1")], ["abcd"]),
        ([], []),
    ],
)
def test_which_losses_are_one_event(losses, events):
    shuffled = random.Random(1).sample(losses, len(losses))
    assert names(losses) == names(shuffled) == events


def read(tmp_path, *lines, watched=YEAR):
    path = tmp_path / "incidents.csv"
    path.write_text("\n".join(("kind,node,start,end,data_lost,rack,batch", *lines)))
    oddities: Oddities = {}
    return {each.kind: each for each in incidents.counts_of_lists([path], watched, oddities)}


def test_nodes_lost_together_are_events_and_no_losses_of_single_nodes(tmp_path):
    found = read(
        tmp_path,
        "node,a,2025-02-01T10:00:00,,true,r1,",
        "node,b,2025-02-01T10:00:30,,true,r1,",
        "node,c,2025-02-01T10:30:00,,true,r1,",
        "node,d,2025-05-01T10:00:00,,true,r1,b7",
        "node,e,2025-05-01T20:00:00,,true,r2,b7",
        "node,f,2025-09-01T10:00:00,,true,r2,b8",
        "node,g,2025-09-01T10:00:00,,false,r2,b8",
    )
    counts = {kind: (each.events, each.exposure) for kind, each in found.items()}
    assert counts[evidence.NODE_LOSSES] == (1, 20 * YEAR_S)
    assert counts[evidence.NODE_STOPS] == (1, 20 * YEAR_S)
    assert counts[evidence.SHARE_TOGETHER] == (5, 6)
    assert counts[evidence.RACK_LOSSES] == (1, 4 * YEAR_S)
    assert counts[evidence.LOST_IN_RACK] == (3, 5)
    assert counts[evidence.BATCH_LOSSES] == (1, pytest.approx(YEAR_S))
    assert counts[evidence.LOST_IN_BATCH] == (2, 2)


@pytest.mark.parametrize("again", ["01:00:50", "01:30", "10:00"])
def test_a_node_that_is_replaced_and_lost_again_is_two_losses_of_single_nodes(tmp_path, again):
    found = read(
        tmp_path,
        "node,b1,2025-02-01T01:00,2025-02-01T01:00:40,true,r1,x",
        f"node,b1,2025-02-01T{again},2025-02-01T12:00,true,r1,x",
        "node,b7,2025-05-01T10:00,2025-05-01T12:00,true,r2,x",
    )
    counts = {kind: (each.events, each.exposure) for kind, each in found.items()}
    assert counts[evidence.NODE_LOSSES] == (3, 20 * YEAR_S)
    assert counts[evidence.SHARE_TOGETHER] == (0, 3)
    assert not counts.keys() & {evidence.RACK_LOSSES, evidence.BATCH_LOSSES}


def test_where_racks_are_not_known_those_of_a_rack_are_a_batch(tmp_path):
    lines = [f"node,{name},2025-02-01T10:00:00,,true,r1," for name in "abc"]
    found = read(tmp_path, *lines, watched=YEAR._replace(racks=0))
    assert found.keys() >= {evidence.BATCH_LOSSES, evidence.LOST_IN_BATCH}
    assert evidence.RACK_LOSSES not in found


def test_losses_that_were_all_alone_bound_the_share_that_is_not(tmp_path):
    found = read(tmp_path, *(f"node,{n},2025-0{n}-01T10:00,,true,," for n in range(1, 9)))
    assert (found[evidence.SHARE_TOGETHER].events, found[evidence.SHARE_TOGETHER].exposure) == (0, 8)
    assert found[evidence.SHARE_TOGETHER].known.quantile(0.95) < 0.25
    assert evidence.BATCH_LOSSES not in found


@pytest.mark.parametrize("beta", [0.0, 0.1, 1.0])
def test_a_share_that_was_made_is_found(beta):
    """400 losses of the beta-factor model: independent ones, and pairs, at times of their own; four standard errors."""
    chance = np.random.default_rng(3)
    losses: list[Loss] = []
    while len(losses) < 400:
        at = chance.uniform(0, 1e9)
        number = 2 if chance.random() < beta / (2 - beta) else 1  # so that beta of all losses are in pairs
        losses += [loss(str(len(losses) + i), at) for i in range(number)]
    share = next(iter(together.joint_losses(losses, 50, 0, 1e9, "")))
    error = max(2 * np.sqrt(beta * (1 - beta) / 400), 0.01)
    assert share.events / share.exposure == pytest.approx(beta, abs=4 * error)


def test_losses_of_one_node_are_no_pairs_by_chance():
    losses = [loss(name, 1000 * at) for at, name in enumerate("aaabb")]
    assert together._by_chance(losses, 6000) == pytest.approx(2 * 3 * 2 * 60 / 6000)


def test_how_many_pairs_chance_makes_is_told():
    chance = np.random.default_rng(5)
    losses = [loss(str(i), at) for i, at in enumerate(chance.uniform(0, 1e6, 400))]
    said = next(iter(together.joint_losses(losses, 50, 0, 1e6, ""))).source
    expected = 400 * 399 * 60 / 1e6
    assert f"{expected:.2g} such pairs" in said
    pairs = sum(len(event) - 1 for event in together.losses_by_event(losses))
    assert abs(pairs - expected) < 4 * np.sqrt(expected)
