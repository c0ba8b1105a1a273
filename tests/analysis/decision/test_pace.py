"""How long a search still takes, as those who wait are told."""

import time

import pytest

from quorisk.analysis.decision.breakeven import find_break_even
from quorisk.analysis.decision.levers import levers
from quorisk.analysis.decision.pace import Pace
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment import config
from tests.support import FLIPPING_FILE


@pytest.fixture
def clock(monkeypatch):
    """Sets the clock."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def at(seconds):
        now[0] = seconds

    return at


def test_the_time_left_is_that_of_the_pieces_left(clock):
    pace = Pace(11)
    assert pace.told() == ""
    assert pace.told(7.0) == "; at most 10 s left"
    pace.took()
    assert pace.told() == ""  # too soon to say
    clock(6.0)
    pace.took()
    assert pace.told() == "; about 30 s left"
    assert pace.told(12.0) == "; about 15 s left"
    clock(16.0)
    assert pace.told() == "; about 20 s left"  # as of now
    clock(34.0)
    assert pace.told() == ""  # this piece is slower than those before
    assert pace.told(12.0) == "; at most 15 s left"
    clock(60.0)
    pace.took()
    assert pace.told() == "; about 3 min left"
    clock(14400.0)
    pace.took(part=4.0)
    assert pace.told() == "; about 2.3 h left"


def test_a_flip_takes_as_many_tries_more_as_narrowing_it_down_does(clock):
    pace = Pace(2, halvings=5)
    left = []
    for is_flip in (True, True, False, True, False, True, False):
        pace.took(is_flip)
        left.append(pace.left)
    assert left == [6, 5, 4, 3, 2, 1, 0]


def test_a_search_says_what_it_tries_and_runs_are_not_narrowed_down_further_than_they_tell(written, monkeypatch):
    path = written("x.toml", FLIPPING_FILE)
    experiment = config.load(path)
    said: list[str] = []
    monkeypatch.setattr("quorisk.analysis.decision.pace._SOON_S", 0.0)
    lever = next(each for each in levers(experiment) if each.key == "rates.bookie_is_lost")
    apart, of_key = [], "break-even of rates.bookie_is_lost (1 of 1), try "
    for memory in (1 << 10, 1 << 26):
        weigher = Weigher(memory, 1, lambda line, left=str: said.append(line + left()))
        [(_, found)] = find_break_even(experiment, weigher.frame(experiment), weigher, [lever]).found
        apart.append(found.beyond / found.before)
    assert 1.05 < apart[0] <= 1.21
    assert 1 < apart[1] <= 1.06
    assert said[1].startswith("configuration 2 of 2; about ")
    tries = [each.removeprefix(of_key) for each in said if each.startswith(of_key)]
    assert [each.partition(";")[0] for each in tries[:4]] == [
        *("1", "1: configuration 1 of 2", "1: configuration 2 of 2", "2")
    ]
