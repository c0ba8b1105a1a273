"""Sums of the runs that a kernel makes: by compiled code, or by NumPy for records or if that is not compiled."""

import threading

import numpy as np

from quorisk.kernels import keeping
from quorisk.kernels.engines.lanes.build import Configuration, Kernel
from quorisk.kernels.engines.lanes.parts.rows import LINE_WORDS, add_rows, add_rows_at_once, model_shape
from quorisk.kernels.engines.lanes.plan import columns_of
from quorisk.kernels.engines.tally import empty
from quorisk.kernels.model import Model

BATCH_RUNS = 1 << 14
"""Runs of one call of a kernel, at whose end lanes fall idle: a chunk of the engines'. Their rows take a megabyte."""


class _Memory(threading.local):
    """A thread's memory for kernels, which keeps it: new memory costs more than what kernels write to it."""

    def __init__(self) -> None:
        self.words = np.empty(0, np.int64)

    def get(self, num_words: int) -> np.ndarray:
        """Returns `num_words` words from the beginning of a line of the processor's cache on."""
        if len(self.words) < num_words + LINE_WORDS:
            self.words = np.empty(num_words + LINE_WORDS, np.int64)
        skipped = -self.words.ctypes.data // 8 % LINE_WORDS
        return self.words[skipped:][:num_words]


_memory = _Memory()


def add_runs(
    kernel: Kernel,
    configuration: Configuration,
    seed: int,
    runs: np.ndarray | range,
    tally: np.ndarray,
    records: np.ndarray,
) -> np.ndarray:
    """Adds runs to a tally, and writes their records unless there is no room for any; returns the places of those that
    the kernel leaves open.

    `runs` are the indices of any runs, int64, if the kernel is made for a list of them, else a range.
    """
    model, points, point = configuration
    words = BATCH_RUNS * kernel.row_words
    memory = _memory.get(words + kernel.scratch_words)
    rows, scratch = memory[:words].reshape(BATCH_RUNS, kernel.row_words), memory[words:]
    unit, columns = points.time_units[point], np.array(kernel.columns, np.int64)
    timing, add = (kernel.timed, unit), add_rows()
    is_compiled = len(records) == 0 and keeping.is_at_hand(add)
    losses = points.losses[point].ctypes.data
    redo, left = np.empty(BATCH_RUNS, np.int64), [np.empty(0, np.int64)]
    for start in range(0, len(runs), BATCH_RUNS):
        some = runs[start : start + BATCH_RUNS]
        first = some.start if isinstance(some, range) else some.ctypes.data
        kernel.run(seed, losses, first, len(some), scratch.ctypes.data, rows.ctypes.data)
        made, recorded = rows[: len(some)], records[start : start + BATCH_RUNS]
        if is_compiled:
            num_redo = add(made, made.view(np.float64), *timing, model_shape(model), columns, tally, redo)
            left.append(start + redo[:num_redo])
        else:
            left.append(start + add_rows_at_once(model, made, *timing, columns, tally, recorded))
    return np.concatenate(left)


def compile_sums(model: Model) -> None:
    """Has `add_runs` add up rows by compiled code from now on, unless it writes records."""
    (tally, _), rows = empty(model, 0), np.empty((0, LINE_WORDS), np.int64)
    columns = np.array(columns_of(model, (), ()), np.int64)
    add_rows()(rows, rows.view(np.float64), True, 1.0, model_shape(model), columns, tally, columns)
