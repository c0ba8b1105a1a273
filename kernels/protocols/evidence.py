"""Events that data of a real cluster count, and the keys that they tell: `[evidence]` in a protocol's `settings.toml`.

That table says which kind tells which key of the protocol's experiment files; where two tell the same, the first one is
better. A kind that it leaves out is counted, but no figure of the protocol follows from it.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of event that data count."""

    name: str
    about: str
    """One such event, in words: a profile says with it what a figure means."""
    counted_in: str
    """The exposure in which they are counted: 20 years of "node time", or a number of trials."""
    in_trials: bool = False


Evidence = Mapping[Kind, str]
"""The dotted key that each kind tells."""

NODE_LOSSES = Kind("node losses", "a node is lost for good, with everything on it", "node time")
DRIVE_FAILURES = Kind("drive failures", "a drive fails for good, and everything on it is lost", "drive time")
NODE_STOPS = Kind("node stops", "a node stops, and comes back with its data", "node time")
PROCESS_RESTARTS = Kind("process restarts", "a node's process ends and is started again", "container time")
NODE_RETURNS = Kind("node returns", "a node that has stopped is back", "downtime")
ROLLS = Kind("rolls", "an operator begins to restart all nodes, one after another", "cluster time")
ROLL_RESTARTS = Kind(
    "restarts within rolls", "the next node of a roll is stopped", "waiting since the last one's return"
)
RESTART_ENDS = Kind("ends of restarts", "a node that a roll restarts is back", "restarts")
EVICTIONS = Kind("evictions", "Kubernetes evicts a pod from its node", "pod time")
FOLLOWER_STALLS = Kind("stalls", "a follower stops fetching and does not stop", "node time")
STALL_ENDS = Kind("ends of stalls", "a follower that stalled fetches again, and has caught up", "stalls")
ISOLATIONS = Kind("isolations", "a node is cut off from the controller, and heard by its clients", "node time")
ISOLATION_ENDS = Kind("ends of isolations", "the controller hears a node again that was cut off", "isolations")
LOST_MESSAGES = Kind("lost messages", "a message to or from a node is lost, or too late", "messages", True)
REPLACEMENTS = Kind("replacements", "another node takes the place of a lost one", "waiting for one")
REPAIRS = Kind("repairs", "the copies that a lost node had are made again; a ledger waits for half of that", "waiting")
COPIED_LEDGERS = Kind("copied ledgers", "a worker copies a ledger whose turn has come", "copying")
SHARE_TOGETHER = Kind("share of losses together", "a lost node is lost with others (beta)", "lost nodes", True)
RACK_LOSSES = Kind("losses of several nodes of a rack", "several nodes of a rack are lost at once", "rack time")
LOST_IN_RACK = Kind(
    "nodes lost with their rack", "a node is lost when several of its rack are", "nodes of such racks", True
)
BATCH_LOSSES = Kind("losses of several nodes", "several nodes are lost at once", "cluster time")
LOST_IN_BATCH = Kind("nodes lost with others", "a node is lost when so many others may be", "nodes that may be", True)
OUTAGES = Kind("outages", "all nodes lose power at once", "cluster time")
LOST_IN_OUTAGES = Kind("nodes lost in outages", "a node does not come back from a power outage", "nodes hit", True)
ISR_SHRINKS = Kind("ISR shrinks", "a leader removes followers that lag from the ISR", "leader time")
UNDER_REPLICATION = Kind("spells of under-replication", "a broker's partitions lack replicas", "broker time")
FULL_REPLICATION = Kind(
    "ends of under-replication", "a broker's partitions have all replicas again", "under-replication"
)
UNCLEAN_ELECTIONS = Kind("unclean elections", "a replica out of sync becomes the leader", "cluster time")
KINDS = {each.name: each for each in tuple(vars().values()) if isinstance(each, Kind)}
"""All kinds by their names."""
