"""Mechanisms too rarely needed for runs to show it: whether a small case loses data without them, by a search."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from quorisk.kernels.model import Model, with_defaults
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import SearchError
from quorisk.kernels.states.shortest import shortest

_MEMORY = 1 << 27


class SmallCase(NamedTuple):
    """A configuration in which data can be lost without a mechanism, and cannot with all mechanisms on."""

    parameters: dict[str, Any]
    """Sizes of the case, as in `[model]`; everything else has its default."""
    steps: int
    """The fewest steps after which data is lost."""


def losing_cases(model: Model, off: Mapping[str, Mapping[str, Any]]) -> dict[str, SmallCase]:
    """Returns the small cases of a protocol in which data can be lost under these variants, by their labels.

    `off` has the parameters that each variant changes. Losses beyond the memory of a search are left out.
    """
    steps = {label: _fewest_steps(model, changed) for label, changed in off.items()}
    found = {label: SmallCase(dict(registry.cases(model.name).small), each) for label, each in steps.items() if each}
    return found if found and _fewest_steps(model, {}) is None else {}


def _fewest_steps(model: Model, changed: Mapping[str, Any]) -> int | None:
    params = model.make_params(with_defaults(model, {**registry.cases(model.name).small, **changed}))
    places = [i for i, invariant in enumerate(model.invariants) if invariant.data_loss]
    with suppress(SearchError, MemoryError):
        if path := shortest(model, params, _MEMORY, places).path:
            return len(path.steps)
    return None
