"""What Kafka loses, exactly: against a chain over the literal interpreter, which shares nothing with the program, and
against figures that others computed from Kafka's documentation."""

from typing import Any

import pytest

from quorisk.analysis.exact import answers
from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.protocols.kraft import MODEL
from quorisk.kernels.states import absorption, chain
from tests.analysis.exact import chains
from tests.references.kraft.chain import p_loss
from tests.support import point_of, values_of

EACH_2_MIN = "1 / 2 min"


def upgrade(min_isr: int = 1, faults: dict[str, Any] | None = None, **variant: Any) -> Any:
    """Two replicas: a broker loses its log while brokers crash and restart, all within the 10 min that are watched."""
    rates = dict.fromkeys(("write_record_to_leader", "data_loss_shutdown", "no_data_loss_unclean_shutdown"), EACH_2_MIN)
    document = {
        "protocol": "kraft",
        "profile": "kafka_kraft",
        "model": {"brokers": 2, "replication_factor": 2, "min_isr": min_isr, "values": 1},
        "variant": variant,
        "faults": faults or {"max_lossy_shutdowns": 1, "max_clean_shutdowns": 1},
        "rates": rates | {"no_data_loss_shutdown": "0 / s", "cluster_loses_power": EACH_2_MIN},
        "run": {"lifetime": "10 min"},
    }
    return build_experiment(document, "upgrade.toml").points[0].point


def data_loss(point: Any) -> float:
    found = chain.build_chain(MODEL, point, chains.MEMORY)
    return answers.solve_chain(found, absorption.components(found), MODEL, (), (), data_loss_alone=True).data_loss


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("min_isr", "restarts", "variant", "p"),
    [
        (1, 1, {"version": "v3_5"}, 0.0519),
        (1, 1, {"last_known_leader": False}, 0.0256),
        (1, 1, {}, 0.0519),
        (1, 2, {}, 0.0625),
        (2, 1, {}, 0.0250),
        (2, 2, {}, 0.0320),
        (2, 1, {"last_known_leader": False}, 0.0),
    ],
)
def test_a_lost_log_and_crashes_lose_what_independent_chains_said(min_isr, restarts, variant, p):
    faults = {"max_lossy_shutdowns": 1, "max_clean_shutdowns": restarts}
    assert data_loss(upgrade(min_isr, faults, **variant)) == pytest.approx(p, abs=6e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "faults"),
    [
        ({}, {"max_outages": 1, "p_lost_in_outage": 0.25}),
        ({}, {"max_lossy_shutdowns": 1, "max_clean_shutdowns": 1}),
        ({"acks": "1"}, {"max_lossy_shutdowns": 1}),
        ({"version": "v3_5"}, {"max_lossy_shutdowns": 1, "max_clean_shutdowns": 1}),
        ({"version": "v3_5"}, {"max_outages": 1, "p_lost_in_outage": 0.25}),
    ],
)
def test_the_chain_of_the_literal_interpreter_says_the_same(variant, faults):
    point = upgrade(faults=faults, **variant)
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "init_isr": 2, "values": 1}
    bounds = {"max_lossy_shutdowns": 0, "max_clean_shutdowns": 0} | faults
    bounds.pop("p_lost_in_outage", None)
    values = values_of(MODEL, **sizes, **variant, **bounds)
    said = p_loss(values, point.rates, 600.0, cluster_loses_power=faults.get("p_lost_in_outage", 0.0))
    assert said > 1e-7
    assert data_loss(point) == pytest.approx(said, rel=1e-9)


@pytest.mark.parametrize("faults", [{"max_outages": 1}, {"zones": 1, "max_zone_outages": 1}], ids=str)
def test_before_kraft_an_outage_takes_what_a_replica_has_committed_and_not_flushed(faults):
    """One replica, one record: elected, it leads, writes and commits, and the power fails before it flushes."""
    elect, lead, write, commit, flush, power = 3.0, 7.0, 11.0, 5.0, 2.0, 1.3
    rates = {"controller_elect_leader": elect, "become_leader": lead, "leader_write": write, "replica_flushes": flush}
    rates |= {"fenced_leader_inc_high_watermark": commit, "controller_shrink_isr": 0.0}
    rates |= dict.fromkeys(("cluster_loses_power", "zone_loses_power"), power)
    sizes = {"replicas": 1, "log_size": 1, "max_records": 1, "max_leader_epoch": 2}
    point = point_of(chains.KAFKA, rates=rates, flush_every_message=False, **sizes, **faults)
    up = elect / (elect + power) * lead / (lead + power) * write / (write + power)
    expected = up * commit / (commit + flush + power) * power / (power + flush)
    assert chains.solved(chains.KAFKA, point)[2].data_loss == pytest.approx(expected, rel=1e-11)


def test_an_outage_takes_a_record_until_the_broker_that_leads_next_has_flushed_it():
    """What clusters take for the mean time that an outage may take a record: 30 s, whatever the replicas."""
    write, power, flush = 1 / 120, 1 / 120, 1 / 30
    point = upgrade(faults={"max_outages": 1}, flush_every_message=False)._replace(lifetime=1e9)
    assert data_loss(point) == pytest.approx(write / (write + power) * power / (power + flush), rel=2e-3)
