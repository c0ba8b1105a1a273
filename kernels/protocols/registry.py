"""The protocols that an experiment file may name. The one place that lists them."""

from importlib import import_module

from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import Model
from quorisk.kernels.telling import Teller

PROTOCOLS = {
    "bookkeeper": "quorisk.kernels.protocols.bookkeeper",
    "kafka": "quorisk.kernels.protocols.kafka",
    "compaction": "quorisk.kernels.protocols.compaction",
}
"""The module whose MODEL it is, by name."""
TELLERS = {
    "bookkeeper": "quorisk.kernels.protocols.bookkeeper.story",
    "kafka": "quorisk.kernels.protocols.kafka.story",
    "compaction": "quorisk.kernels.protocols.compaction.story",
}
"""The module that puts its steps into words, by the model's name."""


def load(name: object) -> Model:
    """The model of a protocol; imports that protocol alone. Raises ConfigError."""
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise ConfigError(f"protocol = {name!r}: one of {', '.join(PROTOCOLS)}")
    model: Model = import_module(PROTOCOLS[name]).MODEL
    return model


def teller(model: Model) -> Teller:
    """What puts a model's steps into words."""
    found: Teller = import_module(TELLERS[model.name])
    return found
