"""How long acknowledged entries have few copies: against closed forms, the model's own chain, and published figures."""

import pytest

from quorisk.analysis.cluster.answer import Effort, answer, placed_designs
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols.bookkeeper.few_copies import HEARS, STORES, few_copies


def values(write_quorum, ack_quorum, stores=250.0, hears=1e12, loss=0.0):
    return {
        "model.write_quorum": write_quorum,
        "model.ack_quorum": ack_quorum,
        STORES: stores,
        HEARS: hears,
        "faults.message_loss": loss,
    }


@pytest.mark.parametrize(("write_quorum", "ack_quorum"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 3)])
def test_times_are_those_of_the_requests_still_on_their_way(write_quorum, ack_quorum):
    """Confirmations that take no time: with k copies, write_quorum - k requests are on their way."""
    found = few_copies(values(write_quorum, ack_quorum))
    assert set(found) == set(range(ack_quorum, write_quorum))
    for copies, few in found.items():
        assert few.time == pytest.approx(0.004 / (write_quorum - copies))
        assert few.p_stays == 0.0


def test_confirmations_on_their_way_leave_time_for_other_copies():
    """Two bookies, one acknowledges: the other one has stored before the confirmation arrives with 1 / (1 + hears)."""
    [(copies, few)] = few_copies(values(2, 1, stores=1.0, hears=3.0)).items()
    assert copies == 1
    assert few.time == pytest.approx(3.0 / 4.0)


def test_requests_that_are_lost_leave_an_entry_with_fewer_copies_for_good():
    loss = 0.01
    found = few_copies(values(3, 2, loss=loss))
    keeps, acknowledged = 1.0 - loss, 0.0
    for lost in (0, 1):
        for confirmed in range(2, 4 - lost):
            ways = {(0, 2): 3, (0, 3): 1, (1, 2): 1}[lost, confirmed]
            weight = {0: keeps**3, 1: 3 * loss * keeps**2}[lost]
            acknowledged += weight * ways * keeps**confirmed * loss ** (3 - lost - confirmed)
    assert found[2].p_stays == pytest.approx(3 * loss * keeps**2 * keeps**2 / acknowledged)


def cluster(ack_quorum, **more):
    """The 20 bookies of docs/cluster.md, with a thousand entries a second."""
    given = {"nodes": 20, "entries_per_second": 1000, "retention": "1e6 s", "entries_per_ledger": 1000}
    given |= {"node_loss": "2 % / year", "detection_delay": "1 h", "node_bytes": "24 TB"}
    outage = {"scope": "cluster", "per_year": 1.0, "p_lost": 0.0075}
    given |= {"repair_bandwidth": "125 MB/s", "events": {"power_outage": outage}}
    sizes = {"bookies": 4, "clients": 1, "write_quorum": 4, "ack_quorum": ack_quorum, "entries": 1, "inflight": 1}
    rates = {STORES.partition(".")[2]: "1 / 4 ms", HEARS.partition(".")[2]: "1 / 1 us"}
    rates |= {"two_bookies_are_lost_together": "0 / s", "three_bookies_are_lost_together": "0 / s"}
    document = {"protocol": "bookkeeper", "profile": "pulsar_cloud", "model": sizes, "rates": rates}
    return build_experiment({**document, "faults": {"message_loss": 0.0}, "cluster": given | more}, "x.toml")


@pytest.mark.parametrize(("ack_quorum", "p"), [(1, 0.009961), (2, 0.0001269), (3, 1.571e-05)])
def test_entries_in_flight_decide_the_probability_of_any_loss(ack_quorum, p):
    """Figures of an independent solver, of 4 ms for a copy."""
    [placed] = placed_designs(cluster(ack_quorum))
    assert answer(placed, Effort()).losses.p_any.value == pytest.approx(p, rel=0.02)


def test_a_cluster_that_does_not_say_how_many_entries_are_in_flight_is_refused():
    document = dict(cluster(2).document)
    given = {key: value for key, value in document["cluster"].items() if key not in ("entries_per_second", "retention")}
    with pytest.raises(ConfigError, match="entries are acknowledged with fewer than 4 copies, and those that"):
        placed_designs(build_experiment({**document, "cluster": given | {"ledgers": 1e6}}, "x.toml"))
