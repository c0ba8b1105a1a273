"""Kafka's replication protocol: one partition, its replicas and its controller, in five versions.

Source: KafkaReplication.tla and the modules of its variants (hachikuji/kafka-specification), one file each. Actions
stand in the order of their Next under their own names; where variants put different actions in one place all of them
stand there, and the parameters say which one is enabled. No message is lost one by one: LeaderAndIsr requests are never
withdrawn, and replicas may receive them late or never. The rates say how faulty a cluster is.
"""

from functools import partial

from quorisk.kernels.model import Model, in_normal_form
from quorisk.kernels.protocols.kafka import flushing, kip320, kip320_first_try, outages, replication, truncation
from quorisk.kernels.protocols.kafka.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.kafka.layout import INITIAL, WIDTHS
from quorisk.kernels.protocols.kafka.normal_form import normal_form
from quorisk.kernels.protocols.kafka.params import CONDITIONS, PARAMETERS, make_params
from quorisk.kernels.telling import words_beside


def initial(params, choice):
    """Empty logs, every replica in the ISR, no leader yet."""
    return INITIAL._replace(quorum_isr=(1 << params.replicas) - 1)


_normal = partial(in_normal_form, normal_form)
"""Wrapper of the actions that a record passes through, and of those that may make neighbours alike."""

MODEL = Model(
    name="kafka",
    version=3,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        replication.controller_elect_leader,
        replication.controller_shrink_isr,
        replication.become_leader,
        replication.leader_expand_isr,
        kip320_first_try.leader_expand_isr_better_fencing,
        kip320.fenced_leader_expand_isr,
        replication.leader_shrink_isr,
        kip320_first_try.leader_shrink_isr_better_fencing,
        kip320.fenced_leader_shrink_isr,
        _normal(replication.leader_write),
        replication.leader_inc_high_watermark,
        kip320_first_try.improved_leader_inc_high_watermark,
        _normal(kip320.fenced_leader_inc_high_watermark),
        truncation.become_follower_truncate_to_high_watermark,
        truncation.become_follower_truncate_kip101,
        truncation.become_follower_truncate_kip279,
        kip320_first_try.become_follower,
        _normal(kip320.fenced_become_follower_and_truncate),
        replication.follower_replicate,
        kip320_first_try.follower_fetch,
        _normal(kip320.fenced_follower_fetch),
        kip320_first_try.follower_truncate,
        _normal(flushing.replica_flushes),
        _normal(flushing.replica_restarts_unclean),
        _normal(outages.cluster_loses_power),
        _normal(outages.zone_loses_power),
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=0,
    limits=tuple(words_beside(__file__)["limits"]),
)
