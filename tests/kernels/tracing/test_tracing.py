"""Traced protocols against their own functions, on random reachable states."""

import random
from typing import Any

import numpy as np
import pytest

from quorisk.analysis import bench
from quorisk.kernels import ops, rule
from quorisk.kernels.engines import points
from quorisk.kernels.model import EVERYTHING, Action, Model, leaves
from quorisk.kernels.protocols import registry
from quorisk.kernels.tracing import assume
from quorisk.kernels.tracing.demand import in_order, width
from quorisk.kernels.tracing.expressions import Node
from quorisk.kernels.tracing.folding import make, new_graph, select
from quorisk.kernels.tracing.general import CHOICE, PICKED
from quorisk.kernels.tracing.observe import observe
from quorisk.kernels.tracing.trace import (
    Bounds,
    TracedModel,
    bit_leaf,
    losses_leaf,
    mask_leaf,
    not_following,
    strays,
    trace,
    widest,
)
from tests.kernels.engines import herds
from tests.kernels.tracing.random_expressions import evaluate
from tests.support import EACH_PROTOCOL, any_values, point_of, random_walks


def traced_of(model: Model, values: dict[str, Any], bounds: Bounds | None = None) -> TracedModel:
    weights = [1] * len(rule.group_words(model))
    return trace(model, model.make_params(values), weights, bounds or widest(model))


def gathered(lost: int, sent: int) -> int:
    """The inverse of `deposit`: bit j is set if message j of those sent is lost."""
    places = [place for place in range(sent.bit_length()) if sent >> place & 1]
    return sum(1 << j for j, place in enumerate(places) if lost >> place & 1)


def check_walk(model: Model, params: Any, traced: TracedModel, walks: int, seed: int) -> int:
    """Compares guards, invariants, outcomes, messages and effects along random walks; returns how many steps."""
    steps = list(random_walks(model, params, walks, seed))
    columns = np.array([leaves(state) for state, *_ in steps], np.int64).T
    names: dict[Any, Any] = {("state", i): column for i, column in enumerate(columns)}
    now = traced.now
    masks = np.array([[int(m) for a in model.actions for m in groups(a, s, params)] for s, *_ in steps]).T
    found = evaluate([*now.masks, *now.broken, now.outcome], names)
    numbers = [word.number for word in traced.words]
    for number, mask in zip(numbers, found, strict=False):
        assert (np.broadcast_to(mask, len(steps)) == masks[number]).all()
    assert not np.delete(masks, numbers, axis=0).any()
    for broken, invariant in zip(found[len(numbers) :], model.invariants, strict=False):
        assert (np.broadcast_to(broken, len(steps)) == [not invariant.holds(s, params) for s, *_ in steps]).all()
    assert (np.broadcast_to(found[-1], len(steps)) == [int(model.outcome(s, params)) for s, *_ in steps]).all()
    place_of = {rule.group_words(model)[word.number]: i for i, word in enumerate(traced.words)}
    taken: dict[int, list[tuple[int, ...]]] = {}  # by word
    for i, (state, action, instance, lost, after) in enumerate(steps):
        group, picked = group_and_pick(action, action.enabled(state, params), instance)
        subset = int(action.sends(state, params, instance))
        kept = [value if not is_gone(traced.state[k]) else 0 for k, value in enumerate(leaves(after))]
        row = (i, group % 64, picked, gathered(int(lost), subset), subset, *kept)
        taken.setdefault(place_of[model.actions.index(action), group - group % 64], []).append(row)
    for place, rows in taken.items():
        word, (at, bit, picked_here, lost_here, *expected) = traced.words[place], np.array(rows, np.int64).T
        own = {name: column[at] for name, column in names.items()}
        own |= {losses_leaf(word.loss): lost_here, PICKED: picked_here}
        own |= {bit_leaf(place): bit, mask_leaf(place): np.int64(1) << bit}
        computed = evaluate([word.subset, *(word.after or ())], own)
        for have, want in zip(computed, expected, strict=True):
            assert (np.broadcast_to(have, len(rows)) == want).all(), model.actions[word.action].name
    return len(steps)


def groups(action: Action, state: Any, params: Any) -> tuple[Any, ...]:
    return rule.groups(action, action.enabled(state, params))


def group_and_pick(action: Action, masks: tuple[int, ...], instance: int) -> tuple[int, int]:
    """The group of an instance, and a random number by which that member of it goes off."""
    size = action.shared if action.shared < EVERYTHING else 64 * len(masks)
    group = instance - instance % 64 % size if size < 64 else 0
    members = [64 * word + bit for word, mask in enumerate(masks) for bit in ops.bits(mask)]
    members = [each for each in members if group <= each < group + size] if action.shared > 1 else [instance]
    return group if action.shared > 1 else instance, (2 * members.index(instance) + 1 << 52) // len(members)


def is_gone(leaf: Any) -> bool:
    return not isinstance(leaf, Node)


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_traced_functions_are_the_protocols_own(name):
    model, chance = registry.load(name), random.Random(1)
    for seed in range(5):
        values = any_values(model, chance)
        params = model.make_params(values)
        assert check_walk(model, params, traced_of(model, values), walks=4, seed=seed) > 10


def test_traced_functions_of_instances_that_share_a_rate():
    for sparse in (1, 3, 13):
        values = {"sparse": sparse, "herd": 8, "ticks": 15, "marks": 20, "max_storms": 3, "max_floods": 3}
        params = herds.make_params(values)
        assert check_walk(herds.MODEL, params, traced_of(herds.MODEL, values), walks=4, seed=sparse) > 50


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_bounds_that_hold_change_nothing_but_the_size(name):
    model, chance = registry.load(name), random.Random(2)
    for seed in range(2):
        values = any_values(model, chance)
        params = model.make_params(values)
        walked = list(random_walks(model, params, 4, seed))
        seen = np.bitwise_or.reduce([leaves(state) for s, *_, t in walked for state in (s, t)], axis=0)
        wide = widest(model)
        bounds = Bounds(tuple(int(bits) for bits in seen), wide.enabled, wide.taken, wide.broken)
        narrow = traced_of(model, values, bounds)
        assert check_walk(model, params, narrow, walks=4, seed=seed) == len(walked)
        assert size(narrow) < size(traced_of(model, values))


def size(traced: TracedModel) -> int:
    return len(in_order([*traced.now.masks, *(leaf for word in traced.words for leaf in word.after or ())]))


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_a_state_beyond_the_bounds_is_found(name):
    """Bounds with one bit too few: exactly the steps that set it stray."""
    model = registry.load(name)
    values = any_values(model, random.Random(3))
    params = model.make_params(values)
    steps = list(random_walks(model, params, 6, 3))
    wide = widest(model)
    columns = dict(enumerate(np.array([leaves(after) for *_, after in steps], np.int64).T))
    graph = new_graph()
    for leaf in range(len(wide.state)):
        set_here = columns[leaf].tolist()
        for bit in {value.bit_length() - 1 for value in set_here if value}:
            bounds = wide._replace(state=(*wide.state[:leaf], wide.state[leaf] & ~(1 << bit), *wide.state[leaf + 1 :]))
            expressions = [graph.leaf(i, may) for i, may in enumerate(wide.state)]
            (found,) = evaluate([strays(expressions, bounds)], columns)
            assert found.tolist() == [bool(value >> bit & 1) for value in set_here]
            break


def test_a_value_below_0_is_out_of_bounds():
    leaf = new_graph().leaf("leaf", 7)
    bounds = Bounds((7, 1 << 40), frozenset(), frozenset(), frozenset())
    found = strays([leaf - 5, (leaf << 38) - 5 * 2**38], bounds)
    assert evaluate([found], {"leaf": np.arange(8)})[0].tolist() == [True] * 5 + [False, True, True]


def test_of_another_variant_and_of_rates_of_0_nothing_is_left():
    model = registry.load("kafka")
    values = any_values(model, random.Random(4)) | {"truncation": "kip279"}
    names = {model.actions[word.action].name for word in traced_of(model, values).words}
    assert "become_follower_truncate_kip279" in names
    assert not any(name.startswith(("fenced_", "become_follower_truncate_kip101")) for name in names)
    weights = [0] * len(rule.group_words(model))
    assert trace(model, model.make_params(values), weights, widest(model)).words == ()


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_initial_states_by_their_number(name):
    model = registry.load(name)
    off: dict[str, Any] = {"model_producer": False} if name == "compaction" else {}
    point = point_of(model, **off)
    params, traced = model.make_params(point.values), traced_of(model, dict(point.values))
    choices = np.arange(min(traced.num_choices, 200))
    found = evaluate(traced.initial, {CHOICE: choices})
    for i, leaf in enumerate(found):
        if not is_gone(traced.state[i]):
            expected = [leaves(model.initial(params, int(choice)))[i] for choice in choices]
            assert np.broadcast_to(leaf, len(choices)).tolist() == expected


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_what_is_observed_is_what_happens(name):
    """Every bit that plain Python's random runs show often, and no action that the configuration lacks."""
    model = registry.load(name)
    point = point_of(model)
    params = model.make_params(point.values)
    weights = points.pack(model, [point]).weights[0].tolist()
    bounds = observe(model, params, weights, [0.3] * len(rule.loss_names(model)))
    traced = trace(model, params, weights, bounds)
    walked = list(random_walks(model, params, 20, 5))
    for i, leaf in enumerate(traced.state):
        if not is_gone(leaf):
            seen = np.bitwise_or.reduce([leaves(state)[i] for state, *_ in walked])
            assert int(seen) & ~bounds.state[i] == 0
    assert bounds.taken <= bounds.enabled
    assert all(0 <= may < 1 << width for may, width in zip(bounds.state, leaves(model.widths), strict=True))


def test_what_nothing_depends_on_may_have_any_bits():
    """It has no values that could be seen; taken for 0, it would shift KRaft's rows by less than nothing."""
    model = registry.load("kraft")
    point = point_of(model, rates={"receive_metadata_update": 0.0})
    params, weights = model.make_params(point.values), points.pack(model, [point]).weights[0].tolist()
    bounds, wide = observe(model, params, weights, [0.0]), widest(model)
    gone = [i for i, leaf in enumerate(trace(model, params, weights, wide).state) if is_gone(leaf) and wide.state[i]]
    assert gone
    assert all(bounds.state[i] == wide.state[i] for i in gone)


def test_shifts_that_are_taken_to_go_less_far_are_doubted_where_they_go_further_or_back():
    graph = new_graph()
    amount = make("sub", graph.leaf("amount", 15), 3)
    shifted = make("shl", graph.leaf("bits", 0xFFF), amount)
    (narrow,), doubt = assume._taking([shifted], {amount.id: 2}, {}, 16)
    assert (width(shifted, 16), width(narrow, 16)) == (32, 16)
    assert evaluate([doubt], {"amount": np.arange(16)})[0].tolist() == [not 0 <= n - 3 <= 2 for n in range(16)]


def test_conditions_that_are_taken_for_granted_are_doubted_where_they_do_not_hold():
    graph = new_graph()
    leaf = graph.leaf("leaf", 7)
    first, second = make("less", leaf, 6), make("equal", make("and", leaf, 1), 1)
    output = select(first, select(second, 10, 20), 30)
    (constant,), doubt = assume._taking([output], {}, {first.id: True, second.id: False}, 16)
    assert constant == 20
    assert evaluate([doubt], {"leaf": np.arange(8)})[0].tolist() == [n % 2 == 1 or n >= 6 for n in range(8)]


def test_leaves_that_follow_others_do_so_in_random_walks_and_one_that_does_not_is_found():
    model = registry.load("bookkeeper")
    point = bench.random_runs("bookkeeper").points[0].point
    params, weights = model.make_params(point.values), [1] * len(rule.group_words(model))
    bounds = observe(model, params, weights, [0.1] * len(rule.loss_names(model)))
    assert bounds.followers
    steps = list(random_walks(model, params, 20, 5))
    columns = np.array([leaves(after) for *_, after in steps], np.int64).T
    graph = new_graph(lanes=True)
    expressions = [graph.leaf(i, (1 << 62) - 1) for i in range(len(columns))]
    outputs = [not_following(expressions, [each]) for each in bounds.followers]
    for follower, output in zip(bounds.followers, outputs, strict=True):
        assert not evaluate([output], dict(enumerate(columns)))[0].any()
        changed = columns.copy()
        changed[follower.leaf] ^= 1 << 61
        assert evaluate([output], dict(enumerate(changed)))[0].all()
