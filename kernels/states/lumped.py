"""A check of `Model.forget` and `Model.alike`: whether the states that a head replaces by one may be lumped.

States may be lumped if, from each of them, the rate at which runs come to every other lump is the same: then the chain
of the lumps is a Markov chain (Kemeny and Snell, Finite Markov Chains, 1960, section 6.3). So all steps of a state and
of its representative are listed, in plain Python, and their rates are added up by the representative of the next state.
Steps within a lump play no part. Two representatives may stand for states that differ in nothing that matters, such as
servers whose hashes are equal, which keep their order: they are one lump if they go on at the same rates. A sample
cannot show that this holds in all states, but a wrong declaration is wrong in most.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from quorisk.kernels import declared, paths
from quorisk.kernels.engines.points import Point
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import EVERYTHING, Model, data_loss_mask
from quorisk.kernels.paths import Step
from quorisk.kernels.states.odds import Odds, odds_of
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.states.representatives import representative

STATES = 160
"""Number of states that are compared with their representatives."""
STEPS = 2000
"""Number of steps of the random walks from which these states are sampled."""
CLOSE = 1e-9
"""Largest relative difference of two rates that should be equal."""
_NONE = 0.0, ""
Lump = tuple[Any, int]
"""Representative of states, and the invariants that they break."""
Rates = dict[Lump, tuple[float, str]]
"""Rate into each lump, and an action that leads there."""


class MergedStates(NamedTuple):
    """A state and its representative."""

    state: Any
    kept: Any
    declared: str
    """Declaration that replaces the state: `forget` or `alike`."""


def check_stand_ins(model: Model, point: Point, num_steps: int = STEPS, num_states: int = STATES) -> int:
    """Compares states of a point's random walks with their representatives; returns the number of comparisons.

    Raises ModelError if what can happen differs, or if a step is not what the model declares (`declared.walks`).
    """
    if model.forget is None and model.alike is None:
        return 0
    odds = odds_of(model, point)
    programs = Programs(model, odds.params)

    def stand_in(state: Any) -> Any:
        return representative(programs, state, odds.alike)

    steps = islice(declared.walks(model, odds.params, num_steps, seed=1), num_steps)
    states = list(dict.fromkeys(step.after for step in steps))
    chosen = random.Random(1).sample(states, min(num_states, len(states)))
    pairs = [pair for state in chosen for pair in _pairs(model, odds, state, stand_in)]
    for pair in pairs:
        if said := _difference(model, odds, pair, stand_in):
            raise ModelError(f"protocol = {model.name!r}: {pair.declared}: {said}; see docs/adding-a-protocol.md")
    return len(pairs)


def _pairs(model: Model, odds: Odds, state: Any, stand_in: Callable[[Any], Any]) -> Iterator[MergedStates]:
    known, kept = model.forget(state, odds.params) if model.forget else state, stand_in(state)
    if known != state:
        yield MergedStates(state, known, "forget")
    if kept != known:
        yield MergedStates(known, kept, "alike")


def _difference(model: Model, odds: Odds, pair: MergedStates, stand_in: Callable[[Any], Any]) -> str:
    """Describes the difference between a state and its representative; empty if none matters."""
    broken = [paths.broken(model, state, odds.params) for state in (pair.state, pair.kept)]
    text = f"in place of {pair.state} a head would keep {pair.kept}"
    if broken[0] != broken[1]:
        return f"{text}, which breaks other invariants"
    if broken[0] & data_loss_mask(model):
        return ""
    before, after = (_rates(model, odds, state, stand_in) for state in (pair.state, pair.kept))
    ends = [model.outcome(state, odds.params) for state in (pair.state, pair.kept)]
    if not before and not after and ends[0] != ends[1]:
        return f"{text}, which ends otherwise"
    differ = [
        there
        for there in before.keys() | after.keys()
        if not math.isclose(before.get(there, _NONE)[0], after.get(there, _NONE)[0], rel_tol=CLOSE)
    ]
    same = {lump: _onward(model, odds, lump, stand_in) for lump in differ}
    if not differ or _sums(before, same) == _sums(after, same):
        return ""
    (mine, name), (other, its) = before.get(min(differ), _NONE), after.get(min(differ), _NONE)
    return f"{text}, where {name or its} has the rate {other:.6g}, not {mine:.6g}"


def _onward(model: Model, odds: Odds, lump: Lump, stand_in: Callable[[Any], Any]) -> Hashable:
    """A lump's broken invariants and rates into others: the same ones in lumps that may be one."""
    state, is_broken = lump
    rates = {} if is_broken & data_loss_mask(model) else _rates(model, odds, state, stand_in)
    return is_broken, None if rates else model.outcome(state, odds.params), _sums(rates, {})


def _sums(rates: Rates, same: Mapping[Lump, Hashable]) -> Hashable:
    """Rates, to nine digits, into lumps; those with the same value in `same` are one."""
    sums = defaultdict[Hashable, float](float)
    for lump, (rate, _) in rates.items():
        sums[same.get(lump, lump)] += rate
    return frozenset((lump, f"{rate:.9g}") for lump, rate in sums.items())


def _rates(model: Model, odds: Odds, state: Any, stand_in: Callable[[Any], Any]) -> Rates:
    """Rates from a state into all lumps but its own."""

    def lump(there: Any) -> Lump:
        return stand_in(there), paths.broken(model, there, odds.params)

    here, rates, names = lump(state), defaultdict[Any, float](float), dict[Any, str]()
    for step, weight in _steps(model, odds, state):
        there = lump(paths.after(model, state, odds.params, step)) if weight else here
        if there != here:
            rates[there] += weight
            names[there] = model.actions[step.action].name
    return {there: (rate, names[there]) for there, rate in rates.items()}


def _steps(model: Model, odds: Odds, state: Any) -> Iterator[tuple[Step, float]]:
    """All steps from a state, each with its rate."""
    enabled = list(paths.instances(model, state, odds.params))
    members: dict[Any, int] = defaultdict(int)
    for action, instance in enabled:
        members[_group(model, action, instance)] += 1
    for action, instance in enabled:
        rate = float(odds.rates[action]) / members[_group(model, action, instance)]
        sent = paths.sends(model, state, odds.params, Step(action, instance, 0))
        for lost in paths.subsets(sent):
            yield Step(action, instance, lost), rate * odds.fates[action, sent.bit_count(), lost.bit_count()]


def _group(model: Model, action: int, instance: int) -> tuple[int, int]:
    """Returns the group that shares the instance's rate (`kernels.rule`): its action, and where the group begins."""
    shared = model.actions[action].shared
    if shared == EVERYTHING:
        return action, 0
    return action, instance - (instance & 63) % shared
