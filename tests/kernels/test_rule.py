"""The rule of a step: groups and their members, in plain Python; and what every protocol has to say of its actions."""

import random

import pytest

from quorisk.kernels import rule
from quorisk.kernels.model import EVERYTHING, Action, sends_nothing
from quorisk.kernels.ops import bits
from quorisk.kernels.protocols import registry
from tests.external import at_rest, herman, retransmission, tandem, two_copies
from tests.kernels.engines import herds, lamps

OTHERS = (at_rest, herds, herman, lamps, retransmission, tandem, two_copies)
MODELS = [*map(registry.load, registry.names()), *(each.MODEL for each in OTHERS)]


def action_of(shared: int) -> Action:
    return Action("some", lambda *_: (), sends_nothing, lambda *_: (), shared=shared)


@pytest.mark.parametrize("shared", [1, 2, 3, 5, 6, 16, 31, EVERYTHING])
def test_every_instance_is_a_member_of_one_group_and_as_likely_as_the_others_of_it(shared):
    chance, action = random.Random(shared), action_of(shared)
    for _ in range(50):
        masks = tuple(chance.getrandbits(63) & chance.getrandbits(63) for _ in range(3))
        instances = {64 * word + bit for word, mask in enumerate(masks) for bit in bits(mask)}
        groups = [64 * word + bit for word, mask in enumerate(rule.groups(action, masks)) for bit in bits(mask)]
        found: dict[int, int] = {}
        for group in groups:
            size = 192 if shared == EVERYTHING else min(shared, 64 - group % 64)
            mine = sorted(instance for instance in instances if group <= instance < group + size)
            # the least and the greatest random number of each member
            for nth, instance in enumerate(mine):
                first = -(-(nth << rule.PICK_BITS) // len(mine))
                last = -(-((nth + 1) << rule.PICK_BITS) // len(mine)) - 1
                assert rule.member(action, masks, group, first) == rule.member(action, masks, group, last) == instance
                found[instance] = group
        assert set(found) == instances
        assert len(groups) == len({found[instance] for instance in instances})


@pytest.mark.parametrize("shared", [1, 2, 3, 6, 16, EVERYTHING])
def test_what_compiled_code_counts_is_what_there_is(shared):
    chance, every = random.Random(shared), rule.every_row(shared)
    for _ in range(100):
        mask = chance.getrandbits(63) & chance.getrandbits(63)
        rows = [mask >> at & (1 << shared) - 1 for at in range(0, 64, shared)]
        assert rule.nonempty_rows(mask, shared, every).bit_count() == sum(map(bool, rows))
        for bit in bits(mask):
            assert rule.num_members(mask, bit, shared) == rows[bit // shared].bit_count()


def test_words_of_groups_are_those_of_instances_but_where_all_share_the_rate():
    words = rule.group_words(herds.MODEL)
    assert words == ((0, 0), (0, 64), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0))
    assert rule.loss_names(herds.MODEL) == ("message_loss", "p_lost_in_storm", "p_lost_in_flood")
    assert rule.losses(herds.MODEL) == (0, 0, 0, 1, 2, 0)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_actions_name_what_there_is(model):
    parameters = {parameter.name: parameter for parameter in model.parameters}
    for action in model.actions:
        assert action.lost_with in rule.loss_names(model)
        assert action.shared in range(1, EVERYTHING + 1)
        assert all(parameters[name].default_value in (0, False, True) for name in action.needs)
    names = rule.loss_names(model)
    assert len({*names, *parameters}) == len(names) + len(parameters)
    assert set(names[1:]) == {action.lost_with for action in model.actions} - {"message_loss"}
