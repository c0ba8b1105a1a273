"""The steps of many states at once: which of them lead anywhere."""

import numpy as np
import pytest

from quorisk.kernels.protocols import registry
from quorisk.kernels.states import expand
from quorisk.kernels.states.chain import build_chain
from quorisk.kernels.states.expand import Expander
from quorisk.kernels.states.head import Head
from quorisk.kernels.states.odds import odds_of
from quorisk.kernels.states.programs import _write, written
from quorisk.kernels.states.store import Store
from quorisk.kernels.tracing.evaluate import Evaluation
from tests.support import params_of, point_of

MEMORY = 1 << 26


def test_a_step_of_probability_0_leads_nowhere():
    """All states with it are those of the configuration without it."""
    model = registry.load("compaction")
    rare, never = point_of(model, rates={"broker_crash": 0.0}, max_crashes=2), point_of(model, max_crashes=0)
    chains = [build_chain(model, point, MEMORY) for point in (rare, never)]
    assert len(chains[0].ends) == len(chains[1].ends)
    assert all((each.p > 0.0).all() for each in chains)
    heads = [Head(model, point, MEMORY) for point in (rare, never)]
    for head in heads:
        while head.grow(1 << 20):
            pass
    assert heads[0].num_states == heads[1].num_states


def test_programs_from_disk_are_those_that_were_written_and_another_models_are_never_there():
    model = registry.load("compaction")
    invariants = tuple(each._replace(holds=lambda state, params: state.read_position == 0) for each in model.invariants)
    other = model._replace(invariants=invariants)
    made = dict(_write(model)), written.__wrapped__(model), written.__wrapped__(model), written.__wrapped__(other)
    assert all(type(each.num_leaves) is int for programs in made for each in programs.values())
    num_leaves = made[0]["judged"].num_leaves
    values = np.random.default_rng(1).integers(0, 1 << 20, (num_leaves, 500))
    for name in made[0]:
        expected, first, second, others = (Evaluation(programs[name])(values) for programs in made)
        assert np.array_equal(first, expected)  # the second is from disk, whoever wrote it
        assert np.array_equal(second, expected)
        assert np.array_equal(others, expected) == (name != "judged")


def test_only_steps_of_the_wanted_cost_have_rows_and_all_have_odds():
    model = registry.load("compaction")
    point = point_of(model, rates={"broker_crash": 1e-3}, max_crashes=2)
    odds = odds_of(model, point)
    store = Store(model, params_of(model, max_crashes=2), MEMORY)
    expand = Expander(model, odds)
    _, count = store.begin(expand.programs)
    found = [expand(store.kept, np.arange(count), True, cost, cost) for cost in (0, 3)]
    for batch, cost in zip(found, (0, 3), strict=True):
        assert (batch.is_wanted == (batch.cost == cost)).all()
        assert len(batch.rows) == batch.is_wanted.sum() == batch.first_row[-1] > 0
        sums = np.add.reduceat(batch.p, batch.first[:-1])
        assert sums == pytest.approx(np.ones(count))
    assert (found[0].p == found[1].p).all()


@pytest.mark.parametrize("name", ["compaction", "kafka"])
def test_a_chain_is_the_same_whenever_programs_are_made_for_its_rows(name, monkeypatch):
    model = registry.load(name)
    monkeypatch.setattr(expand, "_SHARE", 0.0)
    chains = []
    for lasting in (0, 100, 1 << 40):
        monkeypatch.setattr(expand, "_LASTING", lasting)
        chains.append(build_chain(model, point_of(model, lifetime=1e3), MEMORY))
    assert len(chains[0].p) > 3000
    for each in chains[1:]:
        assert all(np.array_equal(ours, others) for ours, others in zip(chains[0], each, strict=True))
