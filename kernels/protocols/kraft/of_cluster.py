"""Keys of a file about Kafka in KRaft mode whose values follow from its [cluster], and their sources there."""

FOLLOWS = {
    "rates.data_loss_shutdown": "node_loss",
    "faults.p_lost_in_outage": "p_lost_in_outage",
    "faults.p_lost_in_zone_outage": "p_lost_in_rack_outage",
}
