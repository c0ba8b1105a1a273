"""States that go on alike are one to a head: held against chains, which keep them apart."""

import pytest

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.kernels.model import leaves, with_defaults
from quorisk.kernels.protocols.bookkeeper import MODEL
from quorisk.kernels.states.head import Head

MEMORY = 1 << 29
SMALL = {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1}
RATES = {action.name: 0.2 + 0.37 * place % 1.7 for place, action in enumerate(MODEL.actions)}
"""No two of them alike, so that no two actions can change places."""
LOST = {"max_lost": 3, "auto_recovery": True, "replacement": True, "lost_together": True}
NOISE = {"message_loss": 0.1}
SHARED = {"bookies": 3, "ack_quorum": 2}
PROBLEMS = {
    "literal": ({}, {"semantics": "literal", "fence_recovery_reads": False}, NOISE),
    "two entries": ({"clients": 1, "entries": 2, "inflight": 2}, {}, {"message_loss": 0.1, "max_lost": 1}),
    "lost messages": ({"write_quorum": 1}, {"recovery_lac_floor": False}, {"message_loss": 0.2}),
    "lost bookies": ({**SHARED, "clients": 1}, {}, {**LOST, **NOISE}),
    "a crash": ({"clients": 2}, {"strict_negative_reads": False}, {"writer_crash": True, **NOISE}),
    "empty restarts": (
        {"write_quorum": 1},
        {"limbo_on_unclean_shutdown": False},
        {"max_empty_restarts": 1, "message_loss": 0.1},
    ),
    "versions that nobody compares": (
        {"write_quorum": 1},
        {"close_checks_version": False},
        {"max_lost": 1, "message_loss": 0.1},
    ),
    "three clients": ({"clients": 3, "write_quorum": 1}, {"fence_recovery_reads": False}, {}),
    "two to spare": ({**SHARED, "write_quorum": 1, "ack_quorum": 1, "clients": 1}, {}, {**LOST, **NOISE}),
    "racks": (
        {**SHARED, "clients": 1, "racks": 2},
        {},
        {"max_empty_restarts": 2, "max_lost": 2, "auto_recovery": True},
    ),
    "an outage": ({**SHARED, "clients": 1}, {}, {"max_outages": 1, "p_lost_in_outage": 0.3, "auto_recovery": True}),
    "an outage of a rack": (
        {**SHARED, "clients": 1, "racks": 2},
        {},
        {
            "max_rack_outages": 1,
            "p_lost_in_rack_outage": 0.3,
            "max_empty_restarts": 2,
            "max_lost": 1,
            "auto_recovery": True,
        },
    ),
}


def experiment(name):
    model, variant, faults = PROBLEMS[name]
    document = {"protocol": "bookkeeper", "model": SMALL | model, "variant": variant, "faults": faults, "rates": RATES}
    return config.build_experiment(document | {"run": {"lifetime": 100.0}}, "ledger")


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_head_of_representatives_loses_as_often_as_the_chain(name):
    given = experiment(name)
    truth = exact(given, MEMORY)
    head = Head(given.model, given.points[0].point, MEMORY)
    while head.grow(1 << 30):
        pass
    solved = head.solve()
    assert solved is not None
    assert solved.complete
    assert solved.states < truth.states / 2
    assert solved.lost == pytest.approx(truth.data_loss.p, rel=1e-12)
    for invariant, found in truth.invariants.items():
        assert solved.broken[invariant][0] == pytest.approx(found.p, rel=1e-12)


@pytest.mark.parametrize("name", ["two entries", "lost bookies", "an outage", "racks"])
def test_a_chain_of_representatives_answers_as_the_chain(name):
    given = experiment(name)
    truth, lumped = exact(given, MEMORY), exact(given, MEMORY, lumps=True)
    assert MODEL.alike
    are_alike = MODEL.alike.number(MODEL.make_params(given.points[0].point.values)) > 1
    assert (lumped.states < 0.7 * truth.states) == are_alike
    assert lumped.outcomes == pytest.approx(truth.outcomes, rel=1e-12)
    assert [lumped.expected_steps, lumped.expected_time] == pytest.approx(
        [truth.expected_steps, truth.expected_time], rel=1e-12
    )
    for invariant, found in truth.invariants.items():
        assert lumped.invariants[invariant].p == pytest.approx(found.p, rel=1e-12)


def test_bookies_are_alike_where_none_is_chosen_before_another():
    assert MODEL.alike
    values = with_defaults(MODEL, SMALL)
    for bookies, racks, alike in ((2, 0, 2), (3, 0, 3), (4, 0, 0), (3, 2, 0)):
        params = MODEL.make_params(values | {"bookies": bookies, "racks": racks})
        assert MODEL.alike.number(params) == alike


def test_rows_of_bookies_fill_the_fields_that_are_about_them():
    assert MODEL.alike
    assert len(leaves(MODEL.alike.bits)) == len(leaves(MODEL.widths))
    for width, bits in zip(leaves(MODEL.widths), leaves(MODEL.alike.bits), strict=True):
        assert bits == 0 or width % (bits * MODEL.alike.most) == 0
