"""The probability that a replicated log loses acknowledged data.

In Python and notebooks, you can ask the same questions as on the command line, and get the same answers:

    import quorisk

    experiment = quorisk.load_experiment("configs/defect1.toml")
    quorisk.estimate(experiment)                              # by random runs
    quorisk.exact(experiment)                                 # by the whole Markov chain
    quorisk.runs(experiment, {"run.runs": 10_000})            # those runs one by one, for a statistic of your own
    quorisk.year("configs/pulsar.toml", {"write_quorum": 2, "ack_quorum": 2, "bookies": 3})  # losses a year
    quorisk.recommend("configs/pulsar.toml")                  # which design to run
    quorisk.cluster("configs/cluster.toml")                   # P(any loss in a year) of a cluster, and what it loses
    quorisk.sensitivity(experiment)                           # what losses depend on
    quorisk.explore(experiment)                               # every reachable state
    quorisk.compare(experiment, {"variant.fence_recovery_reads": [True, False]})
    quorisk.trace(experiment)                                 # how it breaks, step by step
    quorisk.sweep("configs/demo.toml", "results/demo")        # a grid, on Spark
    quorisk.load("results/demo").loss()                       # a figure of a sweep's results
    quorisk.rates("drive_stats").write("profiles/ours.toml")  # a profile, from data

Nothing heavy is imported before it is needed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorisk.api import cluster, compare, estimate, exact, explore, recommend, runs, sensitivity, trace, year
    from quorisk.given import load_experiment
    from quorisk.kernels.errors import ConfigError, EngineError, ModelError, QuoriskError, ResultError, RunError
    from quorisk.on_spark import load, rates, sweep

__all__ = [
    "ConfigError",
    "EngineError",
    "ModelError",
    "QuoriskError",
    "ResultError",
    "RunError",
    "cluster",
    "compare",
    "estimate",
    "exact",
    "explore",
    "load",
    "load_experiment",
    "rates",
    "recommend",
    "runs",
    "sensitivity",
    "sweep",
    "trace",
    "year",
]
_ELSEWHERE = {"load_experiment": "given", "load": "on_spark", "rates": "on_spark", "sweep": "on_spark"}
"""Modules of the functions that are not in `quorisk.api`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'quorisk' has no attribute {name!r}")
    from importlib import import_module

    module = "kernels.errors" if name.endswith("Error") else _ELSEWHERE.get(name, "api")
    return getattr(import_module(f"quorisk.{module}"), name)


def __dir__() -> list[str]:
    return __all__
