"""A model's guards and effects as the few functions with which compiled code steps it.

Numba never sees a protocol's functions. They are traced (`kernels.tracing.general`), and what they compute is emitted
as machine code at the place where compiled code asks for it: several times faster to compile than each of them by
itself, and what two guards share is computed once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from quorisk.kernels import declared, rule
from quorisk.kernels.compiled import element, leaf_paths, refuse, too_wide
from quorisk.kernels.machine_code import HAS_PDEP
from quorisk.kernels.model import Model, smallest_params
from quorisk.kernels.packing import fields_of
from quorisk.kernels.tracing.emit import Emitter
from quorisk.kernels.tracing.expressions import bits, same
from quorisk.kernels.tracing.general import (
    CHOICE,
    FATES,
    GROUP,
    INSTANCE,
    LOST,
    PICKED,
    STATE,
    GeneralModel,
    general,
)
from quorisk.kernels.tracing.machine import I64, Value, constant
from quorisk.kernels.tracing.machine import intrinsic as intrinsic_of


class Stepper(NamedTuple):
    """A model's functions, for compiled code to call."""

    initial_choices: Any
    """`initial_choices(params)`: the number of initial states."""
    initial: Any
    """`initial(params, choice)`: the initial state of that number."""
    guards: Any
    """`guards(state, params, masks)`: writes every action's words of enabled instances to masks[0], ..."""
    groups: Any
    """`groups(state, params, masks)`: writes the words of `rule.group_words`, of groups with a member enabled."""
    member: Any
    """`member(state, params, action, group, picked)`: see `rule.member`."""
    sends: Any
    """`sends(state, params, action, instance)`: mask of what may be lost, such as the messages that would be sent."""
    sends_of: Any
    """`sends_of(wide, params, action, instance)`: what `sends` says, of the state of a wide row."""
    effect_of: Any
    """`effect_of(wide, params, action, instance, lost)`: the state after that of a wide row."""
    change: Any
    """`change(wide, params, action, instance, lost, pieces, row)`: does to a row what `effect_of` does to a state.

    Turns the row of the state whose wide row is given into that of the next one; `pieces` are its layout's
    (`packing.Layout.by_source`). If rows have no bits for what differs, returns these bits, of all words or-ed, and
    turns the wide row as well.
    """
    take: Any
    """`take(state, params, action, instance, fates)`: the next state, the number of messages sent, and a mask of those
    lost. Member j of the subset, counted from the lowest bit, is lost if bit j of `fates` is set."""
    forget: Any
    """`forget(state, params)`: the state without what nothing asks for any more."""
    needed: Any
    """`needed(state, params)`: the faults that have to come before a loss; see `model.Margin`."""
    broken: Any
    """`broken(state, params)`: bit i is set if invariant i does not hold."""
    outcome: Any
    """`outcome(state, params)`: how a run ends in which nothing is enabled."""


@cache
def stepper(model: Model) -> Stepper:
    """The functions of a model. Raises TypeError as `general` does."""
    emit = _Emit(model)
    return Stepper(
        initial_choices=_initial_choices(emit),
        initial=_initial(emit),
        guards=_words(emit, emit.model.masks),
        groups=_words(emit, emit.model.groups),
        member=_member(emit),
        sends=_sends(emit),
        sends_of=_sends_of(emit),
        effect_of=_effect_of(emit),
        change=_change(emit),
        take=_take(emit),
        forget=_forget(emit),
        needed=_number(emit, emit.model.needed),
        broken=_number(emit, emit.model.broken),
        outcome=_number(emit, emit.model.outcome),
    )


def may_send_more_than(model: Model, num: int) -> list[int]:
    """The places of the actions whose subset may have more than `num` members."""
    return [i for i, sent in enumerate(general(model).sends) if bits(sent)[1].bit_count() > num]


class _Emit:
    """Emits a model's expressions where a builder stands."""

    def __init__(self, model: Model) -> None:
        self.model: GeneralModel = general(model)
        self.sharing = [i for i, action in enumerate(model.actions) if action.shared > 1]
        self.loses_messages = [not place for place in rule.losses(model)]
        self.state_type = numba.typeof(model.initial(smallest_params(model), 0))
        self.paths = leaf_paths(self.state_type)
        self.fields = fields_of(model.widths)
        self.name, self.max_sends = model.name, model.max_sends
        self.action_names = [action.name for action in model.actions]
        self.within_widths = general(model, within_widths=True)

    def values(
        self, builder: Any, outputs: Iterable[Any], state: Any, params: Any, others: Mapping[str, Any]
    ) -> Callable[[Any], Any]:
        """A function that gives the value of each of `outputs`, which are emitted as they are asked for.

        `state` and `params` are nested LLVM values, `others` those of the other leaves by name, which may come later.
        `state` may be a function that gives the leaf at a place.
        """

        def leaf(name: Any, _: int) -> Any:
            if isinstance(name, str):
                return others[name]
            kind, i = name
            if kind != STATE:
                return builder.extract_value(params, i)
            return state(i) if callable(state) else builder.extract_value(state, self.paths[i])

        emitter = Emitter(builder, 1, 64, leaf, outputs, HAS_PDEP)
        return lambda value: emitter.get(value, 64)

    def in_memory(self, builder: Any, state: Any) -> list[Any]:
        """Places in memory that hold the leaves of a state: LLVM finds that it needs none."""
        return [cgutils.alloca_once_value(builder, builder.extract_value(state, path)) for path in self.paths]

    def state_of(self, context: Any, builder: Any, leaves: Iterable[Any]) -> Any:
        """The state of these leaves."""
        state = context.get_constant_null(self.state_type)
        for path, value in zip(self.paths, leaves, strict=True):
            state = builder.insert_value(state, value, path)
        return state

    def subset(self, context: Any, builder: Any, action: int, value: Callable[[Any], Any]) -> Any:
        """What an action may lose. Refused if that is more than `Model.max_sends`, where that is not plain to see."""
        sent = value(self.model.sends[action])
        if bits(self.within_widths.sends[action])[1] >> self.max_sends:
            why = f"{self.action_names[action]} sends more than {self.max_sends} messages, or others"
            beyond = too_wide(builder, [(sent, self.max_sends)])
            refuse(context, builder, beyond, declared.unfit(self.name, "max_sends", why))
        return sent

    def fit(self, context: Any, builder: Any, action: int, after: Mapping[int, Any]) -> None:
        """Refuses leaves after an action that do not fit `Model.widths`, where that they do is not plain to see."""
        made = self.within_widths.after[action]
        unseen = [(after[i], self.fields[i].width) for i in after if bits(made[i])[1] >> self.fields[i].width]
        if unseen:
            why = f"{self.action_names[action]} makes a value that does not fit its field"
            refuse(context, builder, too_wide(builder, unseen), declared.unfit(self.name, "widths", why))

    def changed(self, action: int) -> dict[int, Any]:
        """The leaves that an action changes, by their places."""
        pairs = zip(self.model.state, self.model.after[action], strict=True)
        return {i: after for i, (before, after) in enumerate(pairs) if not same(before, after)}


def _number(emit: _Emit, value: Any) -> Any:
    @intrinsic
    def number(typing_context, state, params):
        def generate(context, builder, call, args):
            return emit.values(builder, [value], *args, {})(value)

        return types.int64(state, params), generate

    return number


def _initial_choices(emit: _Emit) -> Any:
    @intrinsic
    def initial_choices(typing_context, params):
        def generate(context, builder, call, args):
            number = emit.model.initial_choices
            return emit.values(builder, [number], None, args[0], {})(number)

        return types.int64(params), generate

    return initial_choices


def _initial(emit: _Emit) -> Any:
    @intrinsic
    def initial(typing_context, params, choice):
        def generate(context, builder, call, args):
            value = emit.values(builder, emit.model.initial, None, args[0], {CHOICE: args[1]})
            return emit.state_of(context, builder, map(value, emit.model.initial))

        return emit.state_type(params, types.int64), generate

    return initial


def _words(emit: _Emit, words: Sequence[Any]) -> Any:
    @intrinsic
    def write(typing_context, state, params, masks):
        def generate(context, builder, call, args):
            value = emit.values(builder, words, *args[:2], {})
            for i, word in enumerate(words):
                builder.store(value(word), element(context, builder, masks, args[2], constant(I64, i)))
            return context.get_dummy_value()

        return types.void(state, params, masks), generate

    return write


def _member(emit: _Emit) -> Any:
    @intrinsic
    def member(typing_context, state, params, action, group, picked):
        def generate(context, builder, call, args):
            result = cgutils.alloca_once_value(builder, args[3])
            with _Switch(builder, args[2]) as switch:
                for i in emit.sharing:
                    switch.case(i)
                    found, given = emit.model.members[i], {GROUP: args[3], PICKED: args[4]}
                    builder.store(emit.values(builder, [found], *args[:2], given)(found), result)
            return builder.load(result)

        return types.int64(state, params, types.int64, types.int64, types.int64), generate

    return member


def _sends(emit: _Emit) -> Any:
    @intrinsic
    def sends(typing_context, state, params, action, instance):
        def generate(context, builder, call, args):
            result = cgutils.alloca_once_value(builder, constant(I64, 0))
            with _Switch(builder, args[2]) as switch:
                for i, sent in enumerate(emit.model.sends):
                    if not same(sent, 0):
                        switch.case(i)
                        builder.store(emit.values(builder, [sent], *args[:2], {INSTANCE: args[3]})(sent), result)
            return builder.load(result)

        return types.int64(state, params, types.int64, types.int64), generate

    return sends


def _sends_of(emit: _Emit) -> Any:
    @intrinsic
    def sends_of(typing_context, wide, params, action, instance):
        def generate(context, builder, call, args):
            state = _WideRow(emit, context, builder, wide, args[0])
            result = cgutils.alloca_once_value(builder, constant(I64, 0))
            with _Switch(builder, args[2]) as switch:
                for i, sent in enumerate(emit.model.sends):
                    if not same(sent, 0):
                        switch.case(i)
                        value = emit.values(builder, [sent], state.leaf, args[1], {INSTANCE: args[3]})
                        builder.store(emit.subset(context, builder, i, value), result)
            return builder.load(result)

        return types.int64(wide, params, types.int64, types.int64), generate

    return sends_of


def _effect_of(emit: _Emit) -> Any:
    @intrinsic
    def effect_of(typing_context, wide, params, action, instance, lost):
        def generate(context, builder, call, args):
            state = _WideRow(emit, context, builder, wide, args[0])
            leaves = [cgutils.alloca_once_value(builder, state.leaf(i)) for i in range(len(emit.paths))]
            with _Switch(builder, args[2]) as switch:
                for i in range(len(emit.model.after)):
                    switch.case(i)
                    changed, given = emit.changed(i), {INSTANCE: args[3], LOST: args[4]}
                    value = emit.values(builder, changed.values(), state.leaf, args[1], given)
                    for place, after in changed.items():
                        builder.store(value(after), leaves[place])
            return emit.state_of(context, builder, map(builder.load, leaves))

        return emit.state_type(wide, params, types.int64, types.int64, types.int64), generate

    return effect_of


def _change(emit: _Emit) -> Any:
    @intrinsic
    def change(typing_context, wide, params, action, instance, lost, pieces, row):
        def generate(context, builder, call, args):
            state = _WideRow(emit, context, builder, wide, args[0])
            result = cgutils.alloca_once_value(builder, constant(I64, 0))
            with _Switch(builder, args[2]) as switch:
                for i in range(len(emit.model.after)):
                    switch.case(i)
                    changed, given = emit.changed(i), {INSTANCE: args[3], LOST: args[4]}
                    value = emit.values(builder, changed.values(), state.leaf, args[1], given)
                    leaves = {leaf: value(after) for leaf, after in changed.items()}
                    emit.fit(context, builder, i, leaves)
                    differs = state.differing(leaves)
                    beyond = constant(I64, 0)
                    for word, bits_of_it in differs.items():
                        piece = [
                            builder.load(element(context, builder, pieces, args[5], constant(I64, 3 * word + i)))
                            for i in range(3)
                        ]
                        beyond = builder.or_(beyond, builder.and_(bits_of_it, builder.not_(piece[0])))
                        part = builder.and_(bits_of_it, piece[0])
                        turned = intrinsic_of(builder, "llvm.fshl", I64, [part, part, piece[2]], I64)
                        there = element(context, builder, row, args[6], piece[1])
                        builder.store(builder.xor(builder.load(there), turned), there)
                    with builder.if_then(builder.icmp_unsigned("!=", beyond, constant(I64, 0)), likely=False):
                        state.flip(differs)
                    builder.store(beyond, result)
            return builder.load(result)

        return types.uint64(wide, params, types.int64, types.int64, types.int64, pieces, row), generate

    return change


class _WideRow:
    """A state in memory, as its wide row (`packing.fields_of`), whose leaves are loaded where they are asked for.

    From a state that is there as values, LLVM computes ahead of a loop all that any action may ask for in it.
    """

    def __init__(self, emit: _Emit, context: Any, builder: Any, kind: Any, row: Any) -> None:
        self.builder, self.fields = builder, emit.fields
        self.word_at = lambda word: element(context, builder, kind, row, constant(I64, word))

    def leaf(self, place: int) -> Any:
        field, builder = self.fields[place], self.builder
        shifted = builder.lshr(builder.load(self.word_at(field.word)), constant(I64, field.shift))
        return builder.and_(shifted, constant(I64, (1 << field.width) - 1))

    def differing(self, after: Mapping[int, Any]) -> dict[int, Any]:
        """By word: the bits in which it differs from that of the state with these leaves, by their places."""
        words: dict[int, Any] = {}
        for place, value in after.items():
            word, shift, _ = self.fields[place]
            bits_of_it = self.builder.shl(self.builder.xor(self.leaf(place), value), constant(I64, shift))
            words[word] = self.builder.or_(words[word], bits_of_it) if word in words else bits_of_it
        return words

    def flip(self, differing: Mapping[int, Any]) -> None:
        """Turns it into the wide row of the other state."""
        for word, bits_of_it in differing.items():
            there = self.word_at(word)
            self.builder.store(self.builder.xor(self.builder.load(there), bits_of_it), there)


def _take(emit: _Emit) -> Any:
    @intrinsic
    def take(typing_context, state, params, action, instance, fates):
        result = types.Tuple((state, types.int64, types.int64))

        def generate(context, builder, call, args):
            leaves = emit.in_memory(builder, args[0])
            num_sent, all_lost = (cgutils.alloca_once_value(builder, constant(I64, 0)) for _ in range(2))
            with _Switch(builder, args[2]) as switch:
                for i, (sent, lost) in enumerate(zip(emit.model.sends, emit.model.lost, strict=True)):
                    switch.case(i)
                    changed, given = emit.changed(i), {INSTANCE: args[3], FATES: args[4]}
                    value = emit.values(builder, [sent, lost, *changed.values()], *args[:2], given)
                    if not same(sent, 0):
                        subset = emit.subset(context, builder, i, value)
                        given[LOST] = value(lost)
                    if not same(sent, 0) and emit.loses_messages[i]:
                        builder.store(given[LOST], all_lost)
                        builder.store(Value(builder, subset).popcount().value, num_sent)
                    for place, after in changed.items():
                        builder.store(value(after), leaves[place])
            after = emit.state_of(context, builder, map(builder.load, leaves))
            return context.make_tuple(builder, result, [after, builder.load(num_sent), builder.load(all_lost)])

        return result(state, params, types.int64, types.int64, types.int64), generate

    return take


def _forget(emit: _Emit) -> Any:
    @intrinsic
    def forget(typing_context, state, params):
        def generate(context, builder, call, args):
            value = emit.values(builder, emit.model.forgotten, *args, {})
            return emit.state_of(context, builder, map(value, emit.model.forgotten))

        return state(state, params), generate

    return forget


class _Switch:
    """A branch to one of several cases, and from each to where this ends."""

    def __init__(self, builder: Any, chosen: Any) -> None:
        self.builder = builder
        self.end = builder.append_basic_block("end")
        self.switch = builder.switch(chosen, self.end)

    def case(self, number: int) -> None:
        """What is emitted from here on happens if `number` is chosen."""
        self._leave()
        block = self.builder.append_basic_block(f"case{number}")
        self.switch.add_case(ir.Constant(I64, number), block)
        self.builder.position_at_end(block)

    def __enter__(self) -> "_Switch":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        self.builder.position_at_end(self.end)

    def _leave(self) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(self.end)
