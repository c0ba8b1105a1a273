"""How sure a choice is, by what is known of the rates: designs held to the targets at the same draws of them.

That is another error than the computation's interval, and usually the larger one. The two are never mixed.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import Design, ranked
from quorisk.analysis.statistics.allowed import LEVELS, Allowed, Figure
from quorisk.analysis.statistics.allowed import Design as Known
from quorisk.analysis.statistics.known import Z
from quorisk.say import numbers, text
from quorisk.say.quantities import YEAR_S, say_time

SURE = 0.95
"""A part of the draws in which a design is the choice that leaves nothing to learn."""
_WORTH = 0.03
"""A figure is worth learning if knowing it makes the choice right in so many more of the draws."""
_LITTLE = 0.01
"""A part of P(any loss in a year) that makes no difference."""
_BINS = 8
_MOST_DESIGNS = 40
_MOST_COUNTED = 10_000
_LEAST_DISTANCE = 0.02
"""In log units: closer to where the choice flips, no count of events decides in a reasonable time."""
_PATIENCE = 3.0
"""Years of counting after which a figure is one that nobody can measure."""


class Learn(NamedTuple):
    """The figure that is most worth knowing better."""

    name: str
    gain: float
    """In so many more of the draws the choice would be right, if the figure were known."""
    at: float
    """The choice flips about there, in times a year or a trial, as `per` says."""
    events: int
    """Events to count until that is decided."""
    exposure: float
    """The years or trials in which so many are expected."""
    per: str
    years: float | None
    """How long that takes in a cluster all of which is watched; 0 if it happens all the time. None without a cluster,
    as nobody knows how many there are of what has the rate."""
    remedies: tuple[str, ...] = ()
    """What makes it not matter: clauses."""

    @property
    def is_measurable(self) -> bool:
        """Whether counting decides before the design has to run."""
        return self.years is None or self.years <= _PATIENCE


class Doubt(NamedTuple):
    """What is known of designs, by their settings."""

    allowed: dict[str, Known]
    """What each of them loses, by what is known; those whose losses are solved."""
    choice: dict[str, float]
    """In which part of the draws each one is the choice, the most often first; of none the settings are empty."""
    less: dict[str, dict[str, float]]
    """In which part of them each design loses less than each of the others."""
    learn: Learn | None
    figures: Mapping[str, Figure]
    """By name, those that are not known exactly."""
    open: Mapping[str, str] = {}
    """Why it is not known what others of them may lose: a clause."""

    def as_json(self) -> dict[str, Any]:
        """Returns what `json.dumps` takes."""
        return {
            "choice": self.choice,
            "loses_less_than": self.less,
            "learn": self.learn._asdict() if self.learn else None,
            "not_known": dict(self.open),
        }


def doubt(found: Sequence[Design], target: float, known: Allowed | None, designs_of: Mapping[str, int]) -> Doubt | None:
    """Returns how sure the choice among designs is; None if nothing is said of how well figures are known.

    Designs of which it is not known how their losses depend on these figures lose at each draw what they lose.
    `designs_of` says by point id which of `known.designs` it is.
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


def _sure_designs(found: Sequence[Design], target: float, solved: Mapping[str, Known]) -> Iterator[str]:
    """The design that stores least of those that meet the targets whatever the figures are, as far as known."""
    sure = [
        (each.worst.get("stored", 0), -part, each.settings)
        for each in found
        if each.settings in solved and not each.shortfalls()
        if (part := float((solved[each.settings].values <= target).mean())) >= SURE
    ]
    if sure and math.isfinite(target):
        _, part, settings = min(sure)
        yield f"{settings} meets the targets in {of_draws(-part)} of the draws, whatever it is"


def tornado(sure: Doubt, settings: str) -> list[dict[str, Any]]:
    """Returns what a tornado of a design shows: a row for each figure, as `analysis.rates.sensitivity.rows`."""
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
    """Whether much of what it loses comes beside its cluster, in scenarios whose doubt is not known."""
    return design.is_clustered and design.worst["any_loss"] < (1.0 - _LITTLE) * design.worst["p"]


def _open(design: Design, known: Allowed, designs_of: Mapping[str, int]) -> str:
    """Why it is not known how a design's losses depend on what is not known exactly; empty if they do not."""
    if _has_other_losses(design):
        return "much of what it loses comes in scenarios beside its cluster"
    if design.is_proved:
        return ""
    scenario = known.unsolved.get(designs_of.get(_id(design), -1), "")
    where = f" in {text.cause(scenario)}" if scenario else ""
    return f"what it loses{where} was counted or bounded, and not solved"


def _chosen_at(found: Sequence[Design], target: float, solved: Mapping[str, Known], draw: int) -> str:
    """The design that is chosen at a draw; those of which nothing is known lose what they lose."""
    there = []
    for each in found:
        worst = each.worst
        if each.settings in solved:
            value = float(solved[each.settings].values[draw])
            worst = worst | {"p": value, "low": value, "high": value}
        there.append(each._replace(points=[worst], worst=worst))
    return verdict.chosen(ranked(there), target)


def _learn(known: Allowed, choices: np.ndarray, often: Mapping[str, float]) -> Learn | None:
    """What to learn next: the figure whose value tells most often which design is to be chosen."""
    usual, part = next(iter(often.items()))
    if part >= SURE:
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


def sentences(found: Doubt, chosen: str, unit: str, is_named: bool = True) -> list[str]:
    """Returns how sure a choice is, in words; `unit` is what designs lose: "losses a year". `is_named`: what is said
    before names the design."""
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
    others = [name or "none" for name in found.choice if name != chosen]
    if chosen and len(found.allowed) > 1:
        instead = f", and {others[0]} in {of_draws(found.choice.get(others[0], 0.0))}" if others else ""
        said.append(f"{it} is the choice in {of_draws(part)} of the draws from what is known of the rates{instead}.")
    return [*said, *([learned(found.learn)] if found.learn else [])]


def of_draws(part: float) -> str:
    """Returns a part of the draws in whole percents: others, as many, would give one or two more or less."""
    if 0.01 <= part < 0.995:
        return numbers.share(round(part, 2))
    return "less than 1%" if part < 0.01 else "all" if part == 1.0 else "nearly all"


def learned(each: Learn) -> str:
    """Returns what to measure next and how long that takes, or what makes it not matter: a sentence or two."""
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
