"""What Raft promises of an acknowledged value."""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.promises import Promise


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns what a configuration promises, from its parameters by dotted key."""
    servers = values["model.servers"]
    quorum = servers // 2 + 1
    synced = ("variant.follower_fsync_before_reply", "variant.leader_fsync_before_include_in_quorum")
    return Promise(
        copies=quorum,
        stored=servers,
        on_disk=all(values.get(key, True) for key in synced),
        nodes=quorum - 1,
        zones=0,
        asked=servers,
        waits_for=quorum,
        node="server",
    )
