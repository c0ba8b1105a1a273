"""Grid points as arrays: what an engine reads at run time, so that one compiled kernel serves every point."""

import math
import operator
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from quorisk.kernels.engines.philox import LOG2_UNIT
from quorisk.kernels.engines.starts import NO_STARTS, Starts
from quorisk.kernels.model import MESSAGE_LOSS, Action, Model, leaves, needed_parameters, smallest_params
from quorisk.kernels.rule import group_words, loss_names

LOSS_UNIT = 2.0**-63
_LIKE = {round(least / LOSS_UNIT): round(like / LOSS_UNIT) for least, like in ((1e-3, 0.1), (1e-5, 1e-4), (0.0, 1e-7))}
"""Lowest loss of a range, and the loss for which code is made that serves the whole range, in units of 2**-63."""
_MOST, _LIKE_MOST = round(0.4 / LOSS_UNIT), round(0.6 / LOSS_UNIT)
"""Least loss of what is no message for which other code is made, and the loss that this is made for: lost messages are
noticed and sent again, but it matters whether an outage takes half or a tenth."""
MAX_TOTAL_WEIGHT = 2**62
ALWAYS = 1 << 63
"""Probability 1 in units of 2**-63."""
FEWEST_UNITS = 2**30
"""Fewest units of a weight that is rounded, where it has to be: the error is below one part in 1e9."""
_LEAST_WEIGHT = Fraction(1, 2**10)
"""Smallest weight allowed: one below would be refused a thousand times before it is accepted."""


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
    lifetime: float = math.inf
    """Mean of the exponential model time after which a run ends; infinite for none."""
    time_unit: str | None = None
    """"s" if rates and times are physical; None if the file gives them without a unit. No engine reads it."""
    other_losses: Mapping[str, float] = {}
    """Probabilities of `Model.probabilities` by name, with which what is no message is lost; 0 where not given."""
    placement: str | None = None
    """Placement of copies on a cluster, where designs differ in it; None elsewhere. No engine reads it."""

    def p_lost(self, name: str) -> float:
        """The probability of that name, one of `rule.loss_names`."""
        return self.message_loss if name == MESSAGE_LOSS else self.other_losses.get(name, 0.0)

    def with_p_lost(self, name: str, value: float) -> "Point":
        """The point with another probability of that name."""
        if name == MESSAGE_LOSS:
            return self._replace(message_loss=value)
        return self._replace(other_losses={**self.other_losses, name: value})


class Points(NamedTuple):
    """Points as arrays; the first axis is the point."""

    params: np.ndarray  # int64, the leaves of Params
    weights: np.ndarray  # int64, of each of `rule.group_words` and, last, of the end of a lifetime; see Weights
    accepts: np.ndarray  # uint64, likewise
    losses: np.ndarray  # uint64, the probabilities of `rule.loss_names` in units of 2**-63
    max_steps: np.ndarray  # int64
    horizons: np.ndarray  # float64, in the engines' unit of time
    time_units: np.ndarray  # float64, model time of the engines' unit: 2**-32 ln 2 by the weight of rate 1
    starts: Starts = NO_STARTS  # where the runs of all of them start


def alone(points: Points, point: int) -> Points:
    """One point, as place 0; its runs start at the beginning."""
    columns = {name: getattr(points, name)[point : point + 1] for name in Points._fields if name != "starts"}
    return Points(**columns)


def params_at(model: Model, points: Points, point: int) -> Any:
    """`Params` of a point."""
    values = map(int, points.params[point])
    like = smallest_params(model)
    assert len(leaves(like)) == len(like), "Params are not nested"
    return type(like)(*values)


def key(points: Points, point: int) -> tuple[bytes, ...]:
    """Returns a point's key: points with equal keys make the same runs, if these start at the beginning."""
    return tuple(np.asarray(column).tobytes() for column in alone(points, point)[: Points._fields.index("starts")])


def like_losses(losses: Sequence[int]) -> tuple[int, ...]:
    """Returns the losses for which code is made, and runs are observed, in place of these; both in units of 2**-63, in
    the order of `rule.loss_names`."""
    of_messages, *others = losses
    return _like(of_messages), *(_LIKE_MOST if loss >= _MOST else _like(loss) for loss in others)


def _like(loss: int) -> int:
    return next(like for least, like in _LIKE.items() if loss >= least) if loss else 0


def kin(points: Points) -> list[int]:
    """Returns, by point, the first one whose code serves for it, too; they differ in nothing but losses, if at all."""
    first: dict[Any, int] = {}
    alike = points._replace(losses=np.array([like_losses(row) for row in points.losses.tolist()], np.uint64))
    return [first.setdefault(key(alike, point), point) for point in range(len(points.losses))]


class RateError(ValueError):
    """Rates that lie too far apart."""


class Weights(NamedTuple):
    """Rates as integers that an engine chooses by; the last one is that of the end of a lifetime, 0 if there is none.

    A group chosen by its weight is accepted with probability accept / 2**63. If it is not, its wait is over, but
    nothing happens: so a rate below its weight is kept exactly, and so is the distribution of time.
    """

    weights: list[int]
    accepts: list[int]
    unit: Fraction
    """The weight of rate 1."""


def scale_rates(model: Model, rates: Mapping[str, float], lifetime: float = math.inf) -> Weights:
    """Integer weights of a model's actions, and of 1 / lifetime.

    Rates are taken as the decimal numbers that a file or a person wrote. Where they have a common unit that is large
    enough, weights are in exact proportion to them. Else each is exact to one part in 1e9, as far apart as they may
    lie: a weight of few units is rounded up, and accepted in proportion. Raises RateError if one is below 1 / 2e21 of
    all together, each taken as often as a model has room for its groups.
    """
    exact = [_decimal(float(rates.get(action.name, 1.0))) for action in model.actions]
    exact.append(1 / _decimal(float(lifetime)) if lifetime < math.inf else Fraction(0))
    groups = [63 * words for words in _num_group_words(model)] + [1]
    common = math.lcm(*(rate.denominator for rate in exact))
    in_common = [rate.numerator * (common // rate.denominator) for rate in exact]
    divisor = math.gcd(*in_common) or 1
    weights = [each // divisor for each in in_common]
    unit, total = Fraction(common, divisor), sum(map(operator.mul, weights, groups))
    if total < MAX_TOTAL_WEIGHT:
        return Weights(weights, [ALWAYS] * len(exact), unit)
    parts, whole = (total / unit).as_integer_ratio()
    log2_total = math.log2(parts) - math.log2(whole)
    unit = Fraction(2) ** (math.floor(math.log2(MAX_TOTAL_WEIGHT // 2)) - math.ceil(log2_total))
    rounded, accepts = zip(*(_rounded(rate * unit) for rate in exact), strict=True)
    return Weights(list(rounded), list(accepts), unit)


@lru_cache(1 << 12)
def _decimal(number: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(repr(number))


def _rounded(weight: Fraction) -> tuple[int, int]:
    """An integer weight, and the probability to accept it in units of 2**-63."""
    if weight == 0 or weight >= FEWEST_UNITS:
        return round(weight), ALWAYS
    if weight < _LEAST_WEIGHT:
        raise RateError(
            f"less than one part in {float(MAX_TOTAL_WEIGHT // 2 / _LEAST_WEIGHT):.0e} of all rates together"
        )
    return math.ceil(weight), round(weight / math.ceil(weight) * ALWAYS)


def rates_in_force(model: Model, point: Point) -> dict[str, float]:
    """The rates of a point by action; 0 for those that never happen with the parameters that it has."""
    return {
        action.name: point.rates.get(action.name, 1.0) if may_happen(model, action, point.values) else 0.0
        for action in model.actions
    }


def may_happen(model: Model, action: Action, values: Mapping[str, Any]) -> bool:
    """Whether these parameters meet `Action.needs`."""
    return not action.needs or any(values[p.name] != p.default_value for p in needed_parameters(model, action))


def _num_group_words(model: Model) -> list[int]:
    """Returns the number of group words of each action."""
    places = [place for place, _ in group_words(model)]
    return [places.count(place) for place in range(len(model.actions))]


def pack(model: Model, points: Sequence[Point]) -> Points:
    """The arrays of these points. Raises RateError."""
    words, names = (*_num_group_words(model), 1), loss_names(model)
    places: dict[tuple[int, int, float], int] = {}  # points that share their mappings share what follows from these
    first: list[Point] = []
    place = np.empty(len(points), np.int64)
    for i, point in enumerate(points):
        place[i] = places.setdefault((id(point.values), id(point.rates), point.lifetime), len(first))
        if place[i] == len(first):
            first.append(point)
    scaled = [scale_rates(model, rates_in_force(model, point), point.lifetime) for point in first]
    time_units = np.array([LOG2_UNIT * math.log(2.0) * float(each.unit) for each in scaled])[place]
    return Points(
        params=np.array([leaves(model.make_params(point.values)) for point in first], np.int64)[place],
        weights=np.repeat(np.array([each.weights for each in scaled], np.int64), words, axis=1)[place],
        accepts=np.repeat(np.array([each.accepts for each in scaled], np.uint64), words, axis=1)[place],
        losses=np.array(
            [[round(Fraction(point.p_lost(name)) * 2**63) for name in names] for point in points], np.uint64
        ),
        max_steps=np.array([point.max_steps for point in points], np.int64),
        horizons=np.array([point.horizon for point in points]) / time_units,
        time_units=time_units,
    )
