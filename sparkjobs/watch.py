"""The log of a run for people who look back: lines with the time, kept apart from Spark's own."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext

from quorisk.sparkjobs.files import logging_to
from quorisk.sparkjobs.run import Done

LOG = logging.getLogger("quorisk")


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Appends LOG's messages in the body to a file, as lines with the time. A full disk stops no run."""
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
    with logging_to(path, LOG) as handler:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        handler.handleError = lambda record: None  # type: ignore[method-assign]
        yield


class Watch:
    """Logs executors that come and go, and tasks that took more than one attempt."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._told: set[tuple[str, bool]] = set()

    def poll(self, done: Sequence[Done]) -> None:
        for each in done:
            if each.attempt:
                LOG.warning("point %d, runs from %d on: attempt %d ended on %s", *each.job[:2], each.attempt, each.host)
        executors = self._context._jsc.sc().statusStore().executorList(False)
        for executor in (executors.apply(i) for i in range(executors.size())):
            name, active = executor.id(), executor.isActive()
            if name != "driver" and (name, active) not in self._told:
                self._told.add((name, active))
                if active:
                    LOG.info("executor %s on %s: %d cores", name, executor.hostPort(), executor.totalCores())
                else:
                    reason = executor.removeReason()
                    said = str(reason.get()).splitlines()[0] if reason.isDefined() else "no reason given"
                    LOG.warning("executor %s on %s lost (%s)", name, executor.hostPort(), said)
