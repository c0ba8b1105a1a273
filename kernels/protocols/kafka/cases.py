"""Partitions to try the model on."""

from quorisk.kernels.protocols.cases import Cases

_TRUNCATIONS = ("high_watermark", "kip101", "kip279", "kip320_first_try", "kip320")
_LARGE = {"replicas": 3, "log_size": 4, "max_records": 4, "max_leader_epoch": 4}

CASES = Cases(
    small={"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2},
    variants=(
        {"truncation": "high_watermark"},
        {"truncation": "kip101", "max_steps": 20},
        {"truncation": "kip101", "truncation_beyond_end": "no_op"},
        {"truncation": "kip279", "horizon": 3.0},
        {"truncation": "kip320_first_try", "replicas": 3},
        {"replicas": 3, "log_size": 3, "max_records": 3},
        {"track_committed": False},
        {"fenced_fetch": False, "rates": {"leader_write": 3.7, "follower_replicate": 2.5}},
        {"fenced_high_watermark": False, "rates": {"leader_write": 3.0}},
        {"fenced_isr_shrink": False},
        {"fenced_isr_expand": False, "rates": {"controller_shrink_isr": 2.0}},
        {"truncate_same_epoch_only": False, "rates": {"controller_elect_leader": 0.3}},
        {"flush_every_message": False, "max_unclean_restarts": 2},
        {"flush_every_message": False, "zones": 2, "max_zone_outages": 1, "max_outages": 1},
        {"continuous_writes": True, "flush_every_message": False, "max_unclean_restarts": 1},
    ),
    walks=(
        *(_LARGE | {"truncation": name} for name in _TRUNCATIONS),
        {"replicas": 6, "log_size": 6, "max_records": 6, "max_leader_epoch": 5},
        _LARGE | {"flush_every_message": False, "max_unclean_restarts": 2},
        _LARGE | {"replicas": 6, "zones": 3, "max_outages": 1, "max_zone_outages": 2, "flush_every_message": False},
    ),
    rarely=(
        *("controller_elect_leader", "controller_shrink_isr"),
        *("replica_restarts_unclean", "cluster_loses_power", "zone_loses_power"),
    ),
    silent=("follower_truncate",),
    bench={"model": {"replicas": 3, "log_size": 4, "max_records": 4, "max_leader_epoch": 3}},
)
