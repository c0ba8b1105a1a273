"""Sizes of each protocol, smallest first, in which `breaking_table.py` looks for what breaks."""

from typing import Any

_NO_FSYNC = {"leader_fsync_before_include_in_quorum": False, "follower_fsync_before_reply": False}


def _sized(names: str, *sizes: tuple[int, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(names.split(), each, strict=True)) for each in sizes)


LADDERS: dict[str, tuple[dict[str, Any], ...]] = {
    "bookkeeper": _sized(
        "bookies clients write_quorum ack_quorum entries inflight",
        (1, 2, 1, 1, 1, 1),
        (2, 2, 1, 1, 1, 1),
        (2, 2, 1, 1, 2, 1),
        (3, 2, 1, 1, 2, 1),
        (1, 3, 1, 1, 1, 1),
        (2, 2, 2, 1, 1, 1),
        (2, 3, 1, 1, 1, 1),
        (2, 2, 2, 2, 1, 1),
        (2, 2, 1, 1, 2, 2),
    ),
    "kafka": _sized(
        "replicas log_size max_records max_leader_epoch",
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
    ),
    "kraft": _sized(
        "brokers replication_factor min_isr init_isr values"
        " max_clean_shutdowns max_lossy_shutdowns max_fencings max_stalls max_reassignments",
        (2, 2, 1, 2, 1, 0, 0, 1, 0, 0),
        (2, 2, 1, 2, 1, 0, 1, 0, 0, 0),
        (2, 2, 1, 2, 2, 0, 0, 1, 0, 0),
        (2, 2, 1, 2, 1, 0, 0, 1, 1, 0),
        (2, 2, 1, 2, 1, 0, 1, 1, 0, 0),
        (2, 2, 2, 2, 1, 0, 1, 1, 0, 0),
        (3, 3, 2, 3, 1, 0, 1, 0, 0, 0),
        (2, 2, 1, 2, 2, 0, 0, 2, 0, 0),
    ),
    "raft": (
        {"servers": 1, "values": 1, "max_elections": 2, "max_restarts": 1, **_NO_FSYNC},
        {"servers": 2, "values": 1, "max_elections": 2, "max_restarts": 2, **_NO_FSYNC},
        {"servers": 2, "values": 1, "max_elections": 2, "max_disk_losses": 1, "rejoin_as_new": False},
    ),
    "compaction": _sized(
        "messages compactions keys values max_crashes",
        (1, 1, 1, 1, 0),
        (1, 2, 1, 1, 0),
        (1, 2, 1, 1, 1),
        (1, 3, 1, 1, 1),
        (2, 3, 1, 1, 1),
        (2, 3, 2, 2, 2),
    ),
}
