"""Compiled functions of a model for the templates of this package, under the names that these use."""

from functools import cache
from typing import Any

from quorisk.kernels.compiled import bind
from quorisk.kernels.model import Model, data_loss_mask
from quorisk.kernels.states.odds import step_functions
from quorisk.kernels.states.representatives import representative_function
from quorisk.kernels.states.store import store_functions
from quorisk.kernels.stepper import stepper


@cache
def compiled_for(model: Model, template: Any, allocates: bool = True, **others: Any) -> Any:
    """Compiles a template for Python to call, with those functions and `others` as globals; its code is kept on disk.
    `allocates` is as for `bind`."""
    return bind(
        template,
        model.name,
        kept_for=model.name,
        allocates=allocates,
        **stepper(model)._asdict(),
        **store_functions(model),
        **step_functions(model),
        representative=representative_function(model),
        data_loss=data_loss_mask(model),
        num_invariants=len(model.invariants),
        **others,
    )
