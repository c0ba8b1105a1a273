"""Kafka's replication protocol against an independent, literal interpreter of its specification, and what each of its
variants and fences is worth. (TLC's numbers: test_oracle.)"""

from collections import defaultdict
from functools import cache, lru_cache
from typing import Any, NamedTuple

import pytest

from quorisk.analysis.experiment.config import load
from quorisk.kernels.model import COMPLETED, STUCK
from quorisk.kernels.protocols.kafka import MODEL, describe
from quorisk.kernels.protocols.kafka.layout import State
from quorisk.kernels.states.search import explore
from tests.references import kafka as reference
from tests.references import kafka_properties as properties
from tests.references.searching import search
from tests.support import ROOT, instances, params_of, random_walks, run, states_of, values_of

SIZES = ("replicas", "log_size", "max_records", "max_leader_epoch")
LARGEST = (6, 6, 6, 5)
TRUNCATIONS = ("kip320", "kip320_first_try", "kip279", "kip101", "high_watermark")
FENCES = [p.name for p in MODEL.parameters if p.doc.startswith("kip320:")]
RESTARTS = {"flush_every_message": False, "max_unclean_restarts": 1}
ZONE_OUTAGES = {"flush_every_message": False, "zones": 2, "max_zone_outages": 1}
OUTAGES = {"flush_every_message": False, "zones": 1, "max_outages": 1, "max_zone_outages": 1}
LOSING = [RESTARTS, ZONE_OUTAGES, OUTAGES]
"""What was not flushed."""
VARIANTS: list[dict[str, Any]] = [
    *({"truncation": name} for name in TRUNCATIONS),
    {"truncation": "kip101", "truncation_beyond_end": "no_op"},
    *({fence: False} for fence in FENCES),
    *LOSING,
]
CONTROLLER = ("controller_elect_leader", "controller_shrink_isr")
FLUSHES = ("replica_flushes", "replica_restarts_unclean", "zone_loses_power", "cluster_loses_power")
MEMORY = 2 << 30
spec_state = lru_cache(maxsize=1 << 16)(describe.spec_state)
"""Most states are met several times, as the next of several others."""


def named(sizes):
    return dict(zip(SIZES, sizes, strict=True))


def walks(values, number, seed=1):
    """Steps of random runs in which the controller leaves the replicas time; in half of them they flush late, and
    something is unflushed when one restarts or loses power."""
    for half, rarely in enumerate((CONTROLLER, (*CONTROLLER, *FLUSHES))):
        yield from random_walks(MODEL, MODEL.make_params(values), number // 2, seed + half, rarely)


def broken(state, params):
    return [invariant.name for invariant in MODEL.invariants if not invariant.holds(state, params)]


@cache
def searched(sizes, **variant):
    found = explore(MODEL, params_of(MODEL, **named(sizes), **variant), MEMORY)
    assert found.complete
    return found


class Compared(NamedTuple):
    """One configuration, as the model and as the reference have it."""

    params: Any
    values: dict[str, Any]
    next: dict[str, Any]
    """The reference's actions."""


def compared(sizes, variant):
    values = values_of(MODEL, **named(sizes), **variant)
    return Compared(MODEL.make_params(values), values, reference.actions(values))


def assert_agrees_with_reference(state, committed, of):
    """The same instances with the same successors, action by action; the same invariants. Returns successors."""
    params, values, actions = of
    literal = spec_state(state, params)
    found, after = defaultdict(list), []
    for action, instance in instances(MODEL, state, params):
        assert action.sends(state, params, instance) == 0
        after.append(action.apply(state, params, instance, 0))
        found[action.name].append(spec_state(after[-1], params))
    expected = {name: set(action(literal, values)) for name, action in actions.items()}
    assert {name: set(states) for name, states in found.items()} == {n: s for n, s in expected.items() if s}
    # each choice is one instance, and no two choices come to the same, unless nobody notices a restart
    silent = {"replica_restarts_unclean", "zone_loses_power"}
    assert all(len(states) == len(set(states)) for name, states in found.items() if name not in silent)
    expected_broken = {
        "WeakIsr": not properties.weak_isr(literal),
        "StrongIsr": not properties.strong_isr(literal),
        "LeaderInIsr": not properties.leader_in_isr(literal),
        "CommittedRecordsSurvive": not properties.committed_records_survive(literal, committed),
    }
    assert broken(state, params) == [name for name, breaks in expected_broken.items() if breaks]
    if not after:
        leaders = [r for r in range(params.replicas) if reference.is_true_leader(literal, r)]
        done = any(literal.replicaState[r].hw == len(literal.replicaLog[r]) for r in leaders)
        assert MODEL.outcome(state, params) == (COMPLETED if done else STUCK)
    return after


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("sizes", "variant"),
    [
        *(((2, 1, 2, 2), variant) for variant in VARIANTS if variant not in LOSING),
        *(((2, 1, 1, 2), variant) for variant in (RESTARTS, OUTAGES)),
        *((sizes, ZONE_OUTAGES) for sizes in ((3, 1, 1, 0), (2, 1, 2, 2))),
        *(((3, 1, 1, 1), {"truncation": name}) for name in ("kip320", "kip320_first_try", "kip101")),
    ],
    ids=str,
)
def test_every_state_of_a_small_configuration_equals_the_reference(sizes, variant):
    of = compared(sizes, variant)
    params, start = of.params, MODEL.initial(of.params, 0)
    assert spec_state(start, params) == reference.initial(of.values)
    seen: dict[State, frozenset[int]] = {start: frozenset()}
    left = [start]
    while left:
        state = left.pop()
        committed = seen[state]
        assert state.committed == sum(1 << record for record in committed)
        for after in assert_agrees_with_reference(state, committed, of):
            known = committed | properties.committed_now(spec_state(after, params))
            if after not in seen:
                seen[after] = known
                left.append(after)
            assert seen[after] == known
    # the spec's variables and the committed records make up the state: nothing counts twice
    assert len({(spec_state(state, params), state.committed) for state in seen}) == len(seen)
    assert len(seen) == searched(sizes, **variant).distinct_states


@pytest.mark.parametrize("sizes", [(3, 3, 4, 4), LARGEST], ids=str)
@pytest.mark.parametrize(
    "variant", [pytest.param(each, marks=[pytest.mark.short] * (each is RESTARTS)) for each in VARIANTS], ids=str
)
@pytest.mark.sampled(7)
def test_random_runs_of_large_configurations_equal_the_reference(variant, sizes):
    of = compared(sizes, variant)
    params, start = of.params, MODEL.initial(of.params, 0)
    taken: set[str] = set()
    committed: frozenset[int] = frozenset()
    for state, action, *_ in walks(of.values, 8, seed=sum(sizes)):
        if state == start:
            committed = frozenset()
        committed |= properties.committed_now(spec_state(state, params))
        assert_agrees_with_reference(state, committed, of)
        taken.add(action.name)
    assert taken >= of.next.keys() - {"follower_truncate"}


@pytest.mark.parametrize("fence", FENCES)
def test_fences_matter_for_kip320_alone(fence):
    for name in TRUNCATIONS:
        with_fence, without = (params_of(MODEL, truncation=name, **{fence: on}) for on in (True, False))
        assert (with_fence != without) == (name == "kip320")


WEAK, STRONG, SURVIVE = "WeakIsr", "StrongIsr", "CommittedRecordsSurvive"
FIRST_BREACHES: list[tuple[dict[str, Any], tuple[int, ...], dict[str, int]]] = [
    # by variant the smallest configurations in which each invariant breaks, and the depth at which it does
    ({"truncation": "high_watermark"}, (2, 1, 1, 1), {WEAK: 9, STRONG: 10}),
    ({"truncation": "high_watermark"}, (2, 1, 1, 2), {WEAK: 9, STRONG: 10, SURVIVE: 12}),
    ({"truncation": "kip101"}, (3, 1, 1, 1), {STRONG: 12}),
    ({"truncation": "kip101"}, (2, 2, 2, 2), {WEAK: 12, STRONG: 12}),
    ({"truncation": "kip101"}, (2, 2, 2, 3), {WEAK: 12, STRONG: 12, SURVIVE: 14}),
    ({"truncation": "kip101"}, (3, 1, 1, 2), {WEAK: 11, STRONG: 11, SURVIVE: 14}),
    ({"truncation": "kip279"}, (2, 3, 3, 3), {}),
    ({"truncation": "kip279"}, (3, 1, 1, 1), {STRONG: 12}),
    ({"truncation": "kip279"}, (3, 1, 1, 2), {WEAK: 11, STRONG: 11, SURVIVE: 14}),
    ({"truncation": "kip320_first_try"}, (3, 1, 1, 2), {WEAK: 12, STRONG: 13}),
    ({"truncation": "kip320_first_try"}, (3, 1, 1, 3), {WEAK: 12, STRONG: 13, SURVIVE: 15}),
    ({"truncation": "kip320"}, (2, 3, 3, 3), {}),
    ({"truncation": "kip320"}, (3, 2, 2, 2), {}),
    ({"truncation": "kip320"}, (3, 1, 1, 3), {}),
    ({"fenced_fetch": False}, (3, 2, 3, 2), {WEAK: 13, STRONG: 17}),
    ({"fenced_fetch": False}, (3, 1, 1, 2), {WEAK: 13}),
    ({"fenced_high_watermark": False}, (3, 1, 1, 3), {WEAK: 13, STRONG: 13, SURVIVE: 15}),
    ({"fenced_high_watermark": False}, (3, 1, 1, 2), {WEAK: 13, STRONG: 13}),
    ({"fenced_isr_shrink": False}, (3, 2, 2, 2), {}),
    ({"fenced_isr_expand": False}, (3, 1, 1, 1), {STRONG: 12}),
    ({"fenced_isr_expand": False}, (3, 1, 1, 2), {WEAK: 14, STRONG: 12, SURVIVE: 14}),
    ({"truncate_same_epoch_only": False}, (3, 1, 2, 2), {WEAK: 14, STRONG: 14}),
    ({"truncate_same_epoch_only": False}, (3, 1, 2, 3), {WEAK: 14, STRONG: 14, SURVIVE: 16}),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("variant", "sizes", "expected"), FIRST_BREACHES, ids=str)
def test_what_breaks_first(variant, sizes, expected):
    found = searched(sizes, **variant)
    assert {name: depth for name, depth in found.first_depth.items() if depth} == expected
    for i, smaller in enumerate([sizes[:i] + (sizes[i] - 1,) + sizes[i + 1 :] for i in range(4)]):
        if smaller[i] >= (0 if i == 3 else 1):  # nothing new can break in a smaller configuration
            assert {name for name, depth in searched(smaller, **variant).first_depth.items() if depth} <= set(expected)


def test_memory_of_committed_records_finds_losses_that_the_state_alone_forgets():
    """Truncation to the high watermark: a follower throws away a committed record, is elected, and meanwhile the leader
    that had exposed it follows somebody else: no replica shows any more that the record was committed."""
    with_memory, without = (
        searched((2, 2, 2, 2), truncation="high_watermark", track_committed=on) for on in (True, False)
    )
    assert with_memory.first_depth["CommittedRecordsSurvive"] == without.first_depth["CommittedRecordsSurvive"] == 12
    assert with_memory.first_broken["CommittedRecordsSurvive"] == 52  # in none of them StrongIsr is broken
    assert without.first_broken["CommittedRecordsSurvive"] == 0
    assert without.breaking_states["CommittedRecordsSurvive"] < with_memory.breaking_states["CommittedRecordsSurvive"]


def test_a_new_leader_exposes_what_it_has_below_its_high_watermark():
    """KIP-101: r1 keeps its record x, which r0 lacks, at an offset that r0 commits, and learns of r0's high watermark
    with the next record. x was below no presumed leader's high watermark until r1 leads again."""
    values = values_of(MODEL, **named((2, 2, 3, 3)), truncation="kip101")
    params = MODEL.make_params(values)
    states = states_of(
        *(MODEL, params, ("controller_elect_leader", 0), ("become_leader", 0), ("leader_write", 0)),
        *(("controller_elect_leader", 1), ("become_leader", 6 + 1), ("leader_write", 1)),
        *(("controller_elect_leader", 0), ("become_leader", 2), ("leader_write", 0)),
        *(("become_follower_truncate_kip101", 6 + 2), ("leader_inc_high_watermark", 0), ("follower_replicate", 1)),
        *(("controller_elect_leader", 1), ("become_leader", 6 + 3)),
    )
    committed = frozenset[int]()
    for state in states:
        committed |= properties.committed_now(spec_state(state, params))
        assert state.committed == sum(1 << record for record in committed)
    assert [state.committed for state in states[-2:]] == [0b001, 0b011]


def test_neither_strong_isr_nor_the_survival_of_committed_records_implies_the_other():
    params = params_of(MODEL, **named((2, 1, 1, 2)), truncation="high_watermark")

    def successors(state):
        return (action.apply(state, params, instance, 0) for action, instance in instances(MODEL, state, params))

    broken_in = [broken(state, params) for state in search(MODEL.initial(params, 0), successors).states]
    found = {("StrongIsr" in each, "CommittedRecordsSurvive" in each) for each in broken_in}
    assert found == {(False, False), (False, True), (True, False), (True, True)}


def test_the_variants_file_compares_all_five():
    experiment = load(ROOT / "configs" / "kafka_variants.toml")
    assert len(experiment.points) == 50
    assert {point.varied["variant.truncation"] for point in experiment.points} == set(TRUNCATIONS)
    lost: dict[str, int] = defaultdict(int)
    for grid_point in experiment.points:
        if grid_point.varied["rates.controller_shrink_isr"] == 0.03:
            lost[grid_point.varied["variant.truncation"]] += run(MODEL, grid_point.point, 8_000).outcomes["lost"]
    assert lost["high_watermark"] > 20 * lost["kip101"] > 20 * lost["kip320"] == 0
