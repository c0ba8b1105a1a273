"""A protocol's functions in compiled code, one by one, against plain Python's."""

from functools import cache
from typing import Any

import numpy as np
from numba import njit

from quorisk.kernels.compiled import load_words, packing, store_words
from quorisk.kernels.model import leaves, num_words
from quorisk.kernels.packing import fields_of
from quorisk.kernels.protocols import registry
from quorisk.kernels.stepper import stepper


def assert_agrees(name, params, steps):
    """Raises AssertionError unless both say the same of all steps: state, action, instance, lost subset, next state."""
    model = registry.load(name)
    rows = np.array([leaves(before) for before, *_ in steps], np.int64)
    actions = {action.name: i for i, action in enumerate(model.actions)}
    taken = np.array([(actions[action.name], instance, lost) for _, action, instance, lost, _ in steps], np.int64)
    state = steps[0][0]

    expected_masks = [[m for a in model.actions for m in a.enabled(before, params)] for before, *_ in steps]
    expected_sends = [action.sends(before, params, instance) for before, action, instance, *_ in steps]
    expected_next = [leaves(after) for *_, after in steps]
    expected_broken = [
        sum((not i.holds(before, params)) << k for k, i in enumerate(model.invariants)) for before, *_ in steps
    ]
    expected_outcomes = [model.outcome(before, params) for before, *_ in steps]
    told: Any = expected_masks, expected_sends, expected_next, expected_broken, expected_outcomes
    expected = [np.array(e, np.int64) for e in told]

    found = by_numba(name)(state, params, rows, taken)
    for name_of, have, want in zip(("masks", "sends", "next", "broken", "outcome"), found, expected, strict=True):
        assert (have == want).all(), f"{name_of} differ first at step {np.argwhere(have != want)[0]}"


@cache
def by_numba(name):
    """`evaluate(like, params, rows, taken)`: by state, a row each, what is enabled, what the step taken there (action,
    instance, lost subset) sends and leads to, what is broken, and how a run ends; `like` is any state."""
    model = registry.load(name)
    steps, words = stepper(model), sum(num_words(model))
    guards, sends, broken, outcome = steps.guards, steps.sends, steps.broken, steps.outcome
    effect = compiled_effect(model)

    @njit
    def evaluate(like, params, rows, taken):
        masks, sent = np.empty((len(rows), words), np.int64), np.empty(len(rows), np.int64)
        after, broke, ended = np.empty_like(rows), np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for i in range(len(rows)):
            state = load_words(like, rows[i])
            guards(state, params, masks[i])
            sent[i] = sends(state, params, taken[i, 0], taken[i, 1])
            store_words(effect(state, params, taken[i, 0], taken[i, 1], taken[i, 2]), after[i])
            broke[i] = broken(state, params)
            ended[i] = outcome(state, params)
        return masks, sent, after, broke, ended

    return evaluate


def compiled_effect(model):
    """`effect(state, params, action, instance, lost)`: the next state, as the search computes it."""
    pack, effect_of = packing(model.widths, model.name)[0], stepper(model).effect_of
    size = fields_of(model.widths)[-1].word + 1

    @njit
    def effect(state, params, action, instance, lost):
        wide, nothing = np.empty(size, np.uint64), np.zeros(size, np.uint64)
        pack(state, wide, nothing, nothing)
        return effect_of(wide, params, action, instance, lost)

    return effect
