"""Rates and times with units: what they say exactly, what is refused, and how times are said."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorisk.analysis.experiment import units
from quorisk.analysis.experiment.config import ConfigError
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.say import quantities
from tests.analysis.experiment.files import BOOKKEEPER
from tests.support import refusal

YEAR = Fraction("365.25") * 24 * 3600
RATES = {
    "1 / 2 ms": Fraction(500),
    "1/2ms": Fraction(500),
    "1 per 2 ms": Fraction(500),
    "1 / (3 years)": 1 / (3 * YEAR),
    "1 % / year": 1 / (100 * YEAR),
    "0.1 % per year": 1 / (1000 * YEAR),
    "20 / s": Fraction(20),
    "1 / h": Fraction(1, 3600),
    "5e10 / year": 5 * 10**10 / YEAR,
    "1 / 91_250 h": Fraction(1, 91_250 * 3600),
    "3 / week": Fraction(3, 7 * 86_400),
}
TIMES = {
    "250 us": Fraction(1, 4000),
    "250 µs": Fraction(1, 4000),
    "2.5ms": Fraction(1, 400),
    "5 s": Fraction(5),
    "0.25 hours": Fraction(900),
    "7 days": Fraction(604_800),
    "1_200 years": 1200 * YEAR,
    ".5 min": Fraction(30),
}


@pytest.mark.parametrize("text", RATES)
def test_a_rate_is_read_exactly(text):
    assert units.read_rate(text) == RATES[text]


@pytest.mark.parametrize("text", TIMES)
def test_a_time_is_read_exactly(text):
    assert units.read_time(text) == TIMES[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5 s", '; this is a time: is "1 / 5 s" meant?'),
        ("1 / 2 m", "m is not a unit of time; use us, ms, s, min, h, day, week, year"),
        ("1 / month", "month is not a unit of time"),
        ("1 / 0 s", "; the time must not be 0"),
        ("1,5 / s", units.RATE),
        ("-1 / s", units.RATE),
        ("1 / 2", units.RATE),
        ("1 / (2 ms", units.RATE),
        ("1e999 / s", units.RATE),
        ("per hour", units.RATE),
        ("١ / s", units.RATE),  # an Arabic 1, and a wide 2
        ("1 / ２ s", units.RATE),
        ("", units.RATE),
    ],
)
def test_what_is_no_rate_is_refused(text, said):
    assert said in refusal(units.read_rate, text)


@pytest.mark.parametrize(
    "text", ["1 / s", "5", "1,200 years", "5 %", "1 month", "9" * 30 + " s", "inf s", "١ s", "1_０００ s"]
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ConfigError):
        units.read_time(text)


@pytest.mark.parametrize(
    ("time_s", "said"),
    [
        (0.0032, "3.2 ms"),
        (0.000_25, "250 us"),
        (5 * 86_400, "5 days"),
        (86_400, "1 day"),
        (1200 * float(YEAR), "1,200 years"),
        (float(YEAR), "1 year"),
        (59.999, "1 min"),
        (90, "1.5 min"),
        (2e9 * float(YEAR), "2 × 10⁹ years"),
    ],
)
def test_times_are_said_as_people_say_them(time_s, said):
    assert quantities.say_time(time_s) == said


@given(st.floats(1e-12, 1e12))
def test_what_is_said_is_near_what_is_meant(value):
    time, rate = (write(value).replace(",", "") for write in (quantities.written_time, quantities.written_rate))
    assert math.isclose(units.read_time(time), value, rel_tol=0.0051)
    assert math.isclose(units.read_rate(rate), value, rel_tol=0.0051)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.000042 % / year", "4.2 × 10⁻⁵ % / year"),
        ("5e-6 % / year", "5 × 10⁻⁶ % / year"),
    ],
)
def test_a_rate_is_said_with_a_power_of_ten_and_written_so_that_it_can_be_read_back(text, said):
    rate_per_s = float(units.read_rate(text))
    assert quantities.say_rate(rate_per_s) == said
    assert math.isclose(units.read_rate(quantities.written_rate(rate_per_s)), rate_per_s)


@pytest.mark.parametrize("text", ["1 / 2 ms", "1 % / year", "1 / 3 years", "1 / h", "0.9 % / year", "0"])
def test_round_rates_are_said_as_they_are_written(text):
    assert quantities.say_rate(0.0 if text == "0" else float(units.read_rate(text))) == text


@pytest.mark.parametrize(
    ("text", "other", "said"),
    [
        ("0.75 % / min", "1.1734 % / min", "1.17 % / min"),
        ("1 % per year", "250 % / year", "250 % / year"),
        ("1 / 30 s", "1 / 61.3 s", "1 / 1.02 min"),
        ("1 / (3 years)", "1 / 30 days", "1 / 30 days"),
        ("20 / s", "123.4 / s", "123 / s"),
        ("3 / (2 h)", "9 / (2 h)", "9 / (2 h)"),
        ("inf", "1 / h", "1 / h"),
        ("1 / 3 years", "1 / 3000000 years", "1 / 3e+06 years"),
    ],
)
def test_a_rate_is_said_in_the_form_of_another_one_and_can_be_read_back(text, other, said):
    assert units.say_like(text, float(units.read_rate(other))) == said
    assert math.isclose(units.read_rate(said), units.read_rate(other), rel_tol=0.0051)


def test_a_file_with_units_is_in_seconds(read):
    text = '[rates]\nclient_creates_ledger = "1 / 2 ms"\nclient_starts_recovery = "90 / h"\n'
    [(point, _, _)] = read(BOOKKEEPER + text, "horizon=1 day", "rates.client_closes_ledger_fail=0").points
    assert point.rates["client_creates_ledger"] == 500.0
    assert point.rates["client_starts_recovery"] == 0.025
    assert point.rates["client_closes_ledger_success"] == 1.0
    assert (point.horizon, point.time_unit) == (86_400.0, "s")


def test_the_same_quantity_in_another_unit_is_the_same_point_and_a_bare_number_is_not(read):
    ids = [
        read(BOOKKEEPER, f"client_creates_ledger={rate}").points[0].point_id
        for rate in ("1 / 2 ms", "500 / s", "0.5 / ms", "1 / (0.002 s)", "500")
    ]
    assert len(set(ids[:4])) == 1
    assert ids[4] != ids[0]


def test_the_unit_is_told_with_the_parameters(read):
    [physical] = read(BOOKKEEPER, "client_creates_ledger=1 / 2 ms").points
    [abstract] = read(BOOKKEEPER).points
    assert physical.point.time_unit == "s"
    model = read(BOOKKEEPER).model
    assert dotted_values(model, physical.point)["run.time_unit"] == "s"
    assert "run.time_unit" not in dotted_values(model, abstract.point)


CREATES = "rates.client_creates_ledger"


@pytest.mark.parametrize(
    ("more", "bare", "has_unit"),
    [
        (f'{CREATES} = "1 / h"\nrates.client_starts_recovery = 3', "rates.client_starts_recovery = 3.0", CREATES),
        (f'{CREATES} = "1 / h"\nrun.horizon = 9', "run.horizon = 9.0", CREATES),
        (f'grid.{CREATES} = ["1 / h", 2]', f"grid.{CREATES} = 2.0", f"grid.{CREATES}"),
        (
            f'grid.{CREATES} = ["1 / h", "1 / min"]\ngrid.where = ["client_creates_ledger > 2"]',
            *("grid.where = 2", f"grid.{CREATES}"),
        ),
    ],
)
def test_a_file_of_units_and_bare_numbers_is_refused_with_both_keys(read, more, bare, has_unit):
    text = f"{more}\n{BOOKKEEPER}"
    assert refusal(read, text).startswith(f"x.toml: {bare}: no unit, but {has_unit} has one; ")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("rates.client_creates_ledger=1e-25 / s", "rates.client_creates_ledger = 1e-25 / s"),
        ("run.lifetime=1e25 s", "run.lifetime = 1e+25 s"),
    ],
)
def test_rates_that_lie_too_far_apart_are_told_a_second(read, key, said):
    told = refusal(read, BOOKKEEPER, "client_starts_recovery=1 / s", key)
    assert told == f"x.toml: {said}: less than one part in 2e+21 of all rates together"


def test_no_end_and_no_rate_need_no_unit(read):
    text = '[rates]\nclient_creates_ledger = "1 / 8 s"\nclient_starts_recovery = 0\n[run]\nhorizon = inf'
    assert read(BOOKKEEPER + text).points[0].point.time_unit == "s"


def test_conditions_compare_quantities(read):
    text = "[grid]\nrates.client_creates_ledger = ['1 / 8 s', '1 / 4 s', '1 / s']\n"
    experiment = read(BOOKKEEPER + text + "where = ['client_creates_ledger >= \"15 / min\"']")
    assert [point.point.rates["client_creates_ledger"] for point in experiment.points] == [0.25, 1.0]
