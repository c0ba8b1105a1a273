"""Pulsar's topic compaction against the reference interpreter. (TLC's numbers: test_oracle.)"""

from itertools import product

import pytest

from quorisk.kernels.model import COMPLETED, STUCK
from quorisk.kernels.protocols.compaction import MODEL
from quorisk.kernels.protocols.compaction.describe import spec_state
from quorisk.kernels.protocols.compaction.layout import State
from quorisk.kernels.protocols.compaction.params import Params
from tests.references import compaction as reference
from tests.support import instances, random_walks

ON = {p.name: True for p in MODEL.parameters if p.allowed is None}
CONTEXT_LAST = {"publish_context_before_horizon": False}
DELETE_FIRST = {"persist_cursor_before_delete": False}
LARGEST = {"messages": 8, "compactions": 7, "keys": 6, "values": 6, "max_crashes": 31}


def model_values(messages=1, compactions=1, keys=1, values=1, max_crashes=0, **variant):
    sizes = {"messages": messages, "compactions": compactions, "keys": keys, "values": values}
    return ON | sizes | {"max_crashes": max_crashes} | variant


def successors(state: State, params: Params):
    """(action, next state) of all that may happen next."""
    for action, instance in instances(MODEL, state, params):
        assert action.sends(state, params, instance) == 0
        yield action, action.apply(state, params, instance, 0)


def broken(state: State, params: Params) -> list[str]:
    return [invariant.name for invariant in MODEL.invariants if not invariant.holds(state, params)]


def explore(params: Params):
    """The levels of a breadth-first search, each state once, with its successors."""
    level = [MODEL.initial(params, choice) for choice in range(MODEL.initial_choices(params))]
    seen = set(level)
    assert len(seen) == len(level)
    while level:
        found = [(state, [after for _, after in successors(state, params)]) for state in level]
        yield found
        level = list(dict.fromkeys(after for _, follow in found for after in follow if after not in seen))
        seen.update(level)


def walked(values, number):
    """States met in random runs from random initial states."""
    return (state for state, *_ in random_walks(MODEL, MODEL.make_params(values), number, seed=1))


def constants(values) -> reference.Constants:
    return reference.Constants(
        MessageSentLimit=values["messages"],
        CompactionTimesLimit=values["compactions"],
        KeySpace=values["keys"],
        ValueSpace=values["values"],
        RetainNullKey=values["retain_null_key"],
        MaxCrashTimes=values["max_crashes"],
        ModelProducer=values["model_producer"],
        PublishContextBeforeHorizon=values["publish_context_before_horizon"],
        PersistCursorBeforeDelete=values["persist_cursor_before_delete"],
    )


def assert_agrees_with_reference(state: State, values) -> None:
    params, spec = MODEL.make_params(values), constants(values)
    expected = spec_state(state, params)
    assert all(state.existing >> i & 1 or not state.ledgers >> 8 * i & 255 for i in range(7))
    assert broken(state, params) == reference.broken_invariants(expected, spec)
    assert (MODEL.outcome(state, params) == COMPLETED) == reference.is_terminated(expected, spec)
    follow = [(action.name, spec_state(after, params)) for action, after in successors(state, params)]
    assert sorted(follow, key=repr) == sorted(reference.successors(expected, spec), key=repr)


SMALL = [
    model_values(2, 3, 1, 1, 1, **dict(zip(ON, switches, strict=True))) for switches in product([True, False], repeat=4)
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("values", [*SMALL, model_values(2, 2, 2, 1, 1), model_values(1, 4, 1, 1, 3, **DELETE_FIRST)])
def test_every_state_agrees_with_the_reference(values):
    params = MODEL.make_params(values)
    initial = [spec_state(state, params) for state, _ in next(explore(params))]
    assert set(initial) == set(reference.initial_states(constants(values)))
    for level in explore(params):
        for state, _ in level:
            assert_agrees_with_reference(state, values)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("switches", [*product([True, False], repeat=4)])
def test_random_runs_of_the_largest_model_agree_with_the_reference(switches):
    values = model_values(**LARGEST, **dict(zip(ON, switches, strict=True)))
    for state in walked(values, 4):
        assert_agrees_with_reference(state, values)


def test_initial_choices_are_every_sequence_of_messages():
    params = MODEL.make_params(model_values(2, 1, 2, 1, model_producer=False))
    states = {MODEL.initial(params, choice) for choice in range(MODEL.initial_choices(params))}
    assert len(states) == MODEL.initial_choices(params) == (3 * 2) ** 2
    assert all(state.keys.bit_count() == state.values.bit_count() == 2 for state in states)


FIRST_DEPTHS = [
    # the two bugs that the original leaves unfixed
    ({}, "DuplicateNullKeyMessage", {}, 5),
    ({}, "CompactedLedgerLeak", {"compactions": 3, "max_crashes": 1}, 13),
    # the worth of the orderings: published too early, the horizon covers messages that no ledger has yet; deleted
    # too early, a ledger is missing that the cursor still names when the broker comes back
    (CONTEXT_LAST, "CompactionHorizonCorrectness", {}, 5),
    (DELETE_FIRST, "CompactionHorizonCorrectness", {"compactions": 2, "max_crashes": 1}, 14),
]


@pytest.mark.parametrize(("variant", "invariant", "sizes", "depth"), FIRST_DEPTHS)
def test_findings_at_their_smallest(variant, invariant, sizes, depth):
    assert first_depth(invariant, **sizes, **variant) == depth
    for name in sizes:
        assert first_depth(invariant, **sizes | {name: sizes[name] - 1}, **variant) is None


@pytest.mark.parametrize(
    ("variant", "invariant"),
    [
        ({}, "CompactionHorizonCorrectness"),
        # the horizon first costs data, but gives nothing twice
        (CONTEXT_LAST, "DuplicateNullKeyMessage"),
        ({"retain_null_key": False}, "DuplicateNullKeyMessage"),
    ],
)
def test_what_never_breaks(variant, invariant):
    assert first_depth(invariant, messages=2, compactions=3, max_crashes=2, **variant) is None


def first_depth(invariant, **values):
    params = MODEL.make_params(model_values(**values))
    (holds,) = (i.holds for i in MODEL.invariants if i.name == invariant)
    for depth, level in enumerate(explore(params), 1):
        if not all(holds(state, params) for state, _ in level):
            return depth
    return None


def test_outcome_completes_when_everything_is_used_up():
    params = MODEL.make_params(model_values(2, 2, 1, 1, 1))
    ends = [state for level in explore(params) for state, follow in level if not follow]
    assert {MODEL.outcome(state, params) for state in ends} == {COMPLETED}
    assert {state.crash_times for state in ends} == {1}


def test_outcome_is_stuck_when_the_next_action_is_switched_off():
    params = MODEL.make_params(model_values(1, 1))
    (written,) = (
        after
        for level in explore(params)
        for state, _ in level
        for action, after in successors(state, params)
        if action.name == "compactor_phase_two_write" and state.keys == state.values == 1
    )
    assert MODEL.outcome(written, params) == STUCK
