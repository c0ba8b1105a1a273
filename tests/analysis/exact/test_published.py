"""Mean times to data loss and probabilities of loss that others published, by `exact`."""

import math
from fractions import Fraction

import pytest

from quorisk.analysis.exact import answers
from quorisk.kernels.engines.points import Point
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.states import absorption, chain
from tests.external import at_rest, copysets
from tests.support import point_of

MEMORY = 1 << 28
DAY, YEAR = 86_400.0, 365.25 * 86_400
TIB, GIB_A_SECOND = 2.0**40, 2.0**27  # bytes


def solve(model, point):
    found = chain.build(model, point, MEMORY)
    return answers.solve(found, absorption.components(found), model, (), ())


def mean_time_to_loss(copies, repair, mttf, **mean_times):
    """In the unit of the mean times: to the failure of a copy, and to the repairs that at_rest.MODEL has."""
    # the unit of time is a copy's mean time to failure, in which rates have few digits
    rates = {"copy_fails": 1.0} | {name: round(mttf / mean, 6) for name, mean in mean_times.items()}
    point = Point({"copies": copies, "repair": repair}, rates, 0.0, 100_000, math.inf)
    return mttf * solve(at_rest.MODEL, point).expected_time


def test_three_copies_in_xoring_elephants():
    """Sathiamoorthy et al., XORing Elephants, VLDB 2013, Table 1: 30 PiB in stripes of three blocks of 256 MiB, each of
    which takes 1 Gib/s to make again, on nodes that live four years of 365 days."""
    block = 2.0**28
    stripe = mean_time_to_loss(3, "serial", 4 * 365 * DAY, copy_is_repaired=block / GIB_A_SECOND)
    stripes = 30 * 1024 * TIB / (3 * block)
    assert f"{stripe / stripes / DAY:.4e}" == "2.3079e+10"


def test_three_copies_in_azure():
    """Huang et al., Erasure Coding in Windows Azure Storage, USENIX ATC 2012: of 400 nodes of 16 TiB, 399 give a tenth
    of 1 Gib/s each to mend a single failure; with a single copy left only the 30 minutes to notice it count."""
    mend = 16 * TIB / (0.1 * 399 * GIB_A_SECOND)
    found = mean_time_to_loss(3, "urgent", 5 * YEAR, copy_is_repaired=mend, last_copy_is_replicated=30 * 60.0)
    assert f"{found / YEAR:.1e}" == "3.5e+09"


@pytest.mark.parametrize(("copies", "days"), [(2, "4.99e+05"), (3, "1.35e+09"), (4, "2.74e+12")])
def test_independent_failures_in_google_s_cells(copies, days):
    """Ford et al., Availability in Globally Distributed Storage Systems, OSDI 2010, Table 3."""
    found = mean_time_to_loss(copies, "serial", 1 / 8.1345e-3, copy_is_repaired=1 / 66.013)
    assert f"{found:.2e}" == days


@pytest.mark.parametrize(("repair", "at_once"), [("serial", [1, 1]), ("parallel", [1, 2])])
def test_repair_laws_equal_rational_arithmetic(repair, at_once):
    """Three copies: from three, two and one copies left, by fractions. 6 a^3 / r^2 is the law of serial repair."""
    r = 43_200 * 1460
    fall, rise = [Fraction(3), Fraction(2), Fraction(1)], [Fraction(0), *(Fraction(r * k) for k in at_once)]
    total, step = Fraction(0), Fraction(0)
    for down, up in zip(fall, rise, strict=True):  # mean time from k copies to k - 1
        step = (1 + up * step) / down
        total += step
    found = mean_time_to_loss(3, repair, 1460.0, copy_is_repaired=1460.0 / r)
    assert found == pytest.approx(1460.0 * float(total), rel=1e-12)
    assert found == pytest.approx(at_once[1] * 1460.0 * r**2 / 6, rel=1e-6)


@pytest.mark.parametrize("number", copysets.FIGURES)
def test_copysets(number):
    """Published to three digits at the most; the figure of 275,000 copysets stands for random replication."""
    p = copysets.p_loss(copysets.NODES, copysets.DEAD, copysets.COPIES, number)
    digits = copysets.FIGURES[number]
    assert f"{100 * p:.{len(digits.partition('.')[2])}f}" == digits


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
    given = sizes | {"fence_on_unclean_shutdown": fence, "limbo_on_unclean_shutdown": limbo, "max_amnesias": 1}
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
