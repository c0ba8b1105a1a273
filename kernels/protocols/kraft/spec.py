"""The shapes of the spec's own variables: for traces, and to compare states with other programs' states.

Brokers are counted from 1, as in the spec, where a broker's id is also its first epoch and incarnation id; the entry of
broker b of a tuple by broker stands at b - 1. None stands for Nil, NoLeader and an absent floor leader offset.
"""

from typing import NamedTuple

FENCED, UNFENCED = "FENCED", "UNFENCED"
OFFLINE_CLEAN, OFFLINE_DIRTY, STARTING, RUNNING = "OFFLINE_CLEAN", "OFFLINE_DIRTY", "STARTING", "RUNNING"
LEADER, FOLLOWER = "Leader", "Follower"
REGISTER_REQUEST, REGISTER_RESPONSE = "RegisterBrokerRequest", "RegisterBrokerResponse"
ALTER_REQUEST, ALTER_RESPONSE = "AlterPartitionRequest", "AlterPartitionResponse"
FETCH_REQUEST, FETCH_RESPONSE = "FetchRequest", "FetchResponse"
INELIGIBLE_REPLICA, FENCED_LEADER_EPOCH = "IneligibleReplica", "FencedLeaderEpoch"
UNKNOWN_LEADER_EPOCH, NOT_LEADER = "UnknownLeaderEpoch", "NotLeaderOrFollower"

Brokers = frozenset[int]


class Registration(NamedTuple):
    """ControllerSideBrokerState."""

    status: str
    broker_epoch: int
    incarnation_id: int


class PartitionMetadata(NamedTuple):
    """ControllerPartitionMetadata, and a PartitionChangeRecord."""

    replicas: Brokers
    isr: Brokers
    elr: Brokers
    last_known_elr: Brokers
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    adding: Brokers
    removing: Brokers


class BrokerState(NamedTuple):
    """BrokerSideState."""

    status: str
    broker_epoch: int
    incarnation_id: int
    registered: bool


class FetchState(NamedTuple):
    """PartitionFetchState."""

    fetch_offset: int
    last_fetched_epoch: int
    delayed: bool


class Fetcher(NamedTuple):
    """BrokerFetcher."""

    partition: FetchState | None
    pending_response: bool


class ReplicaMetadata(NamedTuple):
    """ReplicaPartitionMetadata."""

    replicas: Brokers
    isr: Brokers
    maximal_isr: Brokers
    leader: int | None
    leader_epoch: int
    partition_epoch: int


class Record(NamedTuple):
    """PartitionRecord."""

    epoch: int
    offset: int
    value: int


class PartitionData(NamedTuple):
    """PartitionDataType."""

    log: tuple[Record, ...]
    hwm: int
    leo: int


class PeerReplica(NamedTuple):
    """PeerReplicaState."""

    leo: int | None
    broker_epoch: int


class RegisterRequest(NamedTuple):
    """RegisterBrokerRequestType."""

    source: int
    broker_epoch: int
    incarnation_id: int
    type: str = REGISTER_REQUEST


class RegisterResponse(NamedTuple):
    """RegisterBrokerResponseType."""

    dest: int
    broker_epoch: int
    incarnation_id: int
    metadata_offset: int
    type: str = REGISTER_RESPONSE


class AlterRequest(NamedTuple):
    """AlterPartitionRequestType; the leader is the source."""

    isr: Brokers
    isr_and_epochs: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    broker_epoch: int
    source: int
    type: str = ALTER_REQUEST


class AlterResponse(NamedTuple):
    """AlterPartitionResponseTypeSuccess and ...Failure, which has nothing but the error and the request."""

    error: str | None
    request: AlterRequest
    dest: int
    replicas: Brokers = frozenset()
    isr: Brokers = frozenset()
    leader: int | None = None
    leader_epoch: int = 0
    partition_epoch: int = 0
    type: str = ALTER_RESPONSE


class FetchRequest(NamedTuple):
    """FetchRequestType."""

    broker_epoch: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    dest: int
    source: int
    type: str = FETCH_REQUEST


class EpochOffset(NamedTuple):
    """A leader epoch and the offset at which it ends."""

    epoch: int
    offset: int


class FetchResponse(NamedTuple):
    """FetchResponseType."""

    error: str | None
    leader_epoch: int
    fetch_offset: int
    diverging_epoch: EpochOffset | None
    hwm: int
    records: tuple[Record, ...]
    dest: int
    source: int
    type: str = FETCH_RESPONSE


Message = RegisterRequest | RegisterResponse | AlterRequest | AlterResponse | FetchRequest | FetchResponse


class PendingAlter(NamedTuple):
    """partition_pending_ap."""

    epoch: int
    request: AlterRequest | None


class Counters(NamedTuple):
    """StateSpaceLimitCtrs."""

    incarn_ctr: int
    no_data_loss_shutdown_ctr: int
    data_loss_shutdown_ctr: int
    fence_broker_ctr: int
    leader_shrink_isr_ctr: int
    reassignment_ctr: int
    outage_ctr: int  # beyond the specs, as the next
    zone_outage_ctr: int
    tail_loss_ctr: int
    stall_ctr: int
    roll_ctr: int
    isolation_ctr: int


class SpecState(NamedTuple):
    """Every variable of the spec but `messages_discard`."""

    con_unfenced: Brokers
    con_broker_reg: tuple[Registration, ...]
    con_partition_metadata: PartitionMetadata
    con_metadata_log: tuple[PartitionMetadata, ...]
    broker_state: tuple[BrokerState, ...]
    broker_fetchers: tuple[tuple[Fetcher, ...], ...]
    broker_metadata_log: tuple[tuple[PartitionMetadata, ...], ...]
    partition_status: tuple[str | None, ...]
    partition_metadata: tuple[ReplicaMetadata, ...]
    partition_data: tuple[PartitionData, ...]
    partition_flushed: tuple[int, ...]  # beyond the specs: the offset up to which a log is on disk, that one left out
    partition_leso: tuple[int | None, ...]
    partition_replica_state: tuple[tuple[PeerReplica, ...], ...]
    partition_pending_ap: tuple[PendingAlter, ...]
    messages: frozenset[Message]
    aux_broker_epoch: int
    aux_ctrs: Counters
    aux_flo: tuple[int | None, ...]
    inv_sent: frozenset[int]
    inv_pos_acked: frozenset[int]
    inv_neg_acked: frozenset[int]
    inv_true_hwm: int
    inv_consumed: tuple[Record, ...]
    stalled: Brokers  # beyond the specs, as what follows: brokers that fetch nothing
    to_restart: Brokers  # brokers that the roll under way has not shut down yet
    restarting: Brokers  # brokers that it has shut down and not started yet
    isolated: Brokers  # brokers that only producers reach
