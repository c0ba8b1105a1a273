"""What is lost beyond a head, by the faults that have to come first: held against every step, and against chains."""

from functools import cache

import numpy as np
import pytest

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import LOST
from quorisk.kernels.protocols.bookkeeper import MODEL, margin
from quorisk.kernels.protocols.bookkeeper.layout import MAX_ENTRIES
from quorisk.kernels.protocols.bookkeeper.margin import MARGIN
from quorisk.kernels.states import margins
from quorisk.kernels.states.head import Head
from quorisk.kernels.states.moves import moves_of

MEMORY = 1 << 29
SMALL = {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1}
LOSSES = {"max_lost": 3, "auto_recovery": True, "replacement": True, "message_loss": 0.01}
LARGEST = "guaranteed, two entries"
PROBLEMS: dict[str, tuple[dict[str, int], dict[str, float]]] = {
    "a quorum of one": ({}, {}),
    "a quorum of two": ({"ack_quorum": 2}, {}),
    "all of three": ({"bookies": 4, "write_quorum": 3, "ack_quorum": 3}, {"message_loss": 0.0, "max_lost": 4}),
    "two entries": ({"bookies": 2, "entries": 2}, {"writer_crash": True}),
    "two to spare": ({"write_quorum": 1}, {"repair_open_ledgers": True}),
    "guaranteed": ({"bookies": 4}, {"max_lost": 2}),
    "guaranteed, all of two": ({"ack_quorum": 2}, {"max_lost": 2}),
    LARGEST: ({"entries": 2}, {"max_lost": 1, "auto_recovery": False, "replacement": False}),
}


@cache
def experiment(name, rate=1e-4):
    sizes, faults = PROBLEMS[name]
    variant = {"guaranteed_write_quorum": name.startswith("guaranteed")}
    document = {"protocol": "bookkeeper", "model": SMALL | sizes, "faults": LOSSES | faults, "variant": variant}
    return config.build_experiment(document | {"rates": {"bookie_is_lost": rate}, "run": {"lifetime": 30.0}}, name)


def whole(name):
    head = Head(MODEL, experiment(name).points[0].point, MEMORY)
    while head.grow(1 << 20):
        pass
    assert not head.is_full
    return head


def without(*names):
    """The problems that the short tests have, without these."""
    return [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in names)) for name in PROBLEMS]


@pytest.mark.parametrize("name", without(LARGEST, "guaranteed"))
def test_no_step_takes_more_than_the_margin_says(name, monkeypatch):
    """Nor with entries alone that are ever written: the others never need more than an ack quorum."""
    head = whole(name)
    moves = moves_of(head, head.num_states)
    states = [head.state(place) for place in range(head.num_states)]
    steps = moves.chain.target < head.num_states  # the others end a lifetime
    is_loss = moves.action[steps] == [action.name for action in MODEL.actions].index(MARGIN.fault)
    for entries in (MAX_ENTRIES, head.odds.params.entries):
        monkeypatch.setattr(margin, "MAX_ENTRIES", entries)
        needed = np.array([MARGIN.needed(state, head.odds.params) for state in states])
        taken = needed[moves.source[steps]] - needed[moves.chain.target[steps]]
        assert (taken <= is_loss).all()
        assert (taken == 1).any()
        assert not needed[head.arrays.ends[: head.num_states] == LOST].any()


@pytest.mark.parametrize("name", without(LARGEST))
def test_a_head_of_any_size_bounds_what_it_leaves_out(name):
    given = experiment(name)
    truth, narrower = exact(given, MEMORY).data_loss.p, 0
    head = Head(MODEL, given.points[0].point, MEMORY, by_margin=True)
    while head.grow(1 << 20):
        solved = head.solve()
        assert solved
        assert solved.lost * (1 - 1e-9) <= truth <= (solved.lost + solved.beyond) * (1 + 1e-9)
        narrower += solved.beyond < 0.1 * solved.leaves
    assert narrower


def test_with_two_clients_lost_bookies_are_followed_first_and_nothing_is_taken_for_granted():
    sizes = SMALL | {"bookies": 2, "clients": 2, "write_quorum": 2}
    document = {"protocol": "bookkeeper", "model": sizes, "faults": LOSSES | {"max_lost": 2, "message_loss": 0.0}}
    given = config.build_experiment(
        document | {"rates": {"bookie_is_lost": 1e-6}, "run": {"lifetime": 30.0}}, "two clients"
    )
    truth, at_first = exact(given, MEMORY).data_loss.p, []
    for by_margin in (False, True):
        head = Head(MODEL, given.points[0].point, MEMORY, by_margin)
        while head.grow(1 << 20):
            solved = head.solve()
            assert solved
            assert solved.lost * (1 - 1e-9) <= truth <= (solved.lost + solved.beyond) * (1 + 1e-9)
            assert solved.beyond == solved.leaves
            at_first += [solved.lost] if head.cost == 0 else []
    assert at_first[0] == 0.0 < at_first[1]


@pytest.mark.parametrize(
    "given",
    [{"max_outages": 1}, {"max_empty_restarts": 1}, {"lost_together": True}, {"write_quorum": 1}],
)
def test_a_margin_says_nothing_where_data_is_lost_in_other_ways(given):
    """With write_quorum = 1, ensembles are striped."""
    sizes = SMALL | {name: value for name, value in given.items() if name in SMALL} | {"ensemble_size": 2}
    faults = LOSSES | {name: value for name, value in given.items() if name not in SMALL}
    document = {"protocol": "bookkeeper", "model": sizes, "faults": faults}
    head = Head(MODEL, config.build_experiment(document, "others").points[0].point, MEMORY, by_margin=True)
    assert margins.margin_at(MODEL, head.odds) is None
    assert head.grow(1 << 20)
    solved = head.solve()
    assert solved
    assert solved.beyond == solved.leaves


def test_more_faults_at_a_time_than_a_margin_says_are_refused():
    head = Head(MODEL, experiment("a quorum of one").points[0].point, MEMORY)
    head.grow(1 << 20)
    known = margins.margin_at(MODEL, head.odds)
    assert known
    flows = np.ones(head.num_states)
    given = head.expand, head.kept, head.arrays, flows
    assert margins.bounds(known, *given).all()
    with pytest.raises(ModelError, match="margin: more instances of its fault are enabled than it says"):
        margins.bounds(known._replace(most=2), *given)
