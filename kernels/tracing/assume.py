"""Assumptions from observed runs that leave less to compute: how far an effect shifts bits of the state, and which
conditions hold always or never.

Known bits do not show that a log of three records never reaches beyond bit 30, nor that no operation is ever sent again
where an ensemble has no bookie to spare. `Word.doubt` and `Seen.unbounded` find what was not observed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from quorisk.kernels.model import Model
from quorisk.kernels.tracing.demand import in_order, width
from quorisk.kernels.tracing.expressions import Node
from quorisk.kernels.tracing.folding import condition, make, negation
from quorisk.kernels.tracing.narrow import narrowed, remade
from quorisk.kernels.tracing.observe import Shown, values
from quorisk.kernels.tracing.trace import Seen, TracedModel, Word

_MAY_BREAK = 1 / 250
"""Share of runs that may break what is assumed of conditions, by how often these were seen to have the other value.
Each such run is repeated."""


class Habits(NamedTuple):
    """Observed habits of runs, by the ids of expressions."""

    farthest: list[dict[int, int]]
    """Highest amounts by which the effect of each word shifts bits."""
    settled: list[dict[int, bool]]
    """Conditions of each word, and last of guards and invariants, that nearly always have this value."""


def habits(model: Model, traced: TracedModel, losses: Sequence[float], narrowest: int) -> Habits:
    """Returns the habits of the runs from which `observe` has the bounds; of shifts, those beyond `narrowest` bits.

    `losses` are the probabilities of `rule.loss_names`.
    """
    effects = [[*(word.after or ()), word.subset] for word in traced.words]
    amounts = [_amounts(effect, narrowest) for effect in effects]
    conditions = [_conditions(outputs) for outputs in (*effects, _of_state(traced))]
    asked = [[*some, *others] for some, others in zip([*amounts, []], conditions, strict=True)]
    if not any(asked):
        return Habits([{} for _ in effects], [{} for _ in conditions])
    seen, runs = values(model, traced, losses, asked)
    farthest = [
        {node.id: int(most) for node, most in zip(nodes, shown.highest, strict=False) if shown.times}
        for nodes, shown in zip(amounts, seen, strict=False)
    ]
    return Habits(farthest, _settled(conditions, seen, runs))


def assumed(traced: TracedModel, habits: Habits, narrowest: int) -> TracedModel:
    """The model in lanes of `narrowest` bits or more, simplified by its habits; doubt marks where it breaks them."""
    words = tuple(map(_with, traced.words, habits.farthest, habits.settled, [narrowest] * len(traced.words)))
    (unbounded, outcome, *others), doubt = _taking(_of_state(traced), {}, habits.settled[-1], narrowest)
    masks, broken = tuple(others[: len(words)]), tuple(others[len(words) :])
    return narrowed(traced._replace(words=words, now=Seen(masks, make("or", unbounded, doubt), broken, outcome)))


def _of_state(traced: TracedModel) -> list[Any]:
    now = traced.now
    return [now.unbounded, now.outcome, *now.masks, *now.broken]


def _amounts(effect: Iterable[Any], narrowest: int) -> list[Node]:
    """Returns the amounts by which an effect shifts values that may not fit a lane then."""
    shifts = [node for node in in_order(effect) if node.op == "shl" and width(node, narrowest) > narrowest]
    return list({node.args[1].id: node.args[1] for node in shifts if isinstance(node.args[1], Node)}.values())


def _conditions(outputs: Iterable[Any]) -> list[Node]:
    """Returns the conditions that choose between two values."""
    decided = [node.args[0] for node in in_order(outputs) if node.op in ("select", "when")]
    return list({node.id: node for node in decided if isinstance(node, Node)}.values())


def _settled(conditions: Sequence[Sequence[Node]], seen: Sequence[Shown], runs: int) -> list[dict[int, bool]]:
    """Returns the conditions that have one value, except as often as runs may break them."""
    found: list[tuple[int, int, int, bool]] = []
    for place, (nodes, shown) in enumerate(zip(conditions, seen, strict=True)):
        for node, total in zip(nodes, shown.total[len(shown.total) - len(nodes) :].tolist(), strict=True):
            exceptions = min(total, shown.times - total)
            if shown.times:
                found.append((exceptions, place, node.id, total > exceptions))
    settled: list[dict[int, bool]] = [{} for _ in conditions]
    left = runs * _MAY_BREAK
    for exceptions, place, number, value in sorted(found):
        left -= exceptions
        if left < 0:
            break
        settled[place][number] = value
    return settled


def _with(word: Word, farthest: Mapping[int, int], settled: Mapping[int, bool], narrowest: int) -> Word:
    """The word simplified by its habits."""
    if word.after is None:
        return word
    outputs = [word.subset, word.doubt, *word.after]
    (subset, before, *after), doubt = _taking(outputs, farthest, settled, narrowest)
    return word._replace(subset=subset, after=tuple(after), doubt=make("or", before, doubt))


def _taking(
    outputs: Sequence[Any], farthest: Mapping[int, int], settled: Mapping[int, bool], narrowest: int
) -> tuple[list[Any], Any]:
    """The outputs with these values of conditions, and with shifts by these amounts at most where that makes lanes
    narrower; and whether either does not hold."""
    doubt: Any = False
    made: dict[int, Any] = {}
    for node in in_order(outputs):
        args = [made[arg.id] if isinstance(arg, Node) else arg for arg in node.args]
        if node.op == "shl" and isinstance(args[1], Node) and node.args[1].id in farthest:
            most = farthest[node.args[1].id]
            by = make("taken", args[1], most)
            if width(make("shl", args[0], by), narrowest) < width(node, narrowest):
                doubt = make("or", doubt, make("or", make("less", most, args[1]), make("less", args[1], 0)))
                args[1] = by
        made[node.id] = remade(node, args)
        if node.id in settled:
            holds = condition(made[node.id])
            doubt = make("or", doubt, negation(holds) if settled[node.id] else holds)
            made[node.id] = settled[node.id]
    return [made[output.id] if isinstance(output, Node) else output for output in outputs], doubt
