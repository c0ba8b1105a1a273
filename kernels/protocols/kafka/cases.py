"""Partitions to try the model on."""

from quorisk.kernels.protocols.cases import Cases, Tlc

_TRUNCATIONS = ("high_watermark", "kip101", "kip279", "kip320_first_try", "kip320")
_LARGE = {"replicas": 3, "log_size": 4, "max_records": 4, "max_leader_epoch": 4}
_SIZES = ("replicas", "log_size", "max_records", "max_leader_epoch")

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
    ladder=tuple(
        dict(zip(_SIZES, sizes, strict=True))
        for sizes in (
            (2, 1, 1, 1),
            (2, 1, 1, 2),
            (2, 2, 2, 2),
            (2, 2, 2, 3),
            (3, 1, 1, 1),
            (3, 1, 1, 2),
            (3, 1, 1, 3),
            (3, 1, 2, 2),
            (3, 1, 2, 3),
            (3, 2, 2, 2),
        )
    ),
    tlc=Tlc(
        modules={
            f"{module}{ending}": {"truncation": truncation, "track_committed": False}
            for ending in ("", "Flush")
            for module, truncation in {
                "KafkaTruncateToHighWatermark": "high_watermark",
                "Kip101": "kip101",
                "Kip279": "kip279",
                "Kip320": "kip320",
                "Kip320FirstTry": "kip320_first_try",
            }.items()
        },
        constants={
            "Replicas": "replicas",
            "LogSize": "log_size",
            "MaxRecords": "max_records",
            "MaxLeaderEpoch": "max_leader_epoch",
            "FlushEveryMessage": "flush_every_message",
            "MaxUncleanRestarts": "max_unclean_restarts",
        },
    ),
)
