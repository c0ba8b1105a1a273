"""Parameters of a Raft group in an experiment file, and the numbers that the rules read."""

from typing import NamedTuple

from quorisk.kernels.model import Parameter, Probability, switch
from quorisk.kernels.protocols.raft.layout import MAX_ELECTIONS, MAX_SERVERS, MAX_VALUES


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


PARAMETERS = (
    Parameter("servers", "model", (1, MAX_SERVERS), "servers of the group"),
    Parameter("values", "model", (1, MAX_VALUES), "values that clients send"),
    switch(
        "lossy_network",
        "messages are lost with `faults.message_loss` (off: the specification's own states, in whose network none is)",
        table="model",
        history=True,
    ),
    switch(
        "leader_fsync_before_append_entries",
        "a leader sends an entry once it has synced it (off, as etcd has it: while it syncs it)",
        default=False,
    ),
    switch(
        "leader_fsync_before_include_in_quorum",
        "a leader counts itself among those that have an entry once it has synced it",
    ),
    switch("follower_fsync_before_reply", "a follower syncs an entry before it says that it has it"),
    switch(
        "resend",
        "what was taken or lost may be sent again, as implementations do (off: what was sent once is never sent again)",
    ),
    switch(
        "rejoin_as_new",
        "a server that comes back with an empty disk is a new member: it learns before it votes (off: it has its old "
        "name, and votes as if it had never forgotten)",
    ),
    switch(
        "heartbeats",
        "a leader sends messages that are no news to its followers, too, so that runs do not end",
        default=False,
    ),
    switch(
        "panic_on_lost_log",
        "a follower that has lost what it acknowledged stops while the leader lives that it told, as etcd does",
        default=False,
    ),
    Parameter("max_elections", "faults", (0, MAX_ELECTIONS), "elections that servers may start", default=1),
    Parameter("max_restarts", "faults", (0, 7), "times that a server loses power, and what it had not synced"),
    Parameter("max_crashes", "faults", (0, 7), "times that a server's process dies, whose page cache stays"),
    Parameter("max_disk_losses", "faults", (0, 7), "times that an empty server takes the place of one"),
    Parameter("max_outages", "faults", (0, 7), "times that all servers lose power at one instant"),
)
PROBABILITIES = (Probability("p_lost_in_outage", "that a server's disk is lost when the cluster loses power"),)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    return Params(**{name: int(values[name]) for name in Params._fields})
