"""Which setting of a real cluster is which key here, and which is none: see docs/settings.md."""

from quorisk.kernels.protocols.settings import Setting

SETTINGS = (
    Setting("bookies available", "`model.bookies`"),
    Setting(
        "ensemble size E (`managedLedgerDefaultEnsembleSize`)",
        "`model.ensemble_size`",
        "up to 5, or the write quorum, which it is if not given; `variant.callbacks_after_unset` off is BookKeeper as "
        "it is with E > Qw",
    ),
    Setting("write quorum Qw (`managedLedgerDefaultWriteQuorum`)", "`model.write_quorum`"),
    Setting("ack quorum Qa (`managedLedgerDefaultAckQuorum`)", "`model.ack_quorum`"),
    Setting(
        "`journalSyncData`, `journalWriteData`",
        "`rates.bookie_restarts_empty`, `rates.rack_restarts_empty`",
        "0 with a synced journal; else how often a bookie comes back without entries that it confirmed",
    ),
    Setting(
        "rack-aware placement (`ensemblePlacementPolicy`, `minNumRacksPerWriteQuorum`)",
        "`model.racks`, `variant.rack_aware_placement`, `rates.rack_restarts_empty`",
        "a rack's bookies lose power together; `faults.max_amnesias` says how often it may happen",
    ),
    Setting("`addEntryTimeoutSec`", "`rates.client_changes_ensemble`"),
    Setting("auditor, autorecovery (`lostBookieRecoveryDelay`)", "`rates.auditor_replicates_fragment`"),
    Setting("`zkTimeout`", "`rates.client_starts_recovery`", "another client replaces one that loses its session"),
    Setting("digest type, `readQuorum` speculation", "not modelled", "nothing is silently corrupted"),
)
