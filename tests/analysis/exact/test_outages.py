"""Power outages: independent bookies, lost at one instant, and what each method and engine says of them."""

import pytest

from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import Experiment, build_experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.lanes.build import QUEUED
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.points import pack
from quorisk.kernels.protocols import registry
from quorisk.say.quantities import YEAR_S
from tests.kernels.engines import fuzz

MEMORY = 1 << 30
P_LOST = 0.0075
"""Between 0.5 % and 1 % of a cluster's nodes do not come back from a power outage (Cidon et al., Copysets, 2013)."""
OUTAGES = [(2, P_LOST), (3, 0.1)]
"""Copies, and the probability that one is lost: runs of them are compared here, and by JAX in `test_jax_engine`."""


def stored(copies: int, p_lost: float = P_LOST, ack_quorum: int = 0, **run: object) -> Experiment:
    """An entry that is stored and acknowledged, in a ledger that is closed, and then one outage."""
    return build_experiment(
        {
            "protocol": "bookkeeper",
            "model": {
                **{"bookies": copies, "write_quorum": copies, "ack_quorum": ack_quorum or copies},
                **{"clients": 1, "entries": 1, "inflight": 1, "ledger": "closed"},
            },
            "faults": {"max_outages": 1, "p_lost_in_outage": p_lost},
            "run": run,
        },
        "an outage",
    )


@pytest.mark.parametrize("copies", [2, 3, 4, 5])
def test_an_outage_loses_an_entry_if_none_of_its_bookies_comes_back(copies):
    """Not n! / product(1 + i r) times as often, as bookies would that are lost one after another within a time."""
    p = exact(stored(copies), MEMORY).data_loss.p
    assert p == pytest.approx(P_LOST**copies, rel=1e-12)
    head = estimate(stored(copies, method="head", runs=1000), 2, memory_bytes=MEMORY)
    assert head.method.startswith("exact")  # all of it, or the head with its tail bounded
    assert head.data_loss.low * (1 - 1e-12) <= p <= head.data_loss.high * (1 + 1e-12)
    assert head.data_loss.p == pytest.approx(P_LOST**copies, rel=1e-12)


@pytest.mark.parametrize("copies", [2, 3])
def test_an_outage_without_a_synced_journal_takes_the_last_moment_and_no_more(copies):
    """At 1,600 entries a second, each bookie flushing each second on average, an entry is nowhere on disk for a second
    by its copies. All bookies come back: 800 or 533 entries an outage, and none that was flushed."""
    per_s = 1600
    model = {"write_quorum": copies, "ack_quorum": copies, "bookies": copies, "clients": 1, "entries": 1, "inflight": 1}
    unsynced = {
        "protocol": "bookkeeper",
        "profile": "bookkeeper_without_journal_sync",
        "model": model,
        "variant": {"journal_sync": False},
        "faults": {"max_outages": 1, "p_lost_in_outage": 0.0, "message_loss": 0.0},
        "rates": {"cluster_loses_power": "1 / 10 years", "bookie_flushes": "1 / 1 s"},
        "run": {"lifetime": "7 days"},
    }
    experiment = build_experiment(unsynced, "an outage")
    p, outages_a_s = exact(experiment, MEMORY).data_loss.p, 1 / (10 * YEAR_S)
    assert p * per_s / outages_a_s == pytest.approx(per_s / copies, rel=0.003)  # the copies do not come at once
    [point] = experiment.points
    values = {"rates.bookie_flushes": 1.0, **dotted_values(experiment.model, point.point)}
    reckoned = registry.unflushed_for("bookkeeper")
    assert reckoned
    assert reckoned(values) == pytest.approx(1 / copies)  # with which clusters do
    older = unsynced | {"model": model | {"ledger": "closed"}}
    assert exact(build_experiment(older, "an outage"), MEMORY).data_loss.p == 0.0


def test_an_outage_leaves_fewer_copies_of_what_it_does_not_lose():
    """Exposure counts what a closed ledger has, whatever the ack quorum: one entry in 45 has lost a copy."""
    found = exact(stored(3, ack_quorum=2), MEMORY)
    exposed = {name: answer.p for name, answer in found.invariants.items()}
    assert found.data_loss.p == pytest.approx(P_LOST**3, rel=1e-12)
    assert exposed["AllCommittedEntriesReachWriteQuorum"] == pytest.approx(1 - (1 - P_LOST) ** 3, rel=1e-12)
    two_lost = 3 * P_LOST**2 * (1 - P_LOST) + P_LOST**3
    assert exposed["AllCommittedEntriesReachAckQuorum"] == pytest.approx(two_lost, rel=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("copies", "p_lost"), OUTAGES)
def test_runs_count_it_on_every_engine_bit_for_bit(copies, p_lost):
    experiment, runs = stored(copies, p_lost), 200_000
    model, point = experiment.model, experiment.points[0].point
    made = fuzz.make(model, point, 3, runs)
    losses, p = int((made.records[:, 0] == 2).sum()), p_lost**copies
    assert abs(losses - runs * p) < 4.5 * (runs * p) ** 0.5
    some = made._replace(job=made.job._replace(num_runs=20_000), records=made.records[:20_000])
    some = some._replace(tally=numba_engine.tally_of(model, pack(model, [point]), made.seed, some.job))
    for shape in (Shape(32, 16), QUEUED):
        assert fuzz.by_kernel(some, shape, True).repeated < 200


def test_the_bookies_of_a_rack_are_lost_with_a_probability_of_their_own():
    """Three copies on two racks: the two of the first are lost by its outage, the third by that of its own."""
    document = dict(stored(3).document) | {
        "faults": {"max_rack_outages": 2, "p_lost_in_rack_outage": 0.5, "p_lost_in_outage": 1.0},
        "rates": {"rack_loses_power": 1e-6, "client_closes_ledger_success": 1e-12},
    }
    document["model"] = document["model"] | {"racks": 2}
    # both outages at the first rack, or both at the second, take no more than its bookies
    assert exact(build_experiment(document, "racks"), MEMORY).data_loss.p == pytest.approx(0.5 * 0.5**3, rel=1e-5)


def test_an_outage_that_all_bookies_survive_loses_nothing_however_often_it_happens():
    """Its requests break, and time out as lost ones do."""
    experiment = stored(2, 0.0).changed(
        "faults.max_outages=7", "rates.cluster_loses_power=3", "faults.message_loss=0.1"
    )
    assert exact(experiment, MEMORY).data_loss == (0.0, True)
