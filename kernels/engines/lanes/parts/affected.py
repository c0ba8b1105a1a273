"""Changes by one word of instances: leaves of the state, and the guards and invariants that depend on them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from quorisk.kernels.engines.lanes.plan import Field, packed
from quorisk.kernels.tracing.demand import leaf_names
from quorisk.kernels.tracing.expressions import Node, same
from quorisk.kernels.tracing.folding import make
from quorisk.kernels.tracing.trace import TracedModel, Word, strays


class Effect(NamedTuple):
    """The effect of a word on a state."""

    leaves: dict[int, Any]
    """Leaves that it changes, by place, as they are after it."""
    redo: Any
    """Whether these may be wrong, or are out of bounds."""

    def outputs(self) -> list[Any]:
        """Returns all expressions of the effect."""
        return [*self.leaves.values(), self.redo]


class Affected(NamedTuple):
    """Expressions that depend on the leaves that changed, in the state after the change."""

    masks: dict[int, Any]
    """Packed masks of the words that are affected, by group."""
    kept: dict[int, int]
    """Bits of the words that are not affected, by the same groups."""
    broken: dict[int, Any]
    """Whether each affected invariant is broken, by its place."""
    unbounded: Any
    """`trace.Seen.unbounded`; False if it is not affected."""

    def outputs(self) -> list[Any]:
        """Returns all expressions to compute."""
        return [*self.masks.values(), *self.broken.values(), self.unbounded]


def effect_of(traced: TracedModel, word: Word) -> Effect:
    """Returns the effect of a word that can be taken."""
    assert word.after is not None
    pairs = enumerate(zip(word.after, traced.state, strict=True))
    changed = {i: new for i, (new, old) in pairs if not same(new, old)}
    astray = strays([changed.get(i, 0) for i in range(len(traced.state))], traced.bounds)
    kept = {i: new for i, new in changed.items() if isinstance(traced.state[i], Node)}
    return Effect(kept, make("or", word.doubt, astray))


def affected_by(traced: TracedModel, fields: Sequence[Field], effect: Effect) -> Affected:
    """Returns what has to be computed again after an effect; masks lie as `fields` say."""
    changed = {("state", i) for i in effect.leaves}

    def affected(value: Any) -> bool:
        return not leaf_names([value]).isdisjoint(changed)

    now = traced.now
    places = {place for place, mask in enumerate(now.masks) if affected(mask)}
    groups = sorted({field.group for field in fields if field.place in places})
    others = [field for field in fields if field.place not in places]
    return Affected(
        masks={group: packed(now.masks, fields, group, places) for group in groups},
        kept={group: sum(field.bits for field in others if field.group == group) for group in groups},
        broken={i: flag for i, flag in enumerate(now.broken) if affected(flag)},
        unbounded=now.unbounded if affected(now.unbounded) else False,
    )
