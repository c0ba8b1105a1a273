"""Init: an established partition."""

from quorisk.kernels.ops import jitable, where
from quorisk.kernels.protocols.kraft.layout import (
    MAX_BROKERS,
    AlterEpochs,
    Alters,
    ByBroker,
    Local,
    MetadataLog,
    Partition,
    State,
    Wide,
)
from quorisk.kernels.protocols.rows import EVERY_REPLICA, WIDTH, spread


@jitable
def first_wide(rows_of_first, virtual_row, has_virtual):
    """The first record in row 0, or in row 1 behind one that the log lacks."""
    return Wide(where(has_virtual, virtual_row | rows_of_first << WIDTH, rows_of_first), 0)


@jitable
def initial(params, choice):
    """An established partition: broker 0 leads, replicas outside the ISR are fenced and have not heard of it."""
    everyone = (1 << params.brokers) - 1
    replicas, isr = (1 << params.replication_factor) - 1, (1 << params.init_isr) - 1
    has_virtual = params.init_isr < params.replication_factor
    partition_epoch = where(has_virtual, 2, 1)
    stale = replicas & ~isr
    ids = 0
    for b in range(MAX_BROKERS):
        ids |= where((everyone >> b) & 1, (b + 1) << (WIDTH * b), 0)
    nothing = Wide(0, 0)
    no_words = ByBroker(0, 0, 0, 0, 0)
    every = where(has_virtual, 1, 0)
    first = (everyone & ~stale) << where(has_virtual, WIDTH, 0)
    return State(
        unfenced=everyone & ~stale,
        reg_epochs=ids,
        reg_incarnations=ids,
        con=Partition(replicas, isr, 0, 0, 1, 1, partition_epoch, 0, 0),
        log=MetadataLog(
            replicas=first_wide(replicas, replicas, has_virtual),
            isrs=first_wide(isr, replicas, has_virtual),
            elrs=nothing,
            leaders=first_wide(1, 1, has_virtual),
            bumps=Wide(1, 0),
            adding=nothing,
            removing=nothing,
        ),
        running=everyone,
        starting=0,
        dirty=0,
        broker_epochs=ids,
        incarnations=ids,
        fetchers=spread(everyone & ~1),
        delayed=0,
        replicated=Wide(first | every * everyone, 0),
        leaders=1,
        followers=replicas & ~1,
        local=Local(
            replicas=spread(replicas) * replicas,
            isrs=spread(isr) * isr | spread(stale) * replicas,
            maximal_isrs=spread(isr) * isr | spread(stale) * replicas,
            leaders=spread(replicas),
            leader_epochs=spread(replicas),
            partition_epochs=spread(isr) * partition_epoch | spread(stale),
        ),
        logs=0,
        hwms=EVERY_REPLICA,
        lesos=1,
        peers=no_words,
        pending=0,
        register_requests=0,
        register_responses=0,
        register_epochs=0,
        register_records=0,
        alters=Alters(nothing, nothing, AlterEpochs(0, 0, 0, 0, 0, 0, 0)),
        fetch_requests=0,
        fetch_responses=0,
        fetch_heads=no_words,
        fetch_bodies=no_words,
        starts=0,
        registrations=0,
        clean_shutdowns=0,
        lossy_shutdowns=0,
        fencings=0,
        isr_shrinks=0,
        reassignments=0,
        flos=0,
        sent=0,
        pos_acked=0,
        neg_acked=0,
        true_hwm=1,
        consumed=0,
        offsets=0,
        value_epochs=0,
    )


@jitable
def initial_choices(params):
    """The spec has one initial state."""
    return 1
