"""Keys that data tell: see docs/rates.md."""

from quorisk.kernels.protocols import evidence

EVIDENCE: evidence.Evidence = {
    evidence.NODE_LOSSES: "rates.bookie_is_lost",
    evidence.DRIVE_FAILURES: "rates.bookie_is_lost",
    evidence.REPAIRS: "rates.auditor_replicates_fragment",
    evidence.REPLACEMENTS: "rates.bookie_is_replaced",
    evidence.OUTAGES: "rates.cluster_loses_power",
    evidence.LOST_IN_OUTAGES: "faults.p_lost_in_outage",
    evidence.LOST_MESSAGES: "faults.message_loss",
}
