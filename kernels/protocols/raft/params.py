"""Parameters of a Raft group in an experiment file, and the numbers that the rules read."""

from typing import NamedTuple

from quorisk.kernels.model import Parameter, Probability, switch
from quorisk.kernels.protocols.raft.layout import MAX_ELECTIONS, MAX_SERVERS, MAX_VALUES
from quorisk.kernels.telling import with_docs


class Params(NamedTuple):
    """The specification's constants, as integers."""

    servers: int
    values: int
    lossy_network: int
    leader_fsync_before_append_entries: int
    leader_fsync_before_include_in_quorum: int
    follower_fsync_before_reply: int
    resend: int
    rejoin_as_new: int
    heartbeats: int
    panic_on_lost_log: int
    max_elections: int
    max_restarts: int
    max_crashes: int
    max_disk_losses: int
    max_outages: int


PARAMETERS = with_docs(
    __file__,
    Parameter("servers", "model", (1, MAX_SERVERS)),
    Parameter("values", "model", (1, MAX_VALUES)),
    switch("lossy_network", table="model", history=True),
    switch("leader_fsync_before_append_entries", default=False),
    switch("leader_fsync_before_include_in_quorum"),
    switch("follower_fsync_before_reply"),
    switch("resend"),
    switch("rejoin_as_new"),
    switch("heartbeats", default=False),
    switch("panic_on_lost_log", default=False),
    Parameter("max_elections", "faults", (0, MAX_ELECTIONS), default=1),
    Parameter("max_restarts", "faults", (0, 7)),
    Parameter("max_crashes", "faults", (0, 7)),
    Parameter("max_disk_losses", "faults", (0, 7)),
    Parameter("max_outages", "faults", (0, 7)),
)
PROBABILITIES = (Probability("p_lost_in_outage", "that a server's disk is lost when the cluster loses power"),)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    return Params(**{name: int(values[name]) for name in Params._fields})
