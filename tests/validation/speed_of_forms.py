"""Steps a second of two-phase commit in its two forms, with declared fields and by bits, by turns on one thread.

    python -m tests.validation.speed_of_forms lanes numba

Seconds are the process's processor time. It prints the median round of each form, and the ratio.
"""

import statistics
import sys
import time

from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.model import Model
from tests import two_phase
from tests.two_phase import by_bits

ROUNDS, RUNS, WARM_UP = 7, 60_000, 1 << 22
FORMS = (two_phase.MODEL, by_bits.MODEL)
SIZES = (
    {"participants": 3, "max_crashes": 1, "force_before_telling": 0},
    {"participants": 6, "max_crashes": 3, "force_before_telling": 1},
)


def measured(engine: str, model: Model, values: dict[str, int], num_runs: int) -> float:
    """Steps a second of so many runs."""
    rates = {action.name: 0.1 if action.name == "crash" else 1.0 for action in model.actions}
    points = pack(model, [Point(values, rates, 0.1, 10_000, float("inf"))])
    start = time.process_time()
    tally = engine_of(engine).simulate(model, points, [Job(0, 0, num_runs)], 0, 1)[0]
    return float(tally[STEPS]) / (time.process_time() - start)


def main(engines: list[str]) -> None:
    """Prints a line for each engine and size."""
    for engine in engines:
        runs = RUNS if engine == "numba" else 10 * RUNS
        for values in SIZES:
            for model in FORMS:
                measured(engine, model, values, 1 if engine == "numba" else WARM_UP)  # compiles; lanes take over
            rounds = [[measured(engine, model, values, runs) for model in FORMS] for _ in range(ROUNDS)]
            declared, bits = (statistics.median(speeds) / 1e6 for speeds in zip(*rounds, strict=True))
            print(
                f"{engine}, {values['participants']} participants: {declared:.1f} million steps a second declared, "
                f"{bits:.1f} by bits: {declared / bits:.2f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:] or ["lanes", "numba"])
