"""The switch of a configuration's runs from the generic engine to a kernel of its own.

Runs begin at once on the generic engine, or on the kernel that `base` has in its place. If the rest takes longer than a
kernel takes to compile, kernels are compiled in the background, and each that is faster than the one before takes over
between two chunks. If the generic engine is not compiled and runs are many, the first kernel is compiled at once. The
first chunk of each is run by both and compared.
"""

import math
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job, runs_of
from quorisk.kernels.engines.lanes.base import Base
from quorisk.kernels.engines.lanes.build import QUEUED, Configuration, Kernel, build, is_kept, shapes
from quorisk.kernels.engines.lanes.runs import add_runs, compile_sums
from quorisk.kernels.engines.lanes.traced import Shape, Unsupported
from quorisk.kernels.engines.points import Points, params_at
from quorisk.kernels.engines.tally import BROKEN, empty
from quorisk.kernels.model import LOST, Model, exposures

WORTH_LOADING_S, WORTH_COMPILING_S, WORTH_COMPARING_S = 0.2, 4.0, 30.0
"""Least work, in thread-seconds of the generic engine, for which a kernel is loaded from disk, for which one is
compiled, and for which several shapes are compared."""
_MANY_RUNS = 1 << 19
"""Fewest runs for which a kernel is compiled at once if the generic engine is not compiled."""
_TRIAL_RUNS = 1 << 12
_TRIAL_S, _LONG_TRIAL_S = 0.03, 0.1
"""Seconds of a speed comparison: of a kernel with the generic engine, and of two kernels."""
_TELLING_RUNS = 1 << 8
"""Fewest runs of a chunk from whose time that of other runs is estimated."""
_GAIN = 2.0
"""Gain over the generic engine below which shorter jobs, too, try further kernels."""
_FEW_OPERATIONS, _MANY_OPERATIONS = 800, 1200
"""Most operations of a step for which twice as many lanes are tried, and for which queues are not."""
_MANY_ASK = 1 / 128
"""Share of runs whose times are needed, as they lose data or stand exposed, above which the kernel is timed. Up to it,
the generic engine repeats these runs."""
_TOO_MANY = 1 / 8
"""Largest share of runs to be repeated at which a kernel is kept."""


_TOOK_S: dict[str, float] = {}
"""Longest compilation of a kernel by model, in thread-seconds: the least work that is worth another one."""
_OVER_S = 1.0
"""Idle seconds after which a configuration's runs count as over."""
_TURN = threading.Lock()
"""Lock for compiling in the background, one configuration at a time: Python runs one thread at a time, so kernels
compiled side by side would come too late for their runs."""


class _Best(NamedTuple):
    """The fastest way to make runs of those that were tried."""

    step: Callable[[Job], object]
    """Function that makes a job's runs."""
    kernel: Kernel | None = None
    gain: float = 1.0
    """Its speed relative to the generic engine."""
    operations: int = 0
    """Operations of a step of the kernel that was tried last."""
    why_none: str = "it would not be faster"


class Switch:
    """The runs of one configuration."""

    def __init__(self, model: Model, points: Points, point: int) -> None:
        self.model, self.points, self.point = model, points, point
        self._where = Configuration(model, points, point)
        self._base = Base(self._where)
        self.kernel: Kernel | None = None
        self.why_not: str | None = None
        """Reason why there will be no kernel."""
        self.num_repeated = 0
        """Runs that kernels left to the generic engine."""
        self._checked: Kernel | None = None
        """The kernel whose results were compared."""
        self._asked = False
        """Whether any runs were requested."""
        self._begun = False
        """Whether kernels are being compiled or loaded, or were."""
        self._gain = 1.0
        """Speed, relative to the generic engine, of the kernel that was compiled at once."""
        self._spent_s = 0.0
        self._seen = np.zeros(2, np.int64)
        """Number of runs that ended, and number of those whose time is needed."""
        self._lock = threading.Lock()
        self._under_way, self._ended_s = 0, math.inf
        """Number of chunks that are being made, and time on `time.monotonic`'s clock when the last one ended."""

    def begin(self, runs: int) -> None:
        """Prepares for about `runs` runs, so that the first ones wait as little as possible: for jobs of few
        configurations."""
        with self._lock:
            is_first, self._asked = not self._asked, True
        if is_first and runs >= _MANY_RUNS and not numba_engine.is_at_hand(self.model):
            self._begun = True
            self._beside(self._get_first)
        self._base.begin()

    def tally(self, seed: int, job: Job, left: int) -> np.ndarray:
        """The tally of a chunk, after which about `left` runs of the configuration are to come."""
        with self._lock:
            self._under_way += 1
        try:
            return self._tally(seed, job, left)
        finally:
            with self._lock:
                self._under_way, self._ended_s = self._under_way - 1, time.monotonic()

    def _tally(self, seed: int, job: Job, left: int) -> np.ndarray:
        kernel = self.kernel
        if kernel and self._checked is not kernel:
            return self._check(kernel, seed, job)
        start = time.thread_time()  # a busy machine takes longer for compiling, too
        tally = self.by_kernel(kernel, seed, job)[0] if kernel else self._generic(seed, job)
        seconds = time.thread_time() - start
        self._consider(tally, seconds * self._gain if kernel else seconds, job.num_runs, left)
        return tally

    def tally_all(self, seed: int, job: Job) -> np.ndarray:
        """The tally of a job of any length, by the kernel alone if there is one."""
        kernel = self.kernel
        return self.by_kernel(kernel, seed, job)[0] if kernel else self._generic(seed, job)

    def record(self, seed: int, job: Job) -> np.ndarray:
        """Records of a job, by a timed kernel if there is one whose results were compared."""
        kernel = self.kernel
        if kernel is None or kernel is not self._checked or not kernel.timed:
            return self._base.tally_of_runs(seed, runs_of(job), recording=True)[1]
        return self.by_kernel(kernel, seed, job, recording=True)[1]

    def prepare(self, timed: bool | None = None, shape: Shape | None = None, worth_s: float = math.inf) -> None:
        """Gets the kernel of a shape, or the fastest, and uses slower ones meanwhile; sets `why_not` if there is none.

        `worth_s` says how many seconds the generic engine would take for the runs that are to come.
        """
        if not timed and not self._seen[0]:
            self._seen += (_TRIAL_RUNS, self._asking(self._generic(0, Job(self.point, 0, _TRIAL_RUNS))))
        timed = self._needs_time() if timed is None else timed
        if shape is None:
            self._get_faster(timed, worth_s)
            return
        try:
            self.kernel = build(self._where, timed, shape)
        except Unsupported as reason:
            self._give_up(str(reason))
        else:
            if worth_s >= WORTH_COMPILING_S:
                compile_sums(self.model)

    def _asking(self, tally: np.ndarray) -> int:
        """Returns an upper bound on the number of runs whose time is needed."""
        return int(tally[LOST] + sum(tally[BROKEN + place] for place in exposures(self.model)))

    def _needs_time(self) -> bool:
        runs, asking = self._seen.tolist()
        return bool(math.isfinite(self.points.horizons[self.point]) or asking > _MANY_ASK * runs)

    def _consider(self, tally: np.ndarray, seconds: float, runs: int, left: int) -> None:
        """Begins to get the fastest kernel if it is worth that, judged by the time that is left or was spent so far.

        `seconds` is the time that the generic engine takes for `runs` runs.
        """
        with self._lock:
            self._seen += (runs, self._asking(tally))
            if runs < _TELLING_RUNS:  # their seconds may be those of loading the engine
                return
            self._spent_s += seconds
            worth_s = max(self._spent_s, left / runs * seconds)
            if self._begun or worth_s < (WORTH_COMPARING_S if self.kernel else WORTH_LOADING_S):
                return
            timed, compile_s = self._needs_time(), max(WORTH_COMPILING_S, _TOOK_S.get(self.model.name, 0.0))
            _, first = shapes()
            at_hand = is_kept(self._where, timed, first)
            if not at_hand and not timed and worth_s < compile_s:  # a timed one will do
                timed = at_hand = is_kept(self._where, True, first)
            if not at_hand and worth_s < compile_s:
                return
            self._begun = True
        self._beside(partial(self.prepare, timed, worth_s=worth_s))

    def _beside(self, get: Callable[[], None]) -> None:
        """Gets kernels in the background while runs go on, if they still do when their turn comes; if that fails, runs
        go on as before."""

        def work() -> None:
            try:
                with _TURN:
                    if self._under_way or time.monotonic() - self._ended_s < _OVER_S:
                        get()
                    else:
                        self._begun = False
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                warnings.warn(f"{self.model.name}: a kernel was not compiled: {why}", RuntimeWarning, stacklevel=2)
                if self.kernel is None:
                    self._give_up(why)

        threading.Thread(target=work, name="compile").start()

    def _get_first(self) -> None:
        """Gets a timed kernel, which serves any runs. Others wait until it is known how long runs take."""
        _, narrow = shapes()
        self._gain = self._better(_Best(self._on_base), True, narrow._replace(soon=True)).gain
        self._begun = False

    def _on_base(self, job: Job) -> np.ndarray:
        self._base.begin()  # or waits until that is done
        return self._generic(0, job)

    def _get_faster(self, timed: bool, worth_s: float) -> None:
        """Tries all kernels, and uses each that is faster than the one before.

        The first one gains most of what there is to gain: the others are for long jobs, or if it gains little. For
        large models, of which it computes much in vain, there are queues. Twice as many lanes as a register holds leave
        a processor less to wait for, but only where the values of a step do not fill its registers anyway.
        """
        wide, first = shapes()  # narrow lanes are the fastest of most models
        best = self._better(_Best(partial(self._generic, 0)), timed, first)
        if worth_s >= WORTH_COMPILING_S:
            compile_sums(self.model)
        if worth_s >= (WORTH_COMPARING_S if best.gain >= _GAIN else WORTH_COMPILING_S):
            best = self._better(best, timed, QUEUED if best.operations > _MANY_OPERATIONS else wide)
            if best.kernel and best.operations <= _FEW_OPERATIONS:
                best = self._better(best, timed, best.kernel.shape.twice())
        if best.kernel is None:
            self._give_up(best.why_none)

    def _better(self, best: _Best, timed: bool, shape: Shape) -> _Best:
        """Returns the kernel of that shape, and uses it, if it is faster than `best`; else returns `best`."""
        if self.why_not is not None:  # given up meanwhile
            return best
        start = time.thread_time()
        try:
            kernel = build(self._where, timed, shape)
        except Unsupported as reason:
            return best._replace(why_none=str(reason))
        _TOOK_S[self.model.name] = max(_TOOK_S.get(self.model.name, 0.0), time.thread_time() - start)
        best = best._replace(operations=kernel.operations)
        step = partial(self._tallied, kernel, 0)
        gain = self._times_as_fast(step, best.step, _LONG_TRIAL_S if best.kernel else _TRIAL_S)
        if gain <= 1.0:
            return best
        with self._lock:
            if self.why_not is None:
                self.kernel = kernel
        return _Best(step, kernel, gain * best.gain, kernel.operations)

    def _times_as_fast(self, new: Callable[[Job], object], old: Callable[[Job], object], trial_s: float) -> float:
        """Returns the speed of `new` relative to `old`; the two take turns, as a machine's speed varies."""
        for step in (new, old):  # which loads what it needs
            step(Job(self.point, 0, 1))
        least, begun = [math.inf, math.inf], time.thread_time()
        while math.isinf(least[0]) or time.thread_time() - begun < trial_s:
            for way, step in enumerate((new, old)):
                start = time.thread_time()
                step(Job(self.point, 0, _TRIAL_RUNS))
                least[way] = min(least[way], time.thread_time() - start)
        return least[1] / least[0]

    def _check(self, kernel: Kernel, seed: int, job: Job) -> np.ndarray:
        """Returns a chunk's tally by the generic engine, after comparing it with the kernel's."""
        tally = self._generic(seed, job)
        found, _ = self.by_kernel(kernel, seed, job)
        if np.array_equal(tally, found):
            self._checked = kernel
        else:
            self._give_up("its results differ from the generic engine's")
            warnings.warn(
                f"{self.model.name}: the compiled kernel's results differ from the generic engine's for runs "
                f"{job.first_run} to {job.first_run + job.num_runs - 1} of seed {seed}; it is not used. Please report "
                f"this, with {params_at(*self._where)}",
                RuntimeWarning,
                stacklevel=2,
            )
        return tally

    def _generic(self, seed: int, job: Job) -> np.ndarray:
        return self._base.tally_of_runs(seed, runs_of(job))[0]

    def by_kernel(self, kernel: Kernel, seed: int, job: Job, recording: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Tally and records of a job by a kernel; the generic engine repeats what that leaves open."""
        tally, records, repeated = self._tallied(kernel, seed, job, recording)
        with self._lock:
            self.num_repeated += repeated
        if repeated > _TOO_MANY * job.num_runs and job.num_runs >= _TRIAL_RUNS:
            self._give_up("too many runs are not as the ones observed")
        return tally, records

    def _tallied(
        self, kernel: Kernel, seed: int, job: Job, recording: bool = False
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Tally and records, and the number of runs that were repeated for them."""
        tally, records = empty(self.model, job.num_runs if recording else 0)
        left = add_runs(kernel, self._where, seed, runs_of(job), tally, records)
        if len(runs := job.first_run + left):
            more, found = self._base.tally_of_runs(seed, runs, recording)
            tally += more
            if recording:
                records[left] = found
        return tally, records, len(runs)

    def _give_up(self, why: str) -> None:
        """Stops the use of kernels, and notes the first of the reasons given."""
        with self._lock:
            self.kernel, self.why_not = None, self.why_not or why
