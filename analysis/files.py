"""Output files that the user names: written whole or not at all, so that what was there before is not lost."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from quorisk.kernels.errors import ConfigError, QuoriskError, RunError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of the disk; all others concern the path."""


@contextmanager
def whole(path: Path, argument: str) -> Iterator[Path]:
    """Yields the path of a new file in the same folder, which takes the place of `path` when the body is done.

    A link is followed; a device, such as /dev/stdout, is yielded itself. `argument` is the option with the path. Raises
    ConfigError if nothing can be written there, and RunError if the disk has no room for it.
    """
    try:
        there = Path(os.path.realpath(path))
        if there.is_symlink():
            raise OSError(errno.ELOOP, "")
        if path.exists() and not path.is_file():  # the real path of a pipe does not exist
            yield path
            return
        part = there.with_name(f".quorisk-{secrets.token_hex(8)}{path.suffix}")
        try:
            part.touch()
            if there.exists():
                with there.open("ab"):  # which fails if it may not be written
                    part.chmod(stat.S_IMODE(there.stat().st_mode))
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(there)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error, argument) from None


def write_whole(path: Path, content: bytes, argument: str) -> None:
    """Writes a file, as `whole`. Raises ConfigError and RunError."""
    with whole(path, argument) as part:
        part.write_bytes(content)


def require_writable(path: Path, argument: str) -> None:
    """Raises what `write_whole` would, before the work that the output is of. Devices are left to it."""
    there = Path(os.path.realpath(path))
    try:
        if path.is_dir() or path.is_file():
            there.open("ab").close()
        if path.is_file() or not path.exists():
            TemporaryFile(dir=there.parent).close()
    except OSError as error:
        raise _unwritable(path, error, argument) from None


def _unwritable(path: Path, error: OSError, argument: str) -> QuoriskError:
    """The error to raise if an output file cannot be written."""
    why = f" {path}: cannot be written: {reason(error)}"
    return RunError(f"`{argument}`{why}") if error.errno in _NO_ROOM else ConfigError(why, argument)


def reason(error: OSError) -> str:
    """Returns the system's message, which some errors carry as a number alone."""
    return os.strerror(error.errno) if error.errno else str(error)
