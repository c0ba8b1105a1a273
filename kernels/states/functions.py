"""Compiled functions of a model for the templates of this package, under the names that these use."""

from functools import cache
from typing import Any

from quorisk.kernels.compiled import LATE, bind
from quorisk.kernels.engines.step import ending
from quorisk.kernels.model import UNFINISHED, Model, data_loss_mask
from quorisk.kernels.states.odds import step_functions
from quorisk.kernels.states.representatives import representative_function
from quorisk.kernels.states.store import store_functions
from quorisk.kernels.stepper import stepper


@cache
def compiled_for(model: Model, template: Any, allocates: bool = True, **others: Any) -> Any:
    """Compiles a template for Python to call, with those functions and `others` as globals; its code is kept on disk.
    `allocates` is as for `bind`."""
    steps = stepper(model)
    return bind(
        template,
        model.name,
        kept_for=model.name,
        allocates=allocates,
        **steps._asdict(),
        **store_functions(model),
        **step_functions(model),
        representative=representative_function(model),
        judge=bind(_judge, model.name, broken=steps.broken, outcome=steps.outcome, data_loss=data_loss_mask(model)),
        num_invariants=len(model.invariants),
        **others,
    )


# A template, with names that are bound by `compiled_for`

broken = data_loss = outcome = LATE


def _judge(state, params, total):
    """Returns the invariants that a state breaks, and how a run ends there, UNFINISHED if it goes on; `total` is W."""
    breaks, dead = broken(state, params), total <= 0.0
    ends = outcome(state, params) if dead else UNFINISHED
    return breaks, ending(UNFINISHED, False, dead, ends, breaks & data_loss != 0)
