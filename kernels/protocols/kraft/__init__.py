"""Kafka's replication protocol with the KRaft controller: one partition, with and without eligible leader replicas.

Source: kafka_replication_kip_966.tla, kafka_replication_v3_5.tla and their modules (Vanlightly/kafka-tlaplus). Actions
stand in the order of their Next under the names of the former (in the latter NoDataLossShutdown is CleanShutdown and
DataLossShutdown is UncleanShutdown). Two of them are split, so that what happens by fault has its own rate: the
leader's AlterPartition requests that shrink the ISR (`leader_shrink_isr`), and unclean shutdowns that lose nothing
(`no_data_loss_unclean_shutdown`). No message is lost one by one: requests wait until their broker runs.
"""

from functools import partial

from quorisk.kernels.model import Model, in_normal_form
from quorisk.kernels.protocols.kraft import (
    controller,
    isolation,
    leader,
    lifecycle,
    metadata,
    outages,
    replication,
    rolls,
    stalls,
)
from quorisk.kernels.protocols.kraft.initial import initial
from quorisk.kernels.protocols.kraft.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.kraft.layout import MAX_BROKERS, WIDTHS
from quorisk.kernels.protocols.kraft.lost_records import lost_records
from quorisk.kernels.protocols.kraft.normal_form import normal_form
from quorisk.kernels.protocols.kraft.params import CONDITIONS, PARAMETERS, PROBABILITIES, make_params
from quorisk.kernels.telling import words_beside

_normal = partial(in_normal_form, normal_form)
"""Wrapper of the actions that a record passes through: the next of these merges neighbours that others make alike."""
_counted_anew = partial(in_normal_form, stalls.counted_anew, switch="stalls_go_on")
"""Wrapper of the actions after which the leader may know the current ISR, so that earlier ones matter no more."""

MODEL = Model(
    name="kraft",
    version=9,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        lifecycle.broker_start,
        lifecycle.receive_broker_reg_response,
        _counted_anew(metadata.receive_metadata_update),
        leader.send_alter_partition_request,
        leader.leader_shrink_isr,
        _counted_anew(leader.receive_alter_partition_response),
        replication.send_fetch_request,
        replication.receive_fetch_request,
        _normal(replication.receive_fetch_response),
        _normal(replication.write_record_to_leader),
        lifecycle.data_loss_shutdown,
        lifecycle.no_data_loss_shutdown,
        lifecycle.no_data_loss_unclean_shutdown,
        controller.receive_broker_reg_request,
        controller.receive_alter_partition_request,
        controller.fence_broker,
        controller.unfence_broker,
        controller.perform_partition_reassignment,
        outages.cluster_loses_power,
        outages.zone_loses_power,
        lifecycle.tail_loss_shutdown,
        lifecycle.broker_flushes,
        stalls.follower_stalls,
        _counted_anew(stalls.follower_resumes),
        stalls.leader_removes_stalled,
        rolls.roll_begins,
        rolls.roll_restarts,
        rolls.restart_ends,
        isolation.leader_is_isolated,
        isolation.isolation_ends,
        isolation.session_times_out,
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=MAX_BROKERS,
    limits=tuple(words_beside(__file__)["limits"]),
    probabilities=PROBABILITIES,
    lost_records=lost_records,
    writes="write_record_to_leader",
)
