"""How often a year three servers lose acknowledged messages as issue 7567 of nats-io/nats-server says: one loses power,
and the others are cut off in turn. A Markov chain of servers that are written to all the time, solved exactly.

    python -m tests.reality.year
"""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

YEAR_S = 365.25 * 86_400.0
LOST = None
"""In the place of a state: a quorum that lacks something acknowledged goes on without it."""


class Rates(NamedTuple):
    """The rates of one server, each 1 / s."""

    cut: float
    """It is cut off from the others and from clients."""
    heal: float
    power: float
    """It loses power, and with it all that it has not synced."""
    restart: float
    sync: float
    """1 / the time until what was written last is on disk: twice 1 / `sync_interval`, as timers are met halfway."""


class Server(NamedTuple):
    """One of three."""

    cut: bool = False
    off: bool = False
    has: bool = True
    """Its log has all that is acknowledged."""
    fresh: bool = True
    """The end of its log is not on its disk yet."""

    @property
    def here(self) -> bool:
        return not (self.cut or self.off)


State = tuple[Server, ...]
START: State = (Server(),) * 3


def settled(servers: State) -> State | None:
    """The servers once they met or parted. Two that meet elect the one with the longer log; writes go on with those
    that are there, and the third one lacks them at once. One alone acknowledges nothing.
    """
    if sum(each.here for each in servers) < 2:
        return tuple(sorted(servers))
    if not any(each.here and each.has for each in servers):
        return LOST
    return tuple(sorted(each._replace(has=each.here, fresh=each.here or each.fresh) for each in servers))


def steps(servers: State, rates: Rates) -> Iterator[tuple[State | None, float]]:
    """Yields where servers may go from here, and how often a second."""
    written_to = sum(each.here for each in servers) >= 2
    for i, each in enumerate(servers):

        def to(server: Server, i: int = i) -> State | None:
            return settled((*servers[:i], server, *servers[i + 1 :]))

        yield to(each._replace(cut=not each.cut)), rates.heal if each.cut else rates.cut
        if each.off:
            yield to(each._replace(off=False)), rates.restart
        else:
            yield to(each._replace(off=True, has=each.has and not each.fresh, fresh=False)), rates.power
        if each.fresh and not (each.here and written_to):
            yield to(each._replace(fresh=False)), rates.sync


def losses_a_year(rates: Rates) -> float:
    """Returns how often a year something is lost; after a loss all starts anew. By elimination that never subtracts
    (Grassmann, Taksar and Heyman 1985), as losses are many decades rarer than what leads to them.
    """
    number, todo = {START: 0}, [START]
    moves: dict[tuple[int, int], float] = {}
    loss: dict[int, float] = {}
    for state in todo:
        for after, rate in steps(state, rates):
            if after is LOST:
                loss[number[state]] = loss.get(number[state], 0.0) + rate
            elif after not in number:
                number[after] = len(number)
                todo.append(after)
            to = number[START if after is LOST else after]
            moves[number[state], to] = moves.get((number[state], to), 0.0) + rate
    size = len(number)
    matrix = np.zeros((size, size))
    for (i, j), rate in moves.items():
        matrix[i, j] = rate * (i != j)
    for last in range(size - 1, 0, -1):
        matrix[:last, last] /= matrix[last, :last].sum()
        matrix[:last, :last] += np.outer(matrix[:last, last], matrix[last, :last])
        np.fill_diagonal(matrix[:last, :last], 0.0)
    often = np.ones(size)
    for i in range(1, size):
        often[i] = often[:i] @ matrix[:i, i]
    return YEAR_S * sum(often[i] * rate for i, rate in loss.items()) / often.sum()


def losses_drawn(rates: Rates, num_losses: int, rng: np.random.Generator) -> float:
    """Returns the same from a simulation that ends with so many losses: for rates at which there are some."""
    state, lost, time_s = START, 0, 0.0
    for _ in count():
        to, how_often = zip(*steps(state, rates), strict=True)
        total = sum(how_often)
        time_s += rng.exponential(1.0 / total)
        after = to[rng.choice(len(to), p=np.array(how_often) / total)]
        lost += after is LOST
        if lost == num_losses:
            break
        state = START if after is LOST else after
    return lost / time_s * YEAR_S


def main() -> None:
    for name, per_year, minutes in (("monthly, 5 min", 12, 5), ("weekly, 5 min", 52, 5), ("daily, 5 min", 365, 5)):
        found = {
            sync_s: losses_a_year(Rates(per_year / YEAR_S, 1 / (60 * minutes), 0.5 / YEAR_S, 1 / 300, 2 / sync_s))
            for sync_s in (5, 120)
        }
        print(f"{name:16}" + "".join(f"  {sync_s:4} s: {each:.3g} a year" for sync_s, each in found.items()))


if __name__ == "__main__":
    main()
