"""Fields that are read by index, guards for one instance, and a protocol that is written with both."""

import pickle
import random
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import leaves
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols.fields import blank, joined, parted, total_bits, widths
from quorisk.kernels.protocols.instances import Things, each
from quorisk.kernels.protocols.packed import Pairs, Rows, Set
from quorisk.kernels.states.search import explore
from quorisk.kernels.tracing.evaluate import Evaluation
from quorisk.kernels.tracing.folding import new_graph
from quorisk.kernels.tracing.program import program
from tests import two_phase
from tests.two_phase import by_bits

SHAPES = [Rows(6, 3), Rows(20, 14), Rows(6, 20), Rows(1, 63), Pairs(6, 6, 3), Pairs(4, 6, 2), Pairs(5, 7, 5), Set(63)]
MEMORY = 1 << 28


def indices(kind):
    first, *second = kind.shape
    return [(i, j) for i in range(first) for j in range(second[0])] if second else list(range(first))


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_a_field_holds_what_was_put_at_each_index(kind):
    chance, field, held = random.Random(1), blank(kind), {}
    for _ in range(3):
        for index in indices(kind):
            held[index] = chance.getrandbits(kind.bits)
            field = field.put(index, held[index])
            assert {each: field[each] for each in held} == held
    assert field.numbers == list(held.values())
    assert field.of(field.numbers) == field
    assert pickle.loads(pickle.dumps(field)) == field
    assert type(pickle.loads(pickle.dumps(field))) is kind
    for word, width in zip(leaves(field), leaves(widths(kind)), strict=True):
        assert word >> width == 0
    assert total_bits(kind) == kind.bits * len(indices(kind))


@pytest.mark.parametrize("kind", SHAPES, ids=lambda kind: kind.__name__)
def test_a_traced_index_means_what_a_plain_one_does(kind):
    graph = new_graph()
    words = [graph.leaf(("word", i), (1 << width) - 1) for i, width in enumerate(leaves(widths(kind)))]
    index = tuple(graph.leaf(("at", axis), 63, hi=size - 1) for axis, size in enumerate(kind.shape))
    value = graph.leaf("value", (1 << kind.bits) - 1)
    field, at = kind(*words), index if len(index) > 1 else index[0]
    rows = {leaf.args[0]: row for row, leaf in enumerate((*words, value, *index))}
    computed = Evaluation(program([field[at], *field.put(at, value)], rows))
    chance = random.Random(2)
    for place in indices(kind):
        plain = blank(kind).of([chance.getrandbits(kind.bits) for _ in indices(kind)])
        new = chance.getrandbits(kind.bits)
        given = {("word", i): word for i, word in enumerate(leaves(plain))} | {"value": new}
        given |= {("at", axis): i for axis, i in enumerate(place if isinstance(place, tuple) else (place,))}
        read, *after = computed(np.array([[given[name]] for name in rows]))
        assert read[0] == plain[place]
        assert tuple(int(word[0]) for word in after) == leaves(plain.put(place, new))


class Record(NamedTuple):
    source: Annotated[int, 3]
    term: Annotated[int, 4]
    flag: Annotated[int, 1]


def test_a_record_is_one_integer_and_back():
    assert total_bits(Record) == 8
    for record in (Record(5, 9, 1), Record(0, 15, 0)):
        assert parted(Record, joined(record)) == record
    assert joined(Record(5, 9, 1)) == 0b1_1001_101


@pytest.mark.parametrize(
    "things", [(Things(6, "num"),), (Things(63),), (Things(6, "num"), Things(4)), (Things(4), Things(20))]
)
def test_masks_have_a_bit_for_each_instance_whose_guard_holds(things):
    class Params(NamedTuple):
        num: int = 4

    @each(*things, given=lambda state, params: 3)
    def guard(state, params, *index_and_known):
        *index, known = index_and_known
        assert known == 3
        return sum(index) % 3 == state

    for state in range(3):
        masks = guard(state, Params())
        assert all(0 <= mask < 1 << 63 for mask in masks)
        found = [guard.unpacked(64 * word + bit) for word, mask in enumerate(masks) for bit in bits(mask)]
        sizes = [4 if thing.name else thing.most for thing in things]
        assert sorted(found) == sorted(i for i in np.ndindex(*sizes) if sum(i) % 3 == state)


def broken(which, function):
    """Two-phase commit with another function in its first action."""
    first, *others = two_phase.MODEL.actions
    changed = first._replace(**{which: function})
    return two_phase.MODEL._replace(name=f"two_phase_{which}", actions=(changed, *others))


def branching_guard(state, params):
    return (1 if state.status[0] == two_phase.WORKING else 0,)


def branching_effect(state, params, instance, lost):
    return state if state.status[0] else state._replace(forced=state.forced.put(instance, 1))


@pytest.mark.parametrize(("which", "function"), [("enabled", branching_guard), ("apply", branching_effect)])
def test_an_error_names_the_action_in_one_line(which, function):
    model = broken(which, function)
    with pytest.raises(ModelError) as error:
        explore(model, two_phase.Params(2, 1, 1), MEMORY)
    what = {"enabled": "guard", "apply": "effect"}[which]
    assert str(error.value) == (
        f"protocol = 'two_phase_{which}': {what} of prepare: TypeError: a branch on a traced value; write it with "
        "`where` or `when`"
    )


@pytest.mark.parametrize("forced", [True, False])
def test_both_forms_of_two_phase_commit_have_the_same_states(forced):
    params = two_phase.Params(participants=3, max_crashes=2, force_before_telling=int(forced))
    found = [explore(model, params, MEMORY) for model in (two_phase.MODEL, by_bits.MODEL)]
    assert found[0] == found[1]
    assert bool(found[0].breaking_states["CommitSurvives"]) is not forced
