"""Random configurations, and the other engines' runs of them against the generic engine's."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from quorisk.kernels.engines import jax_engine, numba_engine
from quorisk.kernels.engines.job import RECORD, Job
from quorisk.kernels.engines.lanes import build
from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.points import ALWAYS, Point, Points, RateError, pack
from quorisk.kernels.model import LOST, Model, loses_messages
from quorisk.kernels.tracing import cpu
from tests.support import any_values

MOST_RUNS, MOST_STEPS = 20_000, 4_000_000
"""Of one configuration, on the generic engine."""
JAX_STEPS = 2_000_000
"""Of one configuration: more would take longer than all the rest."""
_LONG_STEPS = 400
"""Of a run that nothing ends early: some configurations never end, and all lanes of a batch of JAX's would wait."""
_TRIAL_RUNS = 1000


class Compared(NamedTuple):
    """What was compared, all of it equal."""

    runs: int
    repeated: int
    """Runs that the kernel left to the generic engine."""
    lost: int


class Made(NamedTuple):
    """Runs of a configuration, as the generic engine makes them."""

    model: Model
    point: Point
    points: Points
    seed: int
    job: Job
    records: np.ndarray
    tally: np.ndarray


def random_point(model: Model, chance: random.Random) -> Point:
    """A point of random parameters, rates, losses and limits.

    In half of them faults are seldom and nothing ends a run early, so that there is something to lose once one comes.
    """
    long = chance.random() < 0.5
    seldom = [each for each in model.actions if long and (each.fault or chance.random() < 0.3)]
    rates = {each.name: chance.choice([0.003, 0.03, 0.3]) for each in seldom}
    for action in model.actions if chance.random() < 0.6 else ():
        if chance.random() < (0.1 if long else 0.3):
            rates[action.name] = chance.choice([0.0, 1e-15, 0.001, 0.25, 3.0, round(chance.random(), 3), 40.0])
    loss = random_p(chance) if loses_messages(model) else 0.0
    other_losses = {probability.name: random_p(chance) for probability in model.probabilities}
    horizon, max_steps, lifetime = math.inf, _LONG_STEPS, math.inf
    if not long:
        horizon = chance.choice([math.inf, math.inf, round(10 * chance.random() ** 3, 3)])
        max_steps = chance.choice([1, 3, 30, 10_000, 10_000])
        lifetime = chance.choice([math.inf, math.inf, round(0.01 + 10 * chance.random() ** 3, 3)])
    values = any_values(model, chance)
    return Point(values, rates, loss, max_steps, horizon, lifetime=lifetime, other_losses=other_losses)


def random_p(chance: random.Random) -> float:
    """A probability with which something is lost."""
    return chance.choice([0.0, 0.001, 0.1, 0.5, 1.0, round(chance.random(), 2)])


def cases(model: Model, chance: random.Random, count: int) -> Any:
    """`count` random points, each with a seed."""
    return [(random_point(model, chance), chance.randrange(1 << 31)) for _ in range(count)]


def make(model: Model, point: Point, seed: int, runs: int, beside: Sequence[Point] = ()) -> Made:
    """The generic engine's runs. Raises RateError. Points that are packed with the same others share JAX's program."""
    points, job = pack(model, [point, *beside]), Job(0, seed % 1000 << 30, runs)
    records = numba_engine.record(model, points, job, seed)
    return Made(model, point, points, seed, job, records, numba_engine.tally_of(model, points, seed, job))


def share_refused(model: Model, point: Point, seed: int, runs: int) -> float:
    """The share of runs that would be others if no group that is chosen were refused."""
    points, job = pack(model, [point]), Job(0, 0, runs)
    accepted = points._replace(accepts=np.full_like(points.accepts, ALWAYS))
    records, others = (numba_engine.record(model, each, job, seed) for each in (points, accepted))
    return float((records != others).any(1).mean())


def make_some(model: Model, point: Point, seed: int, most_runs: int) -> Made | None:
    """So many runs, or as many as MOST_RUNS and MOST_STEPS allow; None if the rates lie too far apart for an engine."""
    try:
        trial = make(model, point, seed, _TRIAL_RUNS)
    except RateError:
        return None
    steps = int(trial.records[:, RECORD.index("steps")].sum())
    return make(model, point, seed, min(most_runs, MOST_RUNS, MOST_STEPS * _TRIAL_RUNS // max(steps, 1)))


def compare(model: Model, point: Point, shape: Shape, timed: bool, seed: int, runs: int) -> Compared:
    """Runs a point both ways. Raises Unsupported's reason as a RuntimeError, and AssertionError where they differ."""
    try:
        return by_kernel(make(model, point, seed, runs), shape, timed)
    except RateError:
        return Compared(0, 0, 0)


def by_kernel(made: Made, shape: Shape, timed: bool) -> Compared:
    """Repeats runs by a kernel of that shape; raises as `compare`."""
    switch = Switch(made.model, made.points, 0)
    switch.prepare(timed=timed, shape=shape)
    if switch.kernel is None:
        raise RuntimeError(switch.why_not)
    tally, records = switch.by_kernel(switch.kernel, made.seed, made.job, recording=timed)
    told = made.point, f"{shape} timed={timed} seed={made.seed}"
    assert np.array_equal(made.tally, tally), told
    if timed:
        assert np.array_equal(made.records, records), told
    return Compared(made.job.num_runs, switch.num_repeated, _num_lost(made.records))


def by_jax(made: Made) -> Compared:
    """Repeats runs, as many as make JAX_STEPS steps, by JAX; raises AssertionError where they differ."""
    steps = np.cumsum(made.records[:, RECORD.index("steps")])
    job = made.job._replace(num_runs=max(1, int((steps <= JAX_STEPS).sum())))
    there = made.records[: job.num_runs]
    told = made.point, f"jax seed={made.seed}"
    assert np.array_equal(there, jax_engine.record(made.model, made.points, job, made.seed)), told
    tally = numba_engine.tally_of(made.model, made.points, made.seed, job)
    assert np.array_equal(tally, jax_engine.simulate(made.model, made.points, [job], made.seed)[0]), told
    return Compared(job.num_runs, 0, _num_lost(there))


def _num_lost(records: np.ndarray) -> int:
    return int((records[:, 0] == LOST).sum())


def supports(point: Point, timed: bool) -> bool:
    """Whether such a kernel exists for the point."""
    return timed or math.isinf(point.horizon)


NARROWER = {256: cpu.Cpu("x86-64-v3", ("+avx2",)), 128: cpu.Cpu("x86-64-v2", ())}
"""CPUs with registers of so many bits, whose code a CPU with wider ones runs as well."""


@contextmanager
def registers_of(bits: int) -> Iterator[None]:
    """Kernels are compiled as for a CPU whose registers have so many bits; this machine's have as many or more."""
    here = cpu.this_cpu()
    with mock.patch.object(cpu, "this_cpu", return_value=here if bits == here.register_bits else NARROWER[bits]):
        yield


Engine = Callable[[Made, bool], Compared]
JAX = "JAX"
"""The engine that is given fewer runs, by JAX_STEPS."""


def engines() -> dict[str, Engine]:
    """What can be compared on this machine; those that are kernels are told whether to keep the time."""
    found: dict[str, Engine] = {}
    for bits, name in ((512, "AVX-512"), (256, "AVX2"), (128, "SSE4")):
        if cpu.this_cpu().register_bits >= bits:
            with registers_of(bits):
                shapes = *build.shapes(), *(each.twice() for each in build.shapes())
            for shape in shapes:
                found[f"{shape.lanes} lanes of {shape.narrowest} bits, {name}"] = partial(_of_lanes, bits, shape)
            found[f"queued, {name}"] = partial(_of_lanes, bits, build.QUEUED)
            found[f"nothing taken for granted, {name}"] = partial(_of_lanes, bits, shapes[0]._replace(assumes=False))
    return found | {JAX: lambda made, timed: by_jax(made)}


def _of_lanes(bits: int, shape: Shape, made: Made, timed: bool) -> Compared:
    with registers_of(bits):
        return by_kernel(made, shape, timed)


class Findings:
    """What an engine's runs of many configurations came to."""

    def __init__(self) -> None:
        self.configurations = self.runs = self.repeated = self.lost = 0
        self.differ = list[str]()
        self.without = Counter[str]()
        """Why configurations have no kernel, and how many."""

    def look(self, engine: Engine, made: Made, timed: bool) -> None:
        """Compares the runs of one more configuration."""
        try:
            compared = engine(made, timed)
        except RuntimeError as reason:
            self.without[str(reason)] += 1
            return
        except AssertionError as difference:
            self.differ.append(str(difference))
            compared = Compared(made.job.num_runs, 0, 0)
        self.configurations += 1
        self.runs += compared.runs
        self.repeated += compared.repeated
        self.lost += compared.lost


def many(
    model: Model,
    seed: int,
    runs: int,
    progress: Callable[[int], None],
    some: int | None = None,
) -> dict[str, Findings]:
    """Compares `runs` runs of a model, in random configurations, by all engines; with `some`, by so many of them, drawn
    for each configuration.

    A kernel either keeps records of single runs or sums alone; which, is drawn. `progress` is told how many runs are
    compared.
    """
    chance, left = random.Random(f"{model.name} {seed}"), runs
    every = engines()
    found = {name: Findings() for name in every}
    while left > 0:
        made = make_some(model, random_point(model, chance), chance.randrange(1 << 31), left)
        if made is None:
            continue
        for name in chance.sample(list(every), some or len(every)):
            timed = chance.random() < 0.5 or not supports(made.point, False)
            found[name].look(every[name], made, timed)
        left -= made.job.num_runs
        progress(runs - left)
    return found
