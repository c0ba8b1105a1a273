"""The CPU engine: one run at a time on each thread, each a pure function of (seed, run index)."""

from functools import cache
from typing import Any

import numpy as np

from kernels.compiled import bind, load_words, num_words, stepper
from kernels.model import HORIZON, LOST, UNFINISHED, Model
from kernels.ops import as_int64, as_uint64, nth_bit, popcount
from kernels.philox import draw_pair, minus_log2, multiply_high


@cache
def engine(model: Model) -> Any:
    """The compiled batch function of a model."""
    steps = stepper(model)
    one = bind(
        _run,
        model.name,
        guards=steps.guards,
        take=steps.take,
        broken=steps.broken,
        initial=model.initial,
        initial_choices=model.initial_choices,
        outcome=model.outcome,
        data_loss=sum(1 << i for i, inv in enumerate(model.invariants) if inv.data_loss),
        num_words=sum(num_words(model)),
        num_invariants=len(model.invariants),
    )
    return bind(_batch, model.name, cached=True, run_one=one, num_words=sum(num_words(model)))


def _run(params, weights, word_action, word_start, loss, seed, run, max_steps, horizon, masks, sums, first_steps):
    choices = initial_choices(params)
    choice = 0
    if choices > 1:
        first, _ = draw_pair(seed, run, as_uint64(0), as_uint64(0))
        choice = as_int64(multiply_high(first, as_uint64(choices)))
    state = initial(params, choice)
    broken_before = 0
    step = 0
    messages = 0
    time = 0.0
    while True:
        now_broken = broken(state, params) & ~broken_before
        if now_broken != 0:
            broken_before |= now_broken
            for i in range(num_invariants):
                if now_broken >> i & 1:
                    first_steps[i] = step
            if now_broken & data_loss:
                return LOST, broken_before, step, messages, time
        guards(state, params, masks)
        total = 0
        for i in range(num_words):
            total += weights[i] * popcount(masks[i])
            sums[i] = total
        if total == 0:
            return outcome(state, params), broken_before, step, messages, time
        if step >= max_steps:
            return UNFINISHED, broken_before, step, messages, time
        step += 1
        first, second = draw_pair(seed, run, as_uint64(step), as_uint64(0))
        time += minus_log2(second) / total
        if time > horizon:
            return HORIZON, broken_before, step - 1, messages, horizon
        x = as_int64(multiply_high(first, as_uint64(total)))
        word = 0
        for i in range(num_words):
            word += sums[i] <= x
        weight = weights[word]
        nth = (x - (sums[word] - weight * popcount(masks[word]))) // weight
        instance = word_start[word] + nth_bit(masks[word], nth)
        state, sent = take(state, params, word_action[word], instance, seed, run, as_uint64(step), loss)
        messages += sent
    return UNFINISHED, broken_before, step, messages, time


def _batch(points, like, weights, word_action, word_start, losses, seed, first_run, num_runs, max_steps, horizon, out):
    masks = np.empty(num_words, np.int64)
    sums = np.empty(num_words, np.int64)
    first_steps = np.empty(8, np.int64)
    params = load_words(like, points, 0)
    for run in range(first_run, first_run + num_runs):
        o, b, st, m, t = run_one(
            params,
            weights,
            word_action,
            word_start,
            losses,
            seed,
            as_uint64(run),
            max_steps,
            horizon,
            masks,
            sums,
            first_steps,
        )
        out[o] += 1
        out[5] += st
        for i in range(5):
            out[6 + i] += b >> i & 1
    return 0
