"""Scenarios of an experiment file, profiles, and tables that others read."""

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from quorisk.analysis.experiment import profiles
from quorisk.analysis.experiment.config import ConfigError
from quorisk.analysis.experiment.keys import SWITCH, keys_of
from quorisk.analysis.experiment.known import stated, value_in
from quorisk.analysis.experiment.profiles import BUILT_IN
from quorisk.analysis.experiment.scenarios import Scenario
from quorisk.kernels.protocols import registry
from tests.analysis.experiment.files import BOOKKEEPER
from tests.support import refusal

TWO = (
    BOOKKEEPER
    + """
[scenarios.entry]
per_year = 5e10
about = "an entry's life"
simplifications = ["one entry stands for all"]
clients = 1
message_loss = 1e-6

[scenarios.failover]
per_year = 2_000
faults.message_loss = 1e-3
rates.client_starts_recovery = 4
"""
)
GRID = "[grid]\nwrite_quorum = [2, 3]\nack_quorum = [1, 2]\n"


def test_scenarios_overlay_the_file_and_are_crossed_with_the_designs(read):
    experiment = read(TWO + GRID)
    assert experiment.varied == ("model.write_quorum", "model.ack_quorum", "run.scenario")
    assert [point.scenario for point in experiment.points] == ["entry", "failover"] * 4
    entry, failover = (point.point for point in experiment.points[:2])
    assert (entry.values["clients"], entry.message_loss, entry.rates["client_starts_recovery"]) == (1, 1e-6, 1.0)
    assert (failover.values["clients"], failover.message_loss) == (2, 1e-3)
    assert failover.rates["client_starts_recovery"] == 4.0
    designs = [point.design for point in experiment.points]
    assert designs[0] == designs[1] == (("model.write_quorum", 2), ("model.ack_quorum", 1))
    assert len(set(designs)) == 4
    overlaid = {"model.clients": 1, "faults.message_loss": 1e-6}
    assert experiment.scenarios["entry"] == Scenario(5e10, "an entry's life", ("one entry stands for all",), overlaid)
    assert experiment.scenarios["failover"].per_year == 2000.0


def test_a_file_without_scenarios_has_none(read):
    experiment = read(BOOKKEEPER)
    assert (experiment.scenarios, experiment.points[0].scenario, experiment.points[0].design) == ({}, None, ())


def test_a_scenario_can_be_picked(read):
    for override in ("scenario=failover", "run.scenario=failover", "grid.scenario=['failover']"):
        [point] = read(TWO, override).points
        assert (point.scenario, point.point.message_loss) == ("failover", 1e-3)
    assert [point.scenario for point in read(TWO + "[grid]\nscenario = ['failover', 'entry']").points] == [
        "failover",
        "entry",
    ]


def test_how_often_a_scenario_happens_changes_no_run(read):
    ids = [[point.point_id for point in read(TWO, *more).points] for more in ((), ("scenarios.entry.per_year=3",))]
    assert ids[0] == ids[1]
    assert read(TWO, "scenarios.entry.per_year=3").scenarios["entry"].per_year == 3.0


def losses(experiment) -> dict[str, set[float]]:
    """Message losses by scenario."""
    every: dict[str, set[float]] = {name: set() for name in experiment.scenarios}
    for point in experiment.points:
        every[point.scenario].add(point.point.message_loss)
    return every


def test_an_override_counts_as_if_it_stood_in_the_file(read):
    third = TWO + "[scenarios.third]\nper_year = 1\n"
    in_file = read(third + "[faults]\nmessage_loss = 0.5")
    overridden = read(third, "message_loss=0.5")
    assert [each.point_id for each in overridden.points] == [each.point_id for each in in_file.points]
    assert losses(overridden) == {"entry": {1e-6}, "failover": {1e-3}, "third": {0.5}}
    assert in_file.notes == ()
    assert overridden.notes == (
        "faults.message_loss does not change scenarios entry, failover, which have their own; "
        "to change that, set scenarios.entry.faults.message_loss",
    )


def test_a_scenario_s_own_value_is_overridden_by_its_name(read):
    experiment = read(TWO, "scenarios.entry.message_loss=0.5")
    assert (losses(experiment), experiment.notes) == ({"entry": {0.5}, "failover": {1e-3}}, ())
    both = read(TWO, "scenarios.entry.message_loss=0.5", "message_loss=0.1")
    [note] = both.notes
    assert note.startswith("faults.message_loss does not change scenario failover, which has its own;")
    assert losses(both) == losses(experiment)
    assert read(TWO, "message_loss=0.1", "scenarios.entry.message_loss=0.5", "scenario=entry").notes == ()
    assert read(TWO, "client_starts_recovery=2", "scenario=entry").notes == ()


def test_a_list_varies_no_scenario_that_has_its_own_value_but_one_that_is_picked(read):
    axis = "grid.message_loss=[0.5, 0.1]"
    assert refusal(read, TWO, axis) == (
        "x.toml: grid.faults.message_loss: scenario entry has its own faults.message_loss, which a list cannot vary "
        "along with the others'; pick one scenario with scenario=NAME"
    )
    for overrides in ((axis, "scenario=entry"), ("grid.scenario=['entry']", axis)):
        experiment = read(TWO, *overrides)
        assert losses(experiment) == {"entry": {0.5, 0.1}, "failover": set()}
        # as a report tells how to repeat one of its runs
        assert losses(experiment.changed("faults.message_loss=0.1", "run.scenario=entry"))["entry"] == {0.1}
    rates = read(TWO, "scenario=entry", "grid.client_starts_recovery=[1, 2]")
    assert {each.point.rates["client_starts_recovery"] for each in rates.points} == {1.0, 2.0}


THIRD = "[scenarios.third]\nper_year = 1\n"
ERRORS = {
    # what the file adds to two scenarios, and what is said
    THIRD + "hits = {}": "scenarios.third.hits = {}: a number from 1 to 1e30, the objects that each event touches",
    "[grid]\nwrite_quorum = {}": "grid.write_quorum = {}: a list, such as ",
    "[grid]\nmessage_loss = [0.1, 0.2]": "scenarios.entry.faults.message_loss = 1e-06: "
    "[grid] lists faults.message_loss already",
    "[scenarios.third]\nclients = 1": "scenarios.third.per_year: missing; the times a year that it happens",
    "[scenarios.third]\nper_year = -1": "scenarios.third.per_year = -1: a number from 0 to 1e30, the times a year ",
    THIRD + "about = 2": "scenarios.third.about = 2: a string",
    THIRD + "seed = 2": "scenarios.third.seed = 2: cannot differ between scenarios; set it in [run]",
    THIRD + "clientz = 2": "scenarios.third.clientz = 2: there is no key clientz; did you mean model.clients? "
    "(a scenario itself has per_year, hits, fates, about, simplifications, incident)",
    THIRD + "clients = 9": "scenarios.third.model.clients = 9: an integer from 1 to 3",
    THIRD + "[run]\nscenario = 'fourth'": 'run.scenario = "fourth": one of "entry", "failover", ',
    THIRD + "clients = 1\nmessage_loss = 1e-6": 'scenarios: run.scenario = "entry" and run.scenario = "third" are the '
    "same; remove one",
    GRID + 'where = ["ack_quorum <= clients"]': "grid.where: leaves out scenario entry at model.write_quorum = 2, "
    "model.ack_quorum = 2; without it, the losses a year would be too low",
    '["scenarios"."a b"]\nper_year = 1': 'scenarios."a b": a name of letters, digits and _',
    THIRD + "[scenarios.third.rates]\nclient_creates_ledger = '1 / h'": "scenarios.failover.rates."
    "client_starts_recovery = 4.0: no unit, but scenarios.third.rates.client_creates_ledger has one; ",
}


@pytest.mark.parametrize("more", ERRORS)
def test_what_cannot_be_used_is_named_with_its_value_and_what_is_allowed(read, more):
    assert refusal(read, TWO + more).startswith(f"x.toml: {ERRORS[more]}")


def test_an_override_of_a_scenario_that_there_is_not_is_refused(read):
    said = "x.toml: scenarios.third.clients = 1: no such scenario; there are entry, failover"
    assert refusal(read, TWO, "scenarios.third.clients=1") == said


def test_a_condition_may_pick_a_scenario(read):
    where = 'where = ["write_quorum == 3", "scenario == \'entry\'", "ack_quorum == 1"]'
    assert [point.scenario for point in read(TWO + GRID + where).points] == ["entry"]


PROFILE = """
protocol = "bookkeeper"
about = "a machine room"
[rates.client_creates_ledger]
value = "1 / 4 s"
means = "a topic gets a ledger"
source = "assumed"
[faults.message_loss]
value = 1e-6
means = "a connection breaks"
source = "assumed"
"""


def write_profile(text: str, name: str = "room") -> None:
    Path("profiles").mkdir(exist_ok=True)
    Path(f"profiles/{name}.toml").write_text(text)


def test_a_profile_gives_the_figures_that_a_file_does_not(read):
    write_profile(PROFILE)
    experiment = read('profile = "room"\n' + BOOKKEEPER + "[faults]\nmessage_loss = 0.5")
    [point] = experiment.points
    assert (point.point.rates["client_creates_ledger"], point.point.message_loss) == (0.25, 0.5)
    assert point.point.time_unit == "s"
    assert experiment.profile.about == "a machine room"
    assert experiment.profile.figures["rates.client_creates_ledger"].means == "a topic gets a ledger"


@pytest.mark.parametrize(
    ("profile", "more", "said"),
    [
        (PROFILE, "[rates]\nclient_starts_recovery = 2", "rates.client_starts_recovery = 2.0: no unit, but rates."),
        (PROFILE.replace('"bookkeeper"', '"kafka"'), "", 'profile = "room": is for kafka, not for bookkeeper'),
        (
            PROFILE.replace('source = "assumed"', ""),
            "",
            'profile = "room": profiles/room.toml: rates.client_creates_ledger: each figure of a profile has means, ',
        ),
        ("x = [", "", 'profile = "room": profiles/room.toml cannot be read: '),
    ],
)
def test_a_profile_that_cannot_be_used_is_refused(read, profile, more, said):
    write_profile(profile)
    assert refusal(read, 'profile = "room"\n' + BOOKKEEPER + more).startswith(f"x.toml: {said}")


def test_an_unknown_profile_is_told_those_that_there_are(read):
    write_profile(PROFILE)
    with pytest.raises(ConfigError, match=r'^x.toml: profile = "../room": one of .*room'):
        read('profile = "../room"\n' + BOOKKEEPER)


def test_a_table_that_others_read_is_theirs(read):
    experiment = read(BOOKKEEPER + '[latency]\nreplica = "LNKD-SSD"')
    assert "PBS" in experiment.tables["latency"].source
    with pytest.raises(ConfigError, match=r"^x.toml: latency.replicas: no such key"):
        read(BOOKKEEPER + '[latency]\nreplicas = "LNKD-SSD"')


@pytest.mark.parametrize("path", sorted(BUILT_IN.glob("*.toml")), ids=lambda path: path.stem)
def test_every_built_in_profile_says_of_each_figure_where_it_is_from_and_how_well_it_is_known(path):
    protocol = tomllib.loads(path.read_text("utf-8"))["protocol"]
    profile = profiles.load_profile(path.stem, protocol, Path("nowhere"))
    keys = keys_of(registry.load(protocol))
    assert profile.about
    for name, figure in profile.figures.items():
        said = stated(keys[name], figure.given)
        assert isinstance(said.value, Fraction) == keys[name].timed
        assert said.known or keys[name].kind is SWITCH
        assert value_in(figure.given) is not None
        assert figure.means
        assert figure.source


def test_overrides_change_the_tables_that_runs_do_not_depend_on(read):
    text = TWO + "[latency]\nrequest = { median_ms = 2.0, p99_ms = 12.0 }\nanswer = { median_ms = 1, p99_ms = 2 }\n"
    overrides = "targets.survives=2 bookies", "targets.losses_per_year = 5", "cost.entry_bytes=10", "latency.cut_ms=9"
    experiment = read(text, *overrides, "latency.request.p99_ms=20", "latency.answer={median_ms=1, p99_ms=3}")
    alike = text.replace("p99_ms = 12.0", "p99_ms = 20").replace("p99_ms = 2 ", "p99_ms = 3 ") + "cut_ms = 9\n"
    in_file = read(alike + "[targets]\nsurvives = '2 bookies'\nlosses_per_year = 5\n[cost]\nentry_bytes = 10")
    for name in ("targets", "cost"):
        assert experiment.tables[name] == in_file.tables[name]
    legs = [(leg.parts[0][1].args, leg.parts[0][1].kwds) for leg in experiment.tables["latency"].replica]
    assert legs == [(leg.parts[0][1].args, leg.parts[0][1].kwds) for leg in in_file.tables["latency"].replica]
    assert experiment.tables["latency"].cut_ms == 9
    in_kafkas_words = alike.replace("cut_ms = 9", "'replica.lag.time.max.ms' = 7")
    for override in ("latency.replica.lag.time.max.ms=9", "latency.cut_ms=9"):
        assert read(in_kafkas_words, override).tables["latency"].cut_ms == 9
    assert [each.point_id for each in experiment.points] == [each.point_id for each in read(text).points]
    assert read(BOOKKEEPER, "latency.replica=LNKD-SSD").tables["latency"].source.startswith("LNKD-SSD")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("targets.copies=x", 'targets.copies = "x": an integer from 0 to 99'),
        ("targets.copy=1", "targets.copy: no such key; [targets] has losses_per_year, "),
        ("targets=1", "targets = 1: there is no key targets; "),
        ("cost.=1", "cost. = 1: there is no key cost.; "),
        ("grid.targets.copies=[1]", "grid.targets.copies = [1]: there is no key targets.copies; [targets] is the same"),
        ("latency.replica.csv='none.csv'", "latency.replica: none.csv cannot be read: "),
    ],
)
def test_overrides_of_such_a_table_are_checked_as_the_file_is(read, override, said):
    assert refusal(read, BOOKKEEPER, override).startswith(f"x.toml: {said}")
