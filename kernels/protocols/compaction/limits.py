"""What the model of Pulsar's topic compaction leaves out."""

LIMITS = (
    "Bookies and the metadata store never fail: a ledger that was written can always be read.",
    "One broker at a time owns the topic: two that both believe they own it are not in the model.",
    "Retention, which trims a topic from its start, is not in the model.",
)
