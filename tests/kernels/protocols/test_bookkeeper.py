"""BookKeeper against an independent, literal interpreter of its specification, and what its mechanisms are worth."""

import random
from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.bookkeeper import MODEL
from quorisk.kernels.protocols.bookkeeper.adding import select_ensemble, valid_ensembles
from quorisk.kernels.protocols.bookkeeper.describe import SpecState, spec_state
from quorisk.kernels.protocols.bookkeeper.layout import (
    CLIENT_WITHDRAWN,
    INITIAL,
    MAX_FRAGMENTS,
    ROWS,
    STATUS_CLOSED,
    STATUS_OPEN,
    entry_row,
)
from quorisk.kernels.protocols.bookkeeper.stripes import Ensemble, append_fragment, write_sets_by_entry
from quorisk.kernels.states.search import explore
from tests.references import bookkeeper as reference
from tests.support import instances, params_of, random_walks, states_of

SIZES = ("bookies", "clients", "write_quorum", "ack_quorum", "entries", "inflight")
EXPOSED = "AllCommittedEntriesReachWriteQuorum"
"""Broken by lost messages alone wherever the ack quorum is the smaller one: no error."""
SWITCHES = [
    parameter
    for parameter in MODEL.parameters
    if parameter.table == "variant" and not parameter.allowed and not parameter.name.startswith("enforce")
]
VARIANTS = [{}, {"semantics": "literal"}] + [{switch.name: not switch.default_value} for switch in SWITCHES]
MEMORY = 2 << 30
ENDINGS = ("client_closes_ledger_success", "client_closes_ledger_fail", "client_receives_add_fenced_response")
FAULTS = {"max_lost": 2, "max_empty_restarts": 2, "writer_crash": True, "auto_recovery": True, "replacement": True}
TOGETHER = FAULTS | {"lost_together": True, "max_lost": 4, "max_empty_restarts": 5}
OUTAGES = {"max_outages": 2, "max_rack_outages": 2}
PARTIAL = {"journal_sync": False, "max_unclean_restarts": 2, "max_partial_losses": 2}
ENFORCED = {"enforce_min_racks_per_write_quorum": True, "enforce_min_fault_domains_for_write": True}
GUARANTEED = {"guaranteed_write_quorum": True}
STRIKES = tuple(action.name for action in MODEL.actions if action.fault or action.name == "bookie_is_replaced")


def long_walks(params, walks, seed):
    """Random walks that close and fail rarely; in half of them recovery starts late as well, after entries were
    confirmed."""
    for rarely in ((*ENDINGS, *STRIKES), (*ENDINGS, *STRIKES, "client_starts_recovery")):
        yield from random_walks(MODEL, params, walks // 2, seed, rarely)


def named(sizes):
    return dict(zip(SIZES, sizes, strict=True))


@cache
def searched(sizes, **variant):
    return explore(MODEL, params_of(MODEL, **named(sizes), **variant), MEMORY)


def test_actions_are_those_of_the_spec_in_its_order():
    assert len(reference.SPEC_ACTIONS) == 21
    assert [action.name for action in MODEL.actions] == list(reference.ACTIONS)


IN_MEMORY: list[dict[str, Any]] = [{"journal_write": False}, {"journal_sync": False}]
CHANGING: dict[tuple[int, ...], list[dict[str, Any]]] = {
    (1, 2, 1, 1, 2, 1): [{"semantics": "literal"}, {"fence_unknown_ledger": False}, GUARANTEED, *IN_MEMORY],
    (2, 2, 1, 1, 1, 1): [
        {"recovery_reads_initial_ensemble": False},
        {"defer_recovery_ensemble_change": False},
        {"fence_unknown_ledger": False},
        {"journal_write": False},
        GUARANTEED,
    ],
    (2, 1, 2, 1, 2, 2): [*IN_MEMORY, GUARANTEED],
}
"""Small sizes without faults, and the variants that change what happens there. The space of an unsynced journal with
two bookies and two clients is left out: it is the largest by far."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("sizes", "variant"), [(sizes, variant) for sizes, found in CHANGING.items() for variant in ({}, *found)], ids=str
)
def test_state_space_equals_the_reference(sizes, variant):
    state_space_equals_the_reference(sizes, variant)


@pytest.mark.parametrize(
    ("sizes", "variant"),
    [
        (sizes, variant)
        for sizes, found in CHANGING.items()
        for variant in VARIANTS
        if variant not in ({}, *found, *IN_MEMORY)
    ],
    ids=str,
)
def test_any_other_variant_changes_nothing_there(sizes, variant):
    assert searched(sizes, **variant) == searched(sizes)


ONE_EACH = FAULTS | {"max_lost": 1, "max_empty_restarts": 1}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("sizes", "given"),
    [
        ((1, 2, 1, 1, 1, 1), ONE_EACH),
        ((1, 2, 1, 1, 1, 1), ONE_EACH | {"fence_on_unclean_shutdown": False, "writer_crash": False}),
        ((1, 2, 1, 1, 1, 1), ONE_EACH | {"limbo_on_unclean_shutdown": False, "semantics": "literal"}),
        ((2, 1, 1, 1, 1, 1), ONE_EACH | {"max_lost": 2}),
        ((2, 1, 1, 1, 1, 1), ONE_EACH | {"auto_recovery": False}),
        ((2, 1, 1, 1, 1, 1), ONE_EACH | {"replacement": False, "max_lost": 2, "racks": 2, "max_empty_restarts": 2}),
        ((3, 1, 2, 1, 1, 1), {"lost_together": True, "max_lost": 3, "auto_recovery": True}),
        ((3, 1, 2, 1, 1, 1), {"racks": 2, "max_empty_restarts": 2, "limbo_on_unclean_shutdown": False}),
        ((3, 1, 2, 1, 1, 1), {"racks": 2, "rack_aware_placement": False, "max_lost": 1, "auto_recovery": True}),
        ((1, 2, 1, 1, 1, 1), {"max_outages": 2}),
        ((2, 1, 1, 1, 1, 1), {"max_outages": 1, "auto_recovery": True, "replacement": True, "writer_crash": True}),
        ((2, 1, 1, 1, 1, 1), {"max_outages": 1, "max_lost": 1, "max_empty_restarts": 1, "semantics": "literal"}),
        pytest.param(  # it alone sees a wiped bookie's no to a fencing read that counts as a yes
            (1, 2, 1, 1, 1, 1), {"max_empty_restarts": 1, "limbo_answers_fencing": False}, marks=pytest.mark.short
        ),
        ((2, 1, 1, 1, 1, 1), {"max_rack_outages": 2, "max_outages": 1, "racks": 3}),
        ((3, 1, 2, 1, 1, 1), {"max_rack_outages": 1, "racks": 2, "auto_recovery": True}),
        ((3, 1, 1, 1, 2, 1), {"max_lost": 2, "auto_recovery": True, "repair_open_ledgers": True}),
        ((2, 2, 1, 1, 1, 1), {"max_lost": 1, "fence_open_ledgers": True}),
        ((3, 1, 2, 1, 2, 1), FAULTS | {"ledger": "closed", "max_outages": 1, "max_empty_restarts": 1}),
        ((3, 1, 2, 1, 2, 2), {"delay_ensemble_change": True, "max_lost": 1, "writer_crash": True}),
        ((3, 1, 2, 2, 2, 2), {"delay_ensemble_change": True, "semantics": "literal"}),
        ((4, 1, 2, 1, 1, 1), ENFORCED | {"racks": 3, "semantics": "literal"}),
        ((4, 1, 3, 2, 1, 1), ENFORCED | {"racks": 2, "max_lost": 1, "max_rack_outages": 1}),
        ((5, 1, 3, 2, 1, 1), ENFORCED | {"racks": 4, "min_racks_per_write_quorum": 3, "max_lost": 1}),
        ((3, 1, 2, 1, 2, 1), GUARANTEED | {"max_lost": 1, "writer_crash": True, "auto_recovery": True}),
        ((3, 1, 2, 1, 1, 1), GUARANTEED | {"max_lost": 1, "semantics": "literal"}),
        ((4, 1, 3, 2, 1, 1), GUARANTEED | ENFORCED | {"racks": 2, "max_lost": 1}),
        ((5, 1, 2, 1, 4, 2), {"ledger": "closed", "ensemble_size": 4, "max_lost": 1, "auto_recovery": True}),
    ],
    ids=str,
)
def test_state_space_with_faults_equals_the_reference(sizes, given):
    state_space_equals_the_reference(sizes, given)


def state_space_equals_the_reference(sizes, variant):
    found = explore(MODEL, params_of(MODEL, **named(sizes), **variant), MEMORY)
    expected = reference.explore(reference.Constants(*sizes, **variant))
    assert found.distinct_states == expected["distinct_states"]
    assert found.generated_states == expected["generated_states"]
    assert found.depth == expected["depth"]
    assert found.first_broken == expected["states_by_first_broken_invariant"]
    for name, breaks in expected["invariants"].items():
        assert (found.breaking_states[name], found.first_depth[name]) == (
            breaks["breaking_states"],
            breaks["first_depth"],
        )
    assert found.action_counts == expected["action_counts"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("switch", "sizes", "invariant", "depth"),
    [
        ("fence_unknown_ledger", (1, 2, 1, 1, 1, 1), "NoDivergenceBetweenClientAndMetaData", 12),
        ("strict_negative_reads", (2, 2, 2, 1, 1, 1), "NoDivergenceBetweenClientAndMetaData", 14),
        ("defer_recovery_ensemble_change", (2, 2, 1, 1, 1, 1), "AllAckedEntriesAreReadable", 13),
        ("fence_recovery_reads", (2, 2, 2, 2, 1, 1), "NoDivergenceBetweenClientAndMetaData", 14),
    ],
)
def test_smallest_configuration_that_a_switch_breaks(switch, sizes, invariant, depth):
    found = searched(sizes, **{switch: False})
    first = {name: at for name, at in found.first_depth.items() if at and name != EXPOSED}
    for name in ("AckedEntriesSurvive", "AckedEntriesAreOnDisk"):
        if first.pop(name, None):  # what nobody can read does not survive, on no disk either
            assert found.first_depth[name] == found.first_depth["AllAckedEntriesAreReadable"]
    assert first == {invariant: depth}
    assert {name for name, states in searched(sizes).breaking_states.items() if states} <= {EXPOSED}


FAULTY = [
    FAULTS,
    FAULTS | {"fence_on_unclean_shutdown": False},
    FAULTS | {"limbo_on_unclean_shutdown": False},
    TOGETHER | {"racks": 2},
    TOGETHER | {"racks": 3, "rack_aware_placement": False, "semantics": "literal"},
    FAULTS | OUTAGES | {"racks": 2},
    FAULTS | OUTAGES | PARTIAL | {"racks": 2},
    FAULTS | PARTIAL | {"journal_write": False, "damaged_reads_unknown": False},
    FAULTS | {"repair_open_ledgers": True, "fence_open_ledgers": True, "limbo_answers_fencing": False},
    FAULTS | {"delay_ensemble_change": True, "racks": 2},
    FAULTS | ENFORCED | {"racks": 3, "defer_recovery_ensemble_change": False},
    FAULTS | OUTAGES | PARTIAL | GUARANTEED | {"racks": 2, "repair_open_ledgers": True},
    FAULTS | ENFORCED | GUARANTEED | {"racks": 3, "defer_recovery_ensemble_change": False},
]


@pytest.mark.sampled(13)
@pytest.mark.parametrize("variant", VARIANTS + FAULTY, ids=str)
@pytest.mark.parametrize("sizes", [(6, 3, 3, 2, 4, 2), (5, 3, 2, 2, 3, 3), (4, 2, 2, 1, 2, 2)], ids=str)
def test_random_runs_of_large_configurations_equal_the_reference(sizes, variant):
    """In every state of random runs: the same instances with the same successors, and the same broken invariants."""
    constants = reference.Constants(*sizes, **variant)
    params = params_of(MODEL, **named(sizes), **variant)
    walks = 2 if "max_lost" in variant else 12  # they are long: bookies are lost and replaced for ever
    assert spec_state(MODEL.initial(params, 0), params) == reference.initial(constants)
    for step, (state, *_) in enumerate(long_walks(params, walks, seed=sum(sizes))):
        literal = spec_state(state, params)
        assert [not i.holds(state, params) for i in MODEL.invariants] == [
            not holds for holds in reference.invariants(literal, constants).values()
        ]
        if step % 3 == 0:
            assert successors(state, params) == reference_successors(literal, constants)


def test_states_that_runs_hardly_reach_equal_the_reference():
    """Breaches are rare, and so are more than three fragments: invariants and ensembles of states made up at random."""
    constants, chance = reference.Constants(6, 3, 3, 2, 4, 4), random.Random(4)
    params = params_of(MODEL, **named(constants[:6]))
    sets = [sum(1 << bookie for bookie in found) for found in combinations(range(6), 3)]
    broken: Counter[tuple[bool, ...]] = Counter()
    for _ in range(2000):
        state = made_up(chance, sets, params)
        literal = spec_state(state, params)
        holds = [invariant.holds(state, params) for invariant in MODEL.invariants]
        assert holds == list(reference.invariants(literal, constants).values())
        broken[tuple(holds[:6])] += 1
        state = state._replace(b_down=chance.choice([0, 0, 0b1, 0b10100]))
        literal = spec_state(state, params)
        include = chance.choice([0, 1, 0b11, 0b100100])
        exclude = chance.choice([0, 0b1000, 0b010010]) & ~include
        view, old = reference.View(literal, constants, {}), include | exclude
        wanted = reference.select_ensemble(view, frozenset(bits(old)), frozenset(bits(exclude)))
        assert (valid_ensembles(state, params, Ensemble(old, 0), exclude) != 0) == (wanted is not None)
        if wanted is not None:
            assert bits(select_ensemble(state, params, Ensemble(old, 0), exclude).members) == sorted(wanted)
        for entry in range(1, 5):
            ensemble = reference.fragment_of_entry_id(entry, literal.meta_fragments).ensemble
            assert bits(entry_row(state.meta_write_sets, entry)) == sorted(ensemble)
    # Each invariant with and without each other one, but for NoOutOfOrderEntries, which holds. AckedEntriesSurvive
    # breaks if AllAckedEntriesAreReadable does, and never just with AllCommittedEntriesReachAckQuorum: some client is
    # CLOSED at the last entry, unless NoDivergenceBetweenClientAndMetaData is broken too.
    assert len(broken) == 2**3 * 3 - 2


def made_up(chance, sets, params):
    """A state in which the first client is the writer and the others recover, with up to MAX_FRAGMENTS fragments."""
    fragments = append_fragment(INITIAL.meta_fragments, Ensemble(chance.choice(sets), 0), 1)
    for i in range(chance.choice([0, 1, 2, 4, MAX_FRAGMENTS - 1])):
        next_first = i + 2 if chance.random() < 0.5 and i < 4 else chance.randint(1, 5)
        fragments = append_fragment(fragments, Ensemble(chance.choice(sets), 0), next_first)
    last, closed = chance.randint(0, 4), chance.randrange(4)
    lacs = [chance.choice([last, chance.randint(0, 4)]) for _ in range(3)]
    stored = chance.getrandbits(24) | chance.choice([0, ROWS])
    return INITIAL._replace(
        meta_status=STATUS_CLOSED if chance.random() < 0.8 else STATUS_OPEN,
        meta_fragments=fragments,
        meta_write_sets=write_sets_by_entry(params, fragments),
        meta_last_entry=last,
        b_entries=stored,
        b_unflushed=stored & random.Random(stored).getrandbits(24),
        creator=1,
        writer_status=chance.choice([STATUS_OPEN, STATUS_CLOSED, CLIENT_WITHDRAWN]),
        writer=INITIAL.writer._replace(lac=lacs[0], fragments=fragments),
        recoverer_0=INITIAL.recoverer_0._replace(lac=lacs[1], fragments=fragments),
        recoverer_1=INITIAL.recoverer_1._replace(lac=lacs[2], fragments=fragments),
        started=0b11,
        closed=closed,
    )


SENT_TWICE = (
    # b1 gets entry 2 under LAC 0 and, once b2 has confirmed entry 1 and failed in its turn, under LAC 1
    *(("client_creates_ledger", 0, 0), ("client_sends_add_entry_requests", 0, 1)),
    *(("client_sends_add_entry_requests", 0, 0), ("client_changes_ensemble", 0, 0)),
    *(("client_resends_pending_add_op", 0, 0), ("client_resends_pending_add_op", 6, 0b10)),
    *(("bookie_sends_add_confirmed_response", 1, 0), ("client_receives_add_confirmed_response", 1, 0)),
    *(("client_changes_ensemble", 0, 0), ("client_resends_pending_add_op", 6, 0)),
)


@pytest.mark.parametrize("semantics", ["intended", "literal"])
def test_an_entry_sent_twice_to_a_bookie_equals_the_reference(semantics):
    """From there on all that bookies and the start of a recovery can do: answered, refused, or one after the other."""
    constants = reference.Constants(2, 2, 1, 1, 2, 2, semantics)
    params = params_of(MODEL, **named(constants[:6]), semantics=semantics)
    left = states_of(MODEL, params, *SENT_TWICE)[-1:]
    seen, refused = set(left), set()
    while left:
        state = left.pop()
        assert successors(state, params) == reference_successors(spec_state(state, params), constants)
        for action, instance in instances(MODEL, state, params):
            if action.name.startswith("bookie") or action.name == "client_starts_recovery":
                refused |= {instance} if action.name == "bookie_sends_add_fenced_response" else set()
                after = action.apply(state, params, instance, 0)
                left += [after] if after not in seen else []
                seen.add(after)
    assert refused == {6, 12}


def successors(state, params):
    """Multiset of (action, number of lost subsets, successors)."""
    found: Counter[tuple[str, int, frozenset[SpecState]]] = Counter()
    for action, instance in instances(MODEL, state, params):
        sent = action.sends(state, params, instance)
        lost = [subset for subset in range(64) if subset & ~sent == 0]
        after = frozenset(spec_state(action.apply(state, params, instance, subset), params) for subset in lost)
        found[action.name, len(lost), after] += 1
    return found


def reference_successors(literal, constants):
    return Counter(
        (instance.action, len(instance.outcomes), frozenset(after for *_, after in instance.outcomes))
        for instance in reference.instances(literal, constants)
    )


def test_a_fault_is_of_a_kind_and_whatever_takes_data_away_is_a_fault():
    kinds = {action.name: action.fault for action in MODEL.actions if action.fault}
    alone = {"lost bookie", "empty restart", "unclean restart", "partial loss", "writer crash"}
    assert set(kinds.values()) == alone | {"correlated", "power outage"}
    params = params_of(MODEL, **named((4, 2, 2, 2, 2, 2)), **TOGETHER, **OUTAGES, **PARTIAL, racks=2)
    taken = set()
    for state, action, _, _, after in long_walks(params, walks=8, seed=1):
        if state.b_entries & ~after.b_entries or after.b_down & ~state.b_down:
            assert action.name in kinds
            taken.add(action.name)
    assert len(taken) >= 4
