"""A model traced once for all configurations: its functions as expressions in the leaves of state and parameters."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from quorisk.kernels import declared, rule
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import COMPLETED, INSTANCE_BITS, STUCK, Model, leaves, num_words, smallest_params
from quorisk.kernels.tracing.expressions import HIGHEST, Graph, known_bits
from quorisk.kernels.tracing.folding import as_integer, condition, make, negation, new_graph, select

STATE, PARAMS = "state", "params"
"""Kinds of leaves: `(STATE, i)` and `(PARAMS, i)` name those of state and parameters, whose values may be any."""
CHOICE = "choice"
"""Name of the leaf that numbers the initial state."""
INSTANCE, LOST, FATES = "instance", "lost", "fates"
"""Names of the leaves of a step: the instance of its action, what it loses, and in place of that a mask of which bit j
is set if the j-th member of its subset is lost, whichever that is."""
GROUP, PICKED = "group", "picked"
"""Names of the leaves from which the instance follows: the first one of its group, and `rule.member`'s `pick`."""


class GeneralModel(NamedTuple):
    """A model's functions, each as expressions of its results."""

    initial_choices: Any
    initial: tuple[Any, ...]
    """The leaves of the initial state of number CHOICE."""
    state: tuple[Any, ...]
    """The leaves of the state, from which all fields below are made."""
    params: Any
    """`Params` of leaves."""
    masks: tuple[Any, ...]
    """All actions' words of enabled instances."""
    groups: tuple[Any, ...]
    """The words of `rule.group_words`: the groups that have a member enabled."""
    members: tuple[Any, ...]
    """Instance of GROUP that goes off by PICKED, by action; GROUP itself where instances do not share a rate."""
    sends: tuple[Any, ...]
    """Members of the subset of INSTANCE, such as messages that it sends, by action."""
    lost: tuple[Any, ...]
    """Members of it that are lost by FATES, by action."""
    after: tuple[tuple[Any, ...], ...]
    """Leaves of the state after INSTANCE, LOST being lost, by action."""
    needed: Any
    """Number of faults that have to come before a loss; 0 if the model has no margin."""
    broken: Any
    """Bit i is set if invariant i does not hold."""
    outcome: Any
    graph: Graph


@cache
def general(model: Model, within_widths: bool = False) -> GeneralModel:
    """The model traced; with `within_widths`, for states whose leaves fit `Model.widths` only.

    Raises ModelError, which names the function, if one of the protocol's does with a traced value what tracing cannot
    follow, or if states within their widths may end as neither COMPLETED nor STUCK.
    """
    graph = new_graph()
    like_params, like_state = smallest_params(model), model.initial(smallest_params(model), 0)
    params = nested(like_params, (graph.leaf((PARAMS, i), HIGHEST) for i in range(len(leaves(like_params)))))
    may_be = [(1 << width) - 1 if within_widths else HIGHEST for width in leaves(model.widths)]
    state_leaves = tuple(graph.leaf((STATE, i), may) for i, may in enumerate(may_be))
    state, fates = nested(like_state, iter(state_leaves)), graph.leaf(FATES, HIGHEST)
    picked = graph.leaf(PICKED, (1 << rule.PICK_BITS) - 1)
    sends, all_lost, after, groups, members = [], [], [], list[Any](), []

    def followed(where: str, function: Any, *given: Any) -> Any:
        return declared.evaluated(model, where, None, function, *given)

    enabled = [
        tuple(map(as_integer, followed(f"guard of {action.name}", action.enabled, state, params)))
        for action in model.actions
    ]
    for action, words, masks in zip(model.actions, num_words(model), enabled, strict=True):
        last = (words << INSTANCE_BITS) - 1
        group, instance = (graph.leaf(name, (1 << last.bit_length()) - 1, hi=last) for name in (GROUP, INSTANCE))
        groups += map(as_integer, rule.groups(action, masks))
        members.append(as_integer(rule.member(action, masks, group, picked)))
        sent = as_integer(followed(f"sends of {action.name}", action.sends, state, params, instance))
        _, may = known_bits(sent)
        lost = graph.leaf(LOST, may) if may else 0
        sends.append(sent)
        all_lost.append(make("deposit", fates, sent))
        after.append(_integers(followed(f"effect of {action.name}", action.apply, state, params, instance, lost)))
    broken: Any = 0
    for i, invariant in enumerate(model.invariants):
        holds = followed(f"invariant {invariant.name}", invariant.holds, state, params)
        broken = make("or", broken, select(negation(condition(holds)), 1 << i, 0))
    outcome = as_integer(followed("outcome", model.outcome, state, params))
    if within_widths and known_bits(outcome)[1] & ~(COMPLETED | STUCK):
        raise ModelError(f"protocol = {model.name!r}: outcome: where(condition, COMPLETED, STUCK), or the like of it")
    return GeneralModel(
        initial_choices=as_integer(model.initial_choices(params)),
        initial=_integers(model.initial(params, graph.leaf(CHOICE, HIGHEST))),
        state=state_leaves,
        params=params,
        masks=tuple(mask for masks in enabled for mask in masks),
        groups=tuple(groups),
        members=tuple(members),
        sends=tuple(sends),
        lost=tuple(all_lost),
        after=tuple(after),
        needed=as_integer(model.margin.needed(state, params)) if model.margin else 0,
        broken=broken,
        outcome=outcome,
        graph=graph,
    )


def nested(shape: Any, values: Iterator[Any]) -> Any:
    """The values in nested tuples like `shape`."""
    return type(shape)(*(nested(part, values) for part in shape)) if isinstance(shape, tuple) else next(values)


def _integers(value: Any) -> tuple[Any, ...]:
    return tuple(map(as_integer, leaves(value)))
