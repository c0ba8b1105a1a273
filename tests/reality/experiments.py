"""The experiments of experiments.toml, and what Quorisk says of them before their servers start."""

import importlib
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from tests.reality.servers.cluster import Cluster

HERE = Path(__file__).parent
SYSTEMS = {
    "nats": ("Nats", "2.15.1"),
    "etcd": ("Etcd", "3.5.1"),
    "kafka": ("Kafka", "4.4.0"),
    "bookkeeper": ("BookKeeper", "4.17.2"),
}
"""The class of each kind's servers, and their version unless an experiment says another."""


class Prediction(NamedTuple):
    """What a fault takes of acknowledged messages."""

    p: float
    """P(it takes any)."""
    low: float
    high: float
    oldest_lost_s: float
    """The mean age of the oldest one; 0 where nothing is lost."""
    by: str


class Experiment(NamedTuple):
    """A table of experiments.toml, whose comment says what its keys are."""

    system: str
    about: str
    fault: dict[str, Any]
    version: str
    settings: dict[str, Any] = {}  # noqa: RUF012
    load_s: float = 3.0
    period_s: float = 1.0
    pause_s: float = 0.01
    predicted: dict[str, Any] = {}  # noqa: RUF012
    why: str = ""

    def cluster(self) -> type[Cluster]:
        """The class of its servers."""
        module = importlib.import_module(f"tests.reality.servers.{self.system}")
        found: type[Cluster] = getattr(module, SYSTEMS[self.system][0])
        return found


def experiments() -> dict[str, Experiment]:
    """All experiments by name. One with several `versions` is as many, with the version in their names."""
    found = {}
    for name, table in tomllib.loads((HERE / "experiments.toml").read_text()).items():
        versions = table.pop("versions", None)
        for version in versions or [SYSTEMS[table["system"]][1]]:
            found[f"{name}_{version}" if versions else name] = Experiment(**table, version=version)
    return found


def predicted(name: str) -> Prediction:
    """P(the fault takes any acknowledged message), and the mean age of the oldest one, by Quorisk or by hand."""
    said = experiments()[name].predicted
    p: Any = said.get("p")  # none where the answer is to be taken as it is
    if "file" not in said:
        return Prediction(said["p"], said["p"], said["p"], said["oldest_lost_s"], f"by hand: {said['by']}")
    import quorisk

    answer = getattr(quorisk, said["verb"])(HERE / "predictions" / f"{said['file']}.toml", said["set"]).data_loss
    changed = " ".join(f"--set {key}={value!r}" for key, value in said["set"].items())
    by = f"quorisk {said['verb']} {said['file']}.toml {changed}"
    if p is None:
        return Prediction(answer.p, answer.low, answer.high, said["oldest_lost_s"], by)
    if answer.p == 0.0:
        return Prediction(0.0, 0.0, getattr(answer, "high", 0.0), 0.0, by)
    return Prediction(p, p, p, answer.p * said["mean_s"], by)
