#!/usr/bin/env python3
"""Runs a command and says on which addresses it and its children listen for TCP: of a sweep, loopback alone.

    tests/sparkjobs/listening.py quorisk run configs/demo.toml --out results/demo

Looks ten times a second, as `ss -ltnp` would. Exits with 1 if something can be reached from other machines.
"""

import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path

POLL_S = 0.1
_LISTENING = "0A"


def family(pid: int) -> list[int]:
    """A process and all that it and its children started."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += [int(word) for word in (task / "children").read_text().split()]
    return found


def addresses(pids: Iterable[int]) -> set[str]:
    """Where these processes listen: an address each, without the port."""
    sockets = {name for pid in pids for name in _sockets(pid)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENING and words[9] in sockets:
                found.add(_address(words[1].partition(":")[0]))
    return found


def _sockets(pid: int) -> Iterable[str]:
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield from re.findall(r"socket:\[(\d+)\]", os.readlink(link))


def _address(text: str) -> str:
    """An address of /proc/net/tcp, words of four bytes in the machine's order."""
    words = [int(text[i : i + 8], 16) for i in range(0, len(text), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) == 4:
        return socket.inet_ntoa(packed)
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def beyond(found: Iterable[str]) -> list[str]:
    """Those that other machines reach."""
    return sorted(each for each in found if not ip_address(each).is_loopback)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    process, found = subprocess.Popen(sys.argv[1:]), set[str]()
    while process.poll() is None:
        found |= addresses(family(process.pid))
        time.sleep(POLL_S)
    print(
        f"listened on {', '.join(sorted(found)) or 'nothing'}; reached from other machines: {beyond(found) or 'none'}"
    )
    sys.exit(process.returncode or bool(beyond(found)))


if __name__ == "__main__":
    main()
