"""The servers of an experiment, of whatever kind."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.reality.judge import Reading
from tests.reality.load import numbers_in
from tests.reality.machines import Machine

if TYPE_CHECKING:
    from tests.reality.experiments import Experiment

PATIENCE_S = 60.0
"""How long servers may take to answer; a cluster that does not, for as long after its power is back, is an outcome."""


class Cluster(ABC):
    """Servers of one kind on machines of their own."""

    servers = 3
    in_a_room = 1
    """Trials that follow each other on the same servers, each with another log."""

    def __init__(self, root: Path, experiment: "Experiment") -> None:
        self.experiment, self.settings = experiment, experiment.settings
        self.machines = [Machine(root, index) for index in range(self.servers)]
        for machine in self.machines:
            self.configure(machine)

    def begin(self, rng: Random) -> None:
        """Starts everything, and makes the log that is written to.

        Raises:
            RuntimeError: if it does not come up within 3 PATIENCE_S.
        """
        for machine in self.machines:
            machine.start()
        if not within(3 * PATIENCE_S, self.make_log):
            raise RuntimeError("the cluster does not come up")

    @staticmethod
    @abstractmethod
    def programs(version: str) -> list[str]:
        """The programs that have to be installed, by name."""

    @abstractmethod
    def configure(self, machine: Machine) -> None:
        """Says how the machine's server is started, and writes its configuration."""

    @abstractmethod
    def make_log(self) -> bool:
        """Makes the log that messages go to, and returns whether it is there."""

    def renew(self) -> bool:
        """Another log takes the place of the last trial's; False where each trial takes new servers."""
        return False

    @abstractmethod
    def write(self, number: int, message: bytes) -> None:
        """Writes a message; raises an error unless it is acknowledged."""

    @abstractmethod
    def read_all(self) -> Reading:
        """What is there now, as far as it can be read."""

    @abstractmethod
    def leader(self) -> int | None:
        """The index of the machine that leads, if any does."""

    def whole(self) -> bool:
        """Whether all servers have all of the log, as far as they say so."""
        return self.leader() is not None

    def read(self) -> Reading:
        """Everything that is there as soon as it can be read; else the most that could be within PATIENCE_S."""
        best = Reading((), False)

        def tried() -> bool:
            nonlocal best
            best = max(best, self.read_all(), key=lambda reading: (reading.complete, len(reading.messages)))
            return best.complete

        within(PATIENCE_S, tried)
        return best

    def on_disk(self) -> set[int]:
        """The numbers of the messages that are on some machine's disk."""
        files = (file for machine in self.machines for file in machine.disk.rglob("*") if file.is_file())
        return set().union(*(numbers_in(file.read_bytes()) for file in files))

    def led_by(self) -> Machine:
        """The machine that leads.

        Raises:
            RuntimeError: if none does within PATIENCE_S.
        """
        found: int | None = None

        def leads() -> bool:
            nonlocal found
            found = self.leader()
            return found is not None

        if not within(PATIENCE_S, leads) or found is None:
            raise RuntimeError("no leader")
        return self.machines[found]


def within(patience_s: float, done: Callable[[], bool]) -> bool:
    """Whether `done` was true, without an error, within so many seconds."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        try:
            if done():
                return True
        except Exception:  # a cluster that is not up has as many ways to say so as there are clients
            pass
        time.sleep(0.2)
    return False
