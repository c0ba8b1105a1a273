"""The promise of Kafka before KRaft on a committed record."""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.promises import Promise


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns the promise of a configuration, from its parameters by dotted key."""
    # the in-sync set may shrink to the leader
    replicas = values["model.replicas"]
    return Promise(
        copies=1,
        stored=replicas,
        on_disk=bool(values.get("variant.flush_every_message", True)),
        nodes=0,
        zones=0,
        asked=replicas,
        waits_for=replicas,
        node="broker",
        last_leads=True,
    )
