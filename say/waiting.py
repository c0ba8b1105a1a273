"""Progress for people who wait: a line that changes on a terminal, and lines now and then in a log."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console  # loaded where it is used, since it takes its time

SOON_S, EVERY_S = 3.0, 10.0
"""Seconds until the first line of progress in a log, and between lines."""


@contextmanager
def told_on(console: "Console", every_s: float = EVERY_S) -> Iterator[Callable[[str], None]]:
    """Yields a function to call with a line of progress: shown at once on a terminal, and gone at the end; else, the
    last line every `every_s` seconds, first after SOON_S."""
    if console.is_terminal:
        with console.status("") as line:
            yield line.update
        return
    last, ended = "", threading.Event()

    def tell(text: str) -> None:
        nonlocal last
        last = text

    def write() -> None:
        wait_s = min(every_s, SOON_S)
        while not ended.wait(wait_s):
            wait_s = every_s
            if last:
                console.print(last, soft_wrap=True, markup=False)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()
