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
    reading,
    recovery,
    writer,
)
from quorisk.kernels.protocols.bookkeeper.beginning import initial
from quorisk.kernels.protocols.bookkeeper.forget import forget
from quorisk.kernels.protocols.bookkeeper.layout import BITS_BY_BOOKIE, MAX_BOOKIES, WIDTHS
from quorisk.kernels.protocols.bookkeeper.margin import MARGIN
from quorisk.kernels.protocols.bookkeeper.params import CONDITIONS, PARAMETERS, PROBABILITIES, alike, make_params
from quorisk.kernels.telling import words_beside

MODEL = Model(
    name="bookkeeper",
    version=3,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        bookies.bookie_sends_add_confirmed_response,
        bookies.bookie_sends_add_fenced_response,
        bookies.bookie_sends_fencing_read_lac_response,
        bookies.bookie_sends_read_response,
        writer.client_creates_ledger,
        writer.client_sends_add_entry_requests,
        writer.client_receives_add_confirmed_response,
        writer.client_receives_add_fenced_response,
        writer.client_changes_ensemble,
        writer.client_resends_pending_add_op,
        writer.client_closes_ledger_success,
        writer.client_closes_ledger_fail,
        recovery.client_starts_recovery,
        recovery.client_receives_fencing_read_lac_response,
        reading.client_sends_recovery_read_requests,
        reading.client_receives_recovery_read_response,
        recovery.client_writes_back_entry,
        recovery.recovery_client_receives_add_confirmed_response,
        recovery.recovery_client_changes_ensemble,
        recovery.recovery_client_sends_pending_add_op,
        recovery.recovery_client_closes_ledger,
        faults.bookie_restarts_empty,
        faults.bookie_is_lost,
        faults.bookie_is_replaced,
        faults.writer_crashes,
        faults.auditor_replicates_fragment,
        faults.two_bookies_are_lost_together,
        faults.three_bookies_are_lost_together,
        faults.rack_restarts_empty,
        faults.cluster_loses_power,
        faults.rack_loses_power,
        callbacks.client_completes_ensemble_change,
        flushing.bookie_flushes,
        flushing.bookie_restarts_unclean,
        flushing.bookie_loses_some,
        auditor.auditor_recovers_ledger,
    ),
    invariants=invariants.INVARIANTS,
    outcome=invariants.outcome,
    widths=WIDTHS,
    max_sends=MAX_BOOKIES,
    limits=tuple(words_beside(__file__)["limits"]),
    forget=forget,
    alike=Alike(MAX_BOOKIES, alike, BITS_BY_BOOKIE),
    margin=MARGIN,
    probabilities=PROBABILITIES,
)
