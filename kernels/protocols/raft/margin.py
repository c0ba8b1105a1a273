"""The number of power losses before a value is lost, where no disk is lost and not all servers lose power at once.

Of n servers q = n // 2 + 1 are a quorum, and n - q are spare. A value is lost once a server leads that lacks it, in a
later term. That takes the votes of q servers that lack it, as one that has it refuses.

- An acknowledged value that more than the spare servers have on disk is never lost: one of them is in every quorum. One
  that H servers have needs H less the spare ones to lose it, each by a power loss of its own.
- One that is not acknowledged yet will be by q servers that said that they have it; each power loss takes it from one
  of these at most. So it needs q less the spare ones, less the power losses there were.
- Where it is acknowledged although a server without it leads already, the q servers that voted for that one refuse the
  value's leader since: no more than the spare ones have it, and nothing else is needed.
"""

from quorisk.kernels.model import Margin
from quorisk.kernels.ops import popcount, where
from quorisk.kernels.protocols.raft.layout import MAX_SERVERS, MAX_VALUES, minimum, prefix, values_in

NEVER = MAX_SERVERS + 1


def loses_power(state, params):
    """Whether any server may still lose power."""
    return (state.restarts < params.max_restarts) | (state.outages < params.max_outages)


def most(params):
    """The servers that may lose power; 0 if data is lost in other ways as well."""
    return 0 if params.max_disk_losses or params.max_outages else params.servers


def needed(state, params):
    """The power losses that have to come before a value is lost; one more than there are servers if none can be."""
    quorum = (params.servers >> 1) + 1
    spare = params.servers - quorum
    fewest, left = quorum - spare - state.restarts, params.max_restarts - state.restarts
    for value in range(MAX_VALUES):
        having, synced = 0, 0
        for i in range(MAX_SERVERS):
            log, on_disk = state.log[i], minimum(state.fsync_index[i], state.length[i])
            having = having | (values_in(log, state.length[i]) >> value & 1) << i
            synced = synced | (values_in(prefix(log, on_disk), on_disk) >> value & 1) << i
        losses = where(popcount(synced) > spare, NEVER, popcount(having) - spare)
        fewest = where(state.acked[value] != 0, minimum(fewest, losses), fewest)
    fewest = where(fewest < 0, 0, fewest)
    return where(fewest > left, NEVER, fewest)


MARGIN = Margin("restart", most, needed)
