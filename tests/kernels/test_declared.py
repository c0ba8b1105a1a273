"""What a package from outside declares wrongly is refused, by a line that names it, before or while it runs.

Each of these used to end in a number, some of them in a proof.
"""

import re
from typing import Any

import pytest

from quorisk.analysis.estimate import method, rare
from quorisk.analysis.experiment.config import RunSettings
from quorisk.kernels import declared
from quorisk.kernels.engines import numba_engine
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.tally import named_tally, num_columns
from quorisk.kernels.errors import ModelError
from quorisk.kernels.model import COMPLETED, LOST, Alike, Invariant, Margin, Parameter
from quorisk.kernels.ops import where
from quorisk.kernels.protocols import registry
from quorisk.kernels.states import lumped, search
from tests.kernels.outside import MODEL, PACKAGE, PARAMS, action, changed, point
from tests.support import EACH_PROTOCOL, params_of, point_of

MEMORY = 1 << 26
State = PACKAGE.State
ONE_EACH = State(up=1, primary=1, stored=1, copies=1, acked=0)


def alike(bits=ONE_EACH, number=lambda params: params.replicas):
    return Alike(8, number, bits)


AT_ONCE: dict[str, dict[str, Any]] = {
    "an action twice": {"actions": (*MODEL.actions, MODEL.actions[0])},
    "nothing to lose": {"invariants": (Invariant("Any", PACKAGE.acked_record_survives, data_loss=False),)},
    "about nothing known": {"invariants": (MODEL.invariants[0]._replace(about="exposed"),)},
    "an unknown probability": {"actions": action("write", lost_with="p_lost")},
    "a group of none": {"actions": action("take_over", shared=0)},
    "an unknown need": {"actions": action("crash", needs=("crashes",))},
    "an unknown table": {"parameters": (*MODEL.parameters, Parameter("x", "models", None, "x"))},
    "no initial state": {"initial_choices": lambda params: 0},
    "widths of other fields": {"widths": (8, 8, 8, 8, 1, 1)},
    "a width of 64": {"widths": State(8, 8, 8, 64, 1)},
    "a width of 0": {"widths": State(8, 8, 8, 8, 0)},
    "more messages than bits": {"max_sends": 64},
    "things that do not fill their fields": {"alike": alike(ONE_EACH._replace(stored=3))},
    "things of another state": {"alike": alike((1, 1))},
    "a margin of an unknown fault": {"margin": Margin("crashes", lambda params: 1, lambda state, params: 0)},
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_contradicts_itself_is_refused_at_once(name):
    with pytest.raises(ModelError, match=r"^protocol = 'primary_backup': "):
        declared.check_model(MODEL._replace(**AT_ONCE[name]))


IN_PYTHON = {
    "widths": ({"widths": State(8, 8, 3, 8, 1)}, "widths: stored = 3: .* makes it [0-9]+, of replicas=4"),
    "a value below 0": (
        {"actions": action("crash", apply=lambda state, params, instance, lost: state._replace(up=-1))},
        "widths: up = 8: crash, instance [0-9], makes it -1",
    ),
    "no integer": (
        {"actions": action("crash", apply=lambda state, params, instance, lost: state._replace(up=1.5))},
        "widths: up = 8: crash, instance [0-9], makes it 1.5",
    ),
    "an initial state": ({"widths": State(2, 8, 8, 8, 1)}, "widths: up = 2: initial, choice 0, makes it 15"),
    "other fields": (
        {"actions": action("crash", apply=lambda state, params, instance, lost: state[:4])},
        "not the fields of widths",
    ),
    "messages": ({"max_sends": 3}, "max_sends = 3: write, instance 0, sends 0b1110"),
    "an outcome": ({"outcome": lambda state, params: LOST}, "outcome: 2 of"),
    "a shift by less than 0": (
        {"actions": action("store", enabled=lambda state, params: (state.copies & state.up >> (0 - state.acked),))},
        "the guard of store: ValueError: negative shift count",
    ),
    "masks that come and go": (
        {"actions": action("crash", enabled=lambda state, params: (state.up,) * (1 + state.acked))},
        "the guard of crash gives",
    ),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_walks_say_what_does_not_keep_to_what_is_declared(name):
    fields, said = IN_PYTHON[name]
    with pytest.raises(ModelError, match=said):
        for _ in declared.walks(MODEL._replace(**fields), PARAMS, 40, seed=1):
            pass


@pytest.mark.parametrize("name", EACH_PROTOCOL)
def test_quorisks_own_protocols_keep_to_what_they_declare(name):
    model, cases = registry.load(name), registry.cases(name)
    declared.check_model(model)
    for values in cases.walks:
        assert sum(1 for _ in declared.walks(model, params_of(model, **values), 4, seed=1)) > 20


def searched(model):
    return search.explore(model, PARAMS, MEMORY)


def stepped(model):
    return numba_engine.simulate(model, pack(model, [point()]), [Job(0, 0, 1000)], seed=1)


def headed(model):
    return method.known_head(model, point(), RUN, 1 << 20)


RUN = RunSettings(
    1 << 17, 1, 0.95, "numba", "auto", float("inf"), float("inf"), "data loss", False, False, 0, float("inf")
)
NARROW = changed("narrow", widths=State(8, 8, 3, 8, 1))
FEW = changed("few", max_sends=2)
COMPILED = {
    "a search, widths": (searched, NARROW, "widths: store makes a value"),
    "a head, widths": (headed, NARROW, "widths: store makes a value"),
    "the first state, widths": (searched, changed("first", widths=State(2, 8, 8, 8, 1)), "widths: the initial state"),
    "a search, messages": (searched, FEW, "max_sends: write sends more than 2"),
    "runs, messages": (stepped, FEW, "max_sends: write sends more than 2"),
    "runs, an outcome": (stepped, changed("ended", outcome=lambda state, params: state.up), "outcome: where"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_refuses_what_does_not_fit(name):
    ask, model, said = COMPILED[name]
    with pytest.raises(ModelError, match=f"^protocol = '{model.name}': {said}"):
        ask(model)


LUMPS = {
    "nothing but the truth": (
        {"alike": alike(), "forget": lambda state, params: state._replace(copies=state.copies & state.up)},
        None,
    ),
    "a field left out": ({"alike": alike(ONE_EACH._replace(stored=0))}, "alike: .*, not "),
    "a thing that is not like the others": ({"alike": alike(ONE_EACH._replace(primary=0))}, "alike: "),
    "copies that matter": ({"forget": lambda state, params: state._replace(copies=0)}, "forget: .* where store"),
    "a promise": ({"forget": lambda state, params: state._replace(acked=0)}, "forget: .*which breaks other"),
}


@pytest.mark.parametrize("name", LUMPS)
def test_what_a_head_may_keep_for_others_is_held_to_its_word(name):
    fields, said = LUMPS[name]
    model = changed(re.sub("[^a-z]", "", name), **fields)
    if said is None:
        assert lumped.check_stand_ins(model, point(take_over=0.3, crash=0.1)) > 150
        return
    with pytest.raises(ModelError, match=f"^protocol = '{model.name}': {said}"):
        lumped.check_stand_ins(model, point(take_over=0.3, crash=0.1))


def a_crash(state, params):
    """Where any backup may take over, a loss takes the crash of the primary."""
    is_safe = (state.acked == 0) | (state.up & state.primary & state.stored != 0)
    return where(is_safe, 1, 0)


MARGINS: dict[str, tuple[Margin, str]] = {
    "nothing but the truth": (Margin("crash", lambda params: params.replicas, a_crash), ""),
    "more than it takes": (
        Margin("crash", lambda params: 4, lambda state, params: 1),
        "needed = 1 of .*, where data is lost",
    ),
    "two at once": (
        Margin("crash", lambda params: 4, lambda state, params: 2 * a_crash(state, params)),
        "needed = 2 of .*, from which crash leads to 0",
    ),
    "another fault": (Margin("take_over", lambda params: 4, a_crash), "needed = 1 of .*, from which crash leads to 0"),
    "fewer at a time": (Margin("crash", lambda params: 3, a_crash), "most = 3"),
    "nothing said": (Margin("crash", lambda params: 0, lambda state, params: 7), ""),
}


@pytest.mark.parametrize("name", MARGINS)
def test_a_margin_is_held_to_its_word(name):
    margin, said = MARGINS[name]
    model = MODEL._replace(margin=margin)
    if not said:
        assert declared.check_margin(model, PARAMS) == (0 if name == "nothing said" else declared.MARGIN_STEPS)
        return
    with pytest.raises(ModelError, match=f"^protocol = 'primary_backup': margin: .*{said}"):
        declared.check_margin(model, PARAMS)


def test_a_margin_is_held_to_its_word_where_nothing_happens_after_a_loss():
    """The one backup there is takes over, and may not crash."""
    params = PARAMS._replace(replicas=2, acks=1, max_crashes=1)
    model = MODEL._replace(margin=Margin("crash", lambda params: 2, lambda state, params: 1 + state.acked))
    with pytest.raises(ModelError, match=r"needed = 2 of up=2, primary=2, stored=1, .*, where data is lost"):
        declared.check_margin(model, params)


CASES = [
    (name, number)
    for name in registry.names()
    for number in range(1 + len(registry.cases(name).variants))
    if registry.load(name).forget or registry.load(name).alike
]


@pytest.mark.parametrize(("name", "number"), CASES)
@pytest.mark.sampled(4)
def test_what_quorisks_own_heads_keep_for_others_goes_on_alike(name, number):
    """What each protocol's `forget` and `alike` say, in its small configuration and each of its variants."""
    model, cases = registry.load(name), registry.cases(name)
    given = {} if number == 0 else dict(cases.variants[number - 1])
    given.pop("horizon", None)
    given["rates"] = {each.name: 0.2 + 0.37 * place % 1.7 for place, each in enumerate(model.actions)}
    assert lumped.check_stand_ins(model, point_of(model, **given), num_steps=400, num_states=40) > 0


def test_a_head_that_the_pilot_contradicts_is_no_answer():
    """States without what is stored lose whatever is acknowledged: what nobody would see of a head alone."""
    model = changed("pilot", forget=lambda state, params: state._replace(stored=0))
    where = method.Where(numba_engine, model, pack(model, [point()]), 1, None)
    sums = [0] * num_columns(model)
    sums[COMPLETED], sums[LOST] = 13_167, 3_217  # as they are
    with pytest.raises(ModelError, match=r"forget, alike or widths: 3,217 of 16,384 runs lost data, and by the solved"):
        method.solve_and_sample(where, point(), RUN, named_tally(model, sums), MEMORY)


def test_counts_that_a_head_allows_contradict_nothing():
    part = rare.LossPart(1e-4, 1e-3, 0.0, 5, True)
    assert part.agrees(13, 131_072, 0)
    assert part.agrees(144, 131_072, 0)
    assert not part.agrees(400, 131_072, 0)
    assert not part.agrees(0, 10**6, 0)
    assert part.agrees(0, 10**6, 100)  # they may be lost, had they gone on
    assert part.agrees(144, 131_072, 0, (999, 1000, 0))
    assert not part.agrees(144, 131_072, 0, (1, 1000, 0))
