"""Kafka's KRaft replication once more, from the specs' text: slow, with sets and tuples, sharing no rule with
`kernels.protocols.kraft`. Only the shape of the states is taken from `kernels.protocols.kraft.spec`."""

from tests.references.kraft.actions import ACTIONS, successors
from tests.references.kraft.properties import PROPERTIES
from tests.references.kraft.state import initial

__all__ = ["ACTIONS", "PROPERTIES", "initial", "successors"]
