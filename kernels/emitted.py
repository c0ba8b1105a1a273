"""A model's expressions as machine code, emitted where code that Numba compiles calls them (`kernels.stepper`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numba
from llvmlite import ir

from quorisk.kernels import declared, rule
from quorisk.kernels.compiled import leaf_paths, refuse, too_wide
from quorisk.kernels.machine_code import HAS_PDEP
from quorisk.kernels.model import Model, smallest_params
from quorisk.kernels.packing import fields_of
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import known_bits, same
from quorisk.kernels.tracing.general import STATE, GeneralModel, general
from quorisk.kernels.tracing.machine import I64


class Emit:
    """Emits a model's expressions at a builder's position. The model is traced when the first of them is emitted: code
    loaded from disk needs no trace."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.sharing = [i for i, action in enumerate(model.actions) if action.shared > 1]
        self.loses_messages = [not place for place in rule.losses(model)]
        self.state_type = numba.typeof(model.initial(smallest_params(model), 0))
        self.paths = leaf_paths(self.state_type)
        self.fields = fields_of(model.widths)
        self.name, self.max_sends = model.name, model.max_sends
        self.action_names = [action.name for action in model.actions]

    @property
    def model(self) -> GeneralModel:
        """The model traced. Raises ModelError as `general` does."""
        return general(self._model)

    @property
    def within_widths(self) -> GeneralModel:
        """The model traced for states that fit `Model.widths`."""
        return general(self._model, within_widths=True)

    def values(
        self, builder: Any, outputs: Iterable[Any], state: Any, params: Any, others: Mapping[str, Any]
    ) -> Callable[[Any], Any]:
        """Returns a function that gives the value of each of `outputs`, which are emitted on demand.

        `state` and `params` are nested LLVM values, `others` those of the other leaves by name, which may come later.
        """

        def leaf(name: Any, _: int) -> Any:
            if isinstance(name, str):
                return others[name]
            kind, i = name
            if kind != STATE:
                return builder.extract_value(params, i)
            return builder.extract_value(state, self.paths[i])

        emitter = Emitter(builder, 1, 64, leaf, outputs, HAS_PDEP)
        return lambda value: emitter.get(value, 64)

    def state_of(self, context: Any, builder: Any, leaves: Iterable[Any]) -> Any:
        """The state of these leaves."""
        state = context.get_constant_null(self.state_type)
        for path, value in zip(self.paths, leaves, strict=True):
            state = builder.insert_value(state, value, path)
        return state

    def subset(self, context: Any, builder: Any, action: int, value: Callable[[Any], Any]) -> Any:
        """Emits the mask of an action's lost subset; where it may exceed `Model.max_sends`, a check that refuses it."""
        sent = value(self.model.sends[action])
        if known_bits(self.within_widths.sends[action])[1] >> self.max_sends:
            why = f"{self.action_names[action]} sends more than {self.max_sends} messages, or others"
            beyond = too_wide(builder, [(sent, self.max_sends)])
            refuse(context, builder, beyond, declared.unfit(self.name, "max_sends", why))
        return sent

    def changed(self, action: int) -> dict[int, Any]:
        """The leaves that an action changes, by their places."""
        pairs = zip(self.model.state, self.model.after[action], strict=True)
        return {i: after for i, (before, after) in enumerate(pairs) if not same(before, after)}


def each_case(builder: Any, chosen: Any, numbers: Iterable[int]) -> Iterator[int]:
    """Emits a branch to the chosen one of these numbers' cases, and from each case to a common end, which is the
    builder's position afterwards. Code emitted while a number is yielded is its case.
    """
    end = builder.append_basic_block("end")
    switch = builder.switch(chosen, end)
    for number in numbers:
        block = builder.append_basic_block(f"case{number}")
        switch.add_case(ir.Constant(I64, number), block)
        builder.position_at_end(block)
        yield number
        builder.branch(end)
    builder.position_at_end(end)
