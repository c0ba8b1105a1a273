"""The promise of Raft on an acknowledged value."""

import math
from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.promises import Promise


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns the promise of a configuration, from its parameters by dotted key."""
    servers = values["model.servers"]
    quorum = servers // 2 + 1
    rejoins = values.get("variant.rejoin_as_new", True)
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
        leaderless_for=first_timeout(servers, values.get("rates.timeout", 1.0)),
        by_majority=True,
        provided="" if rejoins else ", but no wiped server that votes",
        uncounted=""
        if rejoins
        else "variant.rejoin_as_new = false: true with a cluster; what wiped servers that vote "
        "lose is not computed there",
    )


def first_timeout(servers: int, rate: float) -> float:
    """Returns after how long the first of the other servers starts an election, on average; a round of votes takes
    milliseconds, and is left out.

    Servers wait for one to two election timeouts, each as likely (etcd), of which `rate` is one over the mean. The
    model's waits are exponential with that mean, and the first of several is too early: 0.75 s where etcd takes 1.33.
    """
    others = max(servers - 1, 1)
    return 2.0 / (3.0 * rate) * (1.0 + 1.0 / (others + 1)) if rate > 0.0 else math.inf
