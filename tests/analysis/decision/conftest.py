"""A file of two small designs, the weigher of its configurations, and losses a year by the exact solver alone."""

import pytest

from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config

FILE = """
protocol = "bookkeeper"
[model]
bookies = 1
clients = 2
write_quorum = 1
ack_quorum = 1
entries = 1
inflight = 1
[variant]
fence_unknown_ledger = false
[faults]
message_loss = 0.01
[latency]
replica = "LNKD-SSD"
[targets]
losses_per_year = {target}
[scenarios.failover]
per_year = 200
rates.client_starts_recovery = 1.0
[scenarios.quiet]
per_year = 2000
rates.client_starts_recovery = 0.01
[run]
runs = 2000
[grid]
clients = [2, 3]
"""


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "x.toml"

    def load(target=1000.0, *overrides):
        path.write_text(FILE.format(target=target), "utf-8")
        return config.load(path, overrides)

    return load


@pytest.fixture(scope="module")
def weigher():
    return Weigher(1 << 26, 1)


@pytest.fixture(scope="session")
def losses_of():
    def losses_of(experiment):
        """Losses a year by number of clients, from the exact solver alone."""
        found: dict[int, float] = {}
        for point in experiment.points:
            p = exact(experiment._replace(points=(point,)), 1 << 26).data_loss.p
            per_year = experiment.scenarios[point.scenario].per_year
            clients = point.point.values["clients"]
            found[clients] = found.get(clients, 0.0) + per_year * p
        return found

    return losses_of


@pytest.fixture(scope="module")
def expected(load, losses_of):
    return losses_of(load())
