"""A step of a run, and a run between two steps: written once for plain Python, which replays runs, and for XLA.

Numbers are Python's or JAX's. Nothing branches on them, so that `jax.vmap` makes a step of many runs of this one; the
results of a model's functions come from an `Answers`. `numba_run` and lanes make the same runs, to the bit, in an order
that suits their machine code: they draw by `philox`, and note and end runs by the functions here, on LLVM's values too.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from quorisk.kernels.engines.philox import (
    FIRST_MESSAGES,
    OPEN,
    RETRY,
    draw_pair,
    first_draws,
    is_accepted,
    later_fates,
    multiply_high,
    pick,
    place,
    settled_fates,
)
from quorisk.kernels.model import (
    HORIZON,
    LOST,
    OUTCOMES,
    UNFINISHED,
    Model,
    data_loss_mask,
    exposure_mask,
    exposures,
    fault_bits,
)
from quorisk.kernels.ops import as_int64, as_uint64, jitable, nth_bit_branch_free, popcount, where
from quorisk.kernels.rule import group_words, losses

RUNNING, IDLE = -1, len(OUTCOMES)
"""Outcomes of a run that goes on, and of a lane of a batch that has none."""


class Run(NamedTuple):
    """A run under way. In a batch every array has an axis of lanes."""

    job: Any  # int32, its row of Settings
    run: Any  # int64, the run's index
    state: Any  # the model's, as the `Answers` take it
    outcome: Any  # int32: RUNNING, IDLE or one of OUTCOMES
    broken_mask: Any  # int32
    met_mask: Any  # int32: the kinds of faults that it met
    exposing: Any  # int32: the exposures that last
    first_steps: tuple[Any, ...]  # int32, by invariant: the step at which it broke first; None if it is not kept
    steps: Any  # int32
    attempt: Any  # int32: how often the next step was drawn and not accepted
    messages: Any  # int64
    time: Any  # float64, in the engines' unit
    exposed: tuple[Any, ...]  # float64, by exposure: how long it lasted, less the time at which it began if it lasts;
    # None if it is not kept


class Settings(NamedTuple):
    """The limits and odds of a job's runs; in tables the first axis is the job. See `points.Points`."""

    params: tuple[Any, ...]  # int64, the leaves of Params
    weights: tuple[Any, ...]  # int64, by word of groups, the last one for the end of a lifetime
    accepts: tuple[Any, ...]  # uint64, likewise; empty if everything is always accepted
    losses: tuple[Any, ...]  # uint64
    max_steps: Any  # int64
    horizon: Any  # float64


class Answers(Protocol):
    """A model's guards and effects in one state. Actions are given by their places, known when this is traced."""

    def broken(self) -> Any:
        """Bit i is set if invariant i does not hold."""

    def groups(self) -> Sequence[Any]:
        """The words of `rule.group_words`: groups with a member enabled."""

    def outcome(self) -> Any:
        """The outcome of a run that ends here because nothing is enabled."""

    def member(self, action: int, group: Any, picked: Any) -> Any:
        """The instance that goes off of a group; see `rule.member`."""

    def subset(self, action: int, instance: Any) -> Any:
        """Mask of the members that an instance may lose, such as the messages that it sends."""

    def after(self, action: Any, instance: Any, lost: Any) -> Any:
        """The state after an instance of `action`, which may be traced; the state itself if that is -1."""

    def once(self, values: Any) -> Any:
        """The values, marked for a compiler not to compute them again at each use."""


class _Drawn(NamedTuple):
    """A group; `action` is the number of actions at the end of a lifetime, -1 if nothing is to be done."""

    action: Any
    group: Any
    accept: Any


def initial_choice(choices: Any, seed: Any, run: Any) -> Any:
    """The number of a run's initial state, below `choices`. `seed` is uint64."""
    drawn, _ = draw_pair(seed, as_uint64(run), np.uint64(0), np.uint64(0))
    return as_int64(multiply_high(drawn, as_uint64(choices)))


def fresh(model: Model, job: Any, run: Any, state: Any) -> Run:
    """A run before its first step."""
    firsts, exposed = (0,) * len(model.invariants), (0.0,) * len(exposures(model))
    return Run(job, run, state, RUNNING, 0, 0, 0, firsts, 0, 0, 0, 0.0, exposed)


def step(model: Model, answers: Answers, settings: Settings, seed: Any, run: Run) -> Run:
    """A run one step on, or ended; unchanged if it had ended before. `seed` is uint64."""
    running = run.outcome == RUNNING
    broken_now, masks = answers.once((answers.broken(), answers.groups()))
    run, is_lost = noted(model, run, broken_now)
    masks = [*masks, 1]  # the end of a lifetime, always possible
    sums = list(accumulate(weight * popcount(mask) for weight, mask in zip(settings.weights, masks, strict=True)))
    total = where(sums[-1] > 0, sums[-1], 1)

    block = as_uint64(run.attempt) * np.uint64(RETRY)
    source = seed, as_uint64(run.run), as_uint64(run.steps + 1), block, settings.losses[0]
    choose, wait, fates = first_draws(source)
    drawn = _draw(model, settings, masks, sums, as_int64(place(choose, as_uint64(total), source)))
    accepted = is_accepted(drawn.accept, source) if settings.accepts else True
    time = run.time + wait / (total * 1.0)  # as compiled code divides: a float by a float
    late = time > settings.horizon
    ends = where(late | accepted & (drawn.action == len(model.actions)), HORIZON, RUNNING)
    dead = sums[-2] == 0
    ends = ending(ends, run.steps >= settings.max_steps, dead, only_if(dead, answers.outcome), is_lost)
    outcome = where(running, ends, run.outcome)
    goes_on = outcome == RUNNING
    moves = goes_on & accepted
    waited = goes_on | (running & (outcome == HORIZON))

    drawn = answers.once(drawn._replace(action=where(moves, drawn.action, -1)))
    state, messages, met = _taken(model, answers, settings, drawn, fates, source)
    return run._replace(
        state=state,
        outcome=outcome,
        met_mask=run.met_mask | met,
        steps=where(moves, run.steps + 1, run.steps),
        attempt=where(moves, 0, where(goes_on, run.attempt + 1, 0)),
        messages=run.messages + popcount(messages),
        time=where(waited, where(late, settings.horizon, time), run.time),
    )


def noted(model: Model, run: Run, broken_now: Any) -> tuple[Run, Any]:
    """A run with the invariants that its state breaks and the exposures that begin or end there; whether data is lost.

    A run that has ended stays as it is: all that its last state breaks was noted.
    """
    newly_broken, changed = broken_now & ~run.broken_mask, broken_now ^ run.exposing
    exposed = [
        before if before is None else where(changed >> i & 1, switched(before, run.exposing >> i & 1, run.time), before)
        for i, before in zip(exposures(model), run.exposed, strict=True)
    ]
    firsts = [
        before if before is None else where(newly_broken >> i & 1, run.steps, before)
        for i, before in enumerate(run.first_steps)
    ]
    noted = run._replace(
        broken_mask=run.broken_mask | newly_broken,
        exposing=broken_now & exposure_mask(model),
        first_steps=tuple(firsts),
        exposed=tuple(exposed),
    )
    return noted, (newly_broken & data_loss_mask(model)) != 0


@jitable
def switched(exposed, lasts, time):
    """The duration of an exposure that begins or ends at `time`, less the time at which it began if it lasts from now
    on; `lasts` says whether it did before."""
    return where(lasts, exposed + time, exposed - time)


@jitable
def ending(otherwise, at_limit, dead, outcome, is_lost):
    """The outcome of a run in a state: `otherwise` if it goes on from there, `outcome` if it is `dead`, as nothing is
    enabled. `at_limit`: it has made all steps that it may make."""
    return where(is_lost, LOST, where(dead, outcome, where(at_limit, UNFINISHED, otherwise)))


def lasted(model: Model, run: Run) -> list[Any]:
    """The time for which each exposure of a run lasted, in the engines' unit; those that last end with the run."""
    return [
        before if before is None else before + where(run.exposing >> i & 1, run.time, 0.0)
        for i, before in zip(exposures(model), run.exposed, strict=True)
    ]


def select(place: Any, otherwise: Any, value_of: Callable[[int], Any], places: Iterable[int]) -> Any:
    """`value_of(place)` if that is one of `places`, else `otherwise`; of a Python number no other value is computed."""
    if isinstance(place, int):
        return value_of(place) if place in places else otherwise
    result = otherwise
    for each in places:
        result = where(place == each, value_of(each), result)
    return result


def only_if(flag: Any, compute: Callable[[], Any], otherwise: Any = 0) -> Any:
    """Returns what `compute` does if the flag is traced or holds, else `otherwise`, without computing it."""
    return otherwise if isinstance(flag, bool) and not flag else compute()


def _draw(model: Model, settings: Settings, masks: Sequence[Any], sums: Sequence[Any], chosen: Any) -> _Drawn:
    """The group in whose share of the total `chosen` lies: the words' shares end at `sums`."""
    further = [each <= chosen for each in sums[:-1]]

    def of_word(values: Sequence[Any]) -> Any:
        if isinstance(further[0], bool):
            return values[sum(further)]
        found = values[0]
        for flag, value in zip(further, values[1:], strict=True):
            found = where(flag, value, found)
        return found

    words = [*group_words(model), (len(model.actions), 0)]
    mask, weight, before = of_word(masks), of_word(settings.weights), of_word([0, *sums[:-1]])
    nth = (chosen - before) // where(weight > 0, weight, 1)
    return _Drawn(
        action=of_word([action for action, _ in words]),
        group=of_word([first for _, first in words]) + nth_bit_branch_free(mask, nth),
        accept=of_word(settings.accepts) if settings.accepts else None,
    )


def _taken(
    model: Model, answers: Answers, settings: Settings, drawn: _Drawn, fates: Any, source: Any
) -> tuple[Any, Any, Any]:
    """The state after the draw, the messages that it sends as a mask, and the kinds of faults that the run meets.

    `fates` are the fates of messages from block 0.
    """
    action, loses, everything = drawn.action, losses(model), range(len(model.actions))
    picked = cache(lambda: pick(source))
    shared = [i for i in everything if model.actions[i].shared > 1]
    instance = select(action, drawn.group, lambda i: answers.member(i, drawn.group, picked()), shared)
    subset = select(action, 0, lambda i: answers.subset(i, instance), everything)
    most = popcount(subset) if isinstance(subset, int) else model.max_sends
    fates = _fates(model, settings, action, fates, source, most) if most else 0
    lost = answers.once(_deposit(fates, subset, model.max_sends))
    messages = select(action, subset, lambda i: 0, [i for i in everything if loses[i]])
    faults = fault_bits(model)
    met = select(action, 0, lambda i: faults[i], [i for i in everything if faults[i]])
    return answers.after(action, instance, lost), messages, met | where(lost & messages != 0, 1, 0)


def _fates(model: Model, settings: Settings, action: Any, fates: Any, source: Any, most: int) -> Any:
    """Returns a mask: bit j is set if member j of the subset, from the lowest bit, of `most` at most, is lost."""
    places = losses(model)
    if places[action] if isinstance(action, int) else any(places):
        loss = select(action, settings.losses[0], lambda i: settings.losses[places[i]], range(len(places)))
        source = (*source[:-1], loss)
        fates = first_draws(source)[2]
    fates = only_if(fates >> OPEN != 0, lambda: settled_fates(fates, source), fates)
    return fates | later_fates(source, most) if most > FIRST_MESSAGES else fates


def _deposit(bits: Any, mask: Any, width: int) -> Any:
    """`ops.deposit` for masks of up to `width` bits, without a branch."""
    result, num_below = 0, 0
    for i in range(width):
        is_set = mask >> i & 1
        result |= (is_set & (bits >> num_below)) << i
        num_below += is_set
    return result
