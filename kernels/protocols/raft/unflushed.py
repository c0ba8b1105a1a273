"""The time for which an outage of all servers loses an acknowledged value of Raft: while a majority lacks it on disk.

These servers elect any of themselves without asking the others. Each server is as likely to be the first candidate that
gets a majority's votes, and one that has the value keeps it.
"""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.raft.few_copies import on_disks


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name."""
    servers = values["model.servers"]
    return sum(
        (servers - disks) / servers * time for disks, time in on_disks(values).items() if servers - disks > servers // 2
    )
