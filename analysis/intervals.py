"""How far a probability counted in runs can be trusted."""

from scipy.special import betainccinv, betaincinv

METHOD = "Clopper-Pearson"


def clopper_pearson(losses: int, runs: int, confidence: float, hidden: int = 0) -> tuple[float, float]:
    """The interval that holds the probability of a loss with at least this confidence, whatever it is.

    With a = 1 - confidence, k losses in n runs: low is the a/2 quantile of Beta(k, n - k + 1), 0 if k = 0; high is the
    1 - a/2 quantile of Beta(k + 1, n - k), 1 if k = n. At low, k or more losses have probability a/2; at high, k or
    fewer. With k = 0 high is 1 - (a/2)**(1/n).

    `hidden` runs ended before it was known whether they would lose, as those that `max_steps` cut off; those that the
    horizon ended belong to them only if the question is about a loss at any time. Each may hide a loss, so high is that
    of k + hidden losses. Runs that lost before they were cut off may be among them.

    Source: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934) 404-413.
    """
    tail = (1.0 - confidence) / 2.0
    most = losses + hidden
    low = float(betaincinv(losses, runs - losses + 1, tail)) if losses > 0 else 0.0
    high = float(betainccinv(most + 1, runs - most, tail)) if most < runs else 1.0
    return low, high
