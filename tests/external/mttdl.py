"""Published mean times to the loss of data at rest, and the chains and figures that they follow from.

Every row is of `at_rest.MODEL`; times are in the unit that the source prints.
"""

import math
from typing import NamedTuple

from quorisk.analysis.exact import answers
from quorisk.kernels.engines.points import Point
from quorisk.kernels.states import absorption, chain
from tests.external import at_rest

DAY, YEAR = 86_400.0, 365.25 * 86_400
TIB, GIB_A_SECOND = 2.0**40, 2.0**27  # bytes
MEMORY = 1 << 28


class Mttdl(NamedTuple):
    """A published figure."""

    source: str
    copies: int
    repair: str
    """Of at_rest.REPAIRS."""
    mttf: float
    """A copy's mean time to failure."""
    mean_times: dict[str, float]
    """To the repairs that at_rest.MODEL has, in the same unit."""
    scale: float
    """What the chain's mean time is divided by: copies in all, and seconds in the unit printed."""
    figure: str
    unit: str
    digits: str
    """How the source prints it, as a format."""
    ends: str = "loss"
    """What it is the mean time to."""
    needed: int = 1
    """Copies, or parts of them, that the data can be made of."""


BLOCK = 2.0**28
STRIPES = 30 * 1024 * TIB / (3 * BLOCK)
MEND = 16 * TIB / (0.1 * 399 * GIB_A_SECOND)
GOOGLE = "Ford et al., Availability in Globally Distributed Storage Systems, OSDI 2010, Table 3"
"""Its times are not those to a loss: a stripe fails once it has been unavailable for 15 minutes or longer."""
ELLISON = {
    (2, 1): ("107.00", "703.00"),
    (3, 1): ("3747.67", "164270.33"),
    (3, 2): ("36.33", "235.00"),
    (4, 1): ("98405.50", "28788554.2"),
    (4, 2): ("955.50", "41185.50"),
    (4, 3): ("18.50", "117.83"),
}
"""Years, by parts in all and parts needed, at 52 and at 350 repairs a year. One is printed as 28788554.16, cut off."""
PUBLISHED = (
    *(
        Mttdl(
            f"Ellison, mean time to data loss, 1993, {repairs} repairs a year",
            *(
                parts,
                "serial",
                2.0,
                {"copy_is_repaired": 1 / repairs},
                1.0,
                figure,
                "years",
                f".{len(figure.partition('.')[2])}f",
            ),
            needed=needed,
        )
        for (parts, needed), figures in ELLISON.items()
        for repairs, figure in zip((52, 350), figures, strict=True)
    ),
    # 30 PiB in stripes of three blocks of 256 MiB, each of which takes 1 Gib/s to make again, on nodes that live four
    # years of 365 days
    Mttdl(
        "Sathiamoorthy et al., XORing Elephants, VLDB 2013, Table 1",
        *(3, "serial", 4 * 365 * DAY, {"copy_is_repaired": BLOCK / GIB_A_SECOND}),
        *(STRIPES * DAY, "2.3079e+10", "days", ".4e"),
    ),
    # of 400 nodes of 16 TiB, 399 give a tenth of 1 Gib/s each to mend a single failure; with a single copy left only
    # the 30 minutes to notice it count
    Mttdl(
        "Huang et al., Erasure Coding in Windows Azure Storage, USENIX ATC 2012",
        *(3, "urgent", 5 * YEAR, {"copy_is_repaired": MEND, "last_copy_is_replicated": 30 * 60.0}),
        *(YEAR, "3.5e+09", "years", ".1e"),
    ),
    *(
        Mttdl(
            *(GOOGLE, copies, "serial", 1 / 8.1345e-3, {"copy_is_repaired": 1 / 66.013}, 1.0, figure, "days", ".2e"),
            ends="unavailability of 15 minutes",
        )
        for copies, figure in ((2, "4.99e+05"), (3, "1.35e+09"), (4, "2.74e+12"))
    ),
)


def mean_time_to_loss(copies: int, repair: str, mttf: float, needed: int = 1, **mean_times: float) -> float:
    """By `exact`, in the unit of the mean times."""
    # the unit of time is a copy's mean time to failure, in which rates have few digits
    rates = {"copy_fails": 1.0} | {name: round(mttf / mean, 6) for name, mean in mean_times.items()}
    point = Point({"copies": copies, "needed": needed, "repair": repair}, rates, 0.0, 100_000, math.inf)
    found = chain.build_chain(at_rest.MODEL, point, MEMORY)
    return mttf * answers.solve_chain(found, absorption.components(found), at_rest.MODEL, (), ()).expected_time


def ours(row: Mttdl) -> float:
    """Our figure for a published one."""
    return mean_time_to_loss(row.copies, row.repair, row.mttf, row.needed, **row.mean_times) / row.scale
