"""KRaft against an independent, literal interpreter of its specifications and of what Kafka does; under the
specifications' semantics, what KIP-966 mends and what it does not, and what each mechanism is worth. (Kafka's
semantics: test_kraft_as_kafka. TLC's numbers: test_oracle.)"""

import itertools
import json
import random
from collections import Counter
from functools import cache, partial
from typing import Any

import pytest

from quorisk.analysis.experiment.config import ConfigError, build_experiment
from quorisk.kernels import paths
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import COMPLETED, STUCK, leaves
from quorisk.kernels.protocols.kraft import MODEL, controller
from quorisk.kernels.protocols.kraft.describe import spec_state
from quorisk.kernels.protocols.kraft.params import CONDITIONS, most_leader_epochs, most_records
from quorisk.kernels.states.search import explore
from tests.analysis.exact import chains
from tests.references import kraft as reference
from tests.references.kraft import controller as reference_controller
from tests.references.searching import search
from tests.references.tlc_rows import TLC
from tests.support import ROOT, params_of, point_of, states_of, values_of

DATA = ROOT / "tests" / "data"
ROWS = [row for name in ("kraft", "operations") for row in json.loads((DATA / f"tlc_{name}.json").read_text())]
MEMORY = 1 << 30
SIZES = ("brokers", "replication_factor", "min_isr", "init_isr", "values")
FAULTS = ("max_clean_shutdowns", "max_lossy_shutdowns", "max_fencings", "max_isr_shrinks", "max_reassignments")
OPERATIONS = ("max_stalls", "max_rolls", "max_isolations")
OF_OPERATIONS = {action.name for action in MODEL.actions if set(OPERATIONS) & set(action.bounds)}
LOSSES = ("LeaderCompletenessProperty", "NoCommittedRecordLostGlobally", "ConsistentReadProperty")
"""Each of them also breaks AckedRecordsSurvive, under the specifications' semantics."""


def values_of_row(row):
    tlc = TLC["kraft"]
    constants: dict[str, Any] = {
        str(tlc.constants[key]): value == "TRUE" if isinstance(value, str) else value
        for key, value in row["constants"].items()
    }
    return values_of(MODEL, **constants, **tlc.modules[row["module"]])


def sized(sizes, faults, semantics="specification", **variant):
    """Values of SIZES and FAULTS."""
    given: dict[str, Any] = dict(zip(SIZES + FAULTS, sizes + faults, strict=True))
    return values_of(MODEL, **given, semantics=semantics, **variant)


@cache
def searched(sizes, faults, **variant):
    found = explore(MODEL, MODEL.make_params(sized(sizes, faults, **variant)), MEMORY)
    assert found.complete
    return found


def breaks(sizes, faults, **variant):
    """The specification's invariants that some state breaks."""
    found = {name for name, count in searched(sizes, faults, **variant).breaking_states.items() if count}
    assert ("AckedRecordsSurvive" in found) == bool(found & set(LOSSES))
    assert ("AckedRecordsAreOnDisk" in found) == (LOSSES[1] in found)  # with every message flushed
    return found - {"AckedRecordsSurvive", "AckedRecordsAreOnDisk"}


@pytest.mark.parametrize("row", [row for row in ROWS if row["distinct_states"] < 2000], ids=lambda row: row["name"])
def test_the_interpreter_finds_what_tlc_finds(row):
    values = values_of_row(row)
    found = search(reference.initial(values), lambda state: reference.successors(state, values))
    assert (len(found.states), found.depth) == (row["distinct_states"], row["depth"])
    for name, count in row["breaking_states"].items():
        assert sum(not reference.PROPERTIES[name](state, values) for state in found.states) == count, name


def any_values(chance, brokers, semantics, variant, outages, operations):
    """Random sizes, faults up to what there is room for, and a random variant, or the defaults."""
    while True:
        given: dict[str, Any] = {"version": chance.choice(("kip966", "v3_5")), "brokers": chance.choice(brokers)}
        given["replication_factor"] = chance.randint(1, given["brokers"])
        given["init_isr"] = chance.randint(1, given["replication_factor"])
        given |= {"min_isr": chance.randint(1, given["init_isr"]), "values": chance.randint(1, 4)}
        given |= {name: chance.choice((0, 0, 1, 1, 2, 2, 3)) for name in FAULTS} | {"semantics": semantics}
        given["max_reassignments"] = chance.randint(0, 2)
        given["max_isr_shrinks"] *= semantics == "specification"
        if outages:
            given |= dict.fromkeys(FAULTS, 0) if chance.random() < 0.5 else {}  # or six brokers never go down at once
            given |= {"zones": chance.randint(1, given["brokers"]), "max_reassignments": 0}
            given |= {"max_outages": chance.randint(0, 1), "max_zone_outages": chance.randint(0, 1)}
        if variant:
            switches = [p.name for p in MODEL.parameters if p.table == "variant" and p.allowed is None]
            given |= {name: chance.random() < 0.6 for name in switches} | {"acks": chance.choice(("all", "1"))}
            given["max_tail_losses"] = chance.choice((0, 1, 2))
        if operations:
            given |= {name: chance.choice((0, 0, 0, 1)) for name in FAULTS[:3]}
            given |= {name: chance.choice((0, 1, 2)) for name in OPERATIONS}
        values = values_of(MODEL, **given)
        if all(condition.holds(values) for condition in CONDITIONS):
            return values


def successors(state, params):
    """Next states by action."""
    found: dict[str, list[Any]] = {}
    for place, instance in paths.instances(MODEL, state, params):
        action = MODEL.actions[place]
        for lost in paths.subsets(action.sends(state, params, instance)):
            found.setdefault(action.name, []).append(action.apply(state, params, instance, lost))
    return found


UP_TO_5, SIX, TWO_OR_THREE = (1, 2, 3, 4, 5), (6,), (2, 3)


@pytest.mark.parametrize(
    ("brokers", "semantics", "variant", "outages", "operations"),
    [
        (UP_TO_5, "kafka", False, False, False),
        (UP_TO_5, "kafka", True, False, False),
        (UP_TO_5, "kafka", True, True, False),
        (UP_TO_5, "specification", False, False, False),
        (UP_TO_5, "specification", True, True, False),
        (SIX, "kafka", True, False, False),
        (SIX, "kafka", True, True, False),
        (SIX, "specification", True, False, False),
        (TWO_OR_THREE, "kafka", True, False, True),
        (TWO_OR_THREE, "specification", True, False, True),
    ],
)
@pytest.mark.sampled(2)
def test_every_step_of_random_runs_is_the_interpreters(brokers, semantics, variant, outages, operations):
    """The same successors by every action, the same broken properties, and every field within its width."""
    chance = random.Random(7 + variant)
    taken: Counter[str] = Counter()
    widths = leaves(MODEL.widths)
    many = outages or operations or brokers == SIX
    for _ in range(24 if many else 12):  # half of those with outages have no other faults
        values = any_values(chance, brokers, semantics, variant, outages, operations)
        params = MODEL.make_params(values)
        state, spec = MODEL.initial(params, 0), reference.initial(values)
        for _ in range(60):
            assert spec_state(state, params) == spec
            assert all(0 <= leaf < 1 << width for leaf, width in zip(leaves(state), widths, strict=True))
            for invariant in MODEL.invariants:
                for at_once in (True, False):
                    given = params._replace(lost_without_leader=int(at_once)), values | {"lost_without_leader": at_once}
                    mine = bool(invariant.holds(state, given[0]))
                    assert mine == reference.PROPERTIES[invariant.name](spec, given[1])
            assert len(spec.con_metadata_log) <= most_records(values)
            assert spec.con_partition_metadata.leader_epoch <= most_leader_epochs(values)
            found = successors(state, params)
            for name, action in reference.ACTIONS.items():
                have = Counter(spec_state(after, params) for after in found.get(name, ()))
                assert have == Counter(action(spec, values)), name
            if not found:
                assert MODEL.outcome(state, params) in (COMPLETED, STUCK)
                break
            (name,) = chance.choices(list(found), [1 / (1 + taken[name]) for name in found])
            taken[name] += 1
            state = chance.choice(found[name])
            spec = spec_state(state, params)
    beyond = {"perform_partition_reassignment"} if outages else {"cluster_loses_power", "zone_loses_power"}
    beyond |= set() if variant else {"broker_flushes", "tail_loss_shutdown"}
    beyond |= {"data_loss_shutdown", "fence_broker"} if operations else OF_OPERATIONS
    beyond |= {"leader_shrink_isr"} if semantics == "kafka" else set()
    assert set(reference.ACTIONS) - beyond <= set(taken)


ALONE, PAIR, PAIR_OF_MIN_2, TRIO = (1, 1, 1, 1, 1), (2, 2, 1, 2, 1), (2, 2, 2, 2, 1), (3, 3, 2, 3, 1)
PAIR_OF_2_VALUES = (2, 2, 1, 2, 2)
ONE_FENCED_ONE_LOST = (0, 1, 1, 0, 0)


@pytest.mark.parametrize("version", ["kip966", "v3_5"])
def test_eligible_leader_replicas_are_the_interpreters_whatever_changes(version):
    """Replicas that leave the ISR because they are reassigned are no leaders to be; runs seldom come there."""
    values = values_of(MODEL, version=version, brokers=3, replication_factor=3, init_isr=3, min_isr=2)
    params, sets = MODEL.make_params(values), range(1 << 3)
    first, literal = MODEL.initial(params, 0), reference.initial(values)
    for isr, elr in itertools.product(sets, sets):
        state = first._replace(con=first.con._replace(isr=isr, elr=elr))
        metadata = literal.con_partition_metadata._replace(isr=members(isr), elr=members(elr))
        spec = literal._replace(con_partition_metadata=metadata)
        for replicas, proposed in itertools.product(sets, sets):
            found = controller.update_elr(state, params, proposed, replicas)
            wanted = reference_controller.update_elr(spec, values, members(proposed), members(replicas))
            assert members(found) == wanted


def members(mask):
    """The brokers of a set, as the interpreter numbers them."""
    return frozenset(broker + 1 for broker in range(3) if mask >> broker & 1)


def test_the_last_replica_standing_loses_what_was_committed_without_kip_966():
    lost = breaks(PAIR, ONE_FENCED_ONE_LOST, version="v3_5")
    assert {"LeaderCompletenessProperty", "ConsistentReadProperty"} <= lost
    spared = breaks(PAIR, ONE_FENCED_ONE_LOST, version="v3_5", avoid_last_replica_standing=True)
    assert "LeaderCompletenessProperty" not in spared
    assert "LeaderCompletenessProperty" not in breaks(PAIR, ONE_FENCED_ONE_LOST)


def test_with_kip_966_all_copies_go_only_with_as_many_lossy_shutdowns_as_min_isr():
    assert breaks(PAIR, ONE_FENCED_ONE_LOST) == {"NoCommittedRecordLostGlobally"}
    assert breaks(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST) == set()
    assert breaks(PAIR_OF_MIN_2, (0, 2, 0, 0, 0)) == {"NoCommittedRecordLostGlobally"}
    assert breaks(TRIO, (0, 1, 0, 0, 0)) == set()


in_kafka = partial(pytest.param, marks=pytest.mark.exhaustive)
"""A mechanism that the short tests have Kafka itself break without, in test_kraft_as_kafka."""


@pytest.mark.parametrize(
    ("sizes", "faults", "variant", "broken"),
    [
        in_kafka(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"exclude_unclean_brokers": False}, LOSSES),
        (PAIR, ONE_FENCED_ONE_LOST, {"check_broker_epochs": False}, LOSSES),
        (PAIR, (0, 0, 1, 1, 0), {"maximal_isr": False}, LOSSES),
        in_kafka(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"min_isr_to_commit": False}, (LOSSES[0], LOSSES[2])),
        (PAIR_OF_2_VALUES, (0, 0, 1, 0, 0), {"truncate_on_divergence": False}, ("LogMatchingProperty",)),
        (PAIR, (0, 0, 1, 1, 0), {"catch_up_to_high_watermark": False}, LOSSES),
        in_kafka(PAIR_OF_MIN_2, ONE_FENCED_ONE_LOST, {"catch_up_to_epoch_start": False}, LOSSES),
        (PAIR, (0, 0, 1, 1, 0), {"unclean_leader_election": True}, LOSSES),
        (PAIR, (0, 0, 1, 0, 0), {"acks": "1"}, (LOSSES[1],)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_mechanism_keeps_whole_breaks_without_it(sizes, faults, variant, broken):
    found = breaks(sizes, faults, **variant)
    assert set(broken) <= found
    default = {name: MODEL_DEFAULTS[name] for name in variant}
    assert not set(broken) - {LOSSES[1]} & breaks(sizes, faults, **default)


def test_a_lone_replica_acknowledges_its_first_record_with_the_next_one():
    """With one record every run gets stuck, or ends with nothing acknowledged, and nothing can be lost."""
    one_lost = (0, 1, 0, 0, 0)
    assert breaks(ALONE, one_lost) == set()
    assert breaks((*ALONE[:-1], 2), one_lost) == {LOSSES[1]}


@pytest.mark.parametrize("replicas", [2, 3, 6])
@pytest.mark.parametrize("version", ["kip966", "v3_5"])
def test_of_one_log_lost_right_after_a_lone_acknowledgement_the_leaders_is_one_of_all(replicas, version):
    """acks = "1": the record is in the leader's log alone, and each broker fails alike, whoever may lead next."""
    rates = dict.fromkeys((action.name for action in MODEL.actions), 0.0)
    sizes = {"brokers": replicas, "replication_factor": replicas, "min_isr": 1, "init_isr": 0, "values": 1}
    rates |= {"write_record_to_leader": 1e15, "data_loss_shutdown": 1.0}
    point = point_of(MODEL, rates=rates, **sizes, acks="1", version=version, max_lossy_shutdowns=1)
    *_, found = chains.solved(MODEL, point)
    assert found.data_loss == pytest.approx(1 / replicas, rel=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("brokers", "replicas"), [(5, 3), (3, 1), (3, 3), (6, 6)])
def test_a_broker_shuts_down_at_its_rate_whatever_the_replicas_and_whoever_leads(brokers, replicas):
    """Of n brokers each is the first within a lifetime with probability r / (n r + 1 / T)."""
    sizes = {"brokers": brokers, "replication_factor": replicas, "min_isr": 1, "init_isr": 0, "values": 1}
    rates = dict.fromkeys((action.name for action in MODEL.actions), 0.0) | {"data_loss_shutdown": 0.05}
    point = point_of(MODEL, rates=rates, **sizes, max_lossy_shutdowns=1, lifetime=10.0)
    found, _, solved = chains.solved(MODEL, point)
    assert found.total_rate[0] == pytest.approx(0.05 * brokers + 0.1, rel=1e-12)
    runs, p = 600, 0.05 / (0.05 * brokers + 0.1)
    paths_of = [rerun(MODEL, point, 1, run).path.steps for run in range(runs)]
    shut_down = Counter(step.instance // 6 for steps in paths_of for step in steps)
    assert all(abs(shut_down[b] - runs * p) < 4.5 * (runs * p * (1 - p)) ** 0.5 for b in range(brokers))
    assert solved.expected_steps == pytest.approx(brokers * p, rel=1e-12)


MODEL_DEFAULTS = {p.name: p.default_value for p in MODEL.parameters}


def test_more_faults_than_there_is_room_for_are_refused():
    file: dict[str, Any] = {"protocol": "kraft", "model": dict(zip(SIZES, TRIO, strict=True))}
    assert build_experiment(file | {"faults": {"max_lossy_shutdowns": 3, "max_fencings": 2}}, "fits.toml")
    with pytest.raises(ConfigError, match=r"faults\.max_fencings = 5: fewer faults in all"):
        build_experiment(file | {"faults": {"max_lossy_shutdowns": 3, "max_fencings": 5}}, "too_many.toml")
    with pytest.raises(ConfigError, match=r"model\.min_isr"):
        build_experiment(file | {"model": file["model"] | {"min_isr": 4}}, "min_isr.toml")


def test_a_broker_whose_first_registration_comes_too_late_waits_for_ever():
    """It starts, goes down again and starts anew; the controller takes the first request for the second start's."""
    faults = dict(zip(FAULTS, (1, 1, 0, 0, 0), strict=True))
    params = params_of(MODEL, semantics="specification", **faults)
    first, second = 6 * 0 + 1, 6 * 1 + 1
    down, start, again = ("data_loss_shutdown", 6 * 1 + 0), ("broker_start", 1), ("no_data_loss_shutdown", 6 * 1 + 0)
    *_, state = states_of(MODEL, params, down, start, again, start, ("receive_broker_reg_request", first))
    names = {action.name: action.enabled(state, params)[0] for action in MODEL.actions}
    assert names["receive_broker_reg_request"] == 0
    assert names["receive_broker_reg_response"] == 0
    assert state.register_requests == 1 << second
