"""Effects narrowed: by no more than runs have shown are bits of a state shifted.

What bits a state can have says little of where a shift puts others. Three bits count a log's four records, but could be
seven, and seven places of six bits take a lane of 64 where four take one of 32. `Word.doubt` finds what was not seen.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from quorisk.kernels.model import Model
from quorisk.kernels.tracing.demand import in_order, width
from quorisk.kernels.tracing.expressions import Node, bits, span
from quorisk.kernels.tracing.folding import integer, make
from quorisk.kernels.tracing.observe import highest
from quorisk.kernels.tracing.trace import TracedModel, Word

_MADE_BY = {"both": "and", "either": "or", "differ": "xor"}


def farthest(model: Model, traced: TracedModel, loss: float, narrowest: int) -> list[dict[int, int]]:
    """For each word: the highest amounts by which its effect shifts what may not fit lanes of `narrowest` bits, by ids.

    What is observed are the runs by which `observe` found the bounds. `loss` is the probability of a loss.
    """
    asked = [_amounts(word, narrowest) for word in traced.words]
    return highest(model, traced, loss, asked) if any(asked) else [{} for _ in asked]


def narrowed(traced: TracedModel, seen: Sequence[Mapping[int, int]], narrowest: int) -> TracedModel:
    """The same model in lanes of `narrowest` bits or more, right unless a word is in doubt; `seen` is `farthest`."""
    words = tuple(_with(word, most, narrowest) for word, most in zip(traced.words, seen, strict=True))
    return traced._replace(words=words)


def _amounts(word: Word, narrowest: int) -> list[Node]:
    """By how much an effect shifts what may not fit a lane then."""
    shifts = [node for node in in_order(word.after or ()) if node.op == "shl" and width(node, narrowest) > narrowest]
    return list({node.args[1].id: node.args[1] for node in shifts if isinstance(node.args[1], Node)}.values())


def _with(word: Word, highest: Mapping[int, int], narrowest: int) -> Word:
    """The word with shifts by no more than `highest`, by the ids of amounts, where that makes lanes narrower."""
    doubt: Any = False
    made: dict[int, Any] = {}
    for node in in_order(word.after or ()):
        args = [made[arg.id] if isinstance(arg, Node) else arg for arg in node.args]
        if node.op == "shl" and isinstance(node.args[1], Node) and node.args[1].id in highest:
            most = highest[node.args[1].id]
            by = _at_most(args[1], most)
            if width(make("shl", args[0], by), narrowest) < width(node, narrowest):
                doubt = make("or", doubt, make("or", make("less", most, args[1]), make("less", args[1], 0)))
                args[1] = by
        made[node.id] = _again(node, args)
    after = tuple(made[leaf.id] if isinstance(leaf, Node) else leaf for leaf in word.after or ())
    return word._replace(after=word.after and after, doubt=doubt)


def _at_most(amount: Any, most: int) -> Any:
    """The amount, taken to be from 0 to `most`."""
    ones, may = bits(amount)
    return amount.graph.node("taken", (amount, most), ones, may, max(0, span(amount)[0]), most)


def _again(node: Node, args: list[Any]) -> Any:
    """The node, made of other arguments."""
    if node.op == "leaf" or all(new is old for new, old in zip(args, node.args, strict=True)):
        return node
    return integer(args[0]) if node.op == "int" else make(_MADE_BY.get(node.op, node.op), *args)
