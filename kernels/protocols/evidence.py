"""Events that data of a real cluster count, and the keys that they tell: `[evidence]` in a protocol's `settings.toml`.

That table says which kind tells which key of the protocol's experiment files; where two tell the same, the first one is
better. A kind that it leaves out is counted, but no figure of the protocol follows from it.
"""

from collections.abc import Mapping
from typing import NamedTuple


class EvidenceKind(NamedTuple):
    """A kind of event that data count."""

    name: str
    about: str
    """Description of one such event, with which a profile explains its figure."""
    counted_in: str
    """The exposure in which they are counted: 20 years of "node time", or a number of trials."""
    in_trials: bool = False


Evidence = Mapping[EvidenceKind, str]
"""The dotted key that each kind tells."""

NODE_LOSSES = EvidenceKind("node losses", "a node is lost for good, with everything on it", "node time")
DRIVE_FAILURES = EvidenceKind("drive failures", "a drive fails for good, and everything on it is lost", "drive time")
NODE_STOPS = EvidenceKind("node stops", "a node stops, and comes back with its data", "node time")
PROCESS_RESTARTS = EvidenceKind("process restarts", "a node's process ends and is started again", "container time")
NODE_RETURNS = EvidenceKind("node returns", "a node that has stopped is back", "downtime")
ROLLS = EvidenceKind("rolls", "an operator begins to restart all nodes, one after another", "cluster time")
ROLL_RESTARTS = EvidenceKind(
    "restarts within rolls", "the next node of a roll is stopped", "waiting since the last one's return"
)
RESTART_ENDS = EvidenceKind("ends of restarts", "a node that a roll restarts is back", "restarts")
EVICTIONS = EvidenceKind("evictions", "Kubernetes evicts a pod from its node", "pod time")
FOLLOWER_STALLS = EvidenceKind("stalls", "a follower stops fetching and does not stop", "node time")
STALL_ENDS = EvidenceKind("ends of stalls", "a follower that stalled fetches again, and has caught up", "stalls")
ISOLATIONS = EvidenceKind("isolations", "a node is cut off from the controller, and heard by its clients", "node time")
ISOLATION_ENDS = EvidenceKind("ends of isolations", "the controller hears a node again that was cut off", "isolations")
LOST_MESSAGES = EvidenceKind("lost messages", "a message to or from a node is lost, or too late", "messages", True)
REPLACEMENTS = EvidenceKind("replacements", "another node takes the place of a lost one", "waiting for one")
REPAIRS = EvidenceKind(
    "repairs", "the copies that a lost node had are made again; a ledger waits for half of that", "waiting"
)
COPIED_LEDGERS = EvidenceKind("copied ledgers", "a worker copies a ledger whose turn has come", "copying")
SHARE_TOGETHER = EvidenceKind("share of losses together", "a lost node is lost with others (beta)", "lost nodes", True)
RACK_LOSSES = EvidenceKind("losses of several nodes of a rack", "several nodes of a rack are lost at once", "rack time")
LOST_IN_RACK = EvidenceKind(
    "nodes lost with their rack", "a node is lost when several of its rack are", "nodes of such racks", True
)
BATCH_LOSSES = EvidenceKind("losses of several nodes", "several nodes are lost at once", "cluster time")
LOST_IN_BATCH = EvidenceKind(
    "nodes lost with others", "a node is lost when so many others may be", "nodes that may be", True
)
OUTAGES = EvidenceKind("outages", "all nodes lose power at once", "cluster time")
LOST_IN_OUTAGES = EvidenceKind(
    "nodes lost in outages", "a node does not come back from a power outage", "nodes hit", True
)
ISR_SHRINKS = EvidenceKind("ISR shrinks", "a leader removes followers that lag from the ISR", "leader time")
UNDER_REPLICATION = EvidenceKind("spells of under-replication", "a broker's partitions lack replicas", "broker time")
FULL_REPLICATION = EvidenceKind(
    "ends of under-replication", "a broker's partitions have all replicas again", "under-replication"
)
UNCLEAN_ELECTIONS = EvidenceKind("unclean elections", "a replica out of sync becomes the leader", "cluster time")
KINDS = {each.name: each for each in tuple(vars().values()) if isinstance(each, EvidenceKind)}
"""All kinds by their names."""
