"""A protocol's functions as programs compute them, one by one, against plain Python's."""

from typing import Any

import numpy as np

from quorisk.kernels.model import leaves
from quorisk.kernels.packing import unpacked, wide_row
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.tracing.evaluate import Columns


def assert_agrees(name, params, steps):
    """Raises AssertionError unless both say the same of all steps: state, action, instance, lost subset, next state."""
    model = registry.load(name)
    actions = {action.name: i for i, action in enumerate(model.actions)}
    taken = np.array([(actions[action.name], instance, lost) for _, action, instance, lost, _ in steps], np.int64)

    expected_masks = [[m for a in model.actions for m in a.enabled(before, params)] for before, *_ in steps]
    expected_sends = [action.sends(before, params, instance) for before, action, instance, *_ in steps]
    expected_next = [leaves(after) for *_, after in steps]
    expected_broken = [
        sum((not i.holds(before, params)) << k for k, i in enumerate(model.invariants)) for before, *_ in steps
    ]
    expected_outcomes = [model.outcome(before, params) for before, *_ in steps]
    told: Any = expected_masks, expected_sends, expected_next, expected_broken, expected_outcomes
    expected = [np.array(e, np.int64) for e in told]

    found = by_programs(model, params, [before for before, *_ in steps], taken)
    for name_of, have, want in zip(("masks", "sends", "next", "broken", "outcome"), found, expected, strict=True):
        assert (have == want).all(), f"{name_of} differ first at step {np.argwhere(have != want)[0]}"


def by_programs(model, params, states, taken):
    """By state, a row each, what is enabled, what the step taken there (action, instance, lost subset) sends and leads
    to, what is broken, and how a run ends."""
    programs = Programs(model, params)
    wide = np.array([wide_row(state, model.widths) for state in states]).view(np.int64)
    sent, after = np.zeros(len(wide), np.int64), wide.copy()
    for action in set(taken[:, 0].tolist()):
        (part,) = np.nonzero(taken[:, 0] == action)
        if programs.may_send(action):
            sent[part] = programs.sends(action, wide, part, taken[part, 1])
        given = Columns(wide.T, part), Columns(taken.T[1:], part)
        programs.after(action, given, len(part), Columns(after.T, part))
    rows = [leaves(unpacked(row, model.widths)) for row in after.view(np.uint64)]
    return programs.enabled(wide).T, sent, np.array(rows, np.int64), *programs.judged(wide)
