"""Keys that data tell: see docs/rates.md."""

from quorisk.kernels.protocols import evidence

EVIDENCE: evidence.Evidence = {
    evidence.NODE_LOSSES: "rates.disk_is_lost",
    evidence.DRIVE_FAILURES: "rates.disk_is_lost",
    evidence.NODE_STOPS: "rates.restart",
    evidence.PROCESS_RESTARTS: "rates.crash",
    evidence.OUTAGES: "rates.cluster_loses_power",
    evidence.LOST_IN_OUTAGES: "faults.p_lost_in_outage",
}
