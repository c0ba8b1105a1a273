"""What a protocol is held to, where its runs are cut off."""

from itertools import islice
from typing import Any

import pytest

from quorisk.analysis import protocol_check
from quorisk.kernels import declared
from quorisk.kernels.engines.rerun import Rerun, rerun
from quorisk.kernels.protocols import registry


def test_runs_that_are_cut_off_are_repeated_so_far_and_count_as_possible_losses(monkeypatch):
    """Whatever may still happen in them, answers have to agree with the rest."""
    model, cases = registry.load("compaction"), registry.cases("compaction")
    points = [each.points[0].point for each in protocol_check._experiments(model, cases)]
    lengths: list[int] = []

    def noted(*arguments: Any) -> Rerun:
        lengths.append(len((again := rerun(*arguments)).path.steps))
        return again

    monkeypatch.setattr(protocol_check, "rerun", noted)
    monkeypatch.setattr(protocol_check, "LONGEST", 4)
    assert protocol_check._replayed(model, points).startswith(f"{50 * len(points)} runs of")
    assert max(lengths) == 4
    found = protocol_check._exact(model, points)
    assert not found.startswith("of 0 ")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(registry.own()))
def test_protocols_of_our_own_pass(name):
    assert [each.name for each in protocol_check.check_protocol(name)][-1] == "margin"


def test_walks_seldom_take_what_comes_rarely():
    model = registry.load("compaction")
    params = model.make_params(protocol_check._values(model, registry.cases("compaction"), {}))
    first = model.initial(params, 0)

    def begun_with_a_crash(*rarely):
        walks = islice(declared.walks(model, params, 40, 1, rarely), 400)
        return sum(model.actions[each.action].name == "broker_crash" for each in walks if each.state == first)

    assert begun_with_a_crash() > 5 > begun_with_a_crash("broker_crash")
