"""Keys that data tell: see docs/rates.md."""

from quorisk.kernels.protocols import evidence

EVIDENCE: evidence.Evidence = {
    evidence.NODE_LOSSES: "rates.data_loss_shutdown",
    evidence.DRIVE_FAILURES: "rates.data_loss_shutdown",
    evidence.NODE_STOPS: "rates.no_data_loss_unclean_shutdown",
    evidence.PROCESS_RESTARTS: "rates.no_data_loss_unclean_shutdown",
    evidence.NODE_RETURNS: "rates.broker_start",
    evidence.ROLLS: "rates.roll_begins",
    evidence.ROLL_RESTARTS: "rates.roll_restarts",
    evidence.RESTART_ENDS: "rates.restart_ends",
    evidence.FOLLOWER_STALLS: "rates.follower_stalls",
    evidence.STALL_ENDS: "rates.follower_resumes",
    evidence.ISOLATIONS: "rates.leader_is_isolated",
    evidence.ISOLATION_ENDS: "rates.isolation_ends",
    evidence.OUTAGES: "rates.cluster_loses_power",
    evidence.LOST_IN_OUTAGES: "faults.p_lost_in_outage",
}
