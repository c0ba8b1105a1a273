"""Numbers as people write them."""

import pytest

from quorisk.say import numbers


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
