"""A machine: a disk that can lose power, a network that can be cut, and one server process.

The disk is ext4 in a file. EXT4_IOC_SHUTDOWN without a flush of the journal ends it by the kernel's own rules: what was
fsynced or written back stays, all else is gone. The drive below is taken to keep what it confirmed.
"""

import fcntl
import os
import signal
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.reality.lab import ip

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32) of include/uapi/linux/ext4.h
NO_LOG_FLUSH = 2
DISK_BYTES = 512 << 20


class Machine:
    """A machine of the room, of index 0, 1, ..., with its folder `disk` and its addresses for peers and clients."""

    def __init__(self, root: Path, index: int) -> None:
        self.index, self.name = index, f"m{index}"
        self.peer, self.address = f"198.18.0.{index + 1}", f"198.18.1.{index + 1}"
        self.image, self.disk, self.log = root / f"{self.name}.img", root / self.name, root / f"{self.name}.log"
        self.command: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.disk.mkdir()
        self.new_disk()
        ip(f"netns add {self.name}")
        for network, address in (("peers", self.peer), ("clients", self.address)):
            port = f"{network[0]}{index}"
            ip(
                f"link add {port} type veth peer name {network} netns {self.name}",
                f"link set {port} master {network} up",
            )
            ip(f"addr add {address}/24 dev {network}", f"link set {network} up", "link set lo up", namespace=self.name)

    def new_disk(self) -> None:
        """An empty disk takes the place of the one that was there, if any."""
        if os.path.ismount(self.disk):
            self._unmount()
        with self.image.open("wb") as image:
            image.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self.image)], check=True)
        self._mount()

    def _mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.disk)], check=True)

    def _unmount(self) -> None:
        for _ in range(100):  # files of a process that was just killed may still be open
            if subprocess.run(["umount", str(self.disk)], capture_output=True, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.disk} stays busy")

    def start(self) -> None:
        """The server starts, on the disk as it is."""
        with self.log.open("ab") as log:
            inside = ["nsenter", f"--net=/run/netns/{self.name}", *self.command]
            self.process = subprocess.Popen(inside, stdout=log, stderr=log)

    def runs(self) -> bool:
        """Whether the server's process is there."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        """A signal to the server, if it is there."""
        if self.process is not None and self.runs():
            self.process.send_signal(number)

    def stop(self) -> None:
        """The server is asked to end, and killed if it does not within a minute."""
        self.signal(signal.SIGTERM)
        try:
            if self.process is not None:
                self.process.wait(60.0)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """The server's process dies; its page cache stays."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def cut_power(self) -> None:
        """The disk takes nothing any more; it is there again, with what was on it, after `remount`."""
        handle = os.open(self.disk, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def settle(self) -> None:
        """All that was written to the disk is on it, as on a machine that has been up for long."""
        subprocess.run(["sync", "-f", str(self.disk)], check=True)

    def remount(self) -> None:
        """The disk after its power is back."""
        self._unmount()
        self._mount()

    def plug(self, up: bool, networks: Sequence[str] = ("peers", "clients")) -> None:
        """The cables to these networks are plugged in, or pulled out."""
        ip(*(f"link set {network[0]}{self.index} {'up' if up else 'down'}" for network in networks))
