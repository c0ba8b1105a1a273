"""Numbers as people write them."""

import pytest

from quorisk.plots import numbers


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
