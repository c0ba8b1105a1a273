"""The work of BookKeeper's auditor on a ledger that is not closed.

A replication worker repairs earlier fragments at once, as nobody changes them any more (`auditor_replicates_fragment`
with `repair_open_ledgers`). The current one is its writer's, who will replace the lost bookie. If it has not done so
after `openLedgerRereplicationGracePeriod`, the worker opens the ledger with a recovery, which fences it: see
`replication.ReplicationWorker.deferLedgerLockRelease`. The worker is the next client that has not recovered yet.
"""

from quorisk.kernels.model import variant_of
from quorisk.kernels.ops import where
from quorisk.kernels.protocols.bookkeeper.layout import current_ensemble
from quorisk.kernels.protocols.bookkeeper.recovery import client_starts_recovery


@variant_of(
    client_starts_recovery,
    counts="The auditor has the ledger recovered, while its current ensemble lacks a bookie.",
    needs=("fence_open_ledgers",),
    bounds=(),
)
def auditor_recovers_ledger(state, params):
    (clients,) = client_starts_recovery.enabled(state, params)
    lacks_one = (state.b_down & current_ensemble(state.meta_fragments)) != 0
    return (where((params.fence_open_ledgers != 0) & lacks_one, clients & -clients, 0),)
