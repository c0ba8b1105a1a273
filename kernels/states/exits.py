"""Where runs leave a head: the first states outside it, and how often each is come to."""

import math
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.compiled import LATE
from quorisk.kernels.packing import Layout, spread, unpacked
from quorisk.kernels.states import margins
from quorisk.kernels.states.functions import compiled_for
from quorisk.kernels.states.head import Head, Solved
from quorisk.kernels.states.odds import room_for_steps
from quorisk.kernels.states.store import ENDED, FULL, MOST_SUCCESSORS, NO_ROW, WIDER, Store, why_stop


class Exits(NamedTuple):
    """The first states outside a head."""

    rows: np.ndarray
    """uint64, [exit, word]: the states."""
    layout: Layout
    """Of the rows."""
    flows: np.ndarray
    """float64 by exit, the probability that a run leaves the head by it, in descending order. If runs are hurried
    (`engines.hurried`), times that of all faults that a loss takes from there, at most."""
    left_out: float
    """What may be lost, at most, behind exits for which there was no room."""
    places: int = 0
    """As in `starts.Starts`, for runs that start here."""
    p: float = 1.0
    """Likewise."""

    @property
    def beyond(self) -> float:
        """What may be lost behind all exits, at most."""
        return math.fsum(self.flows) + self.left_out

    def state(self, place: int, widths: Any) -> Any:
        """An exit's state, of a model whose states have these `widths`."""
        wide = np.empty_like(self.layout.base)
        spread(self.rows[place], self.layout, wide)
        return unpacked(wide, widths)


def exits_of(head: Head, solved: Solved, memory_bytes: int) -> Exits:
    """Where runs leave a head, as it was when it was solved; those of which most may be lost if memory is short.

    Runs from there are hurried if the model's margin says that most of them are never lost.
    """
    leave = compiled_for(head.model, _leave)
    store = Store(head.model, head.odds.params, memory_bytes * 3 // 4, 8)
    flows = np.zeros(len(store.kept.rows))
    order, steps = np.argsort(-solved.bounds, kind="stable")[: np.count_nonzero(solved.bounds)], room_for_steps()
    i, count, status = 0, 0, ENDED
    while i < len(order) and status != FULL:
        given = head.odds, steps, head.kept, head.arrays, solved.flows
        status, i, count = leave(*given, order, i, store.kept, flows, count)
        status = store.make_room(status, count)
    left_out, flows = math.fsum(solved.bounds[order[i:]]), flows[:count]
    hurry = head.margin if solved.is_far else None
    if hurry:
        compiled_for(head.model, margins.chances)(head.odds.params, hurry.p, store.kept, flows)
    order = np.argsort(-flows, kind="stable")
    found = Exits(store.kept.rows[order], store.kept.layout, flows[order], left_out)
    return found._replace(places=hurry.most, p=hurry.p) if hurry else found


# A template, with names that are bound by `compiled_for`

approach = cost = effect_of = enabled = guards = keep = listed = num_room = num_words = representative = LATE
seek = settle = state = weigh = words = write = LATE


def _leave(odds, steps, kept, arrays, flows, order, i, exits, exit_flows, count):
    """Adds the exits of states order[i] and on. Returns why it stopped, the next i, the number of exits.

    A state of which no path was followed yet is an exit itself. A state in which it stopped is taken anew: exits are
    kept, and flows added to, when the rows of all exits of a state are written.
    """
    masks, room = np.empty(num_words, np.int64), np.empty(num_room, np.int64)
    mixed = np.empty(MOST_SUCCESSORS, np.uint64)
    while i < len(order):
        place = order[i]
        why = why_stop(exits, count)
        if why != ENDED:
            return why, i, count
        before = state(kept, place)
        due = arrays.due[place]
        if due == arrays.cost[place]:
            found = keep(before, exits, count)
            if found == NO_ROW:
                return WIDER, i, count
            exit_flows[found] += flows[place]
            count += found == count
            i += 1
            continue
        guards(before, odds.params, masks)
        total, top = enabled(masks, odds)
        share = flows[place] / arrays.leaves[place]
        num = listed(kept.here, odds.params, masks, steps)
        weigh(masks, odds, total, steps, num)
        leaving = 0
        for k in range(num):
            action, lost = words.action[steps.word[k]], steps.lost[k]
            if steps.p[k] > 0.0 and arrays.cost[place] + cost(odds, top, action, lost) >= due:
                after = effect_of(kept.here, odds.params, action, steps.instance[k], lost)
                if not write(representative(after, odds.params, odds.alike, room), exits, count + leaving):
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
