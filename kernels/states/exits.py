"""Exits of a head: the first states outside it, and the probability that a run leaves by each."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.points import Points
from quorisk.kernels.engines.starts import starts
from quorisk.kernels.keeping import njit_kept
from quorisk.kernels.packing import RowLayout, state_of
from quorisk.kernels.states import margins
from quorisk.kernels.states.head import NEVER, Head, SolvedHead
from quorisk.kernels.states.rows import in_layout
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, Store, approach, halted, keep_row, seek, settle


class Exits(NamedTuple):
    """The first states outside a head."""

    rows: np.ndarray
    """uint64, [exit, word]: the states."""
    layout: RowLayout
    """Layout of the rows."""
    flows: np.ndarray
    """float64 by exit, the probability that a run leaves the head by it, in descending order. If runs are hurried
    (`engines.hurried`), it is multiplied by an upper bound on that of all faults that a loss from there takes."""
    left_out: float
    """Upper bound on the probability of a loss behind exits for which there was no room."""
    places: int = 0
    """`starts.Starts.places` of runs that start here."""
    p: float = 1.0
    """`starts.Starts.p` of runs that start here."""

    @property
    def beyond(self) -> float:
        """Upper bound on the probability of a loss behind all exits."""
        return math.fsum(self.flows) + self.left_out

    def state(self, place: int, widths: Any) -> Any:
        """Returns the state of an exit; `widths` are `Model.widths`."""
        return state_of(self.rows[place], self.layout, widths)


def from_exits(points: Points, exits: Exits) -> Points:
    """Points whose runs start at a head's exits."""
    return points._replace(starts=starts(exits.rows, exits.layout, exits.flows, exits.places, exits.p))


def exits_of(head: Head, solved: SolvedHead, memory_bytes: int) -> Exits:
    """Finds the exits of a head as it was when solved; if memory is short, those behind which most may be lost.

    Runs that start there are hurried if the model's margin says that most of them are never lost.
    """
    store = Store(head.model, head.odds.params, memory_bytes * 3 // 4, 8)
    flows = np.zeros(len(store.kept.rows))
    order = np.argsort(-solved.bounds, kind="stable")[: np.count_nonzero(solved.bounds)]
    i, count, status, most = 0, 0, ENDED, len(order)
    while i < len(order) and status != FULL:
        here = order[i : i + min(most, head.expand.at_once)]
        due = head.arrays.due[here].astype(np.int64) - head.arrays.cost[here]
        batch = head.expand(head.kept, here, False, np.where(due > 0, due, NEVER))
        themselves = in_layout(head.kept.rows[here[due == 0]], head.kept.layout, batch.layout)
        rows = np.concatenate([themselves, batch.rows])
        add = partial(
            _add, batch=batch, shares=solved.flows[here], leaves=head.arrays.leaves[here], due=due, flows=flows
        )
        status, done, count = store.keep(rows, batch.layout, len(here), count, add)
        if status == FULL and done == 0 and len(here) > 1:  # there may be room for those of fewer states
            most, status = len(here) // 2, ENDED
        i += done
    left_out, flows = math.fsum(solved.bounds[order[i:]]), flows[:count]
    hurry = head.margin if solved.is_far else None
    if hurry:
        flows *= hurry.p ** margins.faults_to_loss(head.expand.programs, store.kept, np.arange(count))
    order = np.argsort(-flows, kind="stable")
    found = Exits(store.kept.rows[order], store.kept.layout, flows[order], left_out)
    return found._replace(places=hurry.most, p=hurry.p) if hurry else found


@njit_kept
def _add(stored, rows, i, count, batch, shares, leaves, due, flows):
    """Adds the exits of states from number i on, whose steps are in a batch, as `Store.keep` has it; the first rows are
    those of states with no path followed yet, which are exits themselves: their `due` is 0.

    A state in which it stops is taken again later: exits are kept, and flows added to, only once the rows of all exits
    of a state are written.
    """
    mixed, itself = np.empty(MOST_SUCCESSORS, np.uint64), np.cumsum(due == 0) - 1
    while i < len(due):
        why = halted(stored, count)
        if why != ENDED:
            return why, i, count
        if due[i] == 0:
            found = keep_row(rows[itself[i]], stored, count)
            flows[found] += shares[i]
            count += found == count
            i += 1
            continue
        share, first_row = shares[i] / leaves[i], itself[-1] + 1 + batch.first_row[i]
        num = batch.first_row[i + 1] - batch.first_row[i]
        for k in range(num):
            mixed[k] = seek(rows[first_row + k], stored, count + k)
        for k in range(num):
            approach(stored, mixed[k])
        k, first_at = 0, count
        for step in range(batch.first[i], batch.first[i + 1]):
            if batch.is_wanted[step]:
                found = settle(stored, first_at + k, mixed[k], count)
                count += found == count
                flows[found] += share * batch.p[step]
                k += 1
        i += 1
    return ENDED, i, count
