"""A model's guards and effects as the few functions with which compiled code steps it.

Numba never sees a protocol's functions. They are traced (`kernels.tracing.general`), and what they compute is emitted
as machine code at the place where compiled code calls it. This compiles several times faster than each function by
itself, and what two guards share is computed once.
"""

from functools import cache
from typing import Any, NamedTuple

from numba import types
from numba.core import cgutils

from quorisk.kernels.compiled import element
from quorisk.kernels.emitted import Emit, each_case
from quorisk.kernels.machine_code import emits
from quorisk.kernels.model import Model
from quorisk.kernels.ops import popcount
from quorisk.kernels.tracing.expressions import known_bits, same
from quorisk.kernels.tracing.general import CHOICE, FATES, GROUP, INSTANCE, LOST, PICKED, general
from quorisk.kernels.tracing.machine import I64, Value, constant

_INTS = types.int64, types.int64, types.int64
"""Types of an action, its instance, and its lost subset or draw."""


class Stepper(NamedTuple):
    """A model's functions, for compiled code to call."""

    initial_choices: Any
    """`initial_choices(params)`: the number of initial states."""
    initial: Any
    """`initial(params, choice)`: the initial state of that number."""
    groups: Any
    """`groups(state, params, masks)`: writes the words of `rule.group_words`, of groups with a member enabled."""
    member: Any
    """`member(state, params, action, group, picked)`: see `rule.member`."""
    sends: Any
    """`sends(state, params, action, instance)`: mask of what may be lost, such as the messages that would be sent."""
    take: Any
    """`take(state, params, action, instance, fates)`: the next state, the number of messages sent, and a mask of those
    lost. Member j of the subset, counted from the lowest bit, is lost if bit j of `fates` is set."""
    needed: Any
    """`needed(state, params)`: the faults that have to come before a loss; see `model.Margin`."""
    broken: Any
    """`broken(state, params)`: bit i is set if invariant i does not hold."""
    outcome: Any
    """`outcome(state, params)`: the outcome of a run that ends there since nothing is enabled."""


@cache
def stepper(model: Model) -> Stepper:
    """The functions of a model. Compiling what calls them raises ModelError as `general` does."""
    emit = Emit(model)
    return Stepper(
        initial_choices=_initial_choices(emit),
        initial=_initial(emit),
        groups=_groups(emit),
        member=_member(emit),
        sends=_sends(emit),
        take=_take(emit),
        needed=_number(emit, "needed"),
        broken=_number(emit, "broken"),
        outcome=_number(emit, "outcome"),
    )


def sending_more_than(model: Model, num: int) -> Any:
    """`sending_more_than(...)()`: a mask of the actions whose subset may have more than `num` members."""

    @emits(lambda: types.int64())
    def sending(context, builder, call, args):
        found = (i for i, sent in enumerate(general(model).sends) if known_bits(sent)[1].bit_count() > num)
        return constant(I64, sum(1 << i for i in found))

    return sending


def _number(emit: Emit, name: str) -> Any:
    @emits(lambda state, params: types.int64(state, params))
    def number(context, builder, call, args):
        value = getattr(emit.model, name)
        return emit.values(builder, [value], *args, {})(value)

    return number


def _initial_choices(emit: Emit) -> Any:
    @emits(lambda params: types.int64(params))
    def initial_choices(context, builder, call, args):
        number = emit.model.initial_choices
        return emit.values(builder, [number], None, args[0], {})(number)

    return initial_choices


def _initial(emit: Emit) -> Any:
    @emits(lambda params, choice: emit.state_type(params, types.int64))
    def initial(context, builder, call, args):
        value = emit.values(builder, emit.model.initial, None, args[0], {CHOICE: args[1]})
        return emit.state_of(context, builder, map(value, emit.model.initial))

    return initial


def _groups(emit: Emit) -> Any:
    @emits(lambda state, params, masks: types.void(state, params, masks))
    def groups(context, builder, call, args):
        words = emit.model.groups
        value = emit.values(builder, words, *args[:2], {})
        for i, word in enumerate(words):
            builder.store(value(word), element(context, builder, call.args[2], args[2], constant(I64, i)))
        return context.get_dummy_value()

    return groups


def _member(emit: Emit) -> Any:
    @emits(lambda state, params, action, group, picked: types.int64(state, params, *_INTS))
    def member(context, builder, call, args):
        result = cgutils.alloca_once_value(builder, args[3])
        for i in each_case(builder, args[2], emit.sharing):
            found, given = emit.model.members[i], {GROUP: args[3], PICKED: args[4]}
            builder.store(emit.values(builder, [found], *args[:2], given)(found), result)
        return builder.load(result)

    return member


def _sends(emit: Emit) -> Any:
    @emits(lambda state, params, action, instance: types.int64(state, params, types.int64, types.int64))
    def sends(context, builder, call, args):
        result = cgutils.alloca_once_value(builder, constant(I64, 0))
        sending = [i for i, sent in enumerate(emit.model.sends) if not same(sent, 0)]
        for i in each_case(builder, args[2], sending):
            sent = emit.model.sends[i]
            value = emit.values(builder, [sent], *args[:2], {INSTANCE: args[3]})
            builder.store(value(sent), result)
        return builder.load(result)

    return sends


def _take(emit: Emit) -> Any:
    @emits(lambda state, params, action, instance, fates: types.Tuple((state, *_INTS[:2]))(state, params, *_INTS))
    def take(context, builder, call, args):
        leaves = [cgutils.alloca_once_value(builder, builder.extract_value(args[0], path)) for path in emit.paths]
        num_sent, all_lost = (cgutils.alloca_once_value(builder, constant(I64, 0)) for _ in range(2))
        for i in each_case(builder, args[2], range(len(emit.model.after))):
            sent, lost = emit.model.sends[i], emit.model.lost[i]
            changed, given = emit.changed(i), {INSTANCE: args[3], FATES: args[4]}
            value = emit.values(builder, [sent, lost, *changed.values()], *args[:2], given)
            if not same(sent, 0):
                subset = emit.subset(context, builder, i, value)
                given[LOST] = value(lost)
            if not same(sent, 0) and emit.loses_messages[i]:
                builder.store(given[LOST], all_lost)
                builder.store(popcount(Value(builder, subset)).value, num_sent)
            for place, after in changed.items():
                builder.store(value(after), leaves[place])
        after = emit.state_of(context, builder, map(builder.load, leaves))
        return context.make_tuple(builder, call.return_type, [after, builder.load(num_sent), builder.load(all_lost)])

    return take
