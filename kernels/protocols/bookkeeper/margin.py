"""The number of bookies that have to be lost before an entry is, where nothing else loses one.

With several clients one may be enough, with a message that is on its way for days: nothing is known of any state, and
heads only follow lost bookies first. With a single client, an acknowledged entry is lost once no bookie of its write
set has it. Its client closes the ledger at its own LAC, and nobody else ever does: there is no truncation. Let a
bookie be heard of an entry if its confirmation is on its way or counted, and a ghost if it is heard of and down: it
confirmed what it no longer has. Of the others that are heard of, each has the entry, as only a loss takes it away, and
a lost bookie is not replaced before the ledger is closed.

- An acknowledged entry needs as many losses as bookies of its write set have it. An ensemble change leaves its write
  set as it is (it is for entries after the LAC), and repair puts a bookie with a copy in the place of one that is down.
- One that is not acknowledged yet needs AckQuorum losses, less its ghosts. A loss makes one ghost more at most. If it
  is acknowledged, AckQuorum bookies of its write set are heard of, and all but the ghosts among them have it.
- With `guaranteed_write_quorum`, an ensemble change is for entries after the last one that is fully replicated, so one
  that is acknowledged and still pending may lose bookies of its write set that have it: all but those that confirmed
  it, which are pinned. So only these count while it is pending.
- Once the ledger is closed, no other entry is acknowledged.
"""

from quorisk.kernels.model import Margin
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.bookkeeper.layout import (
    EVERY_ROW,
    MAX_BOOKIES,
    MAX_ENTRIES,
    ROW,
    ROWS,
    STATUS_CLOSED,
    entry_row,
)


def most(params):
    """The bookies that may be lost; 0 if data is lost in other ways as well."""
    restarts = params.max_empty_restarts + params.max_unclean_restarts + params.max_partial_losses
    outages = params.max_outages + params.max_rack_outages + params.pairs + params.triples
    others = restarts or outages or params.striped
    return 0 if others else params.bookies.bit_count()


def needed(state, params):
    """The bookies that have to be lost before an entry is; one more than there are if none can be any more; 0 where
    nothing is known."""
    writer = state.writer
    stored = state.b_entries & state.meta_write_sets & (writer.confirmed | ~(writer.pending * ROW))
    ghosts = (writer.confirmed | (writer.responses.on_way & ROWS)) & (state.b_down * EVERY_ROW)
    fewest = MAX_BOOKIES + 1
    for entry in range(1, MAX_ENTRIES + 1):
        unheard = params.ack_quorum - popcount(entry_row(ghosts, entry))
        later = where(state.meta_status == STATUS_CLOSED, MAX_BOOKIES + 1, where(unheard < 0, 0, unheard))
        losses = where(entry <= writer.lac, popcount(entry_row(stored, entry)), later)
        fewest = where(losses < fewest, losses, fewest)
    return where(params.clients == 1, fewest, 0)


MARGIN = Margin("bookie_is_lost", most, needed)
