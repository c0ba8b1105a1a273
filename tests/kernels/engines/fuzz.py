"""Random configurations, and the kernels compiled for them against the generic engine."""

import math
import random
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.points import Point, RateError, pack
from quorisk.kernels.model import Model
from tests.support import any_values


class Compared(NamedTuple):
    """What was compared, all of it equal."""

    runs: int
    repeated: int
    """Runs that the kernel left to the generic engine."""
    lost: int


def random_point(model: Model, chance: random.Random) -> Point:
    """A point of random parameters, rates, losses and limits."""
    rates: dict[str, float] = {}
    for action in model.actions if chance.random() < 0.6 else ():
        if chance.random() < 0.3:
            rates[action.name] = chance.choice([0.0, 1e-15, 0.001, 0.25, 3.0, round(chance.random(), 3), 40.0])
    loss = chance.choice([0.0, 0.001, 0.1, 0.5, 1.0, round(chance.random(), 2)]) if model.max_sends else 0.0
    horizon = chance.choice([math.inf, math.inf, round(10 * chance.random() ** 3, 3)])
    max_steps = chance.choice([1, 3, 30, 10_000, 10_000])
    lifetime = chance.choice([math.inf, math.inf, round(0.01 + 10 * chance.random() ** 3, 3)])
    return Point(any_values(model, chance), rates, loss, max_steps, horizon, lifetime=lifetime)


def compare(model: Model, point: Point, lanes: int, timed: bool, seed: int, runs: int) -> Compared:
    """Runs a point both ways. Raises Unsupported's reason as a RuntimeError, and AssertionError where they differ."""
    try:
        points = pack(model, [point])
    except RateError:
        return Compared(0, 0, 0)
    switch = Switch(model, points, 0)
    switch.prepare(timed=timed, lanes=lanes)
    if switch.kernel is None:
        raise RuntimeError(switch.why_not)
    job = Job(0, seed % 1000 << 30, runs)
    records = numba_engine.record(model, points, job, seed)
    tally = numba_engine.tally_of(model, points, seed, job)
    found, found_records = switch.by_kernel(switch.kernel, seed, job, recording=timed)
    told = point, f"lanes={lanes} timed={timed} seed={seed}"
    assert np.array_equal(tally, found), told
    if timed:
        assert np.array_equal(records, found_records), told
    return Compared(runs, switch.num_repeated, int((records[:, 0] == 2).sum()))


def supports(point: Point, timed: bool) -> bool:
    """Whether such a kernel exists for the point."""
    return timed or math.isinf(point.horizon)


def cases(model: Model, chance: random.Random, count: int) -> Any:
    """`count` random points, each with a seed."""
    return [(random_point(model, chance), chance.randrange(1 << 31)) for _ in range(count)]
