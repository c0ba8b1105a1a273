"""Exact probabilities of one configuration: the whole Markov chain that random runs follow, built and solved.

The chain (`kernels.states.chain`) has a state for everything that a run can come to. It is solved by elimination
(`analysis.exact.answers`), which only ever adds, multiplies and divides positive numbers, so that a probability of
1e-12 has as many true digits as one of 0.5: 1e-10 bounds the relative error, and what was seen against rational
arithmetic is below 1e-13. The model checker Storm (`analysis.exact.storm`) then solves the same chain, with no code in
common.
"""

import math
import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

from quorisk.analysis.estimate.estimate import Amount, assumptions, data_loss_invariants, only_point
from quorisk.analysis.exact import answers, storm
from quorisk.analysis.exact.answers import ChainAnswers, TooLong
from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.explore import too_much
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from quorisk.kernels.states import absorption
from quorisk.kernels.states.absorption import MAX_COMPONENT, Components
from quorisk.kernels.states.chain import Chain, ChainError, Progress, build_chain

SMALLER = "reduce the sizes in [model], or use `quorisk estimate`, which solves the likeliest paths exactly"
INSTEAD = f"give it more memory, {SMALLER}"


class Certain(NamedTuple):
    """The probability that a run breaks an invariant."""

    p: float
    proved_zero: bool
    """Whether no reachable state breaks it, under the configuration's rates and message_loss: a proof, unlike many
    runs without a loss."""


class ExactResult(NamedTuple):
    """Exact numbers of one configuration, for runs that end on their own, whatever run.max_steps is."""

    protocol: str
    point_id: str
    parameters: dict[str, Any]
    """All parameters by dotted key, including defaults."""
    states: int
    transitions: int
    """The number of pairs of a state and a next state."""
    largest_cycle: int
    """States of the largest strongly connected component; 1 if no run returns to a state."""
    data_loss: Certain
    """The probability of breaking any invariant whose breach is data loss."""
    invariants: dict[str, Certain]
    data_loss_invariants: list[str]
    outcomes: dict[str, float]
    """The probability of each way to end; `unfinished` runs never end."""
    expected_steps: float | None
    """The mean number of steps of a run; None if a run may go on for ever."""
    expected_time: float | None
    """The mean model time of a run; None if a run may go on for ever."""
    p_by_steps: dict[int, float]
    """The probability that data is lost within each of these numbers of steps."""
    p_by_time: dict[float, float]
    """The probability that data is lost by each of these model times."""
    storm_difference: float | None
    """The largest relative difference between these numbers and Storm's; None if Storm did not run."""
    build_s: float
    solve_s: float
    assumptions: list[str]
    amount: Amount | None = None
    """Records that a run loses that loses any, counted in runs: see `amounts.with_amount`."""
    expected_records: float | None = None
    """`data_loss.p` times the mean of `amount`."""


def exact(
    experiment: Experiment,
    memory_bytes: int,
    steps: Sequence[int] = (),
    times: Sequence[float] = (),
    ask_storm: bool = False,
    progress: Progress | None = None,
    data_loss_alone: bool = False,
    lumps: bool = False,
) -> ExactResult:
    """Solves the Markov chain of the one point of an experiment.

    Args:
        experiment: the experiment.
        memory_bytes: memory for the chain.
        steps: numbers of steps within which the probability of data loss is wanted, too.
        times: times by which it is wanted, too, in the unit of the rates.
        ask_storm: whether Storm solves the chain as well.
        progress: called with the numbers of states and transitions so far, and of states to expect.
        data_loss_alone: whether to leave out single invariants, which saves time.
        lumps: whether states are merged in which things that are alike change places; never of foreign protocols.

    Returns:
        The probabilities, and the expected steps and time of a run.

    Raises:
        ConfigError: as soon as it is likely that the chain takes more memory.
    """
    model, grid_point = experiment.model, only_point(experiment)
    _check_bounds(steps, times)
    start = time.perf_counter()
    chain = chain_of(experiment, memory_bytes, progress, lumps)
    built = time.perf_counter()
    parts = _components(chain)
    try:
        solved = answers.solve_chain(chain, parts, model, steps, times, data_loss_alone)
    except TooLong as error:
        raise ConfigError(str(error)) from None
    solve_s = time.perf_counter() - built
    return ExactResult(
        protocol=experiment.protocol,
        point_id=grid_point.point_id,
        parameters=dotted_values(model, grid_point.point),
        states=len(chain.ends),
        transitions=len(chain.p),
        largest_cycle=parts.largest,
        **_certain(chain, model, solved),
        data_loss_invariants=data_loss_invariants(model),
        outcomes=solved.outcomes,
        expected_steps=solved.expected_steps if math.isfinite(solved.expected_steps) else None,
        expected_time=solved.expected_time if math.isfinite(solved.expected_time) else None,
        p_by_steps=solved.p_by_steps,
        p_by_time=solved.p_by_time,
        storm_difference=(
            storm.largest_difference(solved, storm.storm_answers(chain, parts.largest == 1, model, steps, times))
            if ask_storm
            else None
        ),
        build_s=built - start,
        solve_s=solve_s,
        assumptions=assumptions(model, grid_point.point),
    )


def parse_time(experiment: Experiment, given: str) -> float:
    """Returns a time as the model counts it, from a number or, if the experiment's rates have units, a time such as
    "1 day". Raises ConfigError.
    """
    physical = experiment.points[0].point.time_unit is not None
    try:
        return float(given)
    except ValueError:
        pass
    if not physical:
        raise ConfigError(f" {given}: a number, as the rates have no units", "by_time")
    try:
        return float(units.read_time(given))
    except ConfigError as error:
        raise ConfigError(f" {given}: {error}", "by_time") from None


def _check_bounds(steps: Sequence[int], times: Sequence[float]) -> None:
    """Raises ConfigError unless these are numbers of steps, and finite times, of 0 or more."""
    for number in steps:
        if not (isinstance(number, Integral) and number >= 0):
            raise ConfigError(f" {number!r}: a whole number of steps, 0 or more", "by_steps")
    for by in times:
        if not (isinstance(by, Real) and 0.0 <= by < math.inf):
            raise ConfigError(f" {by!r}: a time, 0 or more; at any time is what the data loss itself says", "by_time")


def chain_of(experiment: Experiment, memory_bytes: int, progress: Progress | None = None, lumps: bool = False) -> Chain:
    """Builds the chain of an experiment's one point. Raises ConfigError."""
    model, point = experiment.model, only_point(experiment).point
    if experiment.run.at_any_time and point.lifetime < math.inf:
        raise ConfigError(
            f"{experiment.path}: run.at_any_time = true: false, because a chain ends with the lifetime "
            "(run.lifetime), and does not know what would break later"
        )
    if point.horizon < math.inf:
        raise ConfigError(
            f"{experiment.path}: run.horizon = {point.horizon:g}: exact answers need runs without a horizon; "
            f"set run.horizon = inf, and ask for the data loss by time {point.horizon:g}"
        )
    try:
        return build_chain(model, point, memory_bytes, progress, lumps and model.name in registry.own())
    except ChainError as error:
        raise ConfigError(f": {error}; {INSTEAD}", "memory") from None
    except MemoryError:
        raise too_much(memory_bytes, f"ask for less, {SMALLER}") from None


def _components(chain: Chain) -> Components:
    parts = absorption.components(chain)
    if parts.largest > MAX_COMPONENT:
        raise ConfigError(
            f"runs move back and forth among {parts.largest:,} states; at most {MAX_COMPONENT:,} can be solved "
            "exactly; reduce the sizes in [model], or use `quorisk estimate`"
        )
    return parts


def _certain(chain: Chain, model: Model, solved: ChainAnswers) -> dict[str, Any]:
    breaking = answers.breaks(chain, model)
    lost = solved.outcomes["lost"]
    return {
        "invariants": {name: Certain(p, not breaking[name].any()) for name, p in solved.invariants.items()},
        "data_loss": Certain(lost, not any(breaking[i.name].any() for i in model.invariants if i.data_loss)),
    }
