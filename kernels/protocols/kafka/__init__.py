"""Kafka's replication protocol: one partition, its replicas and its controller, in five versions.

Source: KafkaReplication.tla and the modules of its variants (hachikuji/kafka-specification), one file each. Actions
stand in the order of their Next under their own names; where variants put different actions in one place all of them
stand there, and the parameters say which one is enabled. No message is lost one by one: LeaderAndIsr requests are never
withdrawn, and replicas may receive them late or never. How faulty a cluster is, the rates say.
"""

from quorisk.kernels.model import Model
from quorisk.kernels.protocols.kafka import flushing, kip320, kip320_first_try, outages, replication, truncation
from quorisk.kernels.protocols.kafka.invariants import INVARIANTS, outcome
from quorisk.kernels.protocols.kafka.layout import INITIAL, WIDTHS
from quorisk.kernels.protocols.kafka.limits import LIMITS
from quorisk.kernels.protocols.kafka.params import CONDITIONS, PARAMETERS, make_params


def initial(params, choice):
    """Empty logs, every replica in the ISR, no leader yet."""
    return INITIAL._replace(quorum_isr=(1 << params.replicas) - 1)


MODEL = Model(
    name="kafka",
    version=2,
    parameters=PARAMETERS,
    conditions=CONDITIONS,
    make_params=make_params,
    initial=initial,
    actions=(
        replication.CONTROLLER_ELECT_LEADER,
        replication.CONTROLLER_SHRINK_ISR,
        replication.BECOME_LEADER,
        replication.LEADER_EXPAND_ISR,
        kip320_first_try.LEADER_EXPAND_ISR_BETTER_FENCING,
        kip320.FENCED_LEADER_EXPAND_ISR,
        replication.LEADER_SHRINK_ISR,
        kip320_first_try.LEADER_SHRINK_ISR_BETTER_FENCING,
        kip320.FENCED_LEADER_SHRINK_ISR,
        replication.LEADER_WRITE,
        replication.LEADER_INC_HIGH_WATERMARK,
        kip320_first_try.IMPROVED_LEADER_INC_HIGH_WATERMARK,
        kip320.FENCED_LEADER_INC_HIGH_WATERMARK,
        truncation.BECOME_FOLLOWER_TRUNCATE_TO_HIGH_WATERMARK,
        truncation.BECOME_FOLLOWER_TRUNCATE_KIP101,
        truncation.BECOME_FOLLOWER_TRUNCATE_KIP279,
        kip320_first_try.BECOME_FOLLOWER,
        kip320.FENCED_BECOME_FOLLOWER_AND_TRUNCATE,
        replication.FOLLOWER_REPLICATE,
        kip320_first_try.FOLLOWER_FETCH,
        kip320.FENCED_FOLLOWER_FETCH,
        kip320_first_try.FOLLOWER_TRUNCATE,
        flushing.REPLICA_FLUSHES,
        flushing.REPLICA_RESTARTS_UNCLEAN,
        outages.CLUSTER_LOSES_POWER,
        outages.ZONE_LOSES_POWER,
    ),
    invariants=INVARIANTS,
    outcome=outcome,
    widths=WIDTHS,
    max_sends=0,
    limits=LIMITS,
)
