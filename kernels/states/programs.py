"""A protocol's functions as programs over wide rows: whatever enumerates states computes with them.

They serve every configuration, whose parameters are leaves, and are made once on a machine: tracing a protocol takes a
few tenths of a second, and compiling one would take ten.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from typing import Any

import numpy as np

from quorisk.kernels import declared, keeping
from quorisk.kernels.compiled import code_folder
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import Model, leaves
from quorisk.kernels.packing import RowLayout, fields_of, wide_layout
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.laid_out import laid_out
from quorisk.kernels.states.rows import in_layout
from quorisk.kernels.tracing.evaluate import Columns, Evaluation, specialized
from quorisk.kernels.tracing.expressions import HIGHEST, LOWEST, WORD, known_bits, same, signed
from quorisk.kernels.tracing.folding import as_integer, make
from quorisk.kernels.tracing.general import CHOICE, INSTANCE, LOST, PARAMS, STATE, general, nested
from quorisk.kernels.tracing.program import Part, Program, program

_WIDE = "wide"
"""Kind of leaf: `(_WIDE, i)` names word i of a wide row."""


class Programs:
    """The programs of a model with these parameters, for one thread at a time.

    Rows are int64 here, by place and word; `initial` and `forgotten` are of wide rows alone.
    """

    def __init__(self, model: Model, params: Any) -> None:
        """Rows are wide rows."""
        self.model, self.layout, self._is_wide = model, wide_layout(_num_words(model)), True
        self._written, self._fixed = written(model), dict(enumerate(leaves(params), _first_param(model)))
        self._specialized, self._evaluations = dict[str, Program](), dict[str, Evaluation]()

    def laid_out(self, layout: RowLayout) -> "Programs":
        """The same for rows of a layout."""
        others = copy(self)
        others.layout, others._is_wide, others._evaluations = layout, False, {}
        return others

    def rows(self, rows: np.ndarray, layout: RowLayout) -> np.ndarray:
        """The rows that it takes of states, given their rows of any layout that they fit."""
        return in_layout(rows, layout, self.layout).view(np.int64)

    def enabled(self, rows: np.ndarray) -> np.ndarray:
        """Each word of enabled instances, by word and place."""
        return self._of("enabled")(rows.T)

    def judged(self, rows: np.ndarray) -> np.ndarray:
        """The mask of the invariants that are broken, and the outcome of a run that ends there as nothing is enabled:
        two rows, by place."""
        return self._of("judged")(rows.T)

    def needed(self, rows: np.ndarray) -> np.ndarray:
        """The faults that have to come before a loss; see `model.Margin`."""
        return self._of("needed")(rows.T)[0]

    def forgotten(self, wide: np.ndarray) -> np.ndarray:
        """The rows of the states after `Model.forget`. Raises ModelError if one does not fit `Model.widths`."""
        found, nothing = np.empty_like(wide), Columns(np.empty((0, len(wide)), np.int64))
        if not self._fits("forgotten", len(wide), (Columns(wide.T), nothing), Columns(found.T)):
            raise ModelError(
                declared.unfit(self.model.name, "widths", "forget makes a value that does not fit its field")
            )
        return found

    def initial(self, num: int) -> np.ndarray:
        """The rows of the first `num` initial states. Raises ModelError if one does not fit."""
        found = np.empty((num, self.layout.num_words), np.int64)
        given = Columns(np.zeros((self.layout.num_words, num), np.int64)), Columns(np.arange(num)[None])
        if not self._fits("initial", num, given, Columns(found.T)):
            raise ModelError(declared.unfit(self.model.name, "widths", "an initial state does not fit"))
        return found

    def sends(self, action: int, rows: np.ndarray, state: np.ndarray, instance: np.ndarray) -> np.ndarray:
        """Mask of what instances of an action may lose, each in the state of a row. Raises ModelError if it has other
        members than `Model.max_sends` says."""
        found = np.empty((1, len(state)), np.int64)
        given = Columns(rows.T, state), Columns(instance[None])
        if not self._fits(f"sends {action}", len(state), given, Columns(found)):
            why = f"{self.model.actions[action].name} sends more than {self.model.max_sends} messages, or others"
            raise ModelError(declared.unfit(self.model.name, "max_sends", why))
        return found[0]

    def after(self, action: int, given: tuple[Columns, Columns], num: int, out: Columns) -> bool:
        """Turns the words of states, in `out`, into those after `num` steps of an action; `given` are the words,
        instances and what is lost. Returns False if one does not fit the layout; raises ModelError if one does not fit
        `Model.widths`, which is seen in wide rows alone."""
        fits = self._fits(f"after {action}", num, given, out)
        if self._is_wide and not fits:
            why = f"{self.model.actions[action].name} makes a value that does not fit its field"
            raise ModelError(declared.unfit(self.model.name, "widths", why))
        return fits

    def may_send(self, action: int) -> bool:
        """Whether an action may lose anything."""
        return f"sends {action}" in self._written

    def _of(self, name: str) -> Evaluation:
        if name not in self._evaluations:
            if name not in self._specialized:
                self._specialized[name] = specialized(self._written[name], self._fixed)
            whole, is_update = self._specialized[name], name.startswith("after")
            if not self._is_wide:
                whole = specialized(laid_out(whole, self.layout, is_update), {})
            self._evaluations[name] = Evaluation(whole, self.layout.num_words if is_update else 0)
        return self._evaluations[name]

    def _fits(self, name: str, num: int, given: tuple[Columns, Columns], out: Columns) -> bool:
        """Writes a program's outputs; if it has one more, that one says what does not fit."""
        program = self._of(name)
        beyond = np.zeros((program.num_outputs - len(out.array), num), np.int64)
        program.write(num, *given, out, Columns(beyond))
        return not beyond.any()


@cache
def written(model: Model) -> Mapping[str, Program]:
    """The programs of a model, by name, from disk if they are there: only those of installed protocols are kept, since
    another model may change under its name. Raises ModelError as `general` does."""
    if model.name not in registry.names() or registry.load(model.name) is not model:
        return dict(_write(model))
    path = code_folder(model.name) / f"programs-{model.name}.npz"
    content = keeping.read(path)
    if content is None:
        with keeping.locked(path):  # several threads and processes begin with it
            if (content := keeping.read(path)) is None:
                found, packed = dict(_write(model)), io.BytesIO()
                parts = {f"{name}.{part}": data for name, one in found.items() for part, data in one._asdict().items()}
                np.savez(packed, **parts)
                content = packed.getvalue()
                with suppress(OSError):  # a disk that has no room is no reason to stop
                    keeping.write(path, content)
    with np.load(io.BytesIO(content)) as arrays:
        names = dict.fromkeys(name.rpartition(".")[0] for name in arrays)
        found = {name: Program(*(arrays[f"{name}.{part}"] for part in Program._fields)) for name in names}
        return {name: each._replace(num_leaves=int(each.num_leaves)) for name, each in found.items()}


def _num_words(model: Model) -> int:
    return fields_of(model.widths)[-1].word + 1


def _first_param(model: Model) -> int:
    """Row of the first parameter: after those of the words, the instance and what it loses."""
    return _num_words(model) + 2


def _write(model: Model) -> Iterator[tuple[str, Program]]:
    traced = general(model, within_widths=True)
    graph, num_words = traced.graph, _num_words(model)
    wide = [graph.leaf((_WIDE, i), WORD, LOWEST, HIGHEST) for i in range(num_words)]
    fields = fields_of(model.widths)
    places: dict[Any, int | Part] = {(_WIDE, i): i for i in range(num_words)}
    places |= {(STATE, i): Part(*field) for i, field in enumerate(fields)}
    places |= {(PARAMS, i): _first_param(model) + i for i in range(len(leaves(traced.params)))}
    places |= {CHOICE: num_words, INSTANCE: num_words, LOST: num_words + 1}

    def packed(after: Sequence[Any], before: Sequence[Any] = traced.state, words: Sequence[Any] = wide) -> list[Any]:
        """The words of a state's wide row, and last, if that can be, the bits by which a leaf exceeds its field."""
        words, beyond = list(words), 0
        for field, new, old in zip(fields, after, before, strict=True):
            if not same(new, old):
                most = (1 << field.width) - 1
                others = make("and", words[field.word], signed(~(most << field.shift)))
                words[field.word] = make("or", others, make("shl", new, field.shift))
                if known_bits(new)[1] & ~most:
                    beyond = make("or", beyond, make("and", new, ~most))
        return words if same(beyond, 0) else [*words, beyond]

    def written_as(outputs: Sequence[Any]) -> Program:
        return program(outputs, places)

    yield "enabled", written_as(traced.masks)
    yield "judged", written_as([traced.broken, traced.outcome])
    yield "needed", written_as([traced.needed])
    yield "initial", written_as(packed(traced.initial, [None] * len(fields), [0] * num_words))
    for action, (sent, after) in enumerate(zip(traced.sends, traced.after, strict=True)):
        if not same(sent, 0):
            beyond = make("shr", sent, model.max_sends)
            yield f"sends {action}", written_as([sent] if same(beyond, 0) else [sent, beyond])
        yield f"after {action}", written_as(packed(after))
    if model.forget:
        forgotten = model.forget(nested(model.widths, iter(traced.state)), traced.params)
        yield "forgotten", written_as(packed(tuple(map(as_integer, leaves(forgotten)))))
