"""What an experiment file may say about a ledger, and the numbers that the rules read."""

from typing import NamedTuple

from quorisk.kernels.model import Condition, Parameter
from quorisk.kernels.protocols.bookkeeper.layout import MAX_BOOKIES, MAX_CLIENTS, MAX_ENTRIES, MAX_FRAGMENTS


class Params(NamedTuple):
    """The spec's constants and the variant, as integers (switches: 0 or 1)."""

    clients: int
    write_quorum: int
    ack_quorum: int
    entries: int  # SendLimit
    inflight: int  # InflightLimit
    ensembles: int  # bit S - 1: the bookies S are WriteQuorum of those in use
    literal: int
    fence_recovery_reads: int
    recovery_lac_floor: int
    recovery_reads_initial_ensemble: int
    defer_recovery_ensemble_change: int
    fence_unknown_ledger: int
    strict_negative_reads: int
    close_checks_version: int


PARAMETERS = (
    Parameter("bookies", "model", (1, MAX_BOOKIES), "bookies available"),
    Parameter("clients", "model", (1, MAX_CLIENTS), "clients: one creates the ledger, the others may recover it"),
    Parameter("write_quorum", "model", (1, MAX_BOOKIES), "bookies that an entry is written to"),
    Parameter("ack_quorum", "model", (1, MAX_BOOKIES), "bookies that must confirm an entry"),
    Parameter("entries", "model", (1, MAX_ENTRIES), "entries that the writer may add"),
    Parameter("inflight", "model", (1, MAX_ENTRIES), "entries that may be unacknowledged at a time"),
    Parameter(
        "semantics",
        "variant",
        ("intended", "literal"),
        "what the protocol does, or the spec's text to the letter",
    ),
    Parameter("fence_recovery_reads", "variant", None, "recovery reads fence the bookie (off: defect 1)"),
    Parameter("recovery_lac_floor", "variant", None, "recovery starts at the current fragment (off: defect 2)"),
    Parameter(
        "recovery_reads_initial_ensemble",
        "variant",
        None,
        "recovery reads go to the ensemble found at its start",
    ),
    Parameter(
        "defer_recovery_ensemble_change",
        "variant",
        None,
        "recovery writes ensemble changes only when it closes",
    ),
    Parameter("fence_unknown_ledger", "variant", None, "a bookie fences ledgers that it stores no entry of"),
    Parameter("strict_negative_reads", "variant", None, "an entry is missing only if a quorum coverage says so"),
    Parameter("close_checks_version", "variant", None, "closing compares the metadata version"),
)
CONDITIONS = (
    Condition("write_quorum", "at most bookies", lambda v: v["write_quorum"] <= v["bookies"]),
    Condition("ack_quorum", "at most write_quorum", lambda v: v["ack_quorum"] <= v["write_quorum"]),
    Condition("inflight", "at most entries", lambda v: v["inflight"] <= v["entries"]),
    Condition(
        "entries",
        "at most 2 with 3 clients, recovery_lac_floor off and defer_recovery_ensemble_change off: a ledger may then "
        f"need more than {MAX_FRAGMENTS} fragments",
        lambda v: (
            v["recovery_lac_floor"] or v["defer_recovery_ensemble_change"] or v["clients"] * (v["entries"] + 1) < 11
        ),
    ),
)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    in_use = 1 << values["bookies"]
    ensembles = sum(1 << (s - 1) for s in range(1, in_use) if s.bit_count() == values["write_quorum"])
    derived = {"ensembles": ensembles, "literal": values["semantics"] == "literal"}
    return Params(**{name: int((values | derived)[name]) for name in Params._fields})
