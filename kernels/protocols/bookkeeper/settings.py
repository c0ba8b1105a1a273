"""Settings of a real cluster, and the keys that stand for them, if any: see docs/settings.md."""

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
        "`variant.journal_sync`, `variant.journal_write`",
        "both on, as in BookKeeper unless told otherwise; the table below says what each of the four means",
    ),
    Setting(
        "`journalPageCacheFlushIntervalMSec` (journal not synced), `flushInterval` (journal not written)",
        "`rates.bookie_flushes`",
        "once in 1 s, or once in 10 s, unless told otherwise",
    ),
    Setting(
        "`dataIntegrityChecking`",
        "`variant.fence_on_unclean_shutdown`, `variant.limbo_on_unclean_shutdown`",
        "off: both are off",
    ),
    Setting(
        "rack-aware placement (`ensemblePlacementPolicy`, `minNumRacksPerWriteQuorum`)",
        "`model.racks`, `model.min_racks_per_write_quorum`, `variant.rack_aware_placement`, "
        "`rates.rack_restarts_empty`",
        "a rack's bookies lose power together; `faults.max_empty_restarts` says how often it may happen",
    ),
    Setting(
        "`enforceMinNumRacksPerWriteQuorum`, `enforceMinNumFaultDomainsForWrite`",
        "`variant.enforce_min_racks_per_write_quorum`, `variant.enforce_min_fault_domains_for_write`",
        "off, as in BookKeeper unless told otherwise",
    ),
    Setting("`addEntryTimeoutSec`", "`rates.client_changes_ensemble`"),
    Setting(
        "`delayEnsembleChange`",
        "`variant.delay_ensemble_change`",
        "off, as in BookKeeper unless told otherwise",
    ),
    Setting("auditor, autorecovery (`lostBookieRecoveryDelay`)", "`rates.auditor_replicates_fragment`"),
    Setting(
        "the same of ledgers that are open (`openLedgerRereplicationGracePeriod`)",
        "`faults.repair_open_ledgers`, `faults.fence_open_ledgers`, `rates.auditor_recovers_ledger`",
        "off unless asked for; in BookKeeper earlier fragments are repaired at once, and the ledger is recovered after "
        "30 s if its last one lacks a bookie",
    ),
    Setting("`zkTimeout`", "`rates.client_starts_recovery`", "another client replaces one that loses its session"),
    Setting("digest type, `readQuorum` speculation", "not modelled", "nothing is silently corrupted"),
)
