"""Causes of losses that were solved: the kinds of faults that runs met on their way, exactly."""

import numpy as np

from quorisk.kernels.engines.tally import kinds_of
from quorisk.kernels.model import Model, fault_bits
from quorisk.kernels.paths import subsets
from quorisk.kernels.rule import losses
from quorisk.kernels.states import absorption
from quorisk.kernels.states.moves import Moves


def p_loss_by_faults(model: Model, moves: Moves) -> dict[frozenset[str], float]:
    """Returns, by set of kinds of faults, the probability that a run loses data inside a head and met just these.

    Runs that meet no others than those of a set S are solved with all other faults ending the run: f(S). P(loss having
    met just S) is the sum over its subsets T of (-1)^|S - T| f(T). Rare sets are only as exact as f is, to some 1e-15
    of all losses. Sets with less than 1e-12 of all losses are left out.
    """
    met = _met(model, moves)
    present = int(np.bitwise_or.reduce(met[moves.chain.p > 0.0], initial=0))
    found = {allowed: _lost_with(moves, met, allowed) for allowed in subsets(present)}
    for bit in (1 << k for k in range(present.bit_length()) if present >> k & 1):
        for allowed in found:
            if allowed & bit:
                found[allowed] -= found[allowed ^ bit]
    least = 1e-12 * sum(found.values())
    return {kinds_of(model, allowed): p for allowed, p in found.items() if p > least}


def _met(model: Model, moves: Moves) -> np.ndarray:
    """int64 by step, the mask of the kinds of faults that it is."""
    of_action = np.array([*fault_bits(model), 0])
    loses_messages = np.array([*(loss == 0 for loss in losses(model)), False])
    message = loses_messages[moves.action] & (moves.lost > 0)
    return np.asarray(of_action[moves.action] | message)


def _lost_with(moves: Moves, met: np.ndarray, allowed: int) -> float:
    """The probability that a run loses data and meets no other kinds of faults than these."""
    over = moves.outside - 1
    target = np.where(met & ~allowed, over, moves.chain.target).astype(moves.chain.target.dtype)
    return float(absorption.visits(moves.chain._replace(target=target), moves.parts)[moves.is_lost].sum())
