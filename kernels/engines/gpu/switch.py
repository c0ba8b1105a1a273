"""When the runs of a long point go over from the XLA batch to a kernel of their own.

They begin in the batch. Once that has taken long enough, a kernel is compiled and makes the same runs again. It takes
over if the results are the same and came sooner. Whatever goes wrong, the batch goes on.
"""

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import jax
import numpy as np

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.gpu.kernel import WARP, Found, How, Size, found
from quorisk.kernels.engines.gpu.lane import Stepper
from quorisk.kernels.engines.jax_batch import OPTIONS
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points, params_at
from quorisk.kernels.engines.specialized.by_configuration import ByConfiguration
from quorisk.kernels.engines.specialized.plan import limits_of, weights_of
from quorisk.kernels.engines.specialized.traced import Shape, Unsupported, traced_for
from quorisk.kernels.engines.tally import num_columns
from quorisk.kernels.model import Model

LONG_RUNS = 1 << 24
"""Runs of a job from which on it is looked at."""
WORTH_S = 20.0
"""Seconds in the batch from which on a kernel is compiled."""
SIZE = Size(programs=1 << 12, runs=1 << 10)
_ON_A_GPU = How()
_TOO_MANY = 1 / 64
"""Share of runs to be repeated from which on a kernel is given up."""
_AHEAD = 2
"""Calls that a device is given before their results are looked at."""


class Switch:
    """The runs of one configuration."""

    def __init__(self, model: Model, points: Points, size: Size = SIZE, how: How = _ON_A_GPU) -> None:
        """`points` has the configuration alone."""
        self.model, self.points, self.size, self.how = model, points, size, how
        self.stepper: Stepper
        """What the kernel steps runs with; there once it is prepared."""
        self.kernel: Callable[..., Found] | None = None
        self.why_not: str | None = None
        """Why there will be no kernel."""
        self.num_repeated = 0
        """Runs that left the kernel's bounds and were run by the generic engine."""
        self._spent_s = 0.0

    def tally(
        self,
        seed: int,
        job: Job,
        devices: Sequence[jax.Device],
        by_batch: Callable[[Job], np.ndarray],
        progress: Callable[[int], None],
    ) -> np.ndarray:
        """The tally of a job; `progress` is told how many of its runs the kernel has made."""
        if self.kernel:
            try:
                tally = self.by_kernel(seed, job, devices)
                progress(job.num_runs)
                return tally
            except Exception as error:  # whatever it is, the batch can do without
                self._give_up(f"it failed: {_told(error)}", RuntimeWarning)
        start = time.perf_counter()
        tally = by_batch(job)
        seconds = time.perf_counter() - start
        self._spent_s += seconds
        if self.why_not is None and self._spent_s > WORTH_S:
            self._begin(seed, job, devices, tally, seconds)
        return tally

    def prepare(self) -> None:
        """Gets the kernel; JAX compiles it when it is first called. Raises Unsupported."""
        limits = limits_of(self.points, 0, timed=True)
        params, weights = params_at(self.model, self.points, 0), weights_of(self.points, 0)
        traced = traced_for(self.model, params, weights, limits, Shape(WARP, 32))
        self.stepper = Stepper(self.model, traced, limits)
        options = OPTIONS["cpu"] if self.how.interpret else None
        self.kernel = jax.jit(partial(found, self.stepper, self.size, self.how), compiler_options=options)

    def by_kernel(self, seed: int, job: Job, devices: Sequence[jax.Device]) -> np.ndarray:
        """The tally of a job by the kernel; the generic engine repeats what that leaves open."""
        tally = np.zeros(num_columns(self.model), np.int64)
        under_way: deque[tuple[int, Found]] = deque()
        repeated = 0
        for i, start in enumerate(range(job.first_run, job.first_run + job.num_runs, self.size.total)):
            num = min(self.size.total, job.first_run + job.num_runs - start)
            under_way.append((start, self.call(seed, start, num, devices[i % len(devices)])))
            if len(under_way) >= _AHEAD * len(devices):
                repeated += self._add(seed, *under_way.popleft(), tally)
        for start, its in under_way:
            repeated += self._add(seed, start, its, tally)
        self.num_repeated += repeated
        if repeated > _TOO_MANY * job.num_runs:
            self._give_up("too many runs are not as the ones observed")
        return tally

    def call(self, seed: int, first_run: int, num_runs: int, device: jax.Device) -> Found:
        """What becomes of those runs, at most as many as fit a call."""
        assert self.kernel
        given = np.uint64(seed), self.points.time_units[0], np.int64(first_run), np.int64(num_runs)
        return self.kernel(*jax.device_put(given, device))

    def _add(self, seed: int, first_run: int, its: Found, tally: np.ndarray) -> int:
        """Adds a call's runs to a tally; returns how many were repeated."""
        again = first_run + np.flatnonzero(np.asarray(its.redo))
        tally += np.asarray(its.tally)
        if len(again):
            tally += numba_engine.tally_of_runs(self.model, self.points, seed, 0, again, False)[0]
        return len(again)

    def _begin(self, seed: int, job: Job, devices: Sequence[jax.Device], tally: np.ndarray, seconds: float) -> None:
        """Gets the kernel and has it make the runs of a job that took the batch `seconds`."""
        try:
            self.prepare()
            same = np.array_equal(self.by_kernel(seed, job, devices), tally)
            start = time.perf_counter()
            if same and self.kernel:
                self.by_kernel(seed, job, devices)
            took_s = time.perf_counter() - start
        except Unsupported as reason:
            self._give_up(str(reason))
            return
        except Exception as error:  # of JAX, Triton or the driver
            self._give_up(f"it failed: {_told(error)}", RuntimeWarning)
            return
        if not same:
            last = job.first_run + job.num_runs - 1
            self._give_up(
                f"its results differ from the XLA batch's for runs {job.first_run} to {last} of seed {seed}; "
                f"please report this, with {params_at(self.model, self.points, 0)}",
                RuntimeWarning,
            )
        elif took_s > seconds:
            self._give_up("it is slower than the XLA batch")

    def _give_up(self, reason: str, category: type[Warning] | None = None) -> None:
        self.kernel, self.why_not = None, reason
        if category:
            warnings.warn(
                f"{self.model.name}: the XLA batch goes on without a GPU kernel: {reason}", category, stacklevel=2
            )


switches = ByConfiguration(Switch, 1 << 8)
"""What makes the runs of a configuration in this process."""


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
