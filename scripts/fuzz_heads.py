"""Compares heads, which keep one state of all that go on alike, with exact answers, which keep them apart.

    python scripts/fuzz_heads.py 100 1 --protocol bookkeeper

solves 100 configurations drawn by seed 1 both ways: every invariant's probability has to be the same in ten digits.
Configurations with more states than `--states` are passed over.
"""

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.errors import QuoriskError
from quorisk.kernels.model import MESSAGE_LOSS, Model, loses_messages
from quorisk.kernels.protocols import registry
from quorisk.kernels.rule import loss_names
from quorisk.kernels.states.head import Head
from tests.support import any_values

MEMORY = 1 << 29
CLOSE = 1e-10
"""How far two answers may be apart, relative to them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="configurations of each protocol")
    parser.add_argument("seed", type=int)
    parser.add_argument("--states", type=int, default=100_000, help="the most states of a chain")
    parser.add_argument("--protocol", action="append", help="only this one")
    given = parser.parse_args()
    failed = 0
    for name in given.protocol or registry.names():
        model, chance, start = registry.load(name), random.Random(f"{name} {given.seed}"), time.monotonic()
        solved = kept = states = 0
        while solved < given.count:
            experiment = random_experiment(model, chance)
            found = compared(experiment, given.states) if experiment else None
            if found is None:
                continue
            solved, states, kept = solved + 1, states + found[0], kept + found[1]
            failed += found[2]
            print(f"{name}: {solved} solved, {failed} differ", end="\r", file=sys.stderr, flush=True)
        print(f"{name}: {solved} solved, {states:,} states, {kept:,} in heads; {time.monotonic() - start:.0f} s")
    print(f"{failed} differ")
    sys.exit(failed > 0)


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
        return config.build(document, "scripts/fuzz_heads.py")
    except QuoriskError:
        return None


def compared(experiment: Experiment, most_states: int) -> tuple[int, int, bool] | None:
    """States of the chain and of the head, and whether they differ; None if the chain is too large."""

    def stop(states: int, *_: float) -> None:
        if states > most_states:
            raise TimeoutError

    try:
        truth = exact(experiment, MEMORY, progress=stop)
    except (QuoriskError, TimeoutError):
        return None
    point = experiment.points[0].point
    head = Head(experiment.model, point, MEMORY)
    while head.grow(1 << 40):
        pass
    solved = head.solve()
    if solved is None or not solved.complete:
        return None
    pairs = {"data loss": (solved.lost, truth.data_loss.p)}
    pairs |= {name: (solved.broken[name][0], found.p) for name, found in truth.invariants.items()}
    wrong = {name: pair for name, pair in pairs.items() if abs(pair[0] - pair[1]) > CLOSE * pair[1]}
    if wrong:
        print(f"differ: {wrong} {point}", flush=True)
    return truth.states, solved.states, bool(wrong)


if __name__ == "__main__":
    main()
