"""The time for which an outage of all servers loses an acknowledged value of Raft: while the next leader may lack it.

Each server has a prefix of the log on disk, and votes for no shorter log than its own. So a server leads next only if
fewer than half of them have longer logs; all of these are equally likely to.
"""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.raft.few_copies import on_disks


def unflushed_for(values: Mapping[str, Any]) -> float:
    """Returns the mean time, in the unit of the rates; `values` are those of all keys, by dotted name."""
    servers = values["model.servers"]
    may_lead = servers - servers // 2
    return sum((may_lead - disks) / may_lead * time for disks, time in on_disks(values).items() if disks < may_lead)
