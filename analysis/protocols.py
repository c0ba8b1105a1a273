"""The protocols that an experiment file may name. The one place that lists them."""

from importlib import import_module

from analysis.errors import ConfigError
from kernels.model import Model

PROTOCOLS = {
    "bookkeeper": "kernels.bookkeeper",
    "kafka": "kernels.kafka",
    "compaction": "kernels.compaction",
}
"""The module whose MODEL it is, by name."""


def load(name: object) -> Model:
    """The model of a protocol; imports that protocol alone. Raises ConfigError."""
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise ConfigError(f"protocol = {name!r}: one of {', '.join(PROTOCOLS)}")
    model: Model = import_module(PROTOCOLS[name]).MODEL
    return model
