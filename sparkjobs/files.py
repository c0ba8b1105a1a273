"""Writing into a results folder: a file is written whole or not at all, and never outside the folder.

A folder may come from somebody else. A symbolic link in it could lead anywhere, so none is followed: not to the file,
which is replaced, and not to the folder that it lies in.
"""

import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, TextIOWrapper
from pathlib import Path

from quorisk.analysis.files import reason
from quorisk.kernels.errors import RunError

_PART, _OWN = ".part", re.compile(r"\.[0-9a-f]{16}\.part$")


def write_in_folder(path: Path, content: bytes) -> None:
    """Writes a file, all of it or nothing. Raises RunError."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[BufferedWriter]:
    """Yields a new file that takes the place of `path` when the body is done, or goes if the body fails.

    Raises RunError if that cannot be, for instance because the disk is full or the folder is a symbolic link.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        why = "is a symbolic link, which is not followed" if path.parent.is_symlink() else reason(error)
        raise RunError(f"{path.parent}: {why}") from None
    part = f"{path.name}.{secrets.token_hex(8)}{_PART}"
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(number)
        os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {reason(error)}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        os.close(folder)


def appending(path: Path) -> BufferedWriter:
    """Returns a file to add lines to. Raises OSError, also if `path` is a symbolic link."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666), "ab")


class LogHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Adds lines to a log. Raises OSError if the log is a symbolic link or cannot be opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(TextIOWrapper(appending(path), "utf-8"))

    def close(self) -> None:
        super().close()
        with suppress(OSError):  # a disk that is full stops nobody
            self.stream.close()


@contextmanager
def logging_to(path: Path, log: logging.Logger) -> Iterator[LogHandler]:
    """Adds a log's messages in the body to a file. Raises OSError as `LogHandler`."""
    handler = LogHandler(path)
    log.addHandler(handler)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        handler.close()


def sweep_up(folder: Path) -> None:
    """Removes half-written files of killed processes. The caller has the folder to itself."""
    for part in folder.glob(f"*{_PART}"):  # others name theirs so, too
        if _OWN.search(part.name):
            with suppress(OSError):
                part.unlink()
