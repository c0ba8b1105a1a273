"""Answers that are, or nearly are, products of powers of rates: what is then known of them, without drawing any rate.

With lognormal rates r_i and an answer c x product of r_i^k_i, the answer is lognormal as well, and rate i has the part
(k_i sigma_i)^2 in the variance of its logarithm. With elasticities for the k_i this is what the rates leave open to
first order: a check of draws, and never a replacement where answers bend.
"""

import math
from collections.abc import Mapping

from quorisk.analysis.statistics.known import Known


def log_variance_shares(known: Mapping[str, Known], exponents: Mapping[str, float]) -> dict[str, float]:
    """Returns by rate which part of the variance of the answer's logarithm it has: (k sigma)^2 over their sum.

    The parts add up to 1; all are 0 if every rate is known exactly, or has the exponent 0.
    """
    variances = {name: (exponents[name] * known[name].log_sigma) ** 2 for name in exponents}
    whole = math.fsum(variances.values())
    return {name: variance / whole if whole else 0.0 for name, variance in variances.items()}
