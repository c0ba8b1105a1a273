"""Partitions to try the model on."""

from quorisk.kernels.protocols.cases import Cases

_PAIR = {"brokers": 2, "replication_factor": 2, "min_isr": 1, "init_isr": 2, "values": 1}
_PAIR_OF_2_VALUES = {**_PAIR, "values": 2}
_STRICT_PAIR = {**_PAIR, "min_isr": 2}
_LARGE = {"brokers": 4, "replication_factor": 3, "min_isr": 2, "init_isr": 2, "values": 3}
_FAULTS = {"max_fencings": 1, "max_stalls": 1, "max_reassignments": 1}
"""A second shutdown of a broker may leave it waiting for ever, which makes for long walks."""
_OPERATIONS = {"max_stalls": 2, "max_rolls": 1, "max_isolations": 2}
_LARGEST = {"brokers": 5, "replication_factor": 4, "min_isr": 2, "init_isr": 4, "values": 4}

CASES = Cases(
    small={**_PAIR, "max_lossy_shutdowns": 1},
    variants=(
        {"max_fencings": 1},
        {**_STRICT_PAIR, "max_fencings": 1, "max_steps": 60},
        {"brokers": 3, "max_reassignments": 1, "max_lossy_shutdowns": 0},
        {"version": "v3_5", "max_fencings": 1},
        {"version": "v3_5", "max_fencings": 1, "avoid_last_replica_standing": True, "max_steps": 20},
        {**_STRICT_PAIR, "exclude_unclean_brokers": False, "max_fencings": 1, "horizon": 20.0},
        {"check_broker_epochs": False, "max_clean_shutdowns": 1, "rates": {"unfence_broker": 3.0}, "max_steps": 200},
        {"maximal_isr": False, "max_stalls": 1},
        {**_STRICT_PAIR, "min_isr_to_commit": False, "max_fencings": 1},
        {"fence_fetches": False, "max_fencings": 1},
        {**_PAIR_OF_2_VALUES, "truncate_on_divergence": False, "max_fencings": 1},
        {"catch_up_to_high_watermark": False, "max_fencings": 1},
        {"catch_up_to_epoch_start": False, "max_fencings": 1},
        {"unclean_leader_election": True, "max_fencings": 1, "rates": {"fence_broker": 0.2}},
        {"acks": "1", "values": 2},
        {"last_known_leader": False, "max_stalls": 1},
        {"max_outages": 1, "zones": 2, "max_zone_outages": 1, "p_lost_in_outage": 0.3, "p_lost_in_zone_outage": 0.6},
        {"flush_every_message": False, "max_tail_losses": 1, "max_lossy_shutdowns": 0},
        {"flush_every_message": False, "max_outages": 1, "max_fencings": 1, "p_lost_in_outage": 0.2},
        {"max_rolls": 1, "max_stalls": 1, "max_lossy_shutdowns": 0, "rates": {"leader_removes_stalled": 3.0}},
        {**_STRICT_PAIR, "version": "v3_5", "max_rolls": 1, "gated_rolls": False},
        {"max_isolations": 1, "max_lossy_shutdowns": 0, "acks": "1"},
        {"stalls_go_on": True, "max_stalls": 1, "rates": {"leader_removes_stalled": 3.0, "follower_resumes": 3.0}},
        {"continuous_writes": True, "values": 3, "flush_every_message": False, "max_tail_losses": 1},
        {"lost_without_leader": False, "max_fencings": 1},
        {"semantics": "specification", "max_isr_shrinks": 1},
        {"semantics": "specification", "version": "v3_5", "max_clean_shutdowns": 1, "max_steps": 100},
    ),
    walks=(
        {**_LARGE, **_FAULTS, "max_clean_shutdowns": 1},
        {**_LARGE, **_FAULTS, "max_lossy_shutdowns": 1, "version": "v3_5"},
        {**_LARGEST, **_FAULTS, "max_lossy_shutdowns": 1},
        {**_LARGE, "brokers": 3, "init_isr": 3, "zones": 3, "max_outages": 1, "max_zone_outages": 1},
        {**_LARGEST, "max_fencings": 1, "max_tail_losses": 1, "flush_every_message": False},
        {**_LARGEST, **_FAULTS, "brokers": 6, "max_lossy_shutdowns": 1, "version": "v3_5"},
        {**_LARGE, "brokers": 3, "init_isr": 3, **_OPERATIONS, "acks": "1"},
        {**_LARGE, "semantics": "specification", "max_isr_shrinks": 2, "max_lossy_shutdowns": 1},
    ),
    silent=("roll_begins",),
    bench={
        "model": {"brokers": 3, "replication_factor": 3, "min_isr": 2, "init_isr": 3, "values": 4},
        "faults": {"max_lossy_shutdowns": 1, "max_fencings": 1},
    },
    bench_search={
        "model": {"brokers": 3, "replication_factor": 3, "min_isr": 2, "init_isr": 3, "values": 1},
        "faults": {"max_lossy_shutdowns": 1},
    },
)
