"""Raft with fsync and faults against TLC's numbers and an independent, literal interpreter of its specification."""

import json
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import quorisk
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import minimise
from quorisk.kernels import paths
from quorisk.kernels.engines import numba_engine, points
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.rerun import rerun
from quorisk.kernels.model import OUTCOMES
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.raft import MODEL, describe, promises
from quorisk.kernels.protocols.raft.bags import message
from quorisk.kernels.protocols.raft.election import grants, panics
from quorisk.kernels.protocols.raft.faults import cut
from quorisk.kernels.protocols.raft.layout import VoteRequest
from quorisk.kernels.protocols.raft.margin import MARGIN
from quorisk.kernels.protocols.raft.story import tell
from quorisk.kernels.states.search import explore
from tests.references import raft as reference
from tests.references import raft_properties as properties
from tests.references.searching import search
from tests.support import ROOT, instances, params_of, point_of, random_walks, values_of

MEMORY = 3 << 30
DATA = ROOT / "tests" / "data"
ROWS = [row for path in sorted(DATA.glob("tlc_raft*.json")) for row in json.loads(path.read_text())]
SHALLOW = [row for row in ROWS if "max_depth" in row]
"""Rows of which TLC has seen the first states only; test_oracle.py has the others."""
FAULTS = {"max_restarts": 1, "max_crashes": 1, "max_disk_losses": 1, "max_outages": 1}
NO_FSYNC = {"leader_fsync_before_include_in_quorum": False, "follower_fsync_before_reply": False}
WALKS: list[dict[str, Any]] = [
    {"servers": 3, "values": 2, "max_elections": 4, **FAULTS},
    {"servers": 3, "values": 4, "max_elections": 6, **NO_FSYNC, "max_restarts": 3},
    {"servers": 2, "values": 2, "max_elections": 3, "resend": False, "heartbeats": True, **FAULTS},
    {"servers": 3, "values": 2, "max_elections": 4, "rejoin_as_new": False, **FAULTS, "max_disk_losses": 2},
    {"servers": 2, "values": 3, "max_elections": 4, "leader_fsync_before_append_entries": True, "max_crashes": 2},
    {"servers": 5, "values": 2, "max_elections": 3, **NO_FSYNC, **FAULTS},
    {"servers": 6, "values": 1, "max_elections": 6, "max_disk_losses": 2, "heartbeats": True},
    {"servers": 1, "values": 2, "max_elections": 3, **NO_FSYNC, **FAULTS},
]
RARELY = ("restart", "crash", "disk_is_lost", "cluster_loses_power", "timeout", "false_timeout")


def parameters_of(row):
    return {"lossy_network": False, "panic_on_lost_log": False, **row["model"], **row["variant"], **row["faults"]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", SHALLOW, ids=lambda row: row["name"])
def test_search_finds_the_first_states_that_tlc_finds(row):
    found = explore(MODEL, params_of(MODEL, **parameters_of(row)), MEMORY, max_depth=row["max_depth"])
    assert (found.distinct_states, found.depth) == (row["distinct_states"], row["depth"])
    for name, count in row["breaking_states"].items():
        assert found.breaking_states[name] == count


@pytest.mark.parametrize("row", [row for row in ROWS if row["distinct_states"] < 1000], ids=lambda row: row["name"])
def test_the_reference_finds_what_tlc_finds(row):
    values = parameters_of(row)
    found = search(reference.initial(values), lambda state: reference.successors(state, values))
    assert (len(found.states), found.depth) == (row["distinct_states"], row["depth"])
    for name, count in row["breaking_states"].items():
        assert sum(not properties.INVARIANTS[name](state) for state in found.states) == count


def check_against_the_reference(state, params, values):
    """Action by action the same successors, and the same invariants."""
    literal = describe.spec_state(state, params)
    found: dict[str, set[Any]] = {name: set() for name in reference.ACTIONS}
    for action, instance in instances(MODEL, state, params):
        subsets = range(1 << action.sends(state, params, instance).bit_count())
        after = [action.apply(state, params, instance, lost) for lost in subsets]
        name = "timeout" if action.name == "false_timeout" else action.name
        found[name] |= {describe.spec_state(each, params) for each in after}
    assert found == {name: set(action(literal, values)) for name, action in reference.ACTIONS.items()}
    for invariant in MODEL.invariants:
        assert bool(invariant.holds(state, params)) == properties.INVARIANTS[invariant.name](literal)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", WALKS, ids=lambda given: "_".join(str(value) for value in given.values()))
def test_in_lockstep_with_the_reference(given):
    values = values_of(MODEL, lossy_network=False, **given)
    params = MODEL.make_params(values)
    for state, *_ in islice(random_walks(MODEL, params, 60, seed=3, rarely=RARELY), 0, 500, 5):
        check_against_the_reference(state, params, values)


def followed(state, params, *steps):
    """Each state after actions by name: of the lowest instance, or of that given."""
    actions = {action.name: action for action in MODEL.actions}
    for name, *instance in (step if isinstance(step, tuple) else (step,) for step in steps):
        lowest, *_ = bits(actions[name].enabled(state, params)[0])
        state = actions[name].apply(state, params, instance[0] if instance else lowest, 0)
        yield state


ELECTED = ("timeout", "request_vote", "update_term", "handle_request_vote_request", "handle_request_vote_response")
WRITTEN = ("client_request", "append_entries", "accept_append_entries_request", "handle_append_entries_response")
ACKNOWLEDGED = (*ELECTED, "become_leader", *WRITTEN, "advance_fsync_index", "advance_commit_index")
"""n1 leads and acknowledges a value that n2 has; n3 has not heard of it."""


def test_a_wiped_follower_panics_until_its_leader_is_gone():
    given = {"rejoin_as_new": False, "panic_on_lost_log": True, "max_disk_losses": 1, "max_crashes": 1}
    values = values_of(MODEL, servers=3, values=1, max_elections=2, lossy_network=False, **given)
    params = MODEL.make_params(values)
    before = list(followed(MODEL.initial(params, 0), params, *ACKNOWLEDGED, "append_entries"))
    assert not any(panics(state, params) for state in before)
    wiped, crashed = followed(before[-1], params, ("disk_is_lost", 1), ("crash", 0))
    assert (panics(wiped, params), panics(crashed, params)) == (0b10, 0)
    for state in (before[-1], wiped, crashed):
        check_against_the_reference(state, params, values)
    told = [note.text for note in tell(before[-1], params, "disk_is_lost", 1, wiped).notes]
    assert told[1:] == ["loses A (term 2)", "panics: its leader tells it to commit what it has lost"]


def test_entries_that_are_alike_fare_unlike(written):
    """Two values that are written at once: why `continuous_writes` could not tell them as one (docs/concepts.md)."""
    file = written("raft.toml", ALIKE)
    one, two = (quorisk.exact(file, {"model.values": values}).data_loss.p for values in (1, 2))
    assert (one, two) == pytest.approx((0.0246523605278, 0.0695943110215), rel=1e-9)


ALIKE = """
protocol = "raft"
model = { servers = 2, values = 1 }
variant = { follower_fsync_before_reply = false, leader_fsync_before_include_in_quorum = false }
faults = { max_elections = 1, max_outages = 1 }
rates = { client_request = 1000, advance_fsync_index = 0.1, cluster_loses_power = 0.01, false_timeout = 0 }
run = { lifetime = 1000 }
"""


def test_with_two_leaders_of_a_term_votes_depend_on_how_many_entries_are_alike():
    """A wiped n3 votes twice in term 2. n1, with A and B, refuses n2, with C; with A alone it would not."""
    faults = {"rejoin_as_new": False, "max_disk_losses": 1, "max_crashes": 1}
    params = params_of(MODEL, servers=3, values=3, max_elections=3, **faults)
    elected = ("update_term", "handle_request_vote_request", "handle_request_vote_response", "become_leader")
    n1_writes = (("timeout", 0), ("request_vote", 0 << 3 | 2), *elected, ("client_request", 0), ("client_request", 1))
    n2_writes = (("false_timeout", 1), ("request_vote", 1 << 3 | 2), *elected, ("client_request", 1 << 3 | 2))
    n2_asks = (("crash", 1), ("false_timeout", 1), ("request_vote", 1 << 3 | 0), "update_term")
    steps = (*n1_writes, ("disk_is_lost", 2), *n2_writes, *n2_asks)
    *_, state = followed(MODEL.initial(params, 0), params, *steps)
    request = message(VoteRequest, state.messages.vote_requests[0])
    assert [describe.log_of(state, i) for i in range(2)] == [((2, 0), (2, 1)), ((2, 2),)]
    assert not grants(state, request)
    assert grants(cut(state, 0, 1), request)


def test_a_minimised_trace_has_no_message_that_changes_nothing():
    """n3 sends its log to n2 as well. Without that, its message to n1 is the first in the bag: a lower instance."""
    params = params_of(MODEL, servers=3, values=1, max_elections=1, max_outages=1, **NO_FSYNC)
    names = [action.name for action in MODEL.actions]
    given = (*((name, 0) for name in ELECTED[2:]), ("become_leader", 2), ("client_request", 16))
    to_both = (("append_entries", 17), ("append_entries", 16), ("accept_append_entries_request", 1))
    end = (("handle_append_entries_response", 0), ("advance_commit_index", 2), ("cluster_loses_power", 0))
    steps = (("timeout", 2), ("request_vote", 16), *given, *to_both, *end)
    path = paths.Path(0, tuple(paths.Step(names.index(name), instance, 0) for name, instance in steps))
    losing = [i for i, invariant in enumerate(MODEL.invariants) if invariant.data_loss]
    found = minimise.minimised(MODEL, params, path, losing)
    assert len(found.steps) == len(path.steps) - 1
    assert [step.instance for step in found.steps if names[step.action] == "append_entries"] == [16]


def test_a_report_says_that_what_is_lost_was_not_synced():
    params = params_of(MODEL, servers=3, values=1, max_elections=2, max_restarts=1, **NO_FSYNC)
    *_, before, after = followed(MODEL.initial(params, 0), params, *ACKNOWLEDGED, ("restart", 1))
    told = [note.text for note in tell(before, params, "restart", 1, after).notes]
    assert told == ["n2 loses power and starts again", "loses A (term 2), not synced yet"]


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (ACKNOWLEDGED, "acknowledges A"),
        ((*ACKNOWLEDGED[:-2], ACKNOWLEDGED[-1]), "acknowledges A, on no disk yet"),
    ],
)
def test_a_report_says_that_what_is_acknowledged_is_on_no_disk(steps, said):
    params = params_of(MODEL, servers=3, values=1, max_elections=2, **NO_FSYNC)
    *_, before, after = followed(MODEL.initial(params, 0), params, *steps)
    assert [note.text for note in tell(before, params, "advance_commit_index", 0, after).notes] == [said]


def test_a_timeout_is_false_where_a_healthy_leader_is_there():
    params = params_of(MODEL, servers=3, values=1, max_elections=4)
    actions = {action.name: action for action in MODEL.actions}
    both = 0
    for state, *_ in islice(random_walks(MODEL, params, 60, seed=5, rarely=RARELY), 400):
        (real,), (false,) = (actions[name].enabled(state, params) for name in ("timeout", "false_timeout"))
        assert real & false == 0
        s = describe.spec_state(state, params)
        for i in bits(false):
            assert any(s.state[k] == "Leader" and s.currentTerm[k] >= s.currentTerm[i] for k in range(3) if k != i)
        both |= bool(real) | bool(false) << 1
    assert both == 3


@pytest.mark.parametrize(
    ("given", "losses", "runs"),
    [
        (NO_FSYNC | {"max_elections": 3, "max_restarts": 2}, 78, 20_000),
        ({"max_elections": 3, "max_restarts": 2}, 0, 4_000),
        ({"rejoin_as_new": False, "max_elections": 4, "max_disk_losses": 1}, 5, 20_000),
        ({"max_elections": 4, "max_disk_losses": 1}, 0, 4_000),
        ({"max_elections": 4, "max_disk_losses": 2, "message_loss": 0.05}, 6, 20_000),
    ],
    ids=("no fsync", "fsync", "disk under its old name", "disk of a new member", "two disks of new members"),
)
@pytest.mark.exhaustive
def test_an_independent_program_sees_as_many_losses(given, losses, runs):
    """It has one rate for all timeouts, as a file has that gives no `false_timeout`: see tests/data/tla/RAFT.md."""
    rates = {"timeout": 0.01, "restart": 0.005, "disk_is_lost": 0.005, "advance_fsync_index": 0.05}
    tables: dict[str, dict[str, Any]] = {"model": {"servers": 3, "values": 1}, "variant": {}, "faults": {}}
    for name, value in given.items():
        tables["variant" if isinstance(value, bool) else "faults"][name] = value
    run = {"runs": 5 * runs, "seed": 1, "lifetime": 1000, "method": "count"}
    experiment = config.build_experiment({"protocol": "raft", "rates": rates, **tables, "run": run}, "raft.toml")
    assert experiment.points[0].point.rates["false_timeout"] == 0.01
    seen = estimate(experiment, 1).data_loss.losses / 5
    assert abs(seen - losses) <= 3 * (seen / 5 + losses) ** 0.5


@pytest.mark.parametrize(("servers", "waiting"), [(1, 1), (2, 1), (3, 2), (5, 4)])
def test_an_election_begins_with_the_first_timeout(servers, waiting):
    """The first of servers that each wait for one to two seconds, 1.5 s on average, ends the wait."""
    waits = np.random.default_rng(1).uniform(1.0, 2.0, (40_000, waiting)).min(axis=1)
    assert promises.first_timeout(servers, 1 / 1.5) == pytest.approx(waits.mean(), rel=0.005)


def test_a_profile_knows_of_no_false_timeouts():
    document = {"protocol": "raft", "profile": "etcd", "model": {"servers": 3, "values": 1}}
    assert config.build_experiment(document, "raft.toml").points[0].point.rates["false_timeout"] == 0.0


def test_what_is_lost_is_told_and_can_be_sent_again():
    params = params_of(MODEL, servers=2, values=1)
    actions = {action.name: action for action in MODEL.actions}
    state = actions["timeout"].apply(MODEL.initial(params, 0), params, 0, 0)
    (mask,) = actions["request_vote"].enabled(state, params)
    (instance,) = bits(mask)
    assert actions["request_vote"].sends(state, params, instance) == 1
    after = actions["request_vote"].apply(state, params, instance, 1)
    assert after == state
    told = tell(state, params, "request_vote", instance, after)
    assert [message.receiver for message in told.lost] == ["n2"]
    assert not told.sent


@pytest.mark.parametrize(
    ("servers", "lost"),
    [
        (3, (91, 114, 146, 148, 171)),
        *(pytest.param(servers, None, marks=pytest.mark.exhaustive) for servers in (3, 4)),
    ],
)
def test_what_is_lost_needed_the_power_losses_that_it_met(servers, lost):
    """The steps to a loss, of which random walks seldom have one: each brings it nearer by no more than it is.
    Where no runs are given that are `lost`, they are looked for, which compiles the engine for Raft."""
    rates = {"restart": 0.05, "timeout": 0.05, "false_timeout": 0.05, "advance_fsync_index": 0.05}
    given = {"servers": servers, "values": 1, "max_elections": 4, "max_restarts": servers, "lossy_network": False}
    point = point_of(MODEL, 0.0, rates, max_steps=2_000, lifetime=500.0, **given, **NO_FSYNC)
    if lost is None:
        packed = points.pack(MODEL, [point])
        ends = numba_engine.record(MODEL, packed, Job(0, 0, 20_000), 1)[:, RECORD.index("outcome")]
        lost = np.flatnonzero(ends == OUTCOMES.index("lost"))[:10].tolist()
        assert len(lost) == 10
    params = params_of(MODEL, **given, **NO_FSYNC)
    for run in lost:
        ran = rerun(MODEL, point, 1, run)
        assert OUTCOMES[ran.record()[RECORD.index("outcome")]] == "lost"
        needed = [int(MARGIN.needed(state, params)) for state in paths.replay(MODEL, params, ran.path)]
        assert needed[-1] == 0
        for (before, after), step in zip(pairwise(needed), ran.path.steps, strict=True):
            action = MODEL.actions[step.action].name
            assert before - after <= (action == MARGIN.fault), (run, before, after, action)
