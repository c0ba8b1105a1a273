"""Progress for people who wait: a line that changes on a terminal, and lines now and then in a log."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console  # loaded where it is used, since it takes its time

Tell = Callable[..., None]
"""Callback for a line of progress, and for a function, if any, that returns the time left as of when it is shown."""
SOON_S, EVERY_S = 3.0, 10.0
"""Seconds until the first line of progress in a log, and between lines."""


class _Line:
    """The last line of progress."""

    def __init__(self) -> None:
        self.tell("")

    def tell(self, text: str, left: Callable[[], str] = str) -> None:
        self._told = text, left  # at once: another thread shows it

    def __rich__(self) -> str:
        text, left = self._told
        return text + left()


@contextmanager
def told_on(console: "Console") -> Iterator[Tell]:
    """Yields a function to call with a line of progress: shown at once on a terminal, and gone at the end; else, the
    last line as `now_and_then` prints it."""
    line = _Line()
    with console.status(line) if console.is_terminal else now_and_then(console, line.__rich__):
        yield line.tell


@contextmanager
def now_and_then(console: "Console", line: Callable[[], str]) -> Iterator[None]:
    """Prints what `line` returns, unless it is empty, every EVERY_S seconds, first after SOON_S."""
    ended = threading.Event()

    def write() -> None:
        wait_s = SOON_S
        while not ended.wait(wait_s):
            wait_s = EVERY_S
            if text := line():
                console.print(text, soft_wrap=True, markup=False)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
