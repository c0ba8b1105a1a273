"""Exits of a head: the first states outside it, and the probability that a run leaves by each."""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from quorisk.kernels.engines.points import Points
from quorisk.kernels.engines.starts import starts
from quorisk.kernels.keeping import kept
from quorisk.kernels.packing import RowLayout, spread, unpacked
from quorisk.kernels.states import margins
from quorisk.kernels.states.by_address import in_memory
from quorisk.kernels.states.functions import compiled_for
from quorisk.kernels.states.head import Head, SolvedHead
from quorisk.kernels.states.store import (
    ENDED,
    FULL,
    MOST_SUCCESSORS,
    NO_ROW,
    WIDER,
    Store,
    approach,
    fetch_state,
    keep_row,
    seek,
    settle,
    why_stop,
    write_row,
)
from quorisk.kernels.states.successors import ANY_COST, successors


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
        wide = np.empty_like(self.layout.base)
        spread(self.rows[place], self.layout, wide)
        return unpacked(wide, widths)


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
    i, count, status = 0, 0, ENDED
    while i < len(order) and status != FULL:
        status, i, count = _leave(
            head.successors, head.kept, head.arrays, solved.flows, order, i, store.kept, flows, count
        )
        status = store.make_room(status, count)
    left_out, flows = math.fsum(solved.bounds[order[i:]]), flows[:count]
    hurry = head.margin if solved.is_far else None
    if hurry:
        compiled_for(head.model, margins.chances)(head.odds.params, hurry.p, store.kept, flows)
    order = np.argsort(-flows, kind="stable")
    found = Exits(store.kept.rows[order], store.kept.layout, flows[order], left_out)
    return found._replace(places=hurry.most, p=hurry.p) if hurry else found


@kept
@njit(nogil=True, error_model="numpy")
def _leave(given, stored, arrays, flows, order, i, exits, exit_flows, count):
    """Adds the exits of states order[i] and on. Returns why it stopped, the next i, the number of exits.

    A state with no path followed yet is an exit itself. A state in which it stops is taken again later: exits are
    kept, and flows added to, only once the rows of all exits of a state are written.
    """
    mixed = np.empty(MOST_SUCCESSORS, np.uint64)
    steps, rows, here = given.steps, given.rows, in_memory((given, stored))
    while i < len(order):
        place = order[i]
        why = why_stop(exits, count)
        if why != ENDED:
            return why, i, count
        due = arrays.due[place] - arrays.cost[place]
        if due == 0:
            fetch_state(stored, place)
            found = keep_row(stored.here, exits, count)
            if found == NO_ROW:
                return WIDER, i, count
            exit_flows[found] += flows[place]
            count += found == count
            i += 1
            continue
        num, _, _, _ = successors(given.address, here, place, False, due, ANY_COST)
        share = flows[place] / arrays.leaves[place]
        leaving = 0
        for k in range(num):
            if steps.p[k] > 0.0 and steps.cost[k] >= due:
                if not write_row(rows[leaving], exits, count + leaving):
                    return WIDER, i, count
                mixed[leaving] = seek(exits, count + leaving)
                steps.p[leaving] = steps.p[k]
                leaving += 1
        for k in range(leaving):
            approach(exits, mixed[k])
        first_at = count
        for k in range(leaving):
            found = settle(exits, first_at + k, mixed[k], count)
            count += found == count
            exit_flows[found] += share * steps.p[k]
        i += 1
    return ENDED, i, count
