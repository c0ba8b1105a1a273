"""Events that data of a real cluster count, and the keys that they tell: `[evidence]` in a protocol's `settings.toml`.

That table says which kind tells which key of the protocol's experiment files; where two tell the same, the first one is
better. A kind that it leaves out is counted, but no figure of the protocol follows from it.
"""

from collections.abc import Mapping
from typing import NamedTuple


class EventKind(NamedTuple):
    """A kind of event that data count."""

    name: str
    about: str
    """Description of one such event, with which a profile explains its figure."""
    counted_in: str
    """The exposure in which they are counted: 20 years of "node time", or a number of trials."""
    in_trials: bool = False


Evidence = Mapping[EventKind, str]
"""The dotted key that each kind tells."""

NODE_LOSSES = EventKind("node losses", "a node is lost for good, with everything on it", "node time")
DRIVE_FAILURES = EventKind("drive failures", "a drive fails for good, and everything on it is lost", "drive time")
NODE_STOPS = EventKind("node stops", "a node stops, and comes back with its data", "node time")
PROCESS_RESTARTS = EventKind("process restarts", "a node's process ends and is started again", "container time")
NODE_RETURNS = EventKind("node returns", "a node that has stopped is back", "downtime")
ROLLS = EventKind("rolls", "an operator begins to restart all nodes, one after another", "cluster time")
ROLL_RESTARTS = EventKind("restarts within rolls", "a roll stops its next node", "waiting since the last return")
RESTART_ENDS = EventKind("ends of restarts", "a node that a roll restarts is back", "restarts")
EVICTIONS = EventKind("evictions", "Kubernetes evicts a pod from its node", "pod time")
FOLLOWER_STALLS = EventKind("stalls", "a follower stops fetching and does not stop", "node time")
STALL_ENDS = EventKind("ends of stalls", "a follower that stalled fetches again, and has caught up", "stalls")
ISOLATIONS = EventKind("isolations", "a node is cut off from the controller, and heard by its clients", "node time")
ISOLATION_ENDS = EventKind("ends of isolations", "the controller hears a node again that was cut off", "isolations")
LOST_MESSAGES = EventKind("lost messages", "a message to or from a node is lost, or too late", "messages", True)
REPLACEMENTS = EventKind("replacements", "another node takes the place of a lost one", "waiting for one")
REPAIRS = EventKind("repairs", "a lost node's copies are made again; a ledger waits for half of that", "waiting")
COPIED_LEDGERS = EventKind("copied ledgers", "a worker copies a ledger whose turn has come", "copying")
SHARE_TOGETHER = EventKind("share of losses together", "a lost node is lost with others (beta)", "lost nodes", True)
RACK_LOSSES = EventKind("losses of several nodes of a rack", "several nodes of a rack are lost at once", "rack time")
LOST_IN_RACK = EventKind(
    "nodes lost with their rack", "a node is lost when several of its rack are", "nodes of such racks", True
)
BATCH_LOSSES = EventKind("losses of several nodes", "several nodes are lost at once", "cluster time")
LOST_IN_BATCH = EventKind("nodes lost with others", "a node is lost when so many may be", "nodes that may be", True)
OUTAGES = EventKind("outages", "all nodes lose power at once", "cluster time")
LOST_IN_OUTAGES = EventKind("nodes lost in outages", "a node does not come back from a power outage", "nodes hit", True)
ISR_SHRINKS = EventKind("ISR shrinks", "a leader removes followers that lag from the ISR", "leader time")
UNDER_REPLICATION = EventKind("spells of under-replication", "a broker's partitions lack replicas", "broker time")
FULL_REPLICATION = EventKind("ends of under-replication", "a broker's partitions are whole again", "under-replication")
UNCLEAN_ELECTIONS = EventKind("unclean elections", "a replica out of sync becomes the leader", "cluster time")
KINDS = {each.name: each for each in tuple(vars().values()) if isinstance(each, EventKind)}
"""All kinds by their names."""
