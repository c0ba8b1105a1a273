"""Steps a second of protocols' random runs beside each other: one process, one thread, by turns.

    python tests/validation/speed_by_turns.py raft kraft
    python tests/validation/speed_by_turns.py kraft kraft:continuous_writes=true

The models are those of `quorisk bench`, with keys of `model` changed where they are given. Seconds are the process's
processor time, so that other work on the machine counts for little, and rounds alternate, so that what is left of it
hits all protocols alike. It prints the median round and the fastest, for one thread of the engine "numba".
"""

import statistics
import sys
import time
import tomllib

from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.registry import engine_of
from quorisk.kernels.engines.tally import STEPS
from quorisk.kernels.protocols import registry

ROUNDS, ROUND_S = 7, 0.4


def experiment_of(given: str) -> Experiment:
    """A protocol's experiment of `quorisk bench`, with keys of its model changed: PROTOCOL:KEY=VALUE:KEY=VALUE."""
    protocol, *changed = given.split(":")
    tables = registry.cases(protocol).bench
    assert tables is not None
    model = {**tables["model"], **tomllib.loads("\n".join(changed))}
    return config.build_experiment({"protocol": protocol, **tables, "model": model}, f"bench of {given}")


def main(protocols: list[str]) -> None:
    """Prints a line for each protocol."""
    engine = engine_of("numba")
    experiments = {protocol: experiment_of(protocol) for protocol in protocols}

    def measured(protocol: str, num_runs: int) -> tuple[float, float, float]:
        """Steps a second, runs a second and processor time in seconds."""
        model, (point, *_) = experiments[protocol].model, experiments[protocol].points
        start = time.process_time()
        tally = engine.simulate(model, pack(model, [point.point]), [Job(0, 0, num_runs)], 0, 1)[0]
        seconds = time.process_time() - start
        return float(tally[STEPS]) / seconds, num_runs / seconds, seconds

    num_runs = dict.fromkeys(protocols, 1 << 10)
    for protocol in protocols:
        measured(protocol, 1)  # compiles
        while (round_s := measured(protocol, num_runs[protocol])[2]) < ROUND_S / 4:
            num_runs[protocol] *= 2
        num_runs[protocol] = round(num_runs[protocol] * ROUND_S / round_s)
    rounds = [{protocol: measured(protocol, num_runs[protocol]) for protocol in protocols} for _ in range(ROUNDS)]
    for protocol in protocols:
        steps_per_s, runs_per_s, _ = zip(*(each[protocol] for each in rounds), strict=True)
        middle, best = statistics.median(steps_per_s), max(steps_per_s)
        print(
            f"{protocol}: {middle / 1e6:.2f} million steps a second (fastest round {best / 1e6:.2f}), "
            f"{statistics.median(runs_per_s):,.0f} runs a second"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["raft", "kraft"])
