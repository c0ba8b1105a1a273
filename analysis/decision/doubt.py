"""Doubt about a choice, by what is known of the rates: designs are held to the targets at the same draws of them.

That is another error than the computation's interval, and usually the larger one. The two are never mixed.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, ranked
from quorisk.analysis.statistics.known import Z
from quorisk.analysis.statistics.uncertainty import LEVELS, Allowed, DrawnLosses, Figure
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time

SETTLED = 0.95
"""Fraction of the draws with one and the same choice at which nothing is left to learn."""
_WORTH = 0.03
"""Least increase of the fraction of draws with the right choice for which a figure is worth learning."""
_LITTLE = 0.01
"""Fraction of P(any loss in a year) that makes no difference."""
_BINS = 8
_MOST_DESIGNS = 40
_MOST_COUNTED = 10_000
_LEAST_DISTANCE = 0.02
"""Least distance to a flip of the choice, in log units: closer, no count of events decides in a reasonable time."""
_PATIENCE = 3.0
"""Years of counting beyond which a figure cannot be measured in practice."""


class Learn(NamedTuple):
    """The figure that is most worth knowing better."""

    name: str
    gain: float
    """Increase of the fraction of draws with the right choice, if the figure were known."""
    at: float
    """The value at about which the choice flips, in times a year or a trial, as `per` says."""
    events: int
    """Events to count until that is decided."""
    exposure: float
    """The years or trials in which that many events are expected."""
    per: str
    years: float | None
    """Years of watching the whole cluster; 0 if it happens all the time. None if the number of objects with this rate
    is unknown, as without a cluster."""
    remedies: tuple[str, ...] = ()
    """Clauses on changes that make the figure irrelevant."""

    @property
    def is_measurable(self) -> bool:
        """Whether counting decides before the design has to run."""
        return self.years is None or self.years <= _PATIENCE


class Doubt(NamedTuple):
    """Doubt about designs, by their settings."""

    allowed: dict[str, DrawnLosses]
    """Losses that the rates allow of each design whose losses are solved."""
    choice: dict[str, float]
    """Fraction of the draws in which each one is the choice, the most frequent first; empty settings stand for none."""
    less: dict[str, dict[str, float]]
    """Fraction of the draws in which each design loses less than each of the others."""
    learn: Learn | None
    figures: Mapping[str, Figure]
    """Figures that are not known exactly, by name."""
    open: Mapping[str, str] = {}
    """Clauses on why the losses of other designs are not known."""

    def as_json(self) -> dict[str, Any]:
        """Returns an object for `json.dumps`."""
        return {
            "choice": self.choice,
            "loses_less_than": self.less,
            "learn": self.learn._asdict() if self.learn else None,
            "not_known": dict(self.open),
        }


def doubt(found: Sequence[Design], target: float, known: Allowed | None, designs_of: Mapping[str, int]) -> Doubt | None:
    """Returns the doubt about the choice among designs; None if nothing is `known` of how sure figures are.

    Designs whose dependence on these figures is not known have the same losses at each draw. `designs_of` has the place
    of a design in `known.designs`, by point id.
    """
    if known is None:
        return None
    told = [each for each in found if _id(each) in designs_of and not _has_other_losses(each)]
    mine = {each.settings: known.designs[designs_of[_id(each)]] for each in told}
    solved = {name: each for name, each in mine.items() if each is not None}
    why = {each.settings: _open(each, known, designs_of) for each in found if each.settings not in solved}
    if not solved:
        return Doubt({}, {}, {}, None, known.of, why)
    kept = [each for each in found if not each.is_changed][:_MOST_DESIGNS]
    choices = [_chosen_at(kept, target, solved, i) for i in range(len(known.draws.levels))]
    often = {name: times / len(choices) for name, times in Counter(choices).most_common()}
    less = {
        name: {other: float((each.values < its.values).mean()) for other, its in solved.items() if other != name}
        for name, each in solved.items()
    }
    learn = _learn(known, np.array(choices), often)
    if learn:
        learn = learn._replace(remedies=tuple(_sure_designs(kept, target, solved)))
    return Doubt(solved, often, less, learn, known.of, why)


def _sure_designs(found: Sequence[Design], target: float, solved: Mapping[str, DrawnLosses]) -> Iterator[str]:
    """The design that stores least of those that meet the targets whatever the figures are, as far as known."""
    sure = [
        (each.worst.get("stored", 0), -part, each.settings)
        for each in found
        if each.settings in solved and not each.shortfalls()
        if (part := float((solved[each.settings].values <= target).mean())) >= SETTLED
    ]
    if sure and math.isfinite(target):
        _, part, settings = min(sure)
        yield f"{settings} meets the targets in {of_draws(-part)} of the draws, whatever it is"


def tornado_rows(sure: Doubt, settings: str) -> list[dict[str, Any]]:
    """Returns the rows of a design's tornado chart, one for each figure, as `analysis.rates.sensitivity.rows`."""
    rows = []
    for name, power in sure.allowed[settings].powers.items():
        figure = sure.figures[name]
        low, high = (float(end) / figure.value for end in figure.known.quantile(LEVELS))
        row = {"key": name, "name": name, "value": figure.value, "elasticity": power, "low": None, "high": None}
        ends = {"at_low": low**power, "at_high": high**power, "ends": f"× {low:.2g} to × {high:.3g}", "stated": True}
        rows.append(row | ends)
    return rows


def _id(design: Design) -> str:
    return str(design.worst.get("parts", [design.worst])[0]["point_id"])


def _has_other_losses(design: Design) -> bool:
    """Whether many of its losses are in scenarios that its cluster does not count, with unknown doubt."""
    return design.is_clustered and design.worst["any_loss"] < (1.0 - _LITTLE) * design.worst["p"]


def _open(design: Design, known: Allowed, designs_of: Mapping[str, int]) -> str:
    """Reason why it is not known how a design's losses depend on uncertain figures; empty if they do not."""
    if _has_other_losses(design):
        return "much of what it loses comes in scenarios beside its cluster"
    if design.is_proved:
        return ""
    scenario = known.unsolved.get(designs_of.get(_id(design), -1), "")
    where = f' in "{text.cause(scenario)}"' if scenario else ""
    return f"its losses{where} were sampled or bounded, not solved exactly"


def _chosen_at(found: Sequence[Design], target: float, solved: Mapping[str, DrawnLosses], draw: int) -> str:
    """The design that is chosen at a draw; designs whose losses are not solved keep theirs."""
    there = []
    for each in found:
        worst = each.worst
        if each.settings in solved:
            value = float(solved[each.settings].values[draw])
            worst = worst | {"p": value, "low": value, "high": value}
        there.append(each._replace(points=[worst], worst=worst))
    return verdict.chosen(ranked(there), target)


def _learn(known: Allowed, choices: np.ndarray, often: Mapping[str, float]) -> Learn | None:
    """The figure to learn next: its value shows most often which design is to be chosen. None if none is worth it."""
    usual, part = next(iter(often.items()))
    if part >= SETTLED:
        return None
    gains = {}
    for place, name in enumerate(known.draws.names):
        bins = np.minimum((known.draws.levels[:, place] * _BINS).astype(int), _BINS - 1)
        right = sum(max(Counter(choices[bins == each].tolist()).values(), default=0) for each in range(_BINS))
        gains[name] = right / len(choices) - part
    name = max(gains, key=lambda each: gains[each])
    if gains[name] < _WORTH:
        return None
    figure, levels = known.of[name], known.draws.levels[:, known.draws.names.index(name)]
    return _counted(name, gains[name], figure, _split(levels, choices == usual))


def _split(levels: np.ndarray, usual: np.ndarray) -> float:
    """The level that best parts draws with the usual choice from the others."""
    order = np.argsort(levels)
    below = np.concatenate([[0], np.cumsum(usual[order])])
    right = below + (len(usual) - np.arange(len(usual) + 1)) - (below[-1] - below)  # usual below, others above
    best = int(np.argmax(np.maximum(right, len(usual) - right)))
    return float(levels[order[min(best, len(usual) - 1)]])


def _counted(name: str, gain: float, figure: Figure, level: float) -> Learn:
    at = float(figure.known.quantile(level)) / figure.value * figure.often
    distance = max(abs(math.log(at / figure.often)), _LEAST_DISTANCE)
    events = math.ceil((Z / distance) ** 2)
    exposure = events / figure.often
    years = exposure / figure.a_year if figure.a_year else None
    return Learn(name, gain, at, events, exposure, figure.per, years)


def doubt_sentences(found: Doubt, chosen: str, unit: str, is_named: bool = True) -> list[str]:
    """Returns sentences on the doubt about a choice; `unit` is the measure, such as "losses a year". `is_named`: a
    sentence before these names the design."""
    it, of_it = ("It", "") if is_named else (chosen, f" of {chosen}")
    if chosen and chosen not in found.allowed:  # at all draws its losses are as they are
        why = found.open.get(chosen)
        return [f"How much the doubt about rates matters to {unit}{of_it} is not known: {why}."] if why else []
    said = []
    if chosen:
        mine = found.allowed[chosen]
        ends = numbers.between(numbers.below(mine.low), numbers.above(mine.high))
        most = max(mine.shares, key=lambda name: mine.shares[name])
        said.append(
            f"Given how well the rates are known, {unit}{of_it} may be {ends} (nine times in ten); "
            f"{numbers.share(round(mine.shares[most], 2))} of that doubt comes from {most}."
        )
    part = found.choice.get(chosen, 0.0)
    other = next((name for name in found.choice if name != chosen), None)
    if chosen and len(found.allowed) > 1:
        instead = "" if other is None else f", and {other or 'none'} in {of_draws(found.choice[other])}"
        said.append(f"{it} is the choice in {of_draws(part)} of the draws from what is known of the rates{instead}.")
    return [*said, *([learned(found.learn)] if found.learn else [])]


def of_draws(part: float) -> str:
    """Returns a part of the draws in whole percents: others, as many, would give one or two more or less."""
    if 0.01 <= part < 0.995:
        return numbers.share(round(part, 2))
    return "less than 1%" if part < 0.01 else "all" if part == 1.0 else "nearly all"


def learned(each: Learn) -> str:
    """Returns a sentence or two on the next figure to measure and the time it takes, or on changes that make it
    irrelevant."""
    events = numbers.counted(each.events, "event") if each.events < _MOST_COUNTED else f"{each.events:.2g} events"
    where = f"on which side of {numbers.plain(each.at, 2)} a {each.per} {each.name} lies, where the choice changes"
    if each.years is None:
        takes = f"{numbers.plain(each.exposure, 2)} {'trials' if each.per == 'trial' else f'{each.per}s of it'}"
        takes = takes.replace("unit of times of it", "units of time")
    else:
        takes = f"{say_time(float(f'{each.years * YEAR_S:.2g}'))} of this cluster" if each.years else "a day's metrics"
    if each.is_measurable:
        return f"Measure {each.name} next: about {events}, in {takes}, would show {where}."
    remedies = f" What makes it not matter: {'; '.join(each.remedies)}." if each.remedies else ""
    return f"Nobody can measure {where}: it would take about {events}, in {takes}.{remedies}"
