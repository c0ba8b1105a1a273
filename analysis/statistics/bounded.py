"""The mean of numbers between 0 and 1, whatever their distribution: empirical Bernstein bounds.

Source: A. Maurer, M. Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009, theorem 4.
"""

import math


def bernstein(total: float, squares: float, num: int, confidence: float) -> tuple[float, float]:
    """Returns an interval that holds the mean with at least this confidence, by the sum of `num` numbers and the sum of
    their squares.

    Each end is off by sqrt(2 V x / n) + 7 x / (3 (n - 1)), V the sample variance and x = ln(4 / (1 - confidence)).
    """
    if num < 2:
        return 0.0, 1.0
    x, mean = math.log(4.0 / (1.0 - confidence)), total / num
    variance = max(0.0, (squares - num * mean * mean) / (num - 1))
    off = math.sqrt(2.0 * variance * x / num) + 7.0 * x / (3.0 * (num - 1))
    return max(0.0, mean - off), min(1.0, mean + off)
