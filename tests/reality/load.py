"""Writers, and what they were told: which messages were acknowledged, and when."""

import hashlib
import re
import threading
import time
from collections.abc import Callable

WRITERS = 4
AFTER_ERROR_S = 0.05


def payload(seed: int, number: int) -> bytes:
    """Message `number` of a trial: its number between marks, and bytes that no other message has."""
    return b"#%d %s" % (number, hashlib.sha256(b"%d %d" % (seed, number)).hexdigest().encode())


def numbers_in(data: bytes) -> set[int]:
    """The numbers of all messages that are somewhere in a file, whatever else is there."""
    return {int(number) for number in re.findall(rb"#(\d+) [0-9a-f]{64}", data)}


def number_of(message: bytes) -> int:
    """The number of a message."""
    return int(message[1:].split(b" ", 1)[0])


class Load:
    """Writers that each write a message, wait for its acknowledgement and a moment, and write the next one.

    `write` writes a message and returns once it is acknowledged; it raises if it is not known to be.
    """

    def __init__(self, write: Callable[[int, bytes], None], seed: int, pause_s: float) -> None:
        self.acknowledged: dict[int, float] = {}
        """When each message was acknowledged, in seconds since 1970."""
        self._write, self._seed, self._pause_s = write, seed, pause_s
        self._last, self._lock, self._ends = 0, threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._writes, daemon=True) for _ in range(WRITERS)]
        for thread in self._threads:
            thread.start()

    def _writes(self) -> None:
        while not self._ends.is_set():
            with self._lock:
                self._last += 1
                number = self._last
            try:
                self._write(number, payload(self._seed, number))
                self.acknowledged[number] = time.time()
            except Exception:  # not acknowledged: nobody was promised anything, whatever went wrong
                time.sleep(AFTER_ERROR_S)
            time.sleep(self._pause_s)

    def stop(self) -> None:
        """Nothing is written any more; what is on its way may still be acknowledged."""
        self._ends.set()

    def end(self) -> dict[int, float]:
        """What was acknowledged in all, once the last writer has its answer or has given up."""
        self.stop()
        for thread in self._threads:
            thread.join()
        return self.acknowledged
