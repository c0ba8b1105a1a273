"""What the model of BookKeeper leaves out."""

LIMITS = (
    "A bookie that is down for a while and comes back with its data is not in the model: to its clients, it looks "
    "like a bookie that loses messages.",
    "Nothing is repaired while the ledger is open; BookKeeper's auditor waits until it is closed, too.",
    "What a machine had not flushed is lost as a whole, flushes come at random, and each entry of a lost entry log is "
    "gone by itself.",
    "A bookie in limbo stays in limbo: nothing restores what it lacks.",
    "The metadata store never fails.",
    "There is one ledger and no load: a bookie is as fast with many ledgers as with one.",
)
