"""A temporary folder that only this user can look into, and that does not stay when its process is killed."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX, _LOCK = "quorisk-", "lock"
_STARTED_WITHIN_S = 60.0
"""A folder without a lock is of a process that is about to take it, or was killed before."""


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yields a new folder (mode 0700), gone when the body is done; first removes those of processes that were killed.

    A process holds the lock in its folder as long as it lives: whoever gets a lock may remove what is around it.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder, lock = _locked()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked() -> tuple[Path, int]:
    """A new folder, and the lock in it; another one if somebody who starts now was faster and took it for abandoned."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _LOCK).exists():
            return folder, lock
        os.close(lock)


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                _remove_if_abandoned(folder, time.time() - found.st_mtime)


def _remove_if_abandoned(folder: Path, age_s: float) -> None:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        if age_s > _STARTED_WITHIN_S:
            folder.rmdir()  # only if it is empty
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
