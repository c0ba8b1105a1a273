"""Mean times to data loss and probabilities of loss that others published, by `exact`."""

from fractions import Fraction
from itertools import combinations

import pytest

from quorisk.analysis.exact import answers
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.states import absorption, chain
from tests.external import copysets, mttdl
from tests.support import point_of

MEMORY = 1 << 28


def solve(model, point):
    found = chain.build_chain(model, point, MEMORY)
    return answers.solve_chain(found, absorption.components(found), model, (), ())


@pytest.mark.parametrize("row", mttdl.PUBLISHED, ids=lambda row: f"{row.source[:4]} {row.copies}")
def test_mean_times_to_data_loss(row):
    assert f"{mttdl.ours(row):{row.digits}}" == row.figure


@pytest.mark.parametrize(("repair", "at_once"), [("serial", [1, 1]), ("parallel", [1, 2])])
def test_repair_laws_equal_rational_arithmetic(repair, at_once):
    """Three copies: from three, two and one copies left, by fractions. 6 a^3 / r^2 is the law of serial repair."""
    r = 43_200 * 1460
    fall, rise = [Fraction(3), Fraction(2), Fraction(1)], [Fraction(0), *(Fraction(r * k) for k in at_once)]
    total, step = Fraction(0), Fraction(0)
    for down, up in zip(fall, rise, strict=True):  # mean time from k copies to k - 1
        step = (1 + up * step) / down
        total += step
    found = mttdl.mean_time_to_loss(3, repair, 1460.0, copy_is_repaired=1460.0 / r)
    assert found == pytest.approx(1460.0 * float(total), rel=1e-12)
    assert found == pytest.approx(at_once[1] * 1460.0 * r**2 / 6, rel=1e-6)


@pytest.mark.parametrize(("number", "digits"), (copysets.FIGURES | copysets.CORRECTED).items())
def test_copysets(number, digits):
    """Published to three digits at the most; the figure of 275,000 copysets stands for random replication."""
    p = copysets.p_loss(copysets.NODES, copysets.DEAD, copysets.COPIES, number)
    assert f"{100 * p:.{len(digits.partition('.')[2])}f}" == digits


@pytest.mark.exhaustive
def test_copysets_that_overlap():
    """Three of five dead nodes among four neighbours, in small rings one by one; and in the paper's cluster."""
    for nodes in (7, 9, 12):
        rings = [set(dead) for dead in combinations(range(nodes), 5)]
        windows = [{(first + i) % nodes for i in range(4)} for first in range(nodes)]
        lost = sum(any(len(dead & window) >= 3 for window in windows) for dead in rings)
        assert copysets.windowed(nodes, 5, 3) == pytest.approx(lost / len(rings), rel=1e-12)
    p = copysets.windowed(copysets.NODES, copysets.DEAD, copysets.WINDOW)
    assert f"{100 * p:.3f}" == copysets.EXACTLY


@pytest.mark.parametrize(("bookies", "together"), [(6, 3), (5, 3), (6, 2), (4, 2)])
def test_bookies_lost_together_hit_an_ensemble_as_often_as_copysets_say(bookies, together):
    """A ledger closed with one entry on all of its ensemble is one copyset; one set of bookies is lost, once."""
    sizes = {"bookies": bookies, "write_quorum": together, "ack_quorum": together, "clients": 1, "entries": 1}
    at_once = {2: "two_bookies_are_lost_together", 3: "three_bookies_are_lost_together"}
    rare = dict.fromkeys(("bookie_is_lost", *at_once.values()), 0.0) | {at_once[together]: 1e-10}
    rates = rare | {"client_closes_ledger_success": 1e-7}  # after all else, and long before anything fails
    given = sizes | {"inflight": 1, "lost_together": True, "max_lost": together}
    found = solve(BOOKKEEPER, point_of(BOOKKEEPER, 0.0, rates, **given))
    assert found.data_loss == pytest.approx(copysets.p_loss(bookies, together, together, 1), rel=1e-5)


@pytest.mark.parametrize(("fence", "limbo"), [(False, False), (True, False), (False, True), (True, True)])
def test_limbo_ends_truncation_after_an_empty_restart_and_a_fence_alone_does_not(fence, limbo):
    """The smallest ledger: only with both mechanisms can no recovery close it without what its writer acknowledged."""
    sizes = {"bookies": 1, "clients": 2, "write_quorum": 1, "ack_quorum": 1, "entries": 1, "inflight": 1}
    given = sizes | {"fence_on_unclean_shutdown": fence, "limbo_on_unclean_shutdown": limbo, "max_empty_restarts": 1}
    rates = {"bookie_restarts_empty": 1e-3, "client_starts_recovery": 0.2, "client_closes_ledger_success": 0.01}
    found = solve(BOOKKEEPER, point_of(BOOKKEEPER, 0.0, rates | {"client_closes_ledger_fail": 0.01}, **given))
    p = found.invariants["NoDivergenceBetweenClientAndMetaData"]
    figures = {
        (False, False): 1.439335e-05,
        (True, False): 4.698917e-06,
        (False, True): 9.694430e-06,
        (True, True): 0.0,
    }
    assert p == pytest.approx(figures[fence, limbo], rel=1e-6)
