"""One run on a CPU, step by step, as compiled code makes it: templates, and the function that binds them to a model."""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import LATE, bind, load_words, unpacking
from quorisk.kernels.engines.hurried import hurry_functions
from quorisk.kernels.engines.philox import (
    FIRST_MESSAGES,
    OPEN,
    again,
    draw_pair,
    fates_of,
    first_draws,
    highest_place,
    is_accepted,
    later_fates,
    lowest_place,
    multiply_high,
    pick,
    place,
    settled_fates,
)
from quorisk.kernels.engines.points import ALWAYS
from quorisk.kernels.engines.step import RUNNING, ending, switched
from quorisk.kernels.engines.tally import add_run, write_record
from quorisk.kernels.model import HORIZON, Model, data_loss_mask, exposure_mask, exposures
from quorisk.kernels.ops import as_int64, as_uint64, jitable, jitable_apart, nth_bit, popcount
from quorisk.kernels.packing import fields_of, spread
from quorisk.kernels.rule import group_words, losses
from quorisk.kernels.stepper import sending_more_than, stepper

_AHEAD = 8
"""Steps for which a run draws its numbers at a time: a power of two, at least a SIMD register of 64-bit numbers."""


class Words(NamedTuple):
    """Table of the words of groups (`rule.group_words`), int64 by word."""

    action: np.ndarray
    first: np.ndarray
    """Its first instance."""
    met: np.ndarray
    """The kinds of faults that a run meets by it, as a mask."""


class RunLimits(NamedTuple):
    """Limits and losses of a point, the same for all its runs."""

    loss: np.uint64
    """The probability that a message is lost, in units of 2**-63."""
    losses: np.ndarray
    """uint64 by action: the probability with which each member of its subset is lost, in the same units."""
    max_steps: np.int64
    horizon: np.float64


class Room(NamedTuple):
    """Memory of a run for what does not fit into registers; the next run uses it again."""

    masks: np.ndarray  # int64 by word, the groups with a member enabled
    sums: np.ndarray  # int64 by word, the weight of those groups, of this word and all before it
    first_steps: np.ndarray  # int64 by invariant, the step at which it broke
    exposed: np.ndarray  # float64 by exposure, how long it lasted
    draws: np.ndarray  # int64, the random numbers of the next steps
    wide: np.ndarray  # uint64, the state in which a run starts that does not start at the beginning


@cache
def batch_function(model: Model, hurried: bool = False) -> Any:
    """Compiles `_batch`, which makes runs of a point and adds them up."""
    steps = stepper(model)
    sizes: dict[str, Any] = {"num_words": len(group_words(model)), "num_invariants": len(model.invariants)}
    sizes["num_wide"] = fields_of(model.widths)[-1].word + 1
    sizes["exposed_places"] = np.array(exposures(model), np.int64)
    one = bind(
        _run,
        model.name,
        add_up=bind(_add_up, model.name, **sizes),
        groups=steps.groups,
        take=steps.take,
        special=_mask(i for i, action in enumerate(model.actions) if action.shared > 1 or losses(model)[i]),
        sends_many=sending_more_than(model, FIRST_MESSAGES),
        settle=bind(
            _settle,
            model.name,
            sends=steps.sends,
            member=steps.member,
            sharing=_mask(i for i, action in enumerate(model.actions) if action.shared > 1),
            losing_else=_mask(i for i, loss in enumerate(losses(model)) if loss),
        ),
        broken=steps.broken,
        max_sends=model.max_sends,
        begin=bind(
            _begin,
            model.name,
            initial=steps.initial,
            initial_choices=steps.initial_choices,
            spread=spread,
            unpack=unpacking(model.widths),
        ),
        outcome=steps.outcome,
        data_loss=data_loss_mask(model),
        exposure=exposure_mask(model),
        **hurry_functions(model, hurried)._asdict(),
        **sizes,
    )
    name = f"{model.name}.hurried" if hurried else model.name  # code on disk is found by it
    return bind(_batch, name, kept_for=model.name, run_one=one, **sizes)


def _mask(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)


# Templates, with the names that are bound by `batch_function`

add_up = begin = broken = data_loss = exposed_places = exposure = groups = initial = initial_choices = LATE
instead = is_dropped = losing_else = max_sends = member = needed = num_invariants = num_wide = num_words = LATE
outcome = run_one = sends = sends_many = settle = sharing = special = take = unpack = LATE


def _run(params, weights, accepts, words, limits, starts, seed, run, room):
    """Makes one run: returns its outcome, the masks of invariants that it broke and of faults that it met, steps,
    messages sent, time in the engines' unit. Writes `room.first_steps`, and to `room.exposed` each exposure's duration.
    """
    masks, sums, draws, first_steps = room.masks, room.sums, room.draws, room.first_steps
    state = begin(params, starts, room.wide, seed, run)
    broken_mask, met_mask, exposing, step, messages, time, still = 0, 0, 0, 0, 0, 0.0, needed(state, params)
    room.exposed[:] = 0.0
    while True:
        broken_now = broken(state, params)
        newly_broken = broken_now & ~broken_mask
        if (broken_now ^ exposing) & exposure:
            _expose(broken_now, exposing, time, exposed_places, room.exposed)
            exposing = broken_now & exposure
        if newly_broken != 0:
            broken_mask |= newly_broken
            _note(newly_broken, step, first_steps)
        groups(state, params, masks)
        total = add_up(weights, masks, sums)
        if total == 0 or step >= limits.max_steps or newly_broken & data_loss:
            is_lost, at_limit = newly_broken & data_loss != 0, step >= limits.max_steps
            ended = ending(RUNNING, at_limit, total == 0, outcome(state, params), is_lost)
            break
        total = sums[num_words] = total + weights[num_words]
        choose, wait, fates = _drawn(seed, run, step, limits.loss, draws)
        time += wait / total
        word, nth, is_open = _choose(weights, masks, sums, choose)
        block = as_uint64(0)
        if is_open or accepts[word] != as_uint64(ALWAYS):
            source = seed, run, as_uint64(step + 1), block, limits.loss
            word, nth, time, fates, block = _choose_with_care(
                weights, accepts, masks, sums, choose, time, limits.horizon, fates, source
            )
        source = seed, run, as_uint64(step + 1), block, limits.loss
        if word == num_words:
            word, nth = instead(masks, starts, source)
        if time > limits.horizon or word == num_words:
            ended, time = HORIZON, min(time, limits.horizon)
            break
        step += 1
        if max_sends > 0 and fates >> OPEN:
            fates = settled_fates(fates, source)
        action, instance = words.action[word], words.first[word] + nth_bit(masks[word], nth)
        if (special | sends_many()) >> action & 1:  # block 0 does not decide all
            instance, fates = settle(state, params, action, instance, fates, source, limits.losses)
        state, sent, lost = take(state, params, action, instance, fates)
        messages += sent
        met_mask |= words.met[word] | as_int64(lost != 0)
        before, still = still, needed(state, params)
        if is_dropped(still - before, action, starts, source):
            ended = HORIZON
            break
    if exposing:
        _expose(0, exposing, time, exposed_places, room.exposed)
    return ended, broken_mask, met_mask, step, messages, time


@jitable
def _note(newly_broken, step, first_steps):
    """Notes the step at which invariants broke first."""
    for i in range(len(first_steps)):
        if newly_broken >> i & 1:
            first_steps[i] = step


def _settle(state, params, action, group, fates, source, losses):
    """The instance that goes off of a group, and the fates of all that it may lose."""
    instance = group
    if sharing >> action & 1:
        instance = member(state, params, action, group, pick(source))
    num = popcount(sends(state, params, action, instance))
    if losing_else >> action & 1:
        seed, run, step, block, _ = source
        fates = fates_of((seed, run, step, block, losses[action]), num)
    elif num > FIRST_MESSAGES:
        fates |= later_fates(source, num)
    return instance, fates


def _add_up(weights, masks, sums):
    """The weight of all groups with a member enabled; `sums` has those of the first 1, 2, ... words."""
    total = 0
    for word in range(num_words):
        total += weights[word] * popcount(masks[word])
        sums[word] = total
    return total


@jitable
def _choose(weights, masks, sums, choose):
    """The word of groups and the group in it that 32 bits lead to, and whether further bits may change that."""
    total = as_uint64(sums[-1])
    lowest, highest = as_int64(lowest_place(choose, total)), as_int64(highest_place(choose, total))
    word = 0
    while sums[word] <= lowest:  # the end of this loop lets the processor predict the action, as no formula would
        word += 1
    weight = weights[word]
    before = sums[word] - weight * popcount(masks[word])
    nth = lowest - before
    if weight != 1:  # a division is slow, and the next step waits for it
        nth = nth // weight
    return word, nth, highest >= before + (nth + 1) * weight


@jitable_apart
def _expose(broken_now, exposing, time, places, exposed):
    """Subtracts the times at which exposures begin from their durations, and adds those at which they end."""
    for k in range(len(places)):
        lasts = exposing >> places[k] & 1
        if lasts != broken_now >> places[k] & 1:
            exposed[k] = switched(exposed[k], lasts, time)


def _begin(params, starts, wide, seed, run):
    """The state in which a run starts: one of `starts` if there are any, else an initial one."""
    choices = initial_choices(params)
    choice = 0
    if choices > 1 or len(starts.cumulative) > 0:
        to_choose, to_start = draw_pair(seed, run, as_uint64(0), as_uint64(0))
        if len(starts.cumulative) > 0:
            row = _first_above(starts.cumulative, as_int64(to_start >> as_uint64(2)))
            spread(starts.rows[row], starts.layout, wide)
            return unpack(initial(params, 0), wide)
        choice = as_int64(multiply_high(to_choose, as_uint64(choices)))
    return initial(params, choice)


@jitable_apart
def _first_above(ascending, number):
    """The place of the first of ascending numbers that is above this one; NumPy's takes a second to compile."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@jitable_apart
def _choose_with_care(weights, accepts, masks, sums, choose, time, horizon, fates, source):
    """The word of groups and the group in it that the draws lead to if all their bits count, the time by then, and the
    fates and the block of the attempt at which a group was accepted."""
    total = sums[-1]
    while True:
        drawn = as_int64(place(choose, as_uint64(total), source))
        word = 0
        while sums[word] <= drawn:
            word += 1
        nth = (drawn - sums[word] + weights[word] * popcount(masks[word])) // weights[word]
        if is_accepted(accepts[word], source):
            return word, nth, time, fates, source[3]
        source = again(source)
        choose, wait, fates = first_draws(source)
        time += wait / total
        if time > horizon:
            return word, nth, time, fates, source[3]


@jitable
def _drawn(seed, run, step, loss, draws):
    """The random numbers of the next step: what chooses the group, the wait, and the fates of messages."""
    ahead = step & (_AHEAD - 1)
    if ahead == 0:
        _draw_ahead(seed, run, step, loss, draws)
    return as_uint64(draws[ahead]), draws[_AHEAD + ahead], draws[2 * _AHEAD + ahead]


@jitable
def _draw_ahead(seed, run, step, loss, draws):
    """The random numbers of the next steps all at once, as they do not depend on states: for each step what chooses
    the group, the wait, and the fates of messages.

    A loop without branches over one array, so that it becomes SIMD code.
    """
    for i in range(_AHEAD):
        choose, wait, fates = first_draws((seed, run, as_uint64(step + 1 + i), as_uint64(0), loss))
        draws[i] = as_int64(choose)
        draws[_AHEAD + i] = wait
        draws[2 * _AHEAD + i] = fates


def _batch(like, point, weights, accepts, words, limits, time_unit, starts, seed, runs, tally, records):
    """Runs of one point, added up in `tally`; one row each in `records` unless that is empty."""
    params = load_words(like, point)
    room = Room(
        masks=np.ones(num_words + 1, np.int64),  # the last one is the end of a lifetime, always possible
        sums=np.empty(num_words + 1, np.int64),
        first_steps=np.empty(num_invariants, np.int64),
        exposed=np.empty(len(exposed_places)),
        draws=np.empty(3 * _AHEAD, np.int64),
        wide=np.empty(num_wide, np.uint64),
    )
    for i in range(len(runs)):
        run = as_uint64(runs[i])
        ended, broken_mask, met_mask, steps, messages, time = run_one(
            params, weights, accepts, words, limits, starts, seed, run, room
        )
        high, low = add_run(
            ended, broken_mask, met_mask, steps, messages, time, time_unit, room.first_steps, room.exposed, tally
        )
        if len(records) > 0:
            write_record(records, i, ended, broken_mask, met_mask, steps, messages, high, low)
