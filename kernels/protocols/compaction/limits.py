"""What the model of Pulsar's topic compaction leaves out."""

LIMITS = (
    "Bookies and the metadata store never fail: a ledger that was written can be read.",
    "One broker at a time has the topic: two that both believe they do are not in the model.",
    "Retention, which trims a topic from its start, is not in the model.",
)
