"""Scope of an experiment's numbers: the subject and the limits that a report states beside them."""

from quorisk.analysis.experiment.config import Experiment
from quorisk.analysis.experiment.placed import Placed
from quorisk.analysis.experiment.scenarios import Scenario
from quorisk.kernels.protocols import registry
from quorisk.say.scope import ScenarioWords, Scope

_LEFT_OUT_OF_LATENCY = (
    "Round trips are independent of each other: whatever slows all copies down at once, such as a switch or the "
    "writer's garbage collection, is not included.",
    "All copies are up: the time that a write waits for a dead copy is not included.",
)


def scope_of(experiment: Experiment) -> Scope:
    """Returns the scope of an experiment: the model's own list, its scenarios, and where its latencies come from."""
    latency, some = experiment.tables.get("latency"), next(iter(experiment.clusters), None)
    return Scope(
        limits=experiment.model.limits,
        scenarios=tuple(_told(name, each, some) for name, each in experiment.scenarios.items()),
        latency=(f"Write latency is computed from {latency.source}.", *_LEFT_OUT_OF_LATENCY) if latency else (),
        settings=tuple(
            (each.names.replace("`", ""), each.key.replace("`", ""), each.note.replace("`", ""))
            for each in registry.settings(experiment.protocol)
        ),
        profile=f"{experiment.profile.name}: {experiment.profile.about}" if experiment.profile else "",
    )


def _told(name: str, scenario: Scenario, placed: Placed | None) -> ScenarioWords:
    event = scenario.event(placed)
    simplifications = tuple(f"{said.rstrip('.')}." for said in scenario.simplifications)
    return ScenarioWords(name, event.per_year, scenario.about, simplifications, event.hits)
