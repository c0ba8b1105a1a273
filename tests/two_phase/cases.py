"""Transactions to try."""

from quorisk.kernels.protocols.cases import Cases

CASES = Cases(
    small={"participants": 2, "max_crashes": 1},
    variants=({"message_loss": 0.3}, {"force_before_telling": False, "participants": 3, "max_crashes": 2}),
    walks=({"participants": 6, "max_crashes": 3}, {"participants": 4, "max_crashes": 2, "force_before_telling": False}),
    rarely=("crash",),
)
