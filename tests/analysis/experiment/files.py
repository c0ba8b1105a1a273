"""Experiment files that are small and complete, for tests to add to."""

BOOKKEEPER = """
protocol = "bookkeeper"
[model]
bookies = 3
clients = 2
write_quorum = 3
ack_quorum = 2
entries = 1
inflight = 1
"""
TOPIC = """
protocol = "compaction"
[model]
messages = 2
compactions = 3
keys = 1
values = 1
max_crashes = 1
"""
