"""Answers to questions about a chain, by elimination (`kernels.states.absorption`).

From how often a run visits each state follow

    P(a data-loss invariant is broken)  = sum of the visits of the ends that break it
    P(outcome)                          = sum of the visits of the ends of that kind
    expected steps                      = sum of the visits of all other states x P(the run goes on)
    expected model time                 = sum of the visits of all other states / W

and, with runs that end where an invariant is first broken that is no data loss, P(it is ever broken) as for the others.
With l[k] = P(the run loses data with step k), P(within n steps) = l[1] + ... + l[n]. For model time, jumps come at the
rate q = max W and leave a state with probability W / q; with l[k] of those jumps,
P(by time t) = sum over k of l[k] * P(a Poisson number with mean q t is at least k).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from quorisk.kernels.model import COMPLETED, HORIZON, LOST, OUTCOMES, STUCK, UNFINISHED, Model
from quorisk.kernels.states import absorption
from quorisk.kernels.states.absorption import Components
from quorisk.kernels.states.chain import Chain, p_step

ENDS = (COMPLETED, STUCK, LOST, HORIZON)
TRUNCATION = 1e-13
"""Relative part that the numbers by steps and by time leave out."""
MOST_JUMPS = 10_000_000


class ChainAnswers(NamedTuple):
    """Numbers of runs that go on until they end by themselves."""

    data_loss: float
    """P(any data-loss invariant is broken)."""
    invariants: dict[str, float]
    """P(a run breaks it), by name."""
    outcomes: dict[str, float]
    """P(outcome) by outcome; an `unfinished` run never ends."""
    expected_steps: float
    """Mean number of steps; infinite, like the mean time, if a run may go on for ever."""
    expected_time: float
    p_by_steps: dict[int, float]
    """P(data is lost within this many steps)."""
    p_by_time: dict[float, float]
    """P(data is lost by this model time)."""


class TooLong(ValueError):
    """A model time that takes more than MOST_JUMPS jumps to follow."""


def solve_chain(
    chain: Chain,
    parts: Components,
    model: Model,
    steps: Sequence[int],
    times: Sequence[float],
    data_loss_alone: bool = False,
) -> ChainAnswers:
    """Returns the answers, each to a relative error below 1e-10; of data loss alone, those to other invariants are left
    out, which take as long again each. Raises TooLong."""
    visits = absorption.visits(chain, parts)
    absorption.check_that_runs_end(chain, visits, model.name)
    lost, goes_on = chain.ends == LOST, chain.ends == UNFINISHED
    p_endless = _p_endless(chain, visits)
    return ChainAnswers(
        data_loss=_p(visits[lost]),
        invariants={} if data_loss_alone else _invariants(chain, parts, model, visits),
        outcomes={OUTCOMES[i]: _p(visits[chain.ends == i]) for i in ENDS} | {OUTCOMES[UNFINISHED]: p_endless},
        expected_steps=float((visits[goes_on] * p_step(chain)[goes_on]).sum()),
        expected_time=float((visits[goes_on] / chain.total_rate[goes_on]).sum()),
        p_by_steps=_by_steps(chain, lost, steps),
        p_by_time=_by_time(chain, lost, times),
    )


def breaks(chain: Chain, model: Model) -> dict[str, np.ndarray]:
    """Returns the states that break each invariant (bool by state), by its name."""
    return {invariant.name: chain.broken >> i & 1 == 1 for i, invariant in enumerate(model.invariants)}


def _invariants(chain: Chain, parts: Components, model: Model, visits: np.ndarray) -> dict[str, float]:
    ends_there = {invariant.name for invariant in model.invariants if invariant.data_loss}
    result = {}
    for name, where in breaks(chain, model).items():
        until_there = name in ends_there or not where.any()
        result[name] = _p((visits if until_there else absorption.visits(chain, parts, where))[where])
    return result


def _p(parts: np.ndarray) -> float:
    """P(any of these exclusive events), from the P of each: their sum, which rounding may bring above 1."""
    return min(1.0, float(parts.sum()))


def _p_endless(chain: Chain, visits: np.ndarray) -> float:
    """P(a run comes to where it never ends)."""
    endless = np.isinf(visits)
    if not endless.any():
        return 0.0
    source = np.repeat(np.arange(len(visits)), np.diff(chain.first))
    enters = endless[chain.target] & ~endless[source]
    return _p(np.append(chain.initial[endless], visits[source[enters]] * chain.p[enters]))


def _by_steps(chain: Chain, lost: np.ndarray, steps: Sequence[int]) -> dict[int, float]:
    sums, jumps = np.full(len(steps), chain.initial[lost].sum()), 0
    for found, rest in _blocks(chain, lost, np.ones(len(lost)), max(steps, default=0) if lost.any() else 0):
        sums += [found[: max(0, n - jumps)].sum() for n in steps]
        jumps += len(found)
        if rest <= TRUNCATION * sums.min():
            break
    return dict(zip(steps, np.minimum(sums, 1.0).tolist(), strict=True))


def _by_time(chain: Chain, lost: np.ndarray, times: Sequence[float]) -> dict[float, float]:
    sums, jumps = np.full(len(times), chain.initial[lost].sum()), 0
    top = float(chain.total_rate.max()) or 1.0  # whatever, if no run takes a step
    means = top * np.array(times)
    for found, rest in _blocks(chain, lost, chain.total_rate / top, MOST_JUMPS if times and lost.any() else 0):
        at_least = gammainc(np.arange(jumps + 1, jumps + len(found) + 1)[:, None], means)
        sums += found @ at_least
        jumps += len(found)
        if (rest * at_least[-1] <= TRUNCATION * sums).all():
            break
        if jumps == MOST_JUMPS:
            raise TooLong(
                f"model time {max(times):g} is too long to follow: {MOST_JUMPS:,} times the shortest mean time between "
                f"steps, {1 / top:.3g}, are the most"
            )
    return dict(zip(times, np.minimum(sums, 1.0).tolist(), strict=True))


def _blocks(chain: Chain, lost: np.ndarray, leave: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, float]]:
    """Yields by block of jumps, `most` in all: P(data is lost with just that jump), P(the run goes on after it)."""
    mass = np.where(chain.ends == UNFINISHED, chain.initial, 0.0)
    size = 16
    while most > 0:
        size = min(2 * size, most, 4096)
        yield absorption.arrivals(chain, lost, leave, mass, size)
        most -= size
