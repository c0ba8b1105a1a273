"""Keys of a file about Raft groups whose values follow from its [cluster], and their sources there."""

FOLLOWS = {"rates.disk_is_lost": "node_loss", "faults.p_lost_in_outage": "p_lost_in_outage"}
