"""Work side by side, on several cores: compiled code lets other threads run."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Found = TypeVar("Found")


def num_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(function: Callable[[Given], Found], items: Iterable[Given], threads: int) -> Iterator[Found]:
    """Yields what a function returns for each item, in their order, computed on `threads` threads. An exception is
    raised when its item's turn comes. With one, that is the caller's."""
    with ThreadPoolExecutor(threads) as pool:  # it starts no thread before it has work
        yield from (pool.map if threads > 1 else map)(function, items)
