"""Numbers as people write them."""

import pytest

from quorisk.say import elasticities, numbers, text


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        (0.95, "95%"),
        (0.999, "99.9%"),
        (1 - 0.05 / 3, "98.33%"),
        (1 - 0.05 / 40, "99.875%"),
        (0.5, "50%"),
        (1.0, "100%"),
    ],
)
def test_a_confidence_has_three_digits_of_what_is_missing(confidence, said):
    assert numbers.percent(confidence) == said


def test_the_smallest_numbers_there_are_have_intervals_too():
    assert numbers.between(1.23e-299, 1.3e-299) == "1.23 to 1.30 × 10⁻²⁹⁹"
    assert numbers.between(1.23e-309, 1.3e-309) == "1.23 × 10⁻³⁰⁹ to 1.30 × 10⁻³⁰⁹"
    assert numbers.between(1e-320, 1e-320) == "1.00 × 10⁻³²⁰ to 1.00 × 10⁻³²⁰"
    assert numbers.between(5e-324, 5e-324) == "4.94 × 10⁻³²⁴ to 4.94 × 10⁻³²⁴"


@pytest.mark.parametrize(
    ("p", "low", "high", "said"),
    [
        (2573, 2572.98, 2573.01, "2572 to 2574"),  # 2570 to 2580 would be wider, and no shorter
        (257.3, 257.28, 257.31, "257 to 258"),
        (9999.2, 9999.1, 9999.4, "9999 to 1.00 × 10⁴"),
        (12345, 12344, 12346, "1.23 to 1.24 × 10⁴"),
    ],
)
def test_the_ends_of_an_interval_have_all_digits_that_the_estimate_has(p, low, high, said):
    assert numbers.interval({"losses": 1, "p": p, "low": low, "high": high}) == said


@pytest.mark.parametrize(("value", "digits", "said"), [(9999.2, 3, "9999"), (9999.2, 4, "9999"), (9999.7, 6, "9999.7")])
def test_just_below_ten_thousand_no_power_of_ten_is_needed(value, digits, said):
    assert numbers.plain(value, digits) == said


def test_numbers_that_are_round_have_no_more_digits_than_they_need():
    said = {1.2e-5: "1.2 × 10⁻⁵", 0.5: "0.5", 1234.0: "1234", 2e7: "2 × 10⁷", 0.99982: "0.99982"}
    assert {value: numbers.plain(value) for value in said} == said


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0123456, "0.0123"),
        (0.9996, "0.99960"),
        (99.96, "100"),
        (1.0, "1.00"),
        (123.4, "123"),
        (1234.0, "1234"),
        (3.6888e-6, "3.69 × 10⁻⁶"),
        (9.999e-4, "0.00100"),
        (1e-12, "1.00 × 10⁻¹²"),
        (123456.0, "1.23 × 10⁵"),
    ],
)
def test_numbers_have_three_digits(value, written):
    assert numbers.number(value) == written


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0.0123456, 0.0123456, "0.0123 to 0.0124"),
        (3.6888e-6, 3.6888e-6, "3.68 to 3.69 × 10⁻⁶"),
        (0.05, 0.05, "0.0500 to 0.0500"),
        (0.99491, 0.99499, "0.994 to 0.995"),
        (0.999123, 0.999128, "0.99912 to 0.99913"),
        (0.0, 1.0, "0.00 to 1.00"),
        (9.123e-7, 1.4449e-6, "9.12 × 10⁻⁷ to 1.45 × 10⁻⁶"),
        (9.123e-11, 1.4449e-6, "9.12 × 10⁻¹¹ to 1.45 × 10⁻⁶"),
        (9.123e-4, 0.0144, "9.12 × 10⁻⁴ to 0.0144"),
    ],
)
def test_ends_of_intervals_are_rounded_away_from_what_they_hold(low, high, written):
    assert numbers.interval({"losses": 1, "low": low, "high": high}) == written
    bound = f"< {written.rpartition(' to ')[2]}" if high < 1 else "at most 1"
    assert numbers.probability({"losses": 0, "high": high}) == bound


def test_what_cannot_be_has_no_bound():
    assert numbers.probability({"losses": 0, "high": 0.0}, numbers.plain) == "0"


def test_differences_have_signs_and_their_intervals_hold_them():
    assert numbers.with_sign(0.99996) == "+0.99996"
    assert numbers.in_brackets(-0.0123456, 0.0123456, numbers.with_sign) == "[−0.0124, +0.0124]"
    assert numbers.in_brackets(0.99961, float("inf")) == "[0.99961, inf]"


def test_a_fault_met_in_all_losing_runs_is_met_once_whatever_was_rounded_in_its_sum():
    assert elasticities.fault_times({"fencing": 0.9999999999999999, "lost message": 4e-13}) == (
        "fencing once, lost message 4 × 10⁻¹³ times"
    )
    assert elasticities.fault_times({"lost bookie": 0.99982}) == "lost bookie 0.99982 times"


@pytest.mark.parametrize(
    ("key", "figure", "written"),
    [
        ("cluster.retention", 604_800, "7 days"),
        ("cluster.node_loss", 0.01, "0.01 / year"),
        ("cluster.node_bytes", 2.0**40, "1 TiB"),
        ("cluster.repair_bandwidth", 12e6, "11.4 MiB / s"),
        ("scenarios.entry.per_year", 2000, "2,000"),
        ("scenarios.entry.rates.crash", 0.1, "1 / 10 s"),
        ("cluster.nodes", 20, "20"),
    ],
)
def test_figures_of_a_cluster_have_units(key, figure, written):
    assert text.said(key, figure, physical=True) == written
