"""KRaft as Apache Kafka runs it: where that is not the specifications', what counts as a loss, and power outages."""

from functools import cache, partial
from typing import Any

import pytest

from quorisk.analysis.experiment.config import ConfigError, build_experiment
from quorisk.analysis.traces import formats
from quorisk.kernels.protocols.kraft import MODEL
from quorisk.kernels.protocols.kraft.describe import spec_state
from quorisk.kernels.protocols.kraft.lifecycle import broker_flushes
from quorisk.kernels.protocols.kraft.outages import cluster_loses_power
from quorisk.kernels.protocols.kraft.story import tell
from quorisk.kernels.states.search import explore
from quorisk.kernels.telling import Note
from tests.support import params_of, states_of

MEMORY = 1 << 30
SIZES = ("brokers", "replication_factor", "min_isr", "init_isr", "values")
FAULTS = ("max_clean_shutdowns", "max_lossy_shutdowns", "max_fencings", "max_stalls")
ALONE, PAIR, PAIR_OF_MIN_2, TRIO = (1, 1, 1, 1, 1), (2, 2, 1, 2, 1), (2, 2, 2, 2, 1), (3, 3, 2, 3, 1)
ONE_FENCED_ONE_LOST, ONE_RESTARTED_ONE_LOST = (0, 1, 1, 0), (1, 1, 0, 0)
ACKED, COMPLETE, READ = "AckedRecordsSurvive", "LeaderCompletenessProperty", "ConsistentReadProperty"


@cache
def breaks(sizes, faults, **variant):
    """The invariants that some state breaks."""
    given: dict[str, Any] = dict(zip(SIZES + FAULTS, sizes + faults, strict=True))
    found = explore(MODEL, params_of(MODEL, **given, **variant), MEMORY)
    assert found.complete
    return {name for name, count in found.breaking_states.items() if count}


def test_without_eligible_leader_replicas_a_lost_broker_and_a_fenced_one_are_enough():
    assert ACKED in breaks(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, version="v3_5")
    assert not breaks(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST)
    assert not breaks(PAIR_OF_MIN_2, (0, 1, 0, 1))
    assert not breaks(TRIO, (0, 1, 0, 0))


@pytest.mark.exhaustive
def test_with_them_a_stall_beside_these_is_not_enough_either():
    assert not breaks(PAIR_OF_MIN_2, (0, 1, 1, 1))


def test_a_crash_that_loses_nothing_empties_the_elr_and_the_last_known_leader_leads_again_with_nothing():
    """Whoever comes back from a crash leaves the ELR. Once it is empty the last known leader is elected, lost log or
    not, while somebody else has the record."""
    assert {ACKED, COMPLETE} <= breaks(PAIR_OF_MIN_2, ONE_RESTARTED_ONE_LOST)
    assert not breaks(PAIR_OF_MIN_2, ONE_RESTARTED_ONE_LOST, last_known_leader=False)
    assert COMPLETE in breaks(ALONE, (0, 1, 0, 0))
    assert COMPLETE not in breaks(ALONE, (0, 1, 0, 0), last_known_leader=False)


def test_what_was_committed_but_refused_is_not_lost():
    """With too few in sync NOT_ENOUGH_REPLICAS_AFTER_APPEND is no acknowledgement, though consumers read the record."""
    broken = breaks(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, min_isr_to_commit=False)
    assert {COMPLETE, READ} <= broken
    assert ACKED not in broken
    assert ACKED in breaks(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, min_isr_to_commit=False, semantics="specification")


as_specified = partial(pytest.param, marks=pytest.mark.exhaustive)
"""A mechanism that the short tests have the specification break without, in test_kraft."""


@pytest.mark.parametrize(
    ("sizes", "faults", "variant"),
    [
        (PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"exclude_unclean_brokers": False}),
        as_specified(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"check_broker_epochs": False}),
        (PAIR, (0, 0, 1, 1), {"maximal_isr": False}),
        as_specified((2, 2, 1, 2, 2), (0, 0, 2, 0), {"truncate_on_divergence": False}),
        (PAIR, (0, 0, 1, 1), {"catch_up_to_high_watermark": False}),
        (PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"catch_up_to_epoch_start": False}),
        (PAIR, (0, 0, 1, 1), {"unclean_leader_election": True}),
        (PAIR_OF_MIN_2, (0, 0, 1, 0), {"acks": "1"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_was_acknowledged_is_lost_without_a_mechanism(sizes, faults, variant):
    assert ACKED in breaks(sizes, faults, **variant)
    default = {p.name: p.default_value for p in MODEL.parameters if p.name in variant}
    assert ACKED not in breaks(sizes, faults, **default)


def after(params, *steps):
    """The state after these actions, each given with an instance."""
    return states_of(MODEL, params, *steps)[-1]


def enabled(state, params, name):
    return next(a for a in MODEL.actions if a.name == name).enabled(state, params)[0]


FETCH = ("send_fetch_request", "receive_fetch_request", "receive_fetch_response")


@pytest.mark.parametrize(("semantics", "joins"), [("kafka", 6 * 0 + 1), ("specification", 6 * 0 + 0)])
def test_a_healthy_follower_joins_the_isr_although_another_one_may_not(semantics, joins):
    """Brokers 1 and 2, counted from 0, are out of the ISR and have both caught up, but broker 2 is fenced. The
    specification has the leader ask for both at once, which is refused for as long as broker 2 is fenced."""
    sizes = {"brokers": 3, "replication_factor": 3, "min_isr": 1, "init_isr": 1, "values": 1}
    params = params_of(MODEL, **sizes, max_lossy_shutdowns=0, semantics=semantics)
    caught_up = [(name, 6 * follower) for follower in (1, 2) for name in FETCH]
    state = after(params, *caught_up, ("unfence_broker", 1))
    assert enabled(state, params, "send_alter_partition_request") == 1 << joins
    state = after(
        params,
        *caught_up,
        ("unfence_broker", 1),
        ("send_alter_partition_request", joins),
        ("receive_alter_partition_request", 6 * 1),
        ("receive_alter_partition_response", 0),
    )
    isr = spec_state(state, params).partition_metadata[0].isr
    assert isr == ({1, 2} if semantics == "kafka" else {1})


def test_a_broker_that_goes_down_again_while_it_registers_asks_anew():
    params = params_of(MODEL, max_clean_shutdowns=1)
    down, start, again = ("data_loss_shutdown", 6 * 1 + 0), ("broker_start", 1), ("no_data_loss_shutdown", 6 * 1 + 0)
    state = after(params, down, start, again, start)
    assert enabled(state, params, "receive_broker_reg_request") == 1 << 6 * 1 + 1


def outage(params, name, lost):
    """The states after an outage at once, by the broker that is fenced last; `lost`: the brokers without their logs."""
    action, start = next(a for a in MODEL.actions if a.name == name), MODEL.initial(params, 0)
    ends = {}
    for last in range(params.brokers):
        if action.enabled(start, params)[0] >> last & 1:
            ends[last] = action.apply(start, params, last, lost & action.sends(start, params, last))
    return ends


@pytest.mark.parametrize("version", ["kip966", "v3_5"])
def test_the_broker_that_is_fenced_last_in_an_outage_is_the_one_that_may_lead_again(version):
    """As of 3.5 it is the last member of the ISR; with ELR it is the last known leader, and the ELR has the rest."""
    sizes = {"brokers": 3, "replication_factor": 3, "min_isr": 2, "init_isr": 3, "values": 1}
    params = params_of(MODEL, **sizes, max_lossy_shutdowns=0, max_outages=1, version=version)
    for last, state in outage(params, "cluster_loses_power", 0b101).items():
        con = spec_state(state, params).con_partition_metadata
        assert (con.leader, state.running, state.dirty) == (None, 0, 0b101)
        assert con.isr == (set() if version == "kip966" else {last + 1})
        assert con.last_known_elr == ({last + 1} if version == "kip966" else set())
        assert len(con.elr) == (2 if version == "kip966" else 0)


def test_a_zone_is_every_so_manieth_broker_and_the_others_go_on():
    sizes = {"brokers": 4, "replication_factor": 4, "min_isr": 1, "init_isr": 4, "values": 1, "zones": 2}
    params = params_of(MODEL, **sizes, max_lossy_shutdowns=0, max_zone_outages=1)
    ends = outage(params, "zone_loses_power", 0b0101)
    assert list(ends) == [0, 2]
    for state in ends.values():
        assert (state.running, state.dirty) == (0b1010, 0b0101)
        assert spec_state(state, params).con_partition_metadata.isr == {2, 4}


def test_an_outage_is_told_as_it_happened_first_the_power_then_what_it_took_then_the_controller():
    """Of what the brokers lose, what the disk had not yet is told from what goes with the disk."""
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "init_isr": 2, "values": 1}
    params = params_of(MODEL, **sizes, max_lossy_shutdowns=0, max_outages=1, flush_every_message=False)
    written = after(params, ("write_record_to_leader", 0))
    for before, loses in (
        (written, ", not yet on disk"),
        (broker_flushes.apply(written, params, 0, 0), " with its disk"),
    ):
        gone = cluster_loses_power.apply(before, params, 1, 0b01)
        told = tell(before, params, "cluster_loses_power", 1, gone)
        assert told.words == "power lost in the whole cluster: b1 and b2 go down"
        assert told.notes == (
            Note(("b1", "b2"), told.words),
            Note(("b1",), f"loses A{loses}"),
            Note(("b1",), "leaves A without an answer"),
            Note(("controller",), "fences b1 and b2"),
            Note(("controller",), "partition epoch 3: nobody leads, ISR {}, ELR {b2}, last known ELR {b2}"),
        )


def test_a_leader_that_has_not_heard_of_the_next_one_still_believes_it_leads():
    params = params_of(MODEL, max_lossy_shutdowns=0, max_fencings=1)
    start, fenced = MODEL.initial(params, 0), after(params, ("fence_broker", 1))
    told = tell(start, params, "fence_broker", 1, fenced)
    assert told.notes[-1] == Note(("b1",), "still believes it leads")
    assert formats.step_sentence(told).startswith("the controller fences b1; controller: partition epoch 2: b2 leads")


def told_of(params, *steps):
    """The last of these steps, in words."""
    (name, instance) = steps[-1]
    before, then = after(params, *steps[:-1]), after(params, *steps)
    return formats.step_sentence(tell(before, params, name, instance, then))


def test_who_leaves_the_elr_and_who_is_elected_though_neither_in_sync_nor_eligible_is_said():
    """b1 crashes, b2 loses its log; both come back, b1 first."""
    sizes = {"brokers": 2, "replication_factor": 2, "min_isr": 2, "init_isr": 2, "values": 1}
    faults = {"max_lossy_shutdowns": 1, "max_clean_shutdowns": 1}
    down = ("no_data_loss_unclean_shutdown", 6 * 0 + 1), ("data_loss_shutdown", 6 * 1 + 0)
    up = ("broker_start", 0), ("broker_start", 1), ("receive_broker_reg_request", 6 * 0 + 0)
    second = ("receive_broker_reg_request", 6 * 1 + 1)
    params = params_of(MODEL, **sizes, **faults)
    assert told_of(params, *down, *up) == (
        "the controller registers b1; controller: unfences b1; b1 leaves the ELR after an unclean shutdown; "
        "partition epoch 4: nobody leads, ISR {}, ELR {b2}, last known ELR {b2}"
    )
    assert told_of(params, *down, *up, second) == (
        "the controller registers b2; controller: unfences b2; b2 leaves the ELR after an unclean shutdown; "
        "elects b2 as last known leader; partition epoch 5: b2 leads, ISR {b2}"
    )
    unclean = params_of(MODEL, **sizes, **faults, last_known_leader=False, unclean_leader_election=True)
    assert told_of(unclean, *down, *up).split("; ")[-2:] == [
        "elects b1 uncleanly, as nobody else can lead",
        "partition epoch 4: b1 leads, ISR {b1}",
    ]
    clean = ("no_data_loss_shutdown", 6 * 0 + 1)
    assert "elects" not in told_of(params, clean) + told_of(params, clean, ("broker_start", 0), up[2])


def test_outages_that_there_is_no_room_for_are_refused():
    file: dict[str, Any] = {"protocol": "kraft", "model": dict(zip(SIZES, TRIO, strict=True))}
    assert build_experiment(file | {"faults": {"max_outages": 2, "p_lost_in_outage": 0.1}}, "fits.toml")
    with pytest.raises(
        ConfigError, match=r"faults\.max_lossy_shutdowns = 0: fewer shutdowns in all: there is room for 8"
    ):
        build_experiment(file | {"faults": {"max_outages": 3}}, "many.toml")
    with pytest.raises(ConfigError, match=r"faults\.max_zone_outages = 1: 0 without zones"):
        build_experiment(file | {"faults": {"max_zone_outages": 1}}, "zones.toml")
