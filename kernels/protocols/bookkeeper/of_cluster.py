"""Keys of a BookKeeper file whose values follow from its [cluster], and their sources there."""

FOLLOWS = {
    "rates.bookie_is_lost": "node_loss",
    "rates.auditor_replicates_fragment": "repair",
    "faults.p_lost_in_outage": "p_lost_in_outage",
    "faults.p_lost_in_rack_outage": "p_lost_in_rack_outage",
}
