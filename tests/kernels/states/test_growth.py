"""How many states are to be expected: guessed from the first eighth of a search, and chains given up because of it."""

import math

import numpy as np
import pytest

from quorisk.kernels.protocols import registry
from quorisk.kernels.states import growth
from quorisk.kernels.states.chain import ChainError, build_chain
from tests.support import point_of

KRAFT_2_REPLICAS = [
    *(1, 8, 36, 112, 291, 702, 1592, 3314, 6274, 10687, 16247, 22108, 27030, 30817, 34729, 40993, 49692, 58001, 64012),
    *(68365, 71311, 73156, 74341, 73256, 68710, 62206, 55073, 48461, 43140, 38537, 33914, 29058, 23485, 17544, 12713),
    *(9228, 6398, 4267, 2960, 2132, 1548, 1122, 745, 403, 167, 50, 8),
]
KRAFT_3_REPLICAS = [
    *(1, 10, 68, 315, 1021, 2836, 7282, 17526, 38876, 79266, 148187, 255205, 409532, 622942, 918153, 1337923, 1940873),
    *(2811606, 4052010, 5792192),
]
"""The first of them, as far as 4 GiB hold (configs/starters/kraft.toml)."""
BOOKKEEPER_2_2_2 = [1, 1, 8, 28, 73, 161, 304, 506, 734, 916, 1017, 1054, 1030, 946, 780, 532, 304, 142, 44, 10, 2]
"""New states by depth of a partition's chain (configs/kraft_year.toml) and a ledger's (configs/pulsar.toml)."""


@pytest.mark.parametrize("by_depth", [KRAFT_2_REPLICAS, BOOKKEEPER_2_2_2], ids=["two humps", "one"])
def test_a_guess_is_never_many_times_too_high_and_gets_better(by_depth):
    num, found = sum(by_depth), np.cumsum(by_depth)
    guesses = {found[i] / num: growth.expected(by_depth[: i + 1]) / num for i in range(len(by_depth))}
    assert all(guess < 1.2 for share, guess in guesses.items() if share > 0.1)
    assert all(guess > 0.9 for share, guess in guesses.items() if share > 0.9)
    assert all(guess > share for share, guess in guesses.items())


def test_of_a_chain_that_goes_on_and_on_much_is_expected_before_it_fills_the_memory():
    """Each level has 1.45 times the one before it, and the levels before fell towards that."""
    guesses = [growth.expected(KRAFT_3_REPLICAS[: i + 1]) / sum(KRAFT_3_REPLICAS) for i in range(len(KRAFT_3_REPLICAS))]
    at_30_percent = next(
        i for i, found in enumerate(np.cumsum(KRAFT_3_REPLICAS)) if found > 0.3 * sum(KRAFT_3_REPLICAS)
    )
    assert guesses[at_30_percent] > 1.5
    assert guesses[at_30_percent:] == sorted(guesses[at_30_percent:])
    assert guesses[-1] > 5.0


def test_nothing_is_guessed_of_what_gets_ever_faster():
    assert growth.expected([1, 2, 3]) == math.inf
    assert growth.expected([2 ** (i * i) for i in range(8)]) == math.inf


def test_a_chain_of_which_too_many_states_are_to_be_expected_is_given_up_early(monkeypatch):
    model, told = registry.load("kafka"), []
    point = point_of(model, replicas=3, max_leader_epoch=3)
    with pytest.raises(ChainError, match=r"of 4 MiB, and some 2e\+06 are to be expected"):
        build_chain(model, point, 1 << 22, lambda *found: told.append(found))
    assert any(states < expected < math.inf for states, _, expected in told)
    monkeypatch.setattr(growth, "expected", lambda by_depth: 0.0)
    with pytest.raises(ChainError, match="fill 4 MiB, and there are more"):
        build_chain(model, point, 1 << 22)
    monkeypatch.setattr(growth, "expected", lambda by_depth: 1e9)
    assert len(build_chain(model, point_of(model), 1 << 26).ends) > 1000, "what fits is built, whatever is expected"
