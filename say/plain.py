"""Results as plain dictionaries and lists: what `--json` prints and `json.dumps` takes."""

from collections.abc import Mapping
from typing import Any


def plain_data(value: Any) -> Any:
    """Returns named tuples as dictionaries, other tuples as lists, all the way down; everything else as it is."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain_data(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: plain_data(part) for key, part in value.items()}
    return [plain_data(part) for part in value] if isinstance(value, list | tuple) else value
