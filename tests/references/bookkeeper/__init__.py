"""A slow, literal interpreter of the BookKeeper ledger specification: an oracle for faster models.

Records are NamedTuples, sets are frozensets, and the spec's own names are kept in snake_case. Only the shape of the
states is taken from `kernels.protocols.bookkeeper.describe`. The faults of bookies and writers, which the spec lacks,
are in `faults`.
"""

from tests.references.bookkeeper.actions import ACTIONS, SPEC_ACTIONS, instances
from tests.references.bookkeeper.beginning import initial
from tests.references.bookkeeper.branches import branches
from tests.references.bookkeeper.exploring import explore, loss_chain
from tests.references.bookkeeper.properties import DATA_LOSS, earlier_fragments_reach_write_quorum, invariants
from tests.references.bookkeeper.state import (
    Constants,
    View,
    covered,
    fragment_of_entry_id,
    select_ensemble,
    write_set,
)

__all__ = [
    "ACTIONS",
    "DATA_LOSS",
    "SPEC_ACTIONS",
    "Constants",
    "View",
    "branches",
    "covered",
    "earlier_fragments_reach_write_quorum",
    "explore",
    "fragment_of_entry_id",
    "initial",
    "instances",
    "invariants",
    "loss_chain",
    "select_ensemble",
    "write_set",
]
