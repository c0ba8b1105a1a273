"""Write and read latencies that PBS prints: Bailis et al., Probabilistically Bounded Staleness, VLDB 2012.

They are percentiles of a simulation, and its parameters are printed with few digits.
"""

from quorisk.analysis.decision.latency import BUILT_IN, RoundTrip, write_latency

REPLICAS = 3
YAMMER_MS = {1: 16.4, 2: 43.3, 3: 230.0}
"""Section 5.8: the 99.9th percentiles of reads, by answers waited for, and of writes with W = 1, together."""
WRITES_MS = {
    "LNKD-SSD": (0.66, 1.63, 4.09),
    "LNKD-DISK": (10.99, 20.97, 112.65),
    "YMMR": (10.83, 427.12, 1870.86),
}
"""Table 4: the 99.9th percentile of a write, W = 1, 2, 3."""
DEVIATION = 0.03
"""How far they may be from ours, relatively. The largest deviation is 2.6%, that of the fastest answer of YMMR."""


def p999(replica: RoundTrip, acks: int) -> float:
    """The 99.9th percentile in ms."""
    return write_latency(replica, REPLICAS, acks)[2].ms


def yammer(acks: int) -> float:
    """Our figure for one of YAMMER_MS."""
    answer = BUILT_IN["YMMR"].answer
    return p999(RoundTrip(answer, answer), acks) + p999(BUILT_IN["YMMR"], 1)  # PBS fits A, R and S together
