"""Keys that data tell: see docs/rates.md."""

from quorisk.kernels.protocols import evidence

EVIDENCE: evidence.Evidence = {
    evidence.NODE_STOPS: "rates.controller_shrink_isr",
    evidence.PROCESS_RESTARTS: "rates.controller_shrink_isr",
}
