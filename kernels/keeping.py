"""The cache of machine code on disk, from which only this user's code is run.

A user who can write into the folder, or replace it, can run code here: the folder and those around it have to belong to
this user or root, and not be open to others.
Numba does not notice a flipped bit in what it loads, which may then crash or compute something else, and it fails where
the disk is full. So each file begins with a checksum of its name and the rest; a file that does not match is compiled
again, and one that cannot be written is left out. Code that several processes need at the same time is made by one.
"""

import fcntl
import hashlib
import os
import pickle
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from quorisk.kernels.errors import ConfigError

_VARIABLE = "QUORISK_CACHE_DIR"
_CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Returns the folder of all machine code, whatever its source. Raises ConfigError if none can be used safely."""
    folder = _cache_parent() / "quorisk"
    try:
        for each in reversed((folder, *folder.parents)):
            each.mkdir(mode=0o700, exist_ok=True)
        around = {*folder.parents, *folder.resolve().parents} - {folder}
        for each in (folder, *sorted(around, reverse=True)):
            _check_owners(each, folder)
    except OSError as error:
        raise _unusable(f"{folder}: cannot be made: {os.strerror(error.errno or 0)}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unusable(f"{folder}: cannot be written")
    return folder


def _check_owners(place: Path, folder: Path) -> None:
    """Raises ConfigError if other users could put code into the cache: by writing to its folder (`place`), or by
    replacing it in a parent (`place`) without the sticky bit."""
    found = place.stat()
    around = "" if place == folder else f" (around {folder})"
    if found.st_uid not in (os.geteuid(), 0):
        raise _unusable(f"{place}{around}: belongs to another user, whose code would run here")
    sticky = place != folder and found.st_mode & stat.S_ISVTX
    for bit, who in ((stat.S_IWOTH, "anyone"), (stat.S_IWGRP, "its group")):
        if found.st_mode & bit and not sticky:
            raise _unusable(f"{place}{around}: {who} may write there, and code from there runs here")


def _unusable(why: str) -> ConfigError:
    return ConfigError(f"{_VARIABLE}: {why}; set it to a folder of yours where compiled code can be kept")


def _cache_parent() -> Path:
    """Returns the parent of the cache's folder: as the environment says, else `~/.cache`. Raises ConfigError."""
    if given := os.environ.get(_VARIABLE):
        return Path(given).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(shared):  # a relative path is to be ignored, and would depend on the current folder
        return Path(shared)
    try:
        home = Path.home()
    except RuntimeError:  # as in a container whose user has no name
        home = Path()
    if not home.is_absolute():
        raise _unusable("not set, and there is no home folder")
    return home / ".cache"


def write(path: Path, content: bytes) -> None:
    """Writes a file that `read` takes, whole or not at all. Raises OSError."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(_checksum(path, content) + content)
        new.replace(path)
    finally:
        with suppress(OSError):
            new.unlink()


def read(path: Path) -> bytes | None:
    """Returns the content that `write` wrote; None if the file is missing or damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[_CHECKSUM_BYTES:]
    return content if _checksum(path, content) == whole[:_CHECKSUM_BYTES] else None


def _checksum(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lets one thread of one process at a time make what is kept at `path`, while others that need it wait; all make it
    if there is no disk to lock."""
    lock = path.with_suffix(".lock")
    with ExitStack() as stack:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(lock.open("w")), fcntl.LOCK_EX)
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()


class _Files(IndexDataCacheFile):
    """Numba's files of one function, with checksums.

    Two processes may give their code the same file name: the file then has the code of one, and says of which.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        whose, data = super().load(key) or (None, None)
        return data if whose == key else None

    def _load_index(self) -> dict[Any, str]:
        content = read(Path(self._index_path))
        stamp, there = pickle.loads(content) if content else (None, {})
        return there if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        write(Path(self._index_path), self._dump((self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        content = read(Path(self._data_path(name)))
        return pickle.loads(content) if content else None

    def _save_data(self, name: str, data: Any) -> None:
        write(Path(self._data_path(name)), self._dump(data))


class _Cache(FunctionCache):
    """Numba's cache of one function, in such files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)
        self.turn = ExitStack()
        """Lock on the code's file, closed once there is code, made here or elsewhere, or there will be none."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Returns the code on disk, after waiting for another process that is making it; None if it is the caller's
        turn to make it."""
        found = super().load_overload(sig, target_context)
        if found is None:
            self.turn.enter_context(locked(Path(self._cache_path) / self._impl.filename_base))
            found = super().load_overload(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):  # a disk that has no room is no reason to stop
            super().save_overload(sig, data)


@cache
def source_hash(*folders: Path) -> str:
    """Returns a hash of all source files in these folders, and of Numba's version."""
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


numba.config.CACHE_DIR = str(cache_folder() / source_hash(Path(__file__).parent))


def is_at_hand(compiled: Any) -> bool:
    """Whether there is machine code of a function that is `kept`, in this process or on disk."""
    cache = compiled._cache
    return bool(compiled.signatures) or (isinstance(cache, _Cache) and Path(cache._cache_file._index_path).exists())


def kept(compiled: Any) -> Any:
    """Makes a function of Numba's keep its machine code on disk from now on, if the disk can be written."""
    with suppress(RuntimeError):  # which is how Numba says that it cannot write there
        cache = compiled._cache = _Cache(compiled.py_func)
        to_code = compiled.compile

        def compile_in_turn(signature: Any) -> Any:
            with cache.turn:
                return to_code(signature)

        compiled.compile = compile_in_turn
    return compiled


def njit_kept(function: Callable[..., Any]) -> Any:
    """Compiles a function for arrays and numbers at its first call, and keeps the code. It runs without Python's lock,
    and divides as NumPy does."""
    return kept(numba.njit(nogil=True, error_model="numpy")(function))
