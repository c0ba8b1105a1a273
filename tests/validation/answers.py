"""Checks of answers: what counting and heads say of random configurations, against what is exact."""

import random
from typing import Any, NamedTuple

from scipy.stats import binom, chi2

from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.kernels.errors import ConfigError, QuoriskError
from quorisk.kernels.model import MESSAGE_LOSS, Model, loses_messages
from quorisk.kernels.protocols import registry
from quorisk.kernels.rule import loss_names
from tests.support import any_values
from tests.validation.page import Check

RUNS, CONFIDENCE = 20_000, 0.95
FEWEST = 10
"""Runs that are to break an invariant, and not to break it: of a rarer one every interval holds the answer."""
MOST_STATES, MEMORY = 20_000, 1 << 29
BY_CHANCE = 1e-3
"""What is as unlikely as that is none."""


class Interval(NamedTuple):
    """An answer, and the exact one."""

    told: str
    p: float
    share: float
    """Of runs; of heads, what they say it is."""
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low * (1 - 1e-9) <= self.p <= self.high * (1 + 1e-9)

    @property
    def squared(self) -> float:
        """The deviation of counted runs, in variances."""
        return (self.share - self.p) ** 2 * RUNS / (self.p * (1 - self.p))


def answers(quick: bool, count: int, seed: int) -> Check:
    """`count` configurations of every protocol, by runs and by heads."""
    rows, fails, least = list[tuple[str, ...]](), list[str](), 1.0
    for name in ["compaction"] if quick else registry.names():
        chance, model = random.Random(f"{name} {seed}"), registry.load(name)
        by_method: dict[str, list[Interval]] = {"count": [], "head": []}
        while len(by_method["count"]) < count:
            if (found := solved(model, chance)) is None:
                continue
            given, (invariant, p) = found
            try:
                pair = [estimated(given, method, invariant, p, chance.randrange(1 << 31)) for method in by_method]
            except ConfigError as error:
                if "too few: in" not in str(error):  # too little room for records that are written all the time
                    raise
                continue
            for intervals, interval in zip(by_method.values(), pair, strict=True):
                intervals.append(interval)
            print(f"{name}: {len(by_method['count'])} configurations", flush=True)
        for method, intervals in by_method.items():
            missed = [each for each in intervals if not each.holds]
            odds = [float(binom.sf(len(missed) - 1, count, 1 - CONFIDENCE))]
            if method == "count":
                odds.append(float(chi2.sf(sum(each.squared for each in intervals), count)))
            least = min(least, *odds)
            fails += [f"{each.told}: {each.p} is not in {each.low} to {each.high}" for each in missed]
            cells = [f"{each:.3g}" for each in odds]
            rows.append((name, method, str(count), str(len(missed)), *cells, *["–"] * (2 - len(cells))))
    told = f" Missed: {'; '.join(fails)}." if fails and least < BY_CHANCE else ""
    return Check(
        "Random configurations, against exact answers",
        f"Configurations of random sizes, variants, rates, losses and lifetimes with {MOST_STATES:,} states at most, "
        f"drawn anew until there are {count} of each protocol, with room for what is written, "
        "of which some invariant, or data loss, breaks in some "
        f"{FEWEST} of {RUNS:,} runs, and does not break in as many. One such invariant of each is drawn. Runs alone "
        f"(`count`), and with the likeliest paths solved (`head`), give an interval of {CONFIDENCE:.0%}, and `exact` "
        "says what it should hold. The columns after the misses say how likely as many or more are if each interval "
        "holds its answer as often as it should, and how likely the runs' shares are as far from the answers, or "
        "farther, all together (chi-square).",
        ("protocol", "method", "configurations", "intervals that miss", "as many misses by chance", "as far by chance"),
        rows,
        f"nothing is less likely than {BY_CHANCE:g}; the least is {least:.2g}.{told}",
        least >= BY_CHANCE,
    )


def solved(model: Model, chance: random.Random) -> tuple[Experiment, tuple[str, float]] | None:
    """A random experiment, and what is exactly so likely in it; None if it is too large, or nothing is told by runs."""

    def stop(states: int, *_: float) -> None:
        if states > MOST_STATES:
            raise TimeoutError

    experiment = random_experiment(model, chance, small=chance.random() < 0.5)
    if experiment is None:
        return None
    try:
        truth = exact(experiment, MEMORY, progress=stop)
    except (QuoriskError, TimeoutError):
        return None
    all_of_them = {DATA_LOSS: truth.data_loss} | truth.invariants
    some = FEWEST / RUNS
    telling = [(name, each.p) for name, each in all_of_them.items() if some < each.p < 1 - some]
    return (experiment, chance.choice(telling)) if telling else None


def random_experiment(model: Model, chance: random.Random, small: bool = False) -> Experiment | None:
    """An experiment of one point, if `small` of at most the sizes of `Cases.small`; None if what was drawn is none."""
    values = any_values(model, chance)
    for name, most in registry.cases(model.name).small.items() if small else ():
        values[name] = min(values[name], most)
    document: dict[str, Any] = {"protocol": model.name, "model": {}, "variant": {}, "faults": {}}
    for parameter in model.parameters:
        document[parameter.table][parameter.name] = values[parameter.name]
    for name in loss_names(model):
        if name != MESSAGE_LOSS or loses_messages(model):
            document["faults"][name] = chance.choice([0.0, 0.0, 0.1, 0.4])
    # no two rates are alike, so that no two actions can change places
    document["rates"] = {
        action.name: round(0.05 + 3.0 * chance.random(), 3) for action in model.actions if chance.random() < 0.9
    }
    document["run"] = {"lifetime": chance.choice([1.0, 10.0, 100.0])}
    try:
        return config.build_experiment(document, "a random configuration")
    except QuoriskError:
        return None


def estimated(experiment: Experiment, method: str, invariant: str, p: float, seed: int) -> Interval:
    """What a method says of an invariant whose exact answer is `p`."""
    run = experiment.run._replace(runs=RUNS, seed=seed, method=method, engine="numba", confidence=CONFIDENCE)
    found = estimate(experiment._replace(run=run), 1, memory_bytes=MEMORY)
    risk = found.data_loss if invariant == DATA_LOSS else found.invariants[invariant]
    return Interval(f"{invariant} of {experiment.points[0].point}", p, risk.p, risk.low, risk.high)
