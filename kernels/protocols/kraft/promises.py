"""The promise of Kafka with KRaft on an acknowledged record."""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.promises import Promise


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns the promise of a configuration, from its parameters by dotted key."""
    # with acks=1 the leader alone acknowledges a record, whatever min_isr is
    replicas = values["model.replication_factor"]
    least, asked = (1, 1) if values.get("variant.acks") == "1" else (values["model.min_isr"], replicas)
    return Promise(
        copies=least,
        stored=replicas,
        on_disk=bool(values.get("variant.flush_every_message", True)),
        nodes=least - 1,
        zones=0,
        asked=asked,
        waits_for=asked,
        node="broker",
        last_leads=True,
        provided=_while(values) if least > 1 else "",
    )


def _while(values: Mapping[str, Any]) -> str:
    """Returns the condition of the promise. A broker that falls out of sync has the records acknowledged before, and
    counts for nothing once another leads: the ELR keeps it a candidate, until it crashes."""
    elr = values.get("variant.version", "kip966") == "kip966" and not values.get("variant.unclean_leader_election")
    return ", unless another crashed just before" if elr else ", while the others are in sync"
