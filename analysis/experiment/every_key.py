"""An experiment file to start from, for a protocol that comes with none: every key of its model, explained."""

import textwrap
from collections.abc import Mapping
from typing import Any

from quorisk.analysis.experiment.characters import one_line
from quorisk.analysis.experiment.keys import Key, as_toml, keys_of
from quorisk.kernels.model import MESSAGE_LOSS, Condition, Model, loses_messages, with_defaults
from quorisk.kernels.protocols import registry
from quorisk.kernels.rule import loss_names

_LONGEST = 116
_TABLES: Mapping[str, str] = {
    "model": "sizes",
    "variant": "versions and switches of the protocol",
    "faults": "with which probability something is lost, and the faults that may happen",
    "rates": "how often each action happens, relative to the others; 0 switches it off",
}


def starter(name: str) -> str:
    """Returns the text of an experiment file for a protocol: its smallest case, and the defaults of all else. Raises
    ConfigError if there is no such protocol."""
    model = registry.load(name)
    sizes = {p.name: registry.cases(name).small.get(p.name) for p in model.parameters}
    values = with_defaults(model, {parameter: value for parameter, value in sizes.items() if value is not None})
    keys, explained = keys_of(model), _explained(model)
    elsewhere = {f"rates.{a.name}": a.only for a in model.actions if a.only and not a.only.holds(values)}
    lines = [f"# {name}: every key of its model, to be changed", f"protocol = {as_toml(name)}"]
    for table, about in _TABLES.items():
        own = [key for key in keys.values() if key.name in explained and key.name.startswith(f"{table}.")]
        lines += ["", f"[{table}]  # {about}"] if own else []
        for key in own:
            default = keys[key.follows].default if key.follows else key.default
            value = values.get(key.name.removeprefix(f"{table}."), default)
            lines += _lines(key, explained[key.name], value, elsewhere.get(key.name))
    return "\n".join([*lines, "", "[run]", "runs = 1_000_000  # of each configuration", ""])


def _explained(model: Model) -> dict[str, str]:
    """Explanations of the model's keys, by dotted name."""
    losses = {probability.name: probability.doc for probability in model.probabilities}
    if loses_messages(model):
        losses = {MESSAGE_LOSS: "probability that a message is lost", **losses}
    return {
        **{f"{parameter.table}.{parameter.name}": parameter.doc for parameter in model.parameters},
        **{f"faults.{name}": losses[name] for name in loss_names(model) if name in losses},
        **{f"rates.{action.name}": action.counts for action in model.actions},
    }


def _lines(key: Key, about: str, value: Any, elsewhere: Condition | None) -> list[str]:
    """Lines of a key with its value, below its explanation and, but for rates, the values allowed. A rate that only
    goes with a value that the file does not have is a comment."""
    said = one_line(about) if key.timed else f"{one_line(about)}: {one_line(key.kind.allowed)}"
    if elsewhere:
        said += f" Goes with {elsewhere.key} = {elsewhere.allowed}."
    comment = textwrap.wrap(said, _LONGEST) if said else []
    entry = f"{key.name.rpartition('.')[2]} = {as_toml(value)}"
    return [*(f"# {line}" for line in comment), f"# {entry}" if elsewhere else entry]
