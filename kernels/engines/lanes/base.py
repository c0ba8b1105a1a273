"""The base of a configuration: makes its runs until there is a faster kernel, and those that kernels leave open.

It is the generic engine, which serves every configuration, but takes seconds to compile. So where that is not compiled
and configurations are few, a kernel that assumes nothing of runs is compiled in its place, which takes a fraction of
the time. Plain Python makes the runs that this kernel leaves open, such as one choice of a billion.
"""

import threading
import time
import warnings

import numpy as np

from quorisk.kernels.engines import numba_engine, rerun
from quorisk.kernels.engines.lanes.build import Configuration, Kernel, build, discard, is_kept, num_kept, shapes
from quorisk.kernels.engines.lanes.runs import add_runs
from quorisk.kernels.engines.lanes.traced import Shape, Unsupported
from quorisk.kernels.engines.points import params_at
from quorisk.kernels.engines.tally import empty

MAX_EARLY_KERNELS = 5
"""Largest number of configurations that get a kernel each before the generic engine is compiled, which takes a thread
four to ten times as long as one of them."""
_MOST_IN_PYTHON = 1000
"""Largest number of runs that plain Python makes sooner than the generic engine is compiled."""
_COMPARED, _COMPARING_S = 16, 0.25
"""Number of runs that plain Python makes as well, to check a kernel that was just compiled, and seconds after which it
begins no other one of these: one of Raft takes it a third of a second."""


class Base:
    """Makes any runs of one configuration."""

    def __init__(self, of: Configuration) -> None:
        self.of = of
        self.kernel: Kernel | None = None
        """Kernel that makes the runs in place of the generic engine, if there is one."""
        self._looked = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Gets that kernel if it is ready sooner than the generic engine, unless runs have begun before."""
        with self._lock:
            if not self._looked:
                self._looked = True
                self.kernel = self._sooner()

    def tally_of_runs(
        self, seed: int, runs: np.ndarray | range, recording: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns what `numba_engine.tally_of_runs` does for runs given by their indices."""
        with self._lock:  # waits until `begin` is done
            self._looked, kernel = True, self.kernel
        runs = np.asarray(runs, np.int64)
        if kernel is None:
            model, points, point = self.of
            return numba_engine.tally_of_runs(model, points, seed, point, runs, recording)
        return self._by(kernel, seed, runs, recording)

    def _by(self, kernel: Kernel, seed: int, runs: np.ndarray, recording: bool) -> tuple[np.ndarray, np.ndarray]:
        model, points, point = self.of
        tally, records = empty(model, len(runs) if recording else 0)
        left = add_runs(kernel, self.of, seed, runs, tally, records)
        if len(left):
            others = numba_engine if len(left) > _MOST_IN_PYTHON else rerun
            more, found = others.tally_of_runs(model, points, seed, point, runs[left], recording)
            tally += more
            if recording:
                records[left] = found
        return tally, records

    def _sooner(self) -> Kernel | None:
        model = self.of.model
        if numba_engine.is_at_hand(model):
            return None
        given = self.of, True, first_shape()
        was_kept = is_kept(*given)
        if not was_kept and num_kept(model) >= MAX_EARLY_KERNELS:
            return None
        try:
            kernel = build(*given)
        except Unsupported:
            return None
        if was_kept or self._is_right(kernel):
            return kernel
        discard(*given)
        warnings.warn(
            f"{model.name}: the first kernel's results differ from plain Python's for one of the runs 0 to "
            f"{_COMPARED - 1} of seed 0; it is not used. Please report this, with {params_at(*self.of)}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None

    def _is_right(self, kernel: Kernel) -> bool:
        end = time.monotonic() + _COMPARING_S
        for run in range(_COMPARED):
            runs = np.array([run])
            expected = rerun.tally_of_runs(self.of.model, self.of.points, 0, self.of.point, runs, recording=True)
            if not all(map(np.array_equal, self._by(kernel, 0, runs, recording=True), expected)):
                return False
            if time.monotonic() > end:
                break
        return True


def first_shape() -> Shape:
    """Returns the shape of kernels that assume nothing of runs."""
    wide, _ = shapes()
    return wide._replace(listed=True, assumes=False, soon=True)
