"""What designs promise, and which of them have a mechanism off."""

import pandas as pd
import pytest

from quorisk.analysis.decision.designs import Design
from quorisk.analysis.decision.latency import BUILT_IN, write_latency
from quorisk.analysis.decision.promises import changed, with_promises
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.experiment.config import Experiment, build_experiment, load
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.promises import Promise
from quorisk.kernels.states.search import explore
from tests.analysis.experiment import files
from tests.support import point_of, values_of

RACKS = {"model.racks": 2, "variant.rack_aware_placement": True}
BOOKKEEPER, KAFKA, KRAFT = map(registry.promises, ("bookkeeper", "kafka", "kraft"))
QUORUMS = {"model.write_quorum": 3, "model.ack_quorum": 2}


def frame_of(experiment: Experiment, times: int = 1) -> pd.DataFrame:
    """Promises of an experiment's designs: a row for each point, or several."""
    points = [
        {"point_id": each.point_id, "losses": 0, **dotted_values(experiment.model, each.point)}
        for each in experiment.points
    ]
    return with_promises(pd.DataFrame(points * times), experiment)


@pytest.mark.parametrize(
    ("given", "copies", "on_disk", "survives"),
    [
        ({}, 2, True, "1 bookie"),
        ({"model.ack_quorum": 1}, 1, True, "no bookie"),
        ({"model.ack_quorum": 3}, 3, True, "2 bookies"),
        ({"faults.max_empty_restarts": 1}, 2, False, "1 bookie"),
        ({"variant.limbo_on_unclean_shutdown": False}, 2, True, "1 bookie, but no empty restart"),
        ({"variant.fence_on_unclean_shutdown": False}, 2, True, "1 bookie, but no empty restart"),
        ({"variant.fence_on_unclean_shutdown": True}, 2, True, "1 bookie"),
        ({"variant.fence_on_unclean_shutdown": False, "model.ack_quorum": 1}, 1, True, "no bookie"),
        ({"variant.journal_sync": False}, 2, False, "1 bookie, but no unclean restart"),
        ({"variant.journal_write": False}, 2, False, "1 bookie"),
        (
            {"variant.journal_write": False, "variant.fence_on_unclean_shutdown": False},
            *(2, False, "1 bookie, but no empty or unclean restart"),
        ),
        ({"variant.journal_sync": False, "model.ack_quorum": 1}, 1, False, "no bookie"),
        (RACKS, 2, True, "1 bookie"),
        (RACKS | {"model.ack_quorum": 3}, 3, True, "2 bookies or 1 zone"),
        (RACKS | {"model.ack_quorum": 3, "variant.rack_aware_placement": False}, 3, True, "2 bookies"),
    ],
)
def test_an_acknowledged_entry_is_on_as_many_bookies_as_the_ack_quorum(given, copies, on_disk, survives):
    assert BOOKKEEPER
    found = BOOKKEEPER(QUORUMS | given)
    assert found[:3] == (copies, 3, on_disk)
    assert found.survives == survives
    assert (found.nodes, found.waits_for) == (copies - 1, copies)
    assert found.zones == ("zone" in survives)


def test_one_empty_restart_loses_data_where_nothing_guards_against_it():
    """Though losing that bookie does not: what is promised says so. (With fencing on unclean shutdown off, `explore`
    finds such losses, 15 steps deep: too many for a test.)"""
    model = {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 2, "entries": 1, "inflight": 1}

    def asked(limbo: bool, journal: tuple[bool, bool] = (True, True), **faults: int) -> tuple[float, str]:
        switches = dict(zip(("journal_write", "journal_sync"), journal, strict=True))
        tables = {"model": model, "variant": {"limbo_on_unclean_shutdown": limbo, **switches}, "faults": faults}
        run = {"runs": 100_000, "method": "count", "max_steps": 1000}
        experiment = build_experiment({"protocol": "bookkeeper", **tables, "run": run}, "limbo.toml")
        assert BOOKKEEPER
        said = BOOKKEEPER(dotted_values(experiment.model, experiment.points[0].point)).survives
        return estimate(experiment, 2).data_loss.p, said

    p, said = asked(False, max_empty_restarts=1)
    assert p > 1e-3
    assert said == "1 bookie, but no empty restart"
    assert asked(True, max_empty_restarts=1) == (0.0, "1 bookie")
    assert asked(False, max_lost=1) == (0.0, "1 bookie, but no empty restart")
    p, said = asked(True, (True, False), max_unclean_restarts=1)  # one that does not notice
    assert p > 1e-3
    assert said == "1 bookie, but no unclean restart"
    assert asked(True, (False, False), max_unclean_restarts=1) == (0.0, "1 bookie")


def test_kafka_promises_copies_in_page_cache_and_waits_for_all_in_sync():
    assert KAFKA
    assert KRAFT
    not_flushed = {"variant.flush_every_message": False}
    assert KAFKA({"model.replicas": 3}) == Promise(1, 3, True, 0, 0, 3, 3, "broker", last_leads=True)
    assert KAFKA({"model.replicas": 3} | not_flushed).on_disk is False
    values = {"model.min_isr": 2, "model.replication_factor": 3, "variant.acks": "all"}
    promised = Promise(2, 3, True, 1, 0, 3, 3, "broker", provided=", unless another crashed just before")
    promised = promised._replace(last_leads=True)
    assert KRAFT(values) == promised
    values |= not_flushed
    assert KRAFT(values) == promised._replace(on_disk=False)
    for other in ({"variant.version": "v3_5"}, {"variant.unclean_leader_election": True}):
        assert KRAFT(values | other).survives == "1 broker, while the others are in sync"
    assert registry.promises("compaction") is None


@pytest.mark.parametrize("acks", ["all", "1"])
def test_a_partition_loses_nothing_with_as_many_brokers_as_it_promises_to_survive(acks):
    """With acks=1 that is none: a record is acknowledged with one copy, whatever min_isr is."""
    model = registry.load("kraft")
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 2, "values": 1, "acks": acks}

    def is_safe(lost):
        values = values_of(model, **sizes, max_clean_shutdowns=0, max_lossy_shutdowns=lost, max_fencings=0)
        found = explore(model, model.make_params(values), 1 << 29)
        assert found.complete
        return not any(found.breaking_states[each.name] for each in model.invariants if each.data_loss)

    assert KRAFT
    promised = KRAFT(dotted_values(model, point_of(model, **sizes)))
    assert (promised.copies, promised.nodes) == {"all": (2, 1), "1": (1, 0)}[acks]
    assert is_safe(promised.nodes)
    assert not is_safe(promised.nodes + 1)


def test_with_acks_1_a_write_waits_for_its_leader_alone():
    sizes = {"brokers": 3, "replication_factor": 3, "min_isr": 2, "values": 1}
    tables = {"model": sizes, "latency": {"replica": "LNKD-SSD"}, "grid": {"variant.acks": ["all", "1"]}}
    experiment = build_experiment({"protocol": "kraft", **tables}, "acks.toml")
    all_of_three, its_own = (write_latency(BUILT_IN["LNKD-SSD"], copies=n, acks=n)[1].ms for n in (3, 1))
    assert frame_of(experiment)["write_p99_ms"].tolist() == [all_of_three, its_own]


def test_what_is_off_or_of_an_older_version_is_named():
    model = registry.load("kafka")
    today = dotted_values(model, point_of(model, 0.0))
    assert changed(model, today) == {}
    assert changed(model, today | {"variant.truncation": "kip101"}) == {"variant.truncation": "truncation kip101"}
    assert changed(model, today | {"variant.fenced_fetch": False}) == {"variant.fenced_fetch": "fenced fetch off"}
    assert changed(model, today | {"model.track_committed": False}) == {}  # history of the model, no mechanism
    model = registry.load("kraft")
    today = dotted_values(model, point_of(model, 0.0))
    assert changed(model, today) == {}
    unclean = {"variant.unclean_leader_election": True}  # off by default
    assert list(changed(model, today | unclean).values()) == ["unclean elections on"]


FILE = f"""{files.BOOKKEEPER}[variant]
recovery_lac_floor = false
[latency]
replica = "LNKD-SSD"
[targets]
write_p99 = "1 ms"
copies = 2
survives = "1 bookie"
[grid]
fence_recovery_reads = [true, false]
"""


def test_a_frame_has_them_for_each_of_its_points_and_what_designs_are_held_to(written):
    found = frame_of(load(written("x.toml", FILE)), 2)
    assert found["changed"].tolist() == ["", "fence recovery reads off"] * 2
    assert found["given"].tolist() == ["recovery lac floor off"] * 4  # which no design of the file can choose
    assert found["copies"].tolist() == [2] * 4
    assert set(found["write_p99_ms"]) == {write_latency(BUILT_IN["LNKD-SSD"], 3, 2)[1].ms}
    wanted = {name: set(found[name]) for name in found if name.startswith("wants_")}
    limits = {"wants_losses_per_year", "wants_p_any_loss_per_year", "wants_incident_entries_p99"}
    limits |= {"wants_write_minutes_lost_per_year"}
    least = {"wants_write_p99_ms": {1.0}, "wants_copies": {2}, "wants_nodes": {1}, "wants_zones": {0}}
    least |= {"wants_node": {"bookie"}, "wants_zone": {"zone"}}
    assert wanted == least | {name: set(found[name]) for name in limits}


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("copies = 2.5", "targets.copies = 2.5: an integer from 0"),
        ('survives = "2 datacentres"', 'targets.survives = "2 datacentres": such as "1 bookie"'),
        ('survives = "1 broker"', 'targets.survives = "1 broker": such as "1 bookie", "2 nodes", "1 zone"$'),
        ('survives = "bookie"', 'targets.survives = "bookie": such as "1 node", "2 nodes", "1 zone"$'),
        ("write_p99 = 20", "targets.write_p99 = 20: a time such as"),
        ('write_p99 = "20 parsecs"', 'targets.write_p99 = "20 parsecs": parsecs is not a unit of time'),
        ("copies = 100", "targets.copies = 100: an integer from 0 to 99"),
        (f"losses_per_year = 1{'0' * 400}", r"targets.losses_per_year = 10+\.\.\.: a number above 0, 1e\+15 at most"),
        ('"\\u0000" = 1', r'"targets.\\u0000": no such key'),
        ("losses_per_year = 0", "targets.losses_per_year = 0: a number above 0"),
        ("losses_per_year = 1", "targets.losses_per_year: needs .scenarios.NAME."),
        ("loss = 1", "targets.loss: no such key; .targets. has losses_per_year"),
    ],
)
def test_mistaken_targets_are_told(written, targets, said):
    path = written("x.toml", FILE.replace('write_p99 = "1 ms"\ncopies = 2\nsurvives = "1 bookie"', targets))
    with pytest.raises(ConfigError, match=said):
        load(path)


@pytest.mark.parametrize(
    ("given", "said"),
    [("2 acceptors", "2 acceptors"), ("1 node", "1 node"), ("2 racks", "2 racks"), ("2 zones", "2 zones")],
)
def test_what_is_to_be_survived_is_said_in_the_protocols_own_words(written, monkeypatch, given, said):
    path = written("x.toml", FILE.replace("1 bookie", given))
    own = registry.promises("bookkeeper")
    assert own
    monkeypatch.setattr(registry, "promises", lambda _: lambda values, own=own: own(values)._replace(node="acceptor"))
    row = frame_of(load(path)).iloc[0].to_dict()
    design = Design("", [row], row | {"nodes": 0})
    assert f"survival of the loss of {said}" in design.wanted()
    assert f"survives the loss of no {said[2:].removesuffix('s')}" in design.shortfalls()


CLUSTERED = {"nodes": 20, "ledgers": 100, "entries_per_ledger": 1000}


@pytest.mark.parametrize(
    ("cluster", "ack_quorum", "survives"),
    [
        ({"racks": 3, "placement": "two_racks"}, 3, "2 bookies or 1 rack"),
        ({"racks": 3, "placement": "two_racks"}, 2, "1 bookie"),  # both of them may be in one rack
        ({"racks": 3, "placement": "distinct_racks"}, 2, "1 bookie or 1 rack"),
        ({"racks": 3, "placement": "distinct_racks"}, 1, "no bookie"),
        ({"racks": 3}, 3, "2 bookies"),
        ({}, 3, "2 bookies"),
    ],
)
def test_on_a_cluster_its_racks_count(cluster, ack_quorum, survives):
    model = {"bookies": 4, "clients": 1, "write_quorum": 3, "ack_quorum": ack_quorum, "entries": 1, "inflight": 1}
    tables = {"cluster": CLUSTERED | cluster, "targets": {"survives": "1 rack"}}
    experiment = build_experiment({"protocol": "bookkeeper", "model": model, **tables}, "racks.toml")
    found = frame_of(experiment).iloc[0].to_dict()
    assert found["survives"] == survives
    short = Design("", [found], found).shortfalls()
    assert short == ([] if "rack" in survives else ["survives the loss of no rack"])


def test_a_design_survives_a_rack_if_it_does_on_each_of_its_clusters():
    model = {"bookies": 4, "clients": 1, "write_quorum": 3, "ack_quorum": 3, "entries": 1, "inflight": 1}
    tables = {"cluster": CLUSTERED | {"placement": "two_racks"}, "grid": {"cluster.racks": [2, 3]}}
    experiment = build_experiment({"protocol": "bookkeeper", "model": model, **tables}, "racks.toml")
    point = experiment.points[0]
    row = {"point_id": point.point_id, "losses": 0, **dotted_values(experiment.model, point.point)}
    assert with_promises(pd.DataFrame([row]), experiment)["zones"].tolist() == [1]
    mixed = experiment.changed('cluster.placement="two_racks"', 'grid.cluster.placement=["random", "two_racks"]')
    assert with_promises(pd.DataFrame([row]), mixed)["zones"].tolist() == [0]


def test_a_target_for_latency_takes_a_latency(written):
    path = written("x.toml", FILE.replace('[latency]\nreplica = "LNKD-SSD"', ""))
    with pytest.raises(ConfigError, match=r"targets.write_p99: needs \[latency\]"):
        load(path)
