"""What Kafka with KRaft promises of an acknowledged record."""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.protocols.promises import Promise, several


def promise(values: Mapping[str, Any]) -> Promise:
    """Returns what a configuration promises, from its parameters by dotted key."""
    # brokers flush nothing before they acknowledge it; with acks=1 the leader alone does, whatever min_isr is
    replicas = values["model.replication_factor"]
    least, asked = (1, 1) if values.get("variant.acks") == "1" else (values["model.min_isr"], replicas)
    return Promise(
        copies=least,
        stored=replicas,
        on_disk=False,
        survives=several(least - 1, "broker"),
        nodes=least - 1,
        zones=0,
        asked=asked,
        waits_for=asked,
    )
