"""Every model's functions written once: plain Python, Numba and JAX agree on random reachable states."""

from importlib import import_module
from typing import Any

import jax
import numpy as np
import pytest
from numba import njit

from quorisk.kernels.compiled import leaves, load_words, num_words, stepper, store_words
from quorisk.kernels.engines.jax_batch import OPTIONS
from tests.support import params_of, random_walks

jax.config.update("jax_enable_x64", True)

CASES: dict[str, list[dict[str, Any]]] = {
    "bookkeeper": [
        {"bookies": 4, "clients": 3, "write_quorum": 3, "ack_quorum": 2, "entries": 3, "inflight": 2},
        {"bookies": 3, "entries": 2, "inflight": 2, "semantics": "literal", "recovery_lac_floor": False},
        {"bookies": 6, "clients": 3, "entries": 4, "inflight": 4, "recovery_reads_initial_ensemble": False,
         "defer_recovery_ensemble_change": False, "fence_unknown_ledger": False, "strict_negative_reads": False,
         "fence_recovery_reads": False, "close_checks_version": False},
    ],
}  # fmt: skip


def nested(like, leaf_values):
    """A value of the shape of `like` from its leaves, in order."""
    left = iter(leaf_values)

    def build(part):
        return type(part)(*map(build, part)) if isinstance(part, tuple) else next(left)

    return build(like)


@pytest.mark.parametrize(
    ("name", "given"), [(name, given) for name, cases in CASES.items() for given in cases], ids=lambda v: str(v)[:40]
)
def test_python_numba_and_jax_agree(name, given):
    model = import_module(f"quorisk.kernels.protocols.{name}").MODEL
    params = params_of(model, **given)
    steps = list(random_walks(model, params, walks=40, seed=7))
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
    expected = [np.array(e, np.int64) for e in (expected_masks, expected_sends, expected_next, expected_broken)]

    for found in (by_numba(model, params, state, rows, taken), by_jax(model, params, state, rows, taken)):
        for name_of, have, want in zip(("masks", "sends", "next", "broken"), found, expected, strict=True):
            assert (have == want).all(), f"{name_of} differ first at step {np.argwhere(have != want)[0]}"
    assert len(set(taken[:, 0].tolist())) >= 0.8 * len(model.actions)


def by_numba(model, params, like, rows, taken):
    guards, effect, sends, _, broken = stepper(model)
    words = sum(num_words(model))

    @njit
    def evaluate(like, params, rows, taken):
        masks, sent = np.empty((len(rows), words), np.int64), np.empty(len(rows), np.int64)
        after, broke = np.empty_like(rows), np.empty(len(rows), np.int64)
        for i in range(len(rows)):
            state = load_words(like, rows[i], 0)
            guards(state, params, masks[i])
            sent[i] = sends(state, params, taken[i, 0], taken[i, 1])
            store_words(effect(state, params, taken[i, 0], taken[i, 1], taken[i, 2]), after[i], 0)
            broke[i] = broken(state, params)
        return masks, sent, after, broke

    return evaluate(like, params, rows, taken)


def by_jax(model, params, like, rows, taken):
    def evaluate(params, row, step):
        state = nested(like, [row[i] for i in range(len(leaves(like)))])
        masks = [m for action in model.actions for m in action.enabled(state, params)]
        sent = [action.sends(state, params, step[1]) for action in model.actions]
        after = [leaves(action.apply(state, params, step[1], step[2])) for action in model.actions]
        broken = sum(jax.numpy.where(inv.holds(state, params), 0, 1 << k) for k, inv in enumerate(model.invariants))
        as_array = [jax.numpy.asarray(m, np.int64) for m in masks]
        chosen = jax.numpy.array([jax.numpy.array(leaf_row) for leaf_row in after])[step[0]]
        return jax.numpy.stack(as_array), jax.numpy.array(sent)[step[0]], chosen, broken

    traced = jax.tree.map(np.int64, params)
    in_batches = jax.jit(jax.vmap(evaluate, in_axes=(None, 0, 0)), compiler_options=OPTIONS[jax.default_backend()])
    return [np.asarray(part) for part in in_batches(traced, rows, taken)]


@pytest.mark.parametrize("name", list(CASES))
def test_every_function_traces(name):
    """`jax.make_jaxpr` of each guard and effect on its own: no branch on a value, no Python integer needed."""
    model = import_module(f"quorisk.kernels.protocols.{name}").MODEL
    params = params_of(model, **CASES[name][0])
    state = jax.tree.map(np.int64, model.initial(params, 0))
    traced = jax.tree.map(np.int64, params)
    for action in model.actions:
        for function, extra in ((action.enabled, ()), (action.sends, (1,)), (action.apply, (1, 0))):
            jaxpr = jax.make_jaxpr(function)(state, traced, *map(np.int64, extra))
            assert all(eqn.primitive.name not in ("cond", "while") for eqn in jaxpr.eqns), action.name
