"""A guaranteed write quorum (tests/data/tla/WRITING.md): what it keeps and waits for, and where it waits for ever."""

from collections import defaultdict

import numpy as np
import pytest
from scipy.stats import binom

from quorisk.analysis.experiment.config import build_experiment
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols.bookkeeper import MODEL
from quorisk.kernels.protocols.bookkeeper.describe import spec_state
from quorisk.kernels.protocols.bookkeeper.few_copies import GIVES_UP, GUARANTEED, few_copies
from quorisk.kernels.states.search import explore
from tests.kernels.protocols.test_bookkeeper import EXPOSED, named
from tests.kernels.protocols.test_bookkeeper_stripes import confirmed, mask
from tests.kernels.protocols.test_few_copies import values
from tests.support import instances, params_of, states_of

ON = {"guaranteed_write_quorum": True}
MEMORY = 2 << 30


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sizes", [(4, 1, 3, 2, 1, 1), (3, 1, 2, 1, 2, 2), (3, 2, 1, 1, 1, 1), (2, 2, 2, 1, 1, 1)])
def test_a_closed_ledger_has_every_entry_in_its_write_quorum(sizes):
    """A closed ledger has its write quorum, whoever closed it. Without the guarantee lost messages leave entries below
    it, unless it is one bookie."""
    without, with_it = (explore(MODEL, params_of(MODEL, **named(sizes), **given), MEMORY) for given in ({}, ON))
    assert not any(with_it.breaking_states.values())
    broken = {name for name, states in without.breaking_states.items() if states}
    assert broken == (set() if sizes[2] == 1 else {EXPOSED})


def sent(*lost):
    """Entries that are sent, each with the set of its requests that are lost."""
    return ("client_creates_ledger", 0, 0), *(("client_sends_add_entry_requests", 0, subset) for subset in lost)


def writers_actions(state, params):
    return {action.name for action, _ in instances(MODEL, state, params) if action.name.startswith("client_")}


def test_a_writer_closes_its_ledger_once_the_write_quorum_has_all():
    params = params_of(MODEL, **named((4, 1, 3, 2, 1, 1)), **ON)
    steps = (*sent(0b100), *confirmed(1, 1), *confirmed(1, 2))  # acknowledged: b3 is silent
    *_, state = states_of(MODEL, params, *steps)
    assert (state.writer.lac, writers_actions(state, params)) == (1, {"client_changes_ensemble"})
    steps += (("client_changes_ensemble", 0, 0), ("client_resends_pending_add_op", 0, 0), *confirmed(1, 4))
    *_, state = states_of(MODEL, params, *steps)
    [fragment] = spec_state(state, params).meta_fragments  # in the place of the first one
    assert fragment.ensemble == frozenset({0, 1, 3})
    assert (state.writer.pending, writers_actions(state, params)) == (0, {"client_closes_ledger_success"})


def test_a_bookie_that_an_acknowledged_entry_rests_on_is_not_replaced_before_others_have_that():
    params = params_of(MODEL, **named((5, 1, 3, 2, 2, 2)), **ON)
    steps = (*sent(0b100, 0b001), *confirmed(1, 1), *confirmed(1, 2), ("client_changes_ensemble", 0, 0))
    *_, state = states_of(MODEL, params, *steps)
    assert state.writer.fragments.ensembles & 63 == mask(1, 2, 4)  # b3 alone: b1 timed out with e2 and has e1
    steps += (("client_resends_pending_add_op", 0, 0), ("client_resends_pending_add_op", 6, 0))
    *_, before, state = states_of(MODEL, params, *steps, *confirmed(1, 4))
    assert "client_changes_ensemble" not in writers_actions(before, params)
    *_, state = states_of(MODEL, params, *steps, *confirmed(1, 4), ("client_changes_ensemble", 0, 0))
    assert state.writer.fragments.ensembles & 63 == mask(2, 3, 4)
    assert state.meta_fragments.num == 2  # of e2, as the write quorum has e1


def test_two_bookies_that_each_miss_what_the_other_has_are_never_replaced():
    """A gap of the proposal: both are pinned. The writer acknowledges, but can neither repair nor close."""
    params = params_of(MODEL, **named((4, 2, 2, 1, 2, 2)), **ON)
    *_, state = states_of(MODEL, params, *sent(0b10, 0b01), *confirmed(1, 1), *confirmed(2, 2))
    assert state.writer.lac == 2
    assert {action.name for action, _ in instances(MODEL, state, params)} == {"client_starts_recovery"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delay_ensemble_change": True}, "false with delay_ensemble_change"),
        ({"callbacks_after_unset": False, "ensemble_size": 3}, "false with callbacks_after_unset off"),
    ],
)
def test_what_leaves_entries_below_it_is_refused(given, words):
    sizes = named((4, 1, 2, 1, 1, 1)) | {"ensemble_size": given.pop("ensemble_size", 2)}
    tables = {"protocol": "bookkeeper", "model": sizes, "variant": ON | given, "faults": {"message_loss": 0.1}}
    with pytest.raises(ConfigError, match=words):
        build_experiment(tables, "x.toml")


@pytest.mark.parametrize(("write_quorum", "ack_quorum", "loss"), [(2, 1, 1e-3), (3, 2, 0.2), (4, 1, 0.3), (5, 2, 0.1)])
def test_the_time_of_an_entry_with_few_copies_is_that_of_a_chain(write_quorum, ack_quorum, loss):
    stores, gives_up = 250.0, 0.2
    given = values(write_quorum, ack_quorum, stores=stores, loss=loss)
    without, found = few_copies(given), few_copies(given | {GUARANTEED: True, GIVES_UP: gives_up})
    assert all(few.p_stays == 0.0 for few in found.values())
    states = [(lost, way) for lost in range(write_quorum + 1) for way in range(write_quorum + 1 - lost) if lost + way]
    index = {state: i for i, state in enumerate(states)}
    moves, out = np.zeros((len(states), len(states))), np.zeros(len(states))
    for (lost, way), i in index.items():
        again = binom(lost, loss).pmf  # a message is lost when it is sent
        steps = {(lost, way - 1): 1.0} if way else {(n, lost - n): again(n) for n in range(lost + 1)}
        out[i] = way * stores if way else gives_up
        for after, p in steps.items():
            if after in index:
                moves[i, index[after]] += p
    start = np.zeros(len(states))
    for copies, few in without.items():
        start[index[write_quorum - copies, 0]] = few.p_stays
    times = defaultdict[int, float](float)
    for (lost, way), visits in zip(states, np.linalg.solve(np.eye(len(states)) - moves.T, start), strict=True):
        times[write_quorum - lost - way] += visits / out[index[lost, way]]
    for copies in range(ack_quorum, write_quorum):
        assert found[copies].time == pytest.approx(without[copies].time + times[copies], rel=1e-12)
