"""Every model's functions written once: plain Python and compiled code agree on random reachable states."""

from functools import cache
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from numba import njit

from quorisk.analysis import protocol_check
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import trace
from quorisk.kernels import paths
from quorisk.kernels.model import closed_by, leaves, num_words
from quorisk.kernels.protocols import registry
from quorisk.kernels.stepper import stepper
from quorisk.kernels.telling import words_beside
from tests.analysis.traces.showcases import DEPTHS, SHOWCASES, showcase
from tests.kernels.protocols.computed import assert_agrees, by_programs
from tests.support import EACH_PROTOCOL, params_of, random_walks, values_of

STEPS = 2500
"""That are compared at most."""

WALKS = [
    pytest.param(*each.values, number, marks=each.marks)
    for each in EACH_PROTOCOL
    for number in range(len(registry.cases(str(each.values[0])).walks))
]


@pytest.mark.parametrize("name", registry.names())
def test_every_protocol_has_cases_and_says_what_its_rates_count(name):
    """A protocol without cases would be tested by nothing, and a rate is of little use to whoever does not know whether
    it is a broker's or that of each pair of brokers."""
    model, cases = registry.load(name), registry.cases(name)
    protocol_check._cases(model, cases)
    protocol_check._sentences(model)
    assert not any("\n" in action.counts for action in model.actions)
    assert all(each.doc.startswith("that ") for each in model.probabilities)  # it ends a sentence: the probability that
    assert {action.name for action in model.actions} >= {*cases.rarely, *cases.silent}
    for tables in (cases.bench, cases.bench_search):
        assert config.build_experiment({"protocol": name, **(tables or {"model": cases.small})}, name).points


@pytest.mark.parametrize("name", registry.own())
def test_words_are_of_what_a_protocol_has(name):
    model, words = registry.load(name), words_beside(str(import_module(registry.own()[name]).__file__))
    assert words["parameters"].keys() == {parameter.name for parameter in model.parameters}
    assert words["steps"].keys() | words.get("steps_of_bookies", {}).keys() == {action.name for action in model.actions}


CLOSING = sorted(
    {
        (name, parameter)
        for name in registry.names()
        for action in registry.load(name).actions
        for parameter in (*action.bounds, *action.needs)
    }
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "parameter"), CLOSING)
def test_what_a_bound_closes_never_happens(name, parameter):
    """Else a file would be told that a fault is off which is on."""
    model = registry.load(name)
    of_model = next(p for p in model.parameters if p.name == parameter)
    is_bound = any(parameter in action.bounds for action in model.actions)
    off = of_model.default_value if not is_bound else of_model.allowed[0] if of_model.allowed else False
    for given in registry.cases(name).walks:
        values = values_of(model, **{**given, parameter: off})
        if all(condition.holds(values) for condition in model.conditions):
            closed = {action.name for action in model.actions if closed_by(model, action, values)}
            taken = {found.name for _, found, *_ in random_walks(model, model.make_params(values), walks=2, seed=3)}
            assert closed
            assert not taken & closed


@pytest.mark.parametrize("name", registry.names())
def test_faults_that_are_off_say_by_what(name):
    """With no fault asked for, none happens; so each has something that switches it on: a bound, or its rate.

    Raft's false timeout is the exception: a file that gives it no rate has that of the timeout.
    """
    model = registry.load(name)
    faults = {p.name: p.default_value for p in model.parameters if p.table == "faults"}
    values = values_of(model, **faults)
    faults_at_once = [
        action.name
        for action in model.actions
        if action.fault and not closed_by(model, action, values) and action.rate != 0.0
    ]
    assert faults_at_once == (["false_timeout"] if name == "raft" else [])


@cache
def walked(name, number):
    """Params, and steps of random runs: state, action, instance, lost subset, next state."""
    model, cases = registry.load(name), registry.cases(name)
    params = params_of(model, **cases.walks[number])
    return params, list(islice(random_walks(model, params, walks=40, seed=7), STEPS))


@pytest.mark.parametrize(("name", "number"), WALKS)
@pytest.mark.sampled(9)
def test_python_and_programs_agree(name, number):
    """Function by function; XLA makes whole runs of these walks (`test_jax_engine`)."""
    assert_agrees(name, *walked(name, number))


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_the_steps_that_are_compared_take_every_action_and_every_field_stays_within_its_width(name):
    model = registry.load(name)
    found = [step for number in range(len(registry.cases(name).walks)) for step in walked(name, number)[1]]
    assert {action.name for _, action, *_ in found} == {action.name for action in model.actions}
    values = np.array([leaves(after) for *_, after in found], np.int64)
    assert (values >> np.array(leaves(model.widths)) == 0).all()  # -1, too, stays what it is


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SHOWCASES)
def test_a_showcase_breaks_its_invariant_with_its_last_step_by_programs(name):
    """Each step is allowed by its guard, and leads to the next state."""
    found = showcase(name)
    model, params, steps = found.model, trace.params_of(found), np.array(found.path.steps)
    states = paths.replay(model, params, found.path)
    rows = np.array([leaves(state) for state in states], np.int64)
    # of the last state, what one more step would do is not looked at
    masks, sent, after, broke, _ = by_programs(model, params, states, np.append(steps, steps[-1:], 0))
    first_words = np.cumsum([0, *num_words(model)])
    for i, (action, instance, lost) in enumerate(steps.tolist()):
        assert masks[i, first_words[action] + instance // 64] >> instance % 64 & 1
        assert lost & ~sent[i] == 0
    assert (after[:-1] == rows[1:]).all()
    place = [invariant.name for invariant in model.invariants].index(found.invariant)
    assert (broke >> place & 1).tolist() == [0] * (DEPTHS[name] - 1) + [1]
    assert found.invariant == SHOWCASES[name][1]


@pytest.mark.parametrize("name", registry.names())
def test_initial_states_in_compiled_code(name):
    model, cases = registry.load(name), registry.cases(name)
    compiled, num_choices = stepper(model).initial, stepper(model).initial_choices
    initial = njit(lambda params, choice: (compiled(params, choice), num_choices(params)))
    for values in cases.walks:
        params = params_of(model, **values)
        last = model.initial_choices(params) - 1
        for choice in {0, last // 3, last}:
            assert initial(params, choice) == (model.initial(params, choice), last + 1)
