"""The end of an ensemble change of BookKeeper's writer with E > WQ: `callbacks_after_unset` off, defect 3.

Not in the spec, where a change is one step. From its request for a new ensemble to the metadata store until the answer
(`LedgerHandle.changingEnsemble`), BookKeeper's writer calls back no entry, but counts responses that arrive. Then it
goes through its pending entries, and removes the confirmations of the replaced bookies. At a replaced position that an
entry does not go to, it calls back all entries with an ack quorum instead
(`PendingAddOp.unsetSuccessAndSendWriteRequest`): later entries, too, that still count a replaced bookie. They are
acknowledged with too few copies in the ensemble that the metadata has for them, and never sent again.

Repaired, no entry is called back before all have forgotten the replaced bookies. A change is one step again then:
responses that arrive meanwhile might as well arrive after it.
"""

from quorisk.kernels.model import action
from quorisk.kernels.ops import lowest_bit, where
from quorisk.kernels.protocols.bookkeeper.adding import (
    contiguous_entry,
    reached_entries,
    without_confirmations,
    without_ops,
)
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_ROW,
    ROW,
    STATUS_OPEN,
    any_row,
    current_ensemble,
    entries_up_to,
    nonzero_rows,
)
from quorisk.kernels.protocols.bookkeeper.stripes import EVERY_READ_ROW, positions, unpacked


def unset_before(params, left, replaced, write_set):
    """The replaced bookies whose confirmations of an entry of this write set are removed before it calls back: those at
    positions before the first replaced one that it does not go to."""
    rows = positions(params, left)
    elsewhere = rows & ((replaced & ~write_set) * EVERY_READ_ROW)
    return any_row(rows & ((elsewhere & -elsewhere) - 1)) & replaced


def called_back(params, client, left, replaced):
    """The LAC after the change. The first call back is the one that counts: later ones find no more confirmations."""
    touched = where(client.left != 0, nonzero_rows((replaced * EVERY_ROW) & ~client.op_ensembles), -1)
    calling = touched & client.pending
    place = lowest_bit(calling | 1 << 24)
    write_set = (client.op_ensembles >> place) & ROW
    unset = ((replaced * EVERY_ROW) & ((1 << place) - 1)) | unset_before(params, left, replaced, write_set) << place
    confirmed = client.confirmed & (~unset | entries_up_to(client.lac))
    lac = contiguous_entry(reached_entries(params, confirmed), client.lac)
    return where(calling != 0, lac, client.lac)


def client_completes_ensemble_change_enabled(state, params):
    return (where((state.changing != 0) & (state.writer_status == STATUS_OPEN), 1, 0),)


@action(client_completes_ensemble_change_enabled)
def client_completes_ensemble_change(state, params, instance, lost):
    """The metadata accept the new ensemble of a writer that has called back without waiting for them."""
    writer = state.writer
    left = unpacked(writer.left)
    replaced = left.members & ~current_ensemble(writer.fragments)
    lac = called_back(params, writer, left, replaced)
    acknowledged = without_ops(params, writer, entries_up_to(lac))._replace(lac=lac)
    confirmed = without_confirmations(acknowledged, replaced)
    return state._replace(writer=acknowledged._replace(confirmed=confirmed), changing=0)
