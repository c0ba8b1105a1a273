"""What an experiment's numbers are about, and what they leave out: what a report says beside them."""

from quorisk.analysis.decision.latency import LEFT_OUT
from quorisk.analysis.experiment.config import Experiment
from quorisk.kernels.protocols import registry
from quorisk.say.scope import Scope, Told


def scope_of(experiment: Experiment) -> Scope:
    """Returns the scope of an experiment: the model's own list, its scenarios, and where its latencies come from."""
    latency = experiment.tables.get("latency")
    return Scope(
        limits=experiment.model.limits,
        scenarios=tuple(
            Told(name, each.per_year, each.about, tuple(f"{said.rstrip('.')}." for said in each.simplifications))
            for name, each in experiment.scenarios.items()
        ),
        latency=(f"Write latency is computed from {latency.source}.", *LEFT_OUT) if latency else (),
        settings=tuple(
            (each.names.replace("`", ""), each.key.replace("`", ""), each.note.replace("`", ""))
            for each in registry.settings(experiment.protocol)
        ),
        profile=f"{experiment.profile.name}: {experiment.profile.about}" if experiment.profile else "",
    )
