"""Kafka's replication protocol with the KRaft controller: one partition, with and without eligible leader replicas.

Source: kafka_replication_kip_966.tla, kafka_replication_v3_5.tla and their modules (Vanlightly/kafka-tlaplus). Actions
stand in the order of their Next under the names of the former (in the latter NoDataLossShutdown is CleanShutdown and
DataLossShutdown is UncleanShutdown). Two of them are split, so that what happens by fault has its own rate: the
leader's AlterPartition requests that shrink the ISR (`leader_shrink_isr`), and unclean shutdowns that lose nothing
(`no_data_loss_unclean_shutdown`). No message is lost one by one: requests wait until their broker runs.
"""

from quorisk.kernels.model import Model
from quorisk.kernels.protocols.kraft import controller, leader, lifecycle, metadata, outages, replication
from quorisk.kernels.protocols.kraft.initial import initial
from quorisk.kernels.protocols.kraft.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.kraft.layout import MAX_BROKERS, WIDTHS
from quorisk.kernels.protocols.kraft.limits import LIMITS
from quorisk.kernels.protocols.kraft.params import CONDITIONS, PARAMETERS, PROBABILITIES, make_params

MODEL = Model(
    name="kraft",
    version=5,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        lifecycle.BROKER_START,
        lifecycle.RECEIVE_BROKER_REG_RESPONSE,
        metadata.RECEIVE_METADATA_UPDATE,
        leader.SEND_ALTER_PARTITION_REQUEST,
        leader.LEADER_SHRINK_ISR,
        leader.RECEIVE_ALTER_PARTITION_RESPONSE,
        replication.SEND_FETCH_REQUEST,
        replication.RECEIVE_FETCH_REQUEST,
        replication.RECEIVE_FETCH_RESPONSE,
        replication.WRITE_RECORD_TO_LEADER,
        lifecycle.DATA_LOSS_SHUTDOWN,
        lifecycle.NO_DATA_LOSS_SHUTDOWN,
        lifecycle.NO_DATA_LOSS_UNCLEAN_SHUTDOWN,
        controller.RECEIVE_BROKER_REG_REQUEST,
        controller.RECEIVE_ALTER_PARTITION_REQUEST,
        controller.FENCE_BROKER,
        controller.UNFENCE_BROKER,
        controller.PERFORM_PARTITION_REASSIGNMENT,
        outages.CLUSTER_LOSES_POWER,
        outages.ZONE_LOSES_POWER,
        lifecycle.TAIL_LOSS_SHUTDOWN,
        lifecycle.BROKER_FLUSHES,
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=MAX_BROKERS,
    limits=LIMITS,
    probabilities=PROBABILITIES,
)
