"""Grid points as arrays: what an engine reads at run time, so that one compiled kernel serves every point."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import LOG2_UNIT
from quorisk.kernels.model import Model, leaves, num_words

LOSS_UNIT = 2.0**-63
MAX_TOTAL_WEIGHT = 2**62


class Point(NamedTuple):
    """One configuration: everything that a run depends on but its seed and index."""

    values: Mapping[str, Any]
    """Values of the model's parameters, by name."""
    rates: Mapping[str, float]
    """Rates by action; 1 where not given, 0 switches an action off."""
    message_loss: float
    max_steps: int
    horizon: float
    """Model time at which a run ends; infinite for none."""
    time_unit: str | None = None
    """"s" if rates and times are physical; None if the file gives them without a unit. No engine asks."""


class Points(NamedTuple):
    """Points as arrays; the first axis is the point."""

    params: np.ndarray  # int64, the leaves of Params
    weights: np.ndarray  # int64, relative rate of each word of instances
    losses: np.ndarray  # uint64, message_loss in units of 2**-63
    max_steps: np.ndarray  # int64
    horizons: np.ndarray  # float64, in the engines' unit of time
    time_units: np.ndarray  # float64, model time of the engines' unit: 2**-32 ln 2 by the weight of rate 1


class RateError(ValueError):
    """Rates so far apart that no common unit of 63 bits holds them."""


def scale_rates(model: Model, rates: Mapping[str, float]) -> tuple[list[int], Fraction]:
    """Integer weights in exact proportion to the rates, and the weight of rate 1.

    Rates are taken as the decimal numbers that a file or a person wrote, so 1e-12 beside 1 is kept exactly.
    """
    exact = [Fraction(repr(float(rates.get(action.name, 1.0)))) for action in model.actions]
    unit = Fraction(math.lcm(*(rate.denominator for rate in exact)))
    divisor = math.gcd(*(int(rate * unit) for rate in exact)) or 1
    unit /= divisor
    weights = [int(rate * unit) for rate in exact]
    instances = 63 * sum(num_words(model))
    if max(weights) * instances >= MAX_TOTAL_WEIGHT:
        raise RateError(f"the rates have no common unit within 1 : {MAX_TOTAL_WEIGHT // instances:.0e}; round them")
    return weights, unit


def pack(model: Model, points: Sequence[Point]) -> Points:
    """The arrays of these points. Raises RateError."""
    words = num_words(model)
    scaled = [scale_rates(model, point.rates) for point in points]
    time_units = np.array([LOG2_UNIT * math.log(2.0) * float(unit) for _, unit in scaled])
    return Points(
        params=np.array([leaves(model.make_params(point.values)) for point in points], np.int64),
        weights=np.array([np.repeat(np.array(weights, np.int64), words) for weights, _ in scaled], np.int64),
        losses=np.array([round(Fraction(point.message_loss) * 2**63) for point in points], np.uint64),
        max_steps=np.array([point.max_steps for point in points], np.int64),
        horizons=np.array([point.horizon for point in points]) / time_units,
        time_units=time_units,
    )
