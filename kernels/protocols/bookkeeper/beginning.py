"""The beginning of a run: before the ledger is created or, with `ledger = "closed"`, once its writer has closed it.

A closed ledger has all of its entries, each on its whole write set and on disk. Every one was sent after the one before
was acknowledged, and nothing is on its way any more: as a run from the beginning leaves it that meets no fault.
"""

from collections.abc import Mapping
from typing import Any

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.bookkeeper.layout import (
    INITIAL,
    MAX_ENTRIES,
    NO_MESSAGES,
    ROW,
    STATUS_CLOSED,
    Fragments,
    entries_up_to,
)
from quorisk.kernels.protocols.bookkeeper.messages import add_requests
from quorisk.kernels.protocols.bookkeeper.slots import with_slot_field


def words(values: Mapping[str, Any]) -> dict[str, int]:
    """Returns the fields of `Params` on the closed ledger that a run begins with; zeros if it begins with none."""
    found = dict.fromkeys(("first_ensemble", "first_order", "first_write_sets", "stored_lacs", "stored_requests"), 0)
    if values["ledger"] != "closed":
        return found
    size, copies = values["ensemble_size"], values["write_quorum"]
    found["first_ensemble"] = (1 << size) - 1  # the first that a writer selects, with racks or without
    if size > copies:
        found["first_order"] = sum(p << (3 * p) for p in range(min(size, 4)))
    for entry in range(1, MAX_ENTRIES + 1):
        write_set = [(entry - 1 + i) % size for i in range(copies)]
        row = sum(1 << b for b in write_set)
        found["first_write_sets"] |= row << (6 * (entry - 1))
        if entry <= values["entries"]:
            found["stored_requests"] |= add_requests(entry, entry - 1, row)
            for b in write_set:
                found["stored_lacs"] = with_slot_field(found["stored_lacs"], b, entry - 1)
    return found


def closed_ledger(params):
    """The state after the first client has closed the ledger that it wrote."""
    fragments = Fragments(params.first_ensemble, params.first_order & ROW, params.first_order >> 6, 1, 1)
    stored = params.first_write_sets & entries_up_to(params.entries)
    writer = INITIAL.writer._replace(
        meta_version=2,
        fragments=fragments,
        lap=params.entries,
        lac=params.entries,
        confirmed=stored,
        requests=NO_MESSAGES._replace(sent=params.stored_requests),
        responses=NO_MESSAGES._replace(sent=stored),
    )
    return INITIAL._replace(
        meta_status=STATUS_CLOSED,
        meta_fragments=fragments,
        meta_write_sets=params.first_write_sets,
        meta_last_entry=params.entries,
        meta_version=2,
        b_entries=stored,
        b_lac=params.stored_lacs,
        creator=1,
        writer_status=STATUS_CLOSED,
        writer=writer,
    )


def initial(params, choice):
    """Nothing exists yet, or a closed ledger does."""
    return where(params.first_ensemble != 0, closed_ledger(params), INITIAL)
