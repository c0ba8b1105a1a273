"""Raft groups to try the model on."""

from quorisk.kernels.protocols.cases import Cases

_PAIR = {"servers": 2, "values": 1}
_NO_FSYNC = {"leader_fsync_before_include_in_quorum": False, "follower_fsync_before_reply": False}
_FAULTS = {"max_elections": 3, "max_restarts": 1, "max_crashes": 1, "max_disk_losses": 1, "max_outages": 1}

CASES = Cases(
    small=_PAIR,
    variants=(
        {"max_elections": 2, "max_restarts": 1, "message_loss": 0.1},
        {**_NO_FSYNC, "values": 2, "max_elections": 2, "max_restarts": 1},
        {"servers": 3, **_NO_FSYNC, "max_elections": 3, "max_restarts": 2, "rates": {"advance_fsync_index": 0.05}},
        {"leader_fsync_before_append_entries": True, "values": 2, "max_elections": 2, "max_crashes": 1},
        {"resend": False, "max_elections": 2, "max_restarts": 1, "lossy_network": False},
        {"resend": False, "rejoin_as_new": False, "max_elections": 2, "max_disk_losses": 1, "max_outages": 1},
        {"rejoin_as_new": False, "servers": 3, "max_elections": 4, "max_disk_losses": 1, "p_lost_in_outage": 0.4},
        {"servers": 3, **_FAULTS, "p_lost_in_outage": 0.3, "message_loss": 0.05, "max_steps": 300},
        {"heartbeats": True, "max_elections": 2, "max_crashes": 1, "max_steps": 150},
        {"servers": 1, "values": 3, "max_restarts": 2, "max_elections": 3, "horizon": 3.0},
        {"servers": 1, **_NO_FSYNC, "max_restarts": 2, "max_elections": 3},
        {**_NO_FSYNC, "panic_on_lost_log": True, "rejoin_as_new": False, "max_disk_losses": 1, "max_restarts": 1},
    ),
    walks=(
        {"servers": 3, "values": 2, **_FAULTS},
        {"servers": 6, "values": 4, **_NO_FSYNC, **_FAULTS, "max_elections": 6},
        {"servers": 4, "values": 2, **_FAULTS, "rejoin_as_new": False, "heartbeats": True},
        {"servers": 2, "values": 2, **_FAULTS, "resend": False, "leader_fsync_before_append_entries": True},
    ),
    rarely=("restart", "crash", "disk_is_lost", "cluster_loses_power", "timeout", "false_timeout"),
    bench={  # a leader that resends for ever has runs without an end: one run in six would take all of the time
        "model": {"servers": 3, "values": 2},
        "faults": {"max_elections": 3, "max_restarts": 2},
        "run": {"max_steps": 200},
    },
    bench_search={"model": {"servers": 3, "values": 1}, "faults": {"max_elections": 1}},
)
