"""Bit layout of the KRaft model's state.

Brokers are counted from 0 here (from 1 in the spec, whose broker 1 is the first leader). What holds in every reachable
state makes it small; the literal interpreter of the tests, which relies on none of it, reaches the same states:

- The controller's partition metadata is the last record of the metadata log, and partition epochs count its records:
  everything made in a partition epoch stands in row epoch - 1 of a `Wide`. A broker's metadata log is a prefix of it.
- The leader of a partition epoch has one AlterPartition exchange in it, which stays in the network if it is overtaken,
  and it is pending no longer than that leader is in that epoch.
- Between two brokers there is one fetch exchange, pending until it is answered or one of them shuts down. A fetcher's
  offset and last fetched epoch are those of the end of its broker's log.
- A value is written once, so it has one epoch and one offset, wherever it is: a log is a set of values. Of a value that
  no log, no fetch response and no consumer has, epoch and offset are forgotten.
- An incarnation id names one start of one broker, and so one registration exchange.
"""

from typing import Annotated, NamedTuple

from quorisk.kernels.ops import lowest_bit, popcount, where
from quorisk.kernels.protocols import packed
from quorisk.kernels.protocols.fields import blank, widths
from quorisk.kernels.protocols.rows import EVERY_ROW, ROW, WIDTH, row, rows, union, with_row

MAX_BROKERS, MAX_VALUES = 6, 6
MAX_RECORDS = 20
"""Partition epochs: records of the metadata log."""
MAX_STARTS = 8
MAX_EPOCH = 15
"""Largest leader epoch and largest broker epoch that a state has room for."""
LOW_ROWS = 10
"""Rows in the first word of a `Wide`."""
ALL_BROKERS = (1 << MAX_BROKERS) - 1
ALL_VALUES = (1 << MAX_VALUES) - 1
DIAGONAL = sum(1 << (WIDTH * b + b) for b in range(MAX_BROKERS))
"""The diagonal of a matrix whose rows and columns are brokers."""
EVERY_BROKER = sum(1 << (WIDTH * b) for b in range(MAX_BROKERS))
"""Times a row: that row for every broker; also the lowest bits of their rows."""
EVERY_LOW = sum(1 << (WIDTH * i) for i in range(LOW_ROWS))
"""The factor that copies a row to every partition epoch of a word."""
EVERY_START = sum(1 << (WIDTH * i) for i in range(MAX_STARTS))
REACHED_BITS = WIDTH * (MAX_VALUES + 1)
EVERY_OFFSET = sum(1 << (WIDTH * o) for o in range(MAX_VALUES + 1))
"""The factor that copies a row to every offset of a log's end."""
HEAD_BITS, BODY_BITS = 12, MAX_VALUES + 4
PEERS = MAX_BROKERS - 1
"""Places in a broker's word about its peers: peer p has place p, and the last peer that of the broker itself."""
EVERY_PLACE = sum(1 << (BODY_BITS * p) for p in range(PEERS))
REQUESTED, ACCEPTED, INELIGIBLE, FENCED = 1, 2, 4, 8
"""An AlterPartition exchange: the request, or the response by its error."""
OK, UNKNOWN_EPOCH, FENCED_EPOCH, NOT_LEADER = range(4)
"""Errors of a fetch response."""


# What there is in a state, and its bits (see `fields`)
Brokers = Annotated[int, MAX_BROKERS]
Rows = Annotated[int, WIDTH * MAX_BROKERS]  # one for each broker
ByStart = Annotated[int, WIDTH * MAX_STARTS]
ByValue = Annotated[int, WIDTH * MAX_VALUES]
Values = Annotated[int, MAX_VALUES]
Epoch = Annotated[int, 4]
Counter = Annotated[int, 3]


class Wide(NamedTuple):
    """A row for each partition epoch; that of epoch p is row p - 1."""

    low: Annotated[int, WIDTH * LOW_ROWS]  # epochs 1 to 10
    high: Annotated[int, WIDTH * (MAX_RECORDS - LOW_ROWS)]  # epochs 11 to 20


class ByBroker(NamedTuple):
    """A word for each broker."""

    b0: int
    b1: int
    b2: int
    b3: int
    b4: int
    b5: int


class Partition(NamedTuple):
    """con_partition_metadata."""

    replicas: Brokers
    isr: Brokers
    elr: Brokers
    last_known_elr: Brokers
    leader: Brokers  # empty = NoLeader
    leader_epoch: Epoch
    partition_epoch: Annotated[int, 5]
    adding: Brokers
    removing: Brokers


class MetadataLog(NamedTuple):
    """con_metadata_log; `last_known_elr` follows from the rest. Row p - 1: the record of partition epoch p.

    If the first ISR is smaller than the replica set, partition epoch 1 has a record here that the spec's log lacks.
    """

    replicas: Wide
    isrs: Wide
    elrs: Wide
    leaders: Wide
    bumps: Wide  # the lowest bit of a row: the record begins a leader epoch
    adding: Wide
    removing: Wide


class Local(NamedTuple):
    """partition_metadata: a row for each broker."""

    replicas: Rows
    isrs: Rows
    maximal_isrs: Rows
    leaders: Rows
    leader_epochs: Rows
    partition_epochs: Rows


class Alters(NamedTuple):
    """AlterPartition requests and responses, by the partition epoch that the request was made in."""

    kinds: Wide  # REQUESTED, ACCEPTED, INELIGIBLE or FENCED; 0: there is none
    isrs: Wide  # isr
    epochs: packed.Rows(MAX_RECORDS, 4 * MAX_BROKERS)  # isr_and_epochs, 4 bits a broker; at the leader its broker_epoch


class State(NamedTuple):
    """Every variable of the spec; "row b": a row for each broker."""

    unfenced: Brokers  # con_unfenced
    reg_epochs: Rows  # row b: con_broker_reg[b].broker_epoch
    reg_incarnations: Rows  # row b: con_broker_reg[b].incarnation_id
    con: Partition  # con_partition_metadata
    log: MetadataLog  # con_metadata_log
    running: Brokers  # brokers that are RUNNING
    starting: Brokers  # brokers that are STARTING
    dirty: Brokers  # brokers that are OFFLINE_DIRTY; the rest is OFFLINE_CLEAN
    broker_epochs: Rows  # row b: broker_state[b].broker_epoch
    incarnations: Rows  # row b: broker_state[b].incarnation_id
    fetchers: Rows  # row b: the broker whose fetcher of b has the partition
    delayed: Brokers  # brokers whose fetcher that is has `delayed`
    replicated: Wide  # broker_metadata_log: bit b of a row: broker b has that record
    leaders: Brokers  # partition_status is Leader
    followers: Brokers  # partition_status is Follower
    local: Local  # partition_metadata
    logs: Rows  # row b: the values in partition_data[b].log
    unflushed: Rows  # row b: those of them that are not on disk
    hwms: Rows  # row b: partition_data[b].hwm
    lesos: Rows  # row b: partition_leso[b]; 0 = Nil
    # partition_replica_state[b]: bit 6(o - 1) + p: leo of p is at least o; above them 4 bits a peer (`place_of`): epoch
    peers: Annotated[ByBroker, REACHED_BITS + 4 * PEERS]
    pending: Brokers  # brokers whose partition_pending_ap has a request: that of their partition epoch
    register_requests: ByStart  # row k: the broker of RegisterBrokerRequest of start k
    register_responses: ByStart  # row k: the broker of RegisterBrokerResponse of start k
    register_epochs: ByStart  # row k: their broker_epoch
    register_records: ByStart  # row k: the partition epoch of their metadata_offset
    alters: Alters  # AlterPartitionRequest and AlterPartitionResponse
    fetch_requests: Rows  # row b: destinations of FetchRequests of b
    fetch_responses: Rows  # row b: sources of FetchResponses to b
    # 12 bits a peer (`place_of`): leader_epoch (4), fetch_offset (3), hwm (3), error (2)
    fetch_heads: Annotated[ByBroker, HEAD_BITS * PEERS]
    # 10 bits a peer: records, a set of values (6), or diverging_epoch: offset (6) and epoch (4); or of a request:
    # last_fetched_epoch in the place of the latter
    fetch_bodies: Annotated[ByBroker, BODY_BITS * PEERS]
    starts: Epoch  # aux_ctrs.incarn_ctr, less what it starts from
    registrations: Epoch  # aux_broker_epoch, less what it starts from
    clean_shutdowns: Counter  # aux_ctrs.no_data_loss_shutdown_ctr
    lossy_shutdowns: Counter  # aux_ctrs.data_loss_shutdown_ctr
    fencings: Counter  # aux_ctrs.fence_broker_ctr
    isr_shrinks: Counter  # aux_ctrs.leader_shrink_isr_ctr
    reassignments: Counter  # aux_ctrs.reassignment_ctr
    outages: Counter  # power outages of the cluster so far
    zone_outages: Counter  # and of a zone
    tail_losses: Counter  # of single brokers
    stalled: Brokers  # brokers that fetch nothing
    stalls: Counter
    to_restart: Brokers  # brokers that the roll under way has not shut down yet
    restarting: Brokers  # brokers that it has shut down, and that are not started yet
    rolls: Counter
    isolated: Brokers  # brokers that only producers reach
    isolations: Counter
    flos: Rows  # row b: aux_flo[b]; 0 = IntMax
    sent: Values  # inv_sent, a set of values
    pos_acked: Values  # inv_pos_acked, a set of values
    neg_acked: Values  # inv_neg_acked, a set of values
    true_hwm: Annotated[int, 3]  # inv_true_hwm
    consumed: Values  # inv_consumed, a set of values
    offsets: ByValue  # row o - 1: the values at offset o
    value_epochs: ByValue  # row v: the epoch of value v


WIDTHS, NOTHING = widths(State), blank(State)


# ---- rows by partition epoch


def wide_row(wide, i):
    """Row i."""
    upper = i >= LOW_ROWS
    return (where(upper, wide.high, wide.low) >> (WIDTH * where(upper, i - LOW_ROWS, i))) & ROW


def with_wide_row(wide, i, value):
    """Row i replaced."""
    upper = i >= LOW_ROWS
    shift = WIDTH * where(upper, i - LOW_ROWS, i)
    word = (where(upper, wide.high, wide.low) & ~(ROW << shift)) | (value << shift)
    return Wide(where(upper, wide.low, word), where(upper, word, wide.high))


def rows_before(i):
    """All bits of the rows 0 to i - 1."""
    upper = i >= LOW_ROWS
    low, high = where(upper, LOW_ROWS, i), where(upper, i - LOW_ROWS, 0)
    return Wide((1 << (WIDTH * low)) - 1, (1 << (WIDTH * high)) - 1)


def leader_epoch_of(log, i):
    """The leader epoch of the record in row i."""
    upto = rows_before(i + 1)
    return popcount(log.bumps.low & upto.low) + popcount(log.bumps.high & upto.high)


# ---- words by broker


def word_of(words, b):
    """The word of broker b."""
    upper = where(b == 3, words.b3, where(b == 4, words.b4, words.b5))
    return where(b == 0, words.b0, where(b == 1, words.b1, where(b == 2, words.b2, upper)))


def with_word(words, b, value):
    """The word of broker b replaced."""
    return ByBroker(*(where(b == i, value, word) for i, word in enumerate(words)))


def without_words(words, brokers):
    """The words of these brokers set to 0."""
    return ByBroker(*(where((brokers >> b) & 1, 0, word) for b, word in enumerate(words)))


def place_of(f, t):
    """The place of peer t in a word of broker f."""
    return where(t == MAX_BROKERS - 1, f, t)


def peer_epoch(peers, b, p):
    """The broker epoch of peer p in leader b's word about its peers."""
    return (peers >> (REACHED_BITS + 4 * place_of(b, p))) & 15


def without_peers(words, brokers, size):
    """The words with all fetches from these brokers, of `size` bits each, set to 0."""
    own, gone = (1 << size) - 1, 0
    for b in range(PEERS):
        gone |= where((brokers >> b) & 1, own << (size * b), 0)
    last = (brokers >> (MAX_BROKERS - 1)) & 1
    kept = (word & ~(gone | where(last, own << (size * b), 0)) for b, word in enumerate(words[:-1]))
    return ByBroker(*kept, words.b5 & ~gone)


# ---- parts of the state


def with_local(local, b, replicas, isr, leader, leader_epoch, partition_epoch):
    """`local` with broker b's knowledge of the partition replaced; its maximal ISR is its ISR."""
    known = replicas, isr, isr, leader, leader_epoch, partition_epoch
    return Local(*(with_row(rows, b, value) for rows, value in zip(local, known, strict=True)))


def with_alter(sent, i, kind, isr, epochs):
    """The AlterPartition exchange of row i replaced."""
    return Alters(with_wide_row(sent.kinds, i, kind), with_wide_row(sent.isrs, i, isr), sent.epochs.put(i, epochs))


# ---- logs


def leo_of(state, b):
    """LeoOf."""
    return popcount(row(state.logs, b)) + 1


def values_before(state, offset):
    """The values at smaller offsets than this one, which is at least 1."""
    return union(state.offsets & ((1 << (WIDTH * (offset - 1))) - 1))


def last_epoch(state, log):
    """The epoch of the last record of a log, a set of values; 0 if it is empty."""
    last = log & row(state.offsets << WIDTH, popcount(log))
    return row(state.value_epochs, lowest_bit(last | 1 << MAX_VALUES))


def values_on_way(bodies):
    """The values in fetch responses."""
    lanes = 0
    for word in bodies:
        epochs = word >> MAX_VALUES
        has_epoch = (epochs | (epochs >> 1) | (epochs >> 2) | (epochs >> 3)) & EVERY_PLACE
        lanes |= word & ~(has_epoch * ALL_VALUES)
    lanes |= (lanes >> BODY_BITS) | (lanes >> (2 * BODY_BITS))
    return (lanes | (lanes >> (3 * BODY_BITS)) | (lanes >> (4 * BODY_BITS))) & ALL_VALUES


def forget(state):
    """State without epoch and offset of values that no log or message has any longer."""
    known = union(state.logs) | state.consumed | values_on_way(state.fetch_bodies)
    return state._replace(offsets=state.offsets & (known * EVERY_ROW), value_epochs=state.value_epochs & rows(known))
