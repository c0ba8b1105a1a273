"""What files say of how well figures are known: tables in the place of values, wherever a value may stand."""

from fractions import Fraction
from pathlib import Path

import pytest

from quorisk.analysis.experiment.config import ConfigError
from quorisk.analysis.experiment.known import say
from quorisk.analysis.statistics.known import Beta, Gamma, LogitNormal, LogNormal
from tests.analysis.experiment.files import BOOKKEEPER
from tests.analysis.experiment.test_scenarios import PROFILE, TWO, write_profile
from tests.support import refusal

LOST, YEAR_S = "rates.client_starts_recovery", 31_557_600
KEY = "client_starts_recovery"


def rate(table: str) -> str:
    return f"{BOOKKEEPER}[rates]\n{KEY} = {table}"


@pytest.mark.parametrize(
    ("table", "known", "a_year"),
    [
        ('{ value = "1 % / year", error_factor = 2 }', LogNormal(0.01 / YEAR_S, 2.0), 0.01),
        ('{ events = 3, exposure = "200 years" }', Gamma(3, 200.0 * YEAR_S), 0.01586453),
        ('{ value = "2 % / year", events = 3, exposure = "200 years" }', Gamma(3, 200.0 * YEAR_S), 0.02),
        ('{ low = "1 % / year", high = "4 % / year" }', LogNormal(0.02 / YEAR_S, 2.0), 0.02),
        ('{ value = "3 % / year", low = "1 % / year", high = "4 % / year" }', LogNormal(0.02 / YEAR_S, 2.0), 0.03),
        ('{ value = "0 / s", error_factor = 1 }', LogNormal(0.0, 1.0), 0.0),
    ],
)
def test_a_rate_is_a_value_and_what_is_known_of_it(read, table, known, a_year):
    experiment = read(rate(table))
    [point] = experiment.points
    assert point.point.rates[KEY] * YEAR_S == pytest.approx(a_year, rel=1e-6)
    assert point.point.time_unit == "s"
    assert experiment.known.keys() == {LOST}
    assert type(experiment.known[LOST]) is type(known)
    assert experiment.known[LOST] == pytest.approx(known, rel=1e-12)


def test_a_file_without_units_says_it_without_them(read):
    experiment = read(rate("{ events = 3, exposure = 200 }"))
    assert experiment.known[LOST] == Gamma(3, 200.0)
    assert experiment.points[0].point.time_unit is None


@pytest.mark.parametrize(
    ("table", "known", "value"),
    [
        ("{ value = 0.0075, error_factor = 2 }", LogNormal(0.0075, 2.0, 1.0), 0.0075),
        ("{ events = 3, trials = 400 }", Beta(3, 400), Beta(3, 400).median),
        ("{ low = 0.5, high = 0.9 }", LogitNormal(0.5, 0.9), 0.75),
    ],
)
def test_a_probability_is_a_value_and_what_is_known_of_it(read, table, known, value):
    experiment = read(f"{BOOKKEEPER}[faults]\nmessage_loss = {table}")
    assert experiment.points[0].point.message_loss == pytest.approx(value)
    assert experiment.known == {"faults.message_loss": known}


def test_what_is_known_is_no_part_of_a_points_identity(read):
    plain, known = read(rate('"1 % / year"')), read(rate('{ value = "1 % / year", error_factor = 2 }'))
    assert plain.points == known.points
    assert plain.known == {}


def test_scenarios_have_unknowns_of_their_own(read):
    text = TWO.replace("per_year = 5e10", 'per_year = { events = 2, exposure = "40 years" }')
    text = text.replace("faults.message_loss = 1e-3", "faults.message_loss = { value = 1e-3, error_factor = 3 }")
    experiment = read(text)
    assert experiment.known == {
        "scenarios.entry.per_year": Gamma(2, 40.0),
        "scenarios.failover.faults.message_loss": LogNormal(1e-3, 3.0, 1.0),
    }
    assert experiment.scenarios["entry"].per_year == Gamma(2, 40.0).median
    assert experiment.scenarios["failover"].values["faults.message_loss"] == 1e-3


def test_tables_of_a_file_may_be_toml_tables_too(read):
    inline, spread = read(rate("{ value = 2, error_factor = 3 }")), f"{BOOKKEEPER}[{LOST}]\nvalue = 2\nerror_factor = 3"
    assert read(spread).known == inline.known
    dotted = TWO.replace("per_year = 2_000", "per_year.value = 2_000\nper_year.error_factor = 4")
    assert read(dotted).known == {"scenarios.failover.per_year": LogNormal(2000.0, 4.0)}


def test_a_grid_may_list_them(read):
    text = rate("1") + "\n[grid]\n" + KEY + " = [{ value = 2, error_factor = 3 }, 5, { events = 1, exposure = 9 }]"
    experiment = read(text)
    assert [point.point.rates[KEY] for point in experiment.points] == [2.0, 5.0, Gamma(1, 9.0).median]
    assert experiment.known_in_grid == {(LOST, 2.0): LogNormal(2.0, 3.0), (LOST, Gamma(1, 9.0).median): Gamma(1, 9.0)}
    assert read(text, f"grid.{LOST}=[2, 3]").known_in_grid == {}


def test_a_value_alone_takes_the_place_of_what_is_known(read):
    write_profile(PROFILE.replace('value = "1 / 4 s"', 'value = "1 / 4 s"\nerror_factor = 2'))
    text = 'profile = "room"\n' + BOOKKEEPER
    key = "rates.client_creates_ledger"
    assert read(text).known == {key: LogNormal(0.25, 2.0)}
    assert read(text, f"{key}=1 / 5 s").known == {}
    assert read(text + '[rates]\nclient_creates_ledger = "1 / 5 s"').known == {}
    table = '{ value = "1 / 5 s", error_factor = 3 }'
    assert read(text, f"{key}={table}").known == {key: LogNormal(0.2, 3.0)}


def test_a_profile_may_go_on_from_another_one(read):
    write_profile(PROFILE)
    figure = '[rates.client_starts_recovery]\nevents = 3\nexposure = "40 days"\nmeans = "it"\nsource = "our own"\n'
    head = 'protocol = "bookkeeper"\nprofile = "room"\nabout = "ours"\ndate = 2026-11-23\n'
    write_profile("\ufeff" + head + figure, "ours")  # with a byte order mark, as some editors write
    experiment = read('profile = "ours"\n' + BOOKKEEPER)
    assert experiment.points[0].point.rates["client_creates_ledger"] == 0.25
    assert experiment.known == {LOST: Gamma(3, 40.0 * 86_400)}
    assert experiment.profile.name == "ours"
    assert list(experiment.side_files()) == [Path("profiles/ours.toml"), Path("profiles/room.toml")]
    write_profile(PROFILE.replace("about =", 'profile = "ours"\nabout ='))
    with pytest.raises(
        ConfigError, match=r'^x.toml: profile = "ours": profiles/ours.toml: profile = "room": .*: one of'
    ):
        read('profile = "ours"\n' + BOOKKEEPER)


MANY = "value with error_factor; or events with exposure, or low with high, both with or without a value"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("{ value = 1, eror_factor = 2 }", f'{LOST} = {{"value": 1, "eror_factor": 2}}: {MANY}'),
        ("{ error_factor = 2 }", f'{LOST} = {{"error_factor": 2}}: {MANY}'),
        ("{ events = 2, trials = 3 }", f'{LOST} = {{"events": 2, "trials": 3}}: {MANY}'),
        ("{ value = 1, error_factor = 0.5 }", f"{LOST}.error_factor = 0.5: a number from 1 (known exactly) to 1000"),
        (
            "{ value = 0, error_factor = 2 }",
            f"{LOST}.error_factor = 2.0: 1, as 0 has no multiples; or low and high",
        ),
        ("{ value = -1, error_factor = 2 }", f"{LOST}.value = -1: 0, or a number from 1e-100 to 1e100, or a rate such"),
        ("{ events = 2.5, exposure = 1 }", f"{LOST}.events = 2.5: an integer from 0 to 1000000000000"),
        ('{ events = 2, exposure = "2 / s" }', f'{LOST}.exposure = "2 / s": a time such as "5 s" or "7 days"; this is'),
        ("{ low = 2, high = 1 }", f"{LOST}.low = 2, {LOST}.high = 1: above 0, and low below high"),
        (
            '{ low = "1 / s", high = 2 }',
            f'{LOST} = {{"low": "1 / s", "high": 2}}: either all of it has units, or nothing',
        ),
        ("{ value = 5, low = 1, high = 2 }", f"{LOST}.value = 5: between low and high"),
        (
            "{ value = 50, events = 2, exposure = 2 }",
            f"{LOST}.value = 50: contradicts the counts beside it; without it,",
        ),
        ("{}", f"{LOST} = {{}}: 0, or a number from 1e-100 to 1e100, or a rate such as"),
    ],
)
def test_what_cannot_be_known_is_refused(read, table, said):
    assert refusal(read, rate(table)).startswith(f"x.toml: {said}")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("{ value = 0.5, error_factor = 2 }", ".error_factor = 2.0: at most 1.41 with this value, as a probability is"),
        ("{ events = 3, trials = 2 }", ".trials = 2: at least 1, and at least events (3)"),
        ("{ low = 0.5, high = 1 }", ".high = 1: above 0, and low below high, which is below 1"),
        ('{ events = 3, exposure = "1 year" }', " = "),
    ],
)
def test_a_probability_that_cannot_be_known_is_refused(read, table, said):
    with pytest.raises(ConfigError) as error:
        read(f"{BOOKKEEPER}[faults]\nmessage_loss = {table}")
    assert said in str(error.value)
    assert str(error.value).startswith("x.toml: faults.message_loss")


def test_a_key_that_is_no_figure_takes_no_table(read):
    with pytest.raises(ConfigError, match=r'^x.toml: run.lifetime = {"value": 1.*: a number from 1e-100'):
        read(BOOKKEEPER + "[run]\nlifetime = { value = 1, error_factor = 2 }")


def test_figures_of_a_profile_are_refused_as_the_profiles(read):
    write_profile(PROFILE.replace('value = "1 / 4 s"', 'value = "1 / 4 s"\nerror_factor = 0'))
    with pytest.raises(ConfigError, match=r"^x.toml: profile: rates.client_creates_ledger.error_factor = 0: "):
        read('profile = "room"\n' + BOOKKEEPER)


def test_what_is_known_in_words():
    assert say(Gamma(3, 200.0 * YEAR_S)) == "3 in 200 years"
    assert say(Beta(3, 4000)) == "3 of 4,000"
    assert say(LogNormal(1.0, 2.0)) == "a factor of 2 either way"
    assert say(LogNormal(1.0, 1.0)) == "known exactly"
    assert say(LogitNormal(0.5, 0.9)) == "0.5 to 0.9"


def test_medians_of_rates_are_exact_fractions_where_there_are_units(read):
    experiment = read(rate('{ events = 0, exposure = "1 year" }'))
    assert Fraction(experiment.points[0].point.rates[KEY]) == Fraction(Gamma(0, float(YEAR_S)).median)
