"""What heads need is compiled in a process of its own, while this one compiles and runs what comes before them."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from quorisk.analysis.estimate import method
from quorisk.analysis.estimate.estimate import num_cores
from quorisk.analysis.experiment.grid import GridPoint
from quorisk.kernels.compiled import is_ready, once
from quorisk.kernels.engines.points import Point
from quorisk.kernels.protocols import registry

_HEAD = "head"


def compile_head(protocol: str, point: Point) -> None:
    """Compiles what a protocol's heads need, unless that was done on this machine before."""
    once(_HEAD, protocol, lambda: method.warm(registry.load(protocol), point))


@contextmanager
def compiling_head(protocol: str, points: Sequence[GridPoint]) -> Iterator[None]:
    """Has another process do so during the body, where points are to have heads and there is a core for it.

    Whoever needs a function that is being compiled waits for it (`kernels.keeping.alone`). If the process fails, this
    one compiles what it needs itself, and says what is wrong.
    """
    is_wanted = points and num_cores() > 1 and not is_ready(_HEAD, protocol)
    process = _started(protocol, points[0].point) if is_wanted else None
    try:
        yield
    finally:
        if process:
            process.kill()
            process.wait()


def _started(protocol: str, point: Point) -> subprocess.Popen[bytes] | None:
    """The process; None if there can be none."""
    # It imports what this process imports, whatever lies in the current folder.
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
    command, pipe, nowhere = [sys.executable, "-m", __name__], subprocess.PIPE, subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=pipe, stdout=nowhere, stderr=nowhere, env=os.environ | path)
    except OSError:
        return None
    assert process.stdin
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(pickle.dumps((protocol, point)))
    return process


if __name__ == "__main__":
    compile_head(*pickle.load(sys.stdin.buffer))
