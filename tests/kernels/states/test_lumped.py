"""Two representatives that go on alike are one lump to the check of `forget`."""

import pytest

from quorisk.kernels.protocols import registry
from quorisk.kernels.protocols.raft.bags import with_sent
from quorisk.kernels.protocols.raft.layout import VoteRequest
from quorisk.kernels.states import lumped
from quorisk.kernels.states.odds import odds_of
from quorisk.kernels.states.programs import Programs
from quorisk.kernels.states.representatives import representative
from tests.support import point_of

MODEL = registry.load("raft")
POINT = point_of(MODEL, servers=3, values=1, max_elections=3, rates={each.name: 1.0 for each in MODEL.actions})
ODDS = odds_of(MODEL, POINT)
PROGRAMS = Programs(MODEL, ODDS.params)


def candidates(*requests):
    """Three candidates of term 2, whose requests for a vote to these servers (`(dest, source)`) are on their way."""
    first = MODEL.initial(ODDS.params, 0)
    bag = first.messages.vote_requests
    for dest, source in requests:
        bag = with_sent(bag, VoteRequest(dest, source, 2, 0, 0))
    return first._replace(
        messages=first.messages._replace(vote_requests=bag),
        term=first.term.of([2, 2, 2, 1, 1, 1]),
        role=first.role.of([1, 1, 1, 0, 0, 0]),
        voted_for=first.voted_for.of([1, 2, 3, 0, 0, 0]),
        votes_granted=first.votes_granted.of([1, 2, 4, 0, 0, 0]),
        elections=3,
    )


def stand_in(state):
    return representative(PROGRAMS, state, ODDS.alike)


CLOCKWISE, COUNTER = candidates((1, 0), (2, 1), (0, 2)), candidates((0, 1), (1, 2), (2, 0))


def difference(state):
    pair = lumped.MergedStates(state, stand_in(state), "forget")
    return lumped._difference(MODEL, ODDS, pair, stand_in)


def test_a_ring_has_two_representatives():
    """Its servers have the same hash, so that they keep their order."""
    assert stand_in(CLOCKWISE) == CLOCKWISE
    assert stand_in(COUNTER) == COUNTER


@pytest.mark.parametrize("requests", [((1, 0), (2, 1)), ((2, 1), (0, 2)), ((0, 1), (1, 2)), ((1, 2), (2, 0))])
def test_states_that_lead_to_different_representatives_of_a_ring_are_alike(requests):
    assert difference(candidates(*requests)) == ""
