"""What the model of BookKeeper leaves out."""

LIMITS = (
    "A bookie that is down for a while and comes back with its data is not in the model: to its clients, it looks "
    "like a bookie that loses messages.",
    "While a ledger is open, the auditor leaves it alone unless repair_open_ledgers and fence_open_ledgers are on, as "
    "they are in BookKeeper.",
    "What a machine had not flushed is lost as a whole, flushes come at random, and each entry of a lost entry log is "
    "gone by itself.",
    "A bookie in limbo stays in limbo: nothing restores what it lacks. It confirms that it is fenced, where one of "
    "BookKeeper's answers DataUnknown, unless limbo_answers_fencing is off.",
    "The metadata store never fails.",
    "There is one ledger and no load: a bookie is as fast with many ledgers as with one.",
)
