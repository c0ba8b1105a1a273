"""The room that trials run in: namespaces of processes, mounts and networks of its own, and a disk in memory.

However its first process ends, the kernel then empties the room: it kills every process in it, unmounts its file
systems and frees their loop devices. No network leads out of it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SERVERS = Path(os.environ.get("QUORISK_SERVERS", ROOT / "build" / "servers"))
"""Where `install.sh` puts the servers that are no Python package."""
JAVA = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The beginning of the command line of a server in Java: little memory, and soon up."""
NEEDED = ("unshare", "setpriv", "nsenter", "ip", "mkfs.ext4")
SPACES = ("--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")
ROOM = ("setpriv", "--pdeathsig", "KILL", "unshare", *SPACES)
"""In front of a program's command line: it runs in a room of its own, and dies with whoever started it."""
MEMORY = "8g"
"""The most that the disks of a room take of the machine's memory."""


def missing(*programs: str) -> str | None:
    """What this machine lacks for trials with these programs, in a line; None if there is everything."""
    if os.geteuid() != 0:
        return "reality needs root: it mounts file systems and makes network namespaces"
    lacking = [tool for tool in NEEDED if shutil.which(tool) is None]
    if lacking:
        return f"reality needs the commands {', '.join(lacking)} (Debian: util-linux, iproute2, e2fsprogs)"
    if not Path("/dev/loop-control").exists():
        return "reality needs loop devices: there is no /dev/loop-control"
    lacking = [name for name in ("nats", "confluent_kafka") if find_spec(name) is None]
    lacking += [name for name in programs if program(name) is None]
    if lacking:
        return f"reality needs {', '.join(lacking)}: scripts/reality/install.sh"
    tried = subprocess.run([*ROOM, "true"], capture_output=True, text=True, check=False)
    return f"reality cannot make namespaces: {tried.stderr.strip()}" if tried.returncode else None


def program(name: str) -> str | None:
    """The path of a server's program: beside this Python, in SERVERS, or where PATH leads; None if it is nowhere."""
    return shutil.which(
        name, path=os.pathsep.join((str(Path(sys.executable).parent), str(SERVERS), os.environ["PATH"]))
    )


def in_room(module: str, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """A Python module of this repository, started in a room of its own; its stdout can be read."""
    command = [*ROOM, sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def furnish() -> Path:
    """Prepares the room from within: networks `peers` and `clients`, and a disk in memory, whose folder is returned.

    Raises:
        RuntimeError: if this process is not the first one of a room, so that things would stay behind.
    """
    if os.getpid() != 1:
        raise RuntimeError("trials run in a room of their own: scripts/reality/run.py makes one")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEMORY}", "reality", "/run"], check=True)
    ip("link set lo up", "link add peers type bridge", "link add clients type bridge")
    ip("link set peers up", "link set clients up", "addr add 198.18.1.254/24 dev clients")
    disks = Path("/run/disks")
    disks.mkdir()
    return disks


def ip(*commands: str, namespace: str | None = None) -> None:
    """Runs commands of iproute2, in a network namespace if one is named."""
    inside = ["-n", namespace] if namespace else []
    subprocess.run(["ip", *inside, "-batch", "-"], input="\n".join(commands) + "\n", text=True, check=True)
