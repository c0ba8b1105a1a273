"""Clusters of Kafka: outages take what brokers have not flushed, incidents of their own; and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from quorisk.analysis.cluster import interpolated
from quorisk.analysis.cluster.answer import answer, effort_of, placed_designs
from quorisk.analysis.cluster.unflushed import UNFLUSHED, Tails
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.cluster.sizes import IN_ENTRIES, IN_LEDGERS
from quorisk.kernels.errors import ConfigError

SIZES = {"kraft": {"brokers": 3, "replication_factor": 3, "min_isr": 2, "values": 1}}
SIZES["kafka"] = {"replicas": 3, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
FLUSHES = {"kraft": "broker_flushes", "kafka": "replica_flushes"}
CLUSTER = {
    "nodes": 9,
    "racks": 3,
    "placement": "distinct_racks",
    "entries_per_second": 0.01,
    "retention": "10000000 s",
    "entries_per_ledger": 1000,
    "events": {"power": {"per_year": {"value": 0.5, "error_factor": 3}, "p_lost": 0.25}},
    "repair_bandwidth": "100 MB/s",
    "node_bytes": "1 GB",
}


def power(per_year: Any, p_lost: float = 0.25, **more: str) -> dict[str, Any]:
    """A cluster's only event."""
    return {"events": {"power": {"per_year": per_year, "p_lost": p_lost, **more}}}


def experiment(protocol: str = "kraft", cluster: dict[str, Any] | None = None, **tables: Any) -> Any:
    document = {
        "protocol": protocol,
        "profile": {"kraft": "kafka_kraft", "kafka": "kafka_zookeeper"}[protocol],
        "model": SIZES[protocol],
        "variant": {"flush_every_message": False},
        "rates": {FLUSHES[protocol]: "1 / 30 s"},
        "cluster": {**CLUSTER, **(cluster or {})},
    }
    return build_experiment(document | tables, "x.toml")


def losses(given: Any) -> Any:
    return answer(placed_designs(given)[0], effort_of(given, 1)).losses


@pytest.mark.parametrize("protocol", ["kraft", "kafka"])
def test_outages_take_what_is_not_flushed_as_incidents_of_their_own(protocol):
    """0.01 records a second wait for 30 s: 0.3 of them in 100 partitions."""
    found = losses(experiment(protocol))
    disks = losses(experiment(protocol, variant={"flush_every_message": True}))
    rate = 0.5 * (1 - (1 + 0.3 / 100) ** -100)
    both = disks.by_cause["power"].incidents.value * rate / 0.5
    assert both > 0.01
    calm = losses(experiment(protocol, power(0.5 - rate), variant={"flush_every_message": True}))
    assert found.p_any.value == pytest.approx(1 - (1 - calm.p_any.value) * math.exp(-rate), rel=1e-9)
    assert disks.p_any.low < found.p_any.low <= found.p_any.value <= found.p_any.high < disks.p_any.high + rate
    assert found.incidents.value == pytest.approx(disks.incidents.value + rate - both, rel=1e-12)
    assert found.entries.value == pytest.approx(disks.entries.value + 0.5 * 0.3, rel=1e-4)
    assert found.by_cause[UNFLUSHED].incidents.value == pytest.approx(rate)
    assert sum(cause.share for cause in found.by_cause.values()) == pytest.approx(1, rel=1e-9)
    assert found.at_least[1.0].value == pytest.approx(found.incidents.value)
    assert found.at_least[1e3].value >= disks.at_least[1e3].value * (1 - 1e-12)
    assert found.in_entries["p50"].value < 5 < disks.in_entries["p50"].value


@pytest.mark.parametrize("method", ["auto", "count"])
@pytest.mark.parametrize("p_lost", [0.5, 1.0])
def test_an_outage_that_takes_copies_and_what_is_not_flushed_is_one_and_takes_no_more_than_there_is(p_lost, method):
    """Nothing else happens, and each outage finds something that is not flushed: P(any) is that of an outage."""
    busy = {"entries_per_second": 1000, "retention": "1 day", "entries_per_ledger": 100_000, **power(0.5, p_lost)}
    found = losses(experiment(cluster=busy, run={"method": method, "runs": 20_000}))
    assert found.p_any.value == pytest.approx(-math.expm1(-0.5), rel=1e-9)
    assert found.p_any_in_ten_years.value == pytest.approx(-math.expm1(-5), rel=1e-9)
    assert found.incidents.value == pytest.approx(0.5, rel=0.02)
    assert found.in_ledgers["p50"].value <= found.in_ledgers["p99"].value <= 864
    assert found.in_entries["p99"].value <= 86_400_000
    assert found.entries.value <= 0.5 * 86_400_000 * (1.02 if method == "count" else 1 + 1e-9)


PLAIN: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 3, "clients": 1, "entries": 1, "inflight": 1},
    "variant": {"journal_sync": False},
    "faults": {"max_outages": 1, "p_lost_in_outage": 0.0},
    "rates": {
        **dict.fromkeys(("client_creates_ledger", "client_sends_add_entry_requests"), "1 / 1 us"),
        **dict.fromkeys(("bookie_sends_add_confirmed_response", "client_receives_add_confirmed_response"), "1 / 1 us"),
        "client_changes_ensemble": "1 / 100 year",
        "client_closes_ledger_success": "1 / 1 s",
        "bookie_flushes": "1 / 1 s",
        "cluster_loses_power": "1 / 100000 s",
    },
    "run": {"lifetime": "100 days"},
}


@pytest.mark.parametrize("loss", [0.0, 0.2, 0.5])
@pytest.mark.parametrize(("write_quorum", "ack_quorum"), [(2, 1), (3, 1), (3, 2), (3, 3)])
def test_of_bookkeeper_an_entry_waits_for_as_many_flushes_as_requests_arrived(write_quorum, ack_quorum, loss):
    """The power fails once in 100,000 s: by then what was acknowledged is flushed, but for that of the last moment."""
    model = {**PLAIN["model"], "write_quorum": write_quorum, "ack_quorum": ack_quorum}
    cluster = {**CLUSTER, "entries_per_second": 1.0, "retention": "1000000 s", **power(0.5, 0.0)}
    document = {**PLAIN, "model": model, "faults": {**PLAIN["faults"], "message_loss": loss}}
    found = exact(build_experiment(document, "x.toml"), 1 << 28, data_loss_alone=True)
    copies = np.arange(write_quorum + 1)
    is_acknowledged = binom.pmf(copies, write_quorum, 1 - loss) @ binom.sf(ack_quorum - 1, copies, 1 - loss)
    [placed] = placed_designs(build_experiment({**document, "cluster": cluster}, "x.toml"))
    assert placed.unflushed == pytest.approx(found.data_loss.p * 1e5 / is_acknowledged, rel=1e-3)
    if loss == 0.0:
        assert placed.unflushed == pytest.approx(1 / write_quorum, rel=1e-12)


def test_what_an_outage_finds_is_what_ledgers_flushed_at_random_have():
    tails, rng = Tails(1.0, 6.0, 8.0), np.random.default_rng(1)
    waits = rng.exponential(size=(200_000, 8))
    unflushed = rng.poisson(waits * 6.0 / 8.0)
    total = unflushed.sum(axis=1)
    assert tails.p_none == pytest.approx((total == 0).mean(), rel=0.05)
    sizes = tails.sizes()
    for what, seen in ((IN_ENTRIES, total), (IN_LEDGERS, (unflushed > 0).sum(axis=1))):
        some = seen[seen > 0]
        assert sizes.weight[what].sum() == pytest.approx(1)
        for size in (1, 3, 5, 7):
            there = sizes.weight[what][(sizes.largest[what] >= size)].sum()
            assert there == pytest.approx((some >= size).mean(), abs=0.005)


def test_what_is_known_of_outages_reaches_what_they_take_of_it():
    given = experiment(cluster=power({"value": 0.5, "error_factor": 3}, 0.0))
    found = interpolated.losses_on_clusters(given, placed_designs(given), 64)
    assert found is not None
    [design] = found.designs
    assert design is not None
    assert design.powers["cluster.events.power.per_year"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"variant": {"acks": "1"}}, r'variant\.acks = "1"'),
        ({"cluster": {**power(0.1, 0.0, scope="rack"), "placement": "random"}}, "two_racks"),
        ({"rates": {"broker_flushes": "0 / s"}}, "more than is stored"),
        ({"scenarios": {"power": {"per_year": 1, "max_outages": 1}}, "cluster": power(0.0)}, "scenarios.power: "),
    ],
    ids=str,
)
def test_what_cannot_be_told_is_refused_in_a_line(changes, said):
    with pytest.raises(ConfigError, match=said) as refused:
        placed_designs(experiment(**changes))
    assert "\n" not in str(refused.value)


def test_without_a_rate_of_writes_nobody_knows_what_is_not_flushed():
    cluster = {**CLUSTER, "ledgers": 100}
    del cluster["entries_per_second"], cluster["retention"]
    document = {"protocol": "kraft", "profile": "kafka_kraft", "model": SIZES["kraft"], "cluster": cluster}
    with pytest.raises(ConfigError, match=r"cluster\.entries_per_second and cluster\.retention"):
        placed_designs(build_experiment({**document, "variant": {"flush_every_message": False}}, "x.toml"))
    assert placed_designs(build_experiment(document, "x.toml"))[0].unflushed == 0.0
    quiet = {**document, "cluster": {**cluster, **power(0.0)}, "variant": {"flush_every_message": False}}
    assert placed_designs(build_experiment(quiet, "x.toml"))[0].unflushed == 0.0


def test_what_leaders_that_change_lose_are_incidents_beside_the_cluster():
    scenarios = {
        "unclean": {"per_year": 10, "unclean_leader_election": True},
        "power": {"per_year": 1, "max_outages": 1},
        "both": {"per_year": 1, "max_outages": 2, "incident": True},
    }
    found = experiment(scenarios=scenarios).scenarios
    assert {name: each.incident for name, each in found.items()} == {"unclean": True, "power": False, "both": True}
