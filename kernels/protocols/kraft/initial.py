"""Init: an established partition."""

from quorisk.kernels.ops import where
from quorisk.kernels.protocols.kraft.layout import EVERY_BROKER, MAX_BROKERS, NOTHING, Local, Partition, Wide
from quorisk.kernels.protocols.rows import WIDTH, spread


def first_wide(rows_of_first, virtual_row, has_virtual):
    """The first record in row 0, or in row 1 behind one that the log lacks."""
    return Wide(where(has_virtual, virtual_row | rows_of_first << WIDTH, rows_of_first), 0)


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
    every = where(has_virtual, 1, 0)
    first = (everyone & ~stale) << where(has_virtual, WIDTH, 0)
    return NOTHING._replace(
        unfenced=everyone & ~stale,
        reg_epochs=ids,
        reg_incarnations=ids,
        con=Partition(replicas, isr, 0, 0, 1, 1, partition_epoch, 0, 0),
        log=NOTHING.log._replace(
            replicas=first_wide(replicas, replicas, has_virtual),
            isrs=first_wide(isr, replicas, has_virtual),
            leaders=first_wide(1, 1, has_virtual),
            bumps=Wide(1, 0),
        ),
        running=everyone,
        broker_epochs=ids,
        incarnations=ids,
        fetchers=spread(everyone & ~1),
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
        hwms=EVERY_BROKER,
        lesos=1,
        true_hwm=1,
    )
