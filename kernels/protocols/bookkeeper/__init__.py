"""BookKeeper's replication protocol: the life of one ledger, from its creation to its recovery.

Source: BookKeeperProtocol.tla and MessagePassing.tla (Vanlightly/bookkeeper-tlaplus). Actions stand in the order of
its Next under their own names: the bookies', the writer's, the recovery clients'. Variants are parameters. The spec
loses messages only; faults of bookies and writers, off unless asked for, extend it (`faults`), in the spirit of
BookKeeperProtocolWithLimbo.tla of the same authors.
"""

from quorisk.kernels.model import Alike, Model
from quorisk.kernels.protocols.bookkeeper import (
    auditor,
    bookies,
    callbacks,
    faults,
    flushing,
    invariants,
    recovery,
    writer,
)
from quorisk.kernels.protocols.bookkeeper.beginning import initial
from quorisk.kernels.protocols.bookkeeper.forget import forget
from quorisk.kernels.protocols.bookkeeper.layout import BITS_BY_BOOKIE, MAX_BOOKIES, WIDTHS
from quorisk.kernels.protocols.bookkeeper.limits import LIMITS
from quorisk.kernels.protocols.bookkeeper.margin import MARGIN
from quorisk.kernels.protocols.bookkeeper.params import CONDITIONS, PARAMETERS, PROBABILITIES, alike, make_params

MODEL = Model(
    name="bookkeeper",
    version=3,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        *(*bookies.ACTIONS, *writer.ACTIONS, *recovery.ACTIONS),
        *(*faults.ACTIONS, *callbacks.ACTIONS, *flushing.ACTIONS, *auditor.ACTIONS),
    ),
    invariants=invariants.INVARIANTS,
    outcome=invariants.outcome,
    widths=WIDTHS,
    max_sends=MAX_BOOKIES,
    limits=LIMITS,
    forget=forget,
    alike=Alike(MAX_BOOKIES, alike, BITS_BY_BOOKIE),
    margin=MARGIN,
    probabilities=PROBABILITIES,
)
