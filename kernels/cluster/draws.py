"""Random numbers for years and for shares of strata: streams of Philox, each a function of (seed, number, purpose).

A stream is an array of words that counts its draws, so that a draw depends only on those before it in the same stream.
"""

import math

import numpy as np

from quorisk.kernels.engines.philox import draw_pair, multiply_high
from quorisk.kernels.ops import as_int64, as_uint64, jitable, jitable_apart

SEED, NUMBER, PURPOSE, BLOCK, SPARE, HAS_SPARE = range(6)
"""Places of a stream's words."""
YEARS, SIZES, SHARES = 1, 2, 3
"""Purposes of streams; SHARES is the first of several."""
_LARGE = 1e7
"""Mean above which a binomial number is replaced by its mean: it is within a thousandth of it."""
_ALMOST_SURE = 1.0 - 1e-16
"""Largest probability in `log_none`: for 1 the logarithm of the complement does not exist."""
_POISSON_BELOW = 1e-4
"""Probability below which a binomial number is drawn as a Poisson one: their variances differ by this share at most."""


def new_stream() -> np.ndarray:
    """Returns the words of a stream, which `begin` sets."""
    return np.zeros(6, np.uint64)


@jitable
def begin(stream, seed, number, purpose):
    """Sets a stream to its beginning."""
    stream[SEED], stream[NUMBER], stream[PURPOSE] = as_uint64(seed), as_uint64(number), as_uint64(purpose)
    stream[BLOCK], stream[HAS_SPARE] = as_uint64(0), as_uint64(0)


@jitable_apart
def word(stream):
    """The next 64 bits."""
    if stream[HAS_SPARE] != as_uint64(0):
        stream[HAS_SPARE] = as_uint64(0)
        return stream[SPARE]
    first, second = draw_pair(stream[SEED], stream[NUMBER], stream[PURPOSE], stream[BLOCK])
    stream[BLOCK] += as_uint64(1)
    stream[SPARE], stream[HAS_SPARE] = second, as_uint64(1)
    return first


@jitable
def uniform(stream):
    """Draws a number uniform on [0, 1)."""
    return as_int64(word(stream) >> as_uint64(11)) * 2.0**-53


@jitable
def uniform_below(stream, num):
    """Draws an integer uniform on 0 to num - 1."""
    return as_int64(multiply_high(word(stream), as_uint64(num)))


@jitable
def exponential(stream):
    """Draws an exponential number with mean 1."""
    return -np.log1p(-uniform(stream))


@jitable_apart
def others(stream, num, first, among, chosen, at, marks):
    """Draws `num` different numbers of `first` to first + among - 1 that are not marked, writes them to `chosen` from
    `at` on, and marks them (`marks` is int64 by number)."""
    for i in range(at, at + num):
        one = first + uniform_below(stream, among)
        while marks[one]:
            one = first + uniform_below(stream, among)
        marks[one] = 1
        chosen[i] = one


@jitable
def log_none(num, p):
    """The logarithm of P(none of `num` is hit), each with probability p. A number that is not whole is a mean: one more
    is there with its fraction as probability, so that no more are hit on average than num p."""
    whole, p = np.floor(num), min(p, _ALMOST_SURE)
    return whole * np.log1p(-p) + np.log1p(-(num - whole) * p)


@jitable
def whole_number(stream, num):
    """Draws a whole number with the mean `num`; from _LARGE on rounds down."""
    whole = np.floor(num)
    return whole + 1.0 if num < _LARGE and num > whole and uniform(stream) < num - whole else whole


@jitable_apart
def hit(stream, num, p, at_least_one):
    """Draws a binomial number, a float: how many of `num` are hit, each with probability p; if `at_least_one`, given
    that it is not 0."""
    if p >= 1.0:
        return num
    mean = num * p
    if mean > _LARGE:
        return np.floor(mean)
    lowest = 1.0 if at_least_one else 0.0
    u = uniform(stream) * (-np.expm1(num * np.log1p(-p)) if at_least_one else 1.0)
    middle = max(lowest, np.floor(mean))
    if p < _POISSON_BELOW:
        chance, odds = math.exp(middle * np.log(max(mean, 1e-300)) - mean - math.lgamma(middle + 1.0)), 0.0
    else:
        odds = p / (1.0 - p)
        ways = math.lgamma(num + 1.0) - math.lgamma(middle + 1.0) - math.lgamma(num - middle + 1.0)
        chance = math.exp(ways + middle * np.log(p) + (num - middle) * np.log1p(-p))
    return _from_the_middle(u, num, mean, odds, middle, chance, lowest)


@jitable_apart
def _from_the_middle(u, num, mean, odds, middle, chance, lowest):
    """The number at which the probabilities of `middle`, of those beside it, and so on outwards, add up to u; Poisson
    if there are no `odds`."""
    u -= chance
    low, p_low, high, p_high = middle, chance, middle, chance
    while u > 0.0 and (low > lowest or p_high > 0.0):
        p_high *= (num - high) / (high + 1.0) * odds if odds > 0.0 else mean / (high + 1.0)
        high += 1.0
        u -= p_high
        if u <= 0.0:
            return high
        if low > lowest:
            p_low *= low / ((num - low + 1.0) * odds) if odds > 0.0 else low / mean
            low -= 1.0
            u -= p_low
            if u <= 0.0:
                return low
    return middle
