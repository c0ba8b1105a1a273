"""What the model of BookKeeper leaves out."""

LIMITS = (
    "A bookie that is down for a while and comes back with its data is not in the model: to clients it is one "
    "that loses messages.",
    "Nothing is repaired while the ledger is open; BookKeeper's auditor, too, waits until it is closed.",
    "Entries that rot on disk unnoticed, and bookies whose entry log is damaged in part, are not in the model.",
    "A bookie in limbo stays in limbo: nothing brings back to it what it lacks.",
    "The metadata store never fails.",
    "There is one ledger and no load: a bookie is as quick with many ledgers as with one.",
)
