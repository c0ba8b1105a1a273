"""The steps of a head one by one, each with its action: from them follows what other rates would change in a head that
is solved, without expanding any state again.

A head adds up the steps from one state to another. Here they stay apart, by action and by the members of its subset
that it loses, and the end of a lifetime is one more action. With the rates r' and the fates f' (`kernels.states.odds`)
in the place of r and f, a step of action k that loses m of n members has the odds p x r'[k] / r[k] x f'[k, n, m] /
f[k, n, m], and a state's odds add up to 1 again: products and quotients of positive numbers alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Point
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.model import LOST, UNFINISHED, Model
from quorisk.kernels.ops import popcount
from quorisk.kernels.states import absorption
from quorisk.kernels.states.absorption import Components
from quorisk.kernels.states.chain import Chain
from quorisk.kernels.states.head import NEVER, Head, with_ends
from quorisk.kernels.states.odds import Odds, odds_of
from quorisk.kernels.states.rows import in_layout
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, keep_row

MOVE_BYTES = 32
"""Bytes of a move, its share of the memory for solving included."""


class Moves(NamedTuple):
    """Every step of a head. After the head's states come two more: the end of a lifetime, and all that is outside."""

    chain: Chain
    """Chain with one transition for each step: two states may have several. Its two last states have none."""
    parts: Components
    source: np.ndarray
    """int32 by step."""
    action: np.ndarray
    """int16 by step, its place in the model's actions; their number for the end of a lifetime."""
    size: np.ndarray
    """int8 by step, the members of its subset."""
    lost: np.ndarray
    """int8 by step, the number of them that are lost."""
    odds: Odds
    """Odds from which the steps' probabilities follow."""

    @property
    def outside(self) -> int:
        """Number of the one state outside, which all exits lead to."""
        return len(self.chain.ends) - 1

    @property
    def is_lost(self) -> np.ndarray:
        """Bool by state: runs lose data there."""
        return self.chain.ends == LOST

    @property
    def is_outside(self) -> np.ndarray:
        """Bool by state: only the last one."""
        return np.arange(len(self.chain.ends)) == self.outside


def moves_of(head: Head, num_states: int, progress: Callable[[int, int], None] | None = None) -> Moves:
    """Lists the steps of a head of `num_states` states. `progress` is called with the number of states done, and with
    that of all."""
    first, room = np.zeros(num_states + 3, np.int64), 2 * head.transitions + 2 * MOST_SUCCESSORS
    columns = [np.empty(room, kind) for kind in (np.int32, np.float64, np.int16, np.int8, np.int8)]
    place, end = 0, 0
    while place < num_states:
        if progress:
            progress(place, num_states)
        here = np.arange(place, min(place + head.expand.at_once, num_states))
        due = head.arrays.due[here].astype(np.int64) - head.arrays.cost[here]
        goes_on = (head.arrays.ends[here] == UNFINISHED) & (due > 0)
        batch, done, status = head.expand(head.kept, here, False, high=np.where(goes_on, due, NEVER) - 1), 0, FULL
        rows = in_layout(batch.rows, batch.layout, head.kept.layout)
        while status == FULL:
            given = batch, rows, due, goes_on, head.odds.rates, head.kept, head.arrays, first, *columns
            status, done, end = _list_moves(*given, place, done, num_states, end)
            if status == FULL:
                columns = [np.concatenate([each[:end], np.empty_like(each)]) for each in columns]
        place += len(here)
    first[num_states + 1 :] = end
    target, p, action, size, lost = (each[:end].copy() for each in columns)
    chain = with_ends(head.arrays, num_states, first, target, p)
    source = np.repeat(np.arange(num_states + 2, dtype=np.int32), np.diff(first))
    return Moves(chain, absorption.components(chain), source, action, size, lost, head.odds)


def reweighted(moves: Moves, model: Model, point: Point) -> Chain:
    """Returns the chain of the same steps under the rates, probabilities and lifetime of another point.

    That point must equal the head's in all else, and a rate or probability that was 0 has to stay 0.
    """
    now, before = odds_of(model, point), moves.odds
    with np.errstate(divide="ignore", invalid="ignore"):
        rates, fates = now.rates / before.rates, now.fates / before.fates
    p = moves.chain.p * rates[moves.action]
    of_actions = moves.action < len(fates)
    each = moves.action[of_actions], moves.size[of_actions], moves.lost[of_actions]
    p[of_actions] *= fates[each]
    sums = np.bincount(moves.source, p, len(moves.chain.ends))
    return moves.chain._replace(p=p / sums[moves.source])


def lost_and_left(moves: Moves, chain: Chain) -> tuple[float, float]:
    """Returns the probabilities that a run loses data inside the head, and that it leaves; `chain` has these steps."""
    visits = absorption.visits(chain, moves.parts)
    return float(visits[moves.is_lost].sum()), float(visits[-1])


@njit_kept
def _list_moves(
    batch, rows, due, goes_on, rates, stored, arrays, first, target, p, action, size, lost, place, i, num, end
):
    """Writes the moves of states from place + i on, whose steps are in a batch, and their rows. Returns why it stopped,
    the next i, and the number of moves.

    A state with no path followed yet has none: a run that comes to it is outside, which has the number `num` + 1.
    """
    while i < len(due):
        if end + MOST_SUCCESSORS + 1 > len(p):
            return FULL, i, end
        first[place + i] = end
        if goes_on[i]:
            at = batch.first_row[i]
            for step in range(batch.first[i], batch.first[i + 1]):
                if batch.p[step] > 0.0:
                    to = num + 1
                    if batch.is_wanted[step]:
                        found = keep_row(rows[at], stored, num)
                        at += 1
                        to = found if arrays.due[found] > arrays.cost[found] else num + 1
                    target[end], p[end], action[end] = to, batch.p[step], batch.action[step]
                    size[end], lost[end] = batch.size[step], popcount(batch.lost[step])
                    end += 1
            if batch.total[i] > 0.0 and rates[-1] > 0.0:
                target[end], p[end], action[end] = num, rates[-1] / batch.total[i], len(rates) - 1
                size[end] = lost[end] = 0
                end += 1
        i += 1
    first[place + i] = end
    return ENDED, i, end
