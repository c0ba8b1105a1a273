"""Makes the KRaft modules with flushes: what of a broker's log is on disk, and how it loses the rest.

The published modules (Vanlightly/kafka-tlaplus, kafka_data_replication/kraft) are first changed where the model reads
them otherwise: no `__AvoidCycle`, and a write that commits at once is acknowledged from the log that it makes. FLUSH.md
states the rules of flushing, README.md says where the modules come from.
"""

from pathlib import Path
from typing import NamedTuple

from tests.data.tla.patching import Module
from tests.data.tla.tlc import counting

PROPERTIES = (
    "LeaderCompletenessProperty",
    "NoCommittedRecordLostGlobally",
    "LeaderCandidateCompletenessProperty",
    "ReplicationQuorumSupersetProperty",
    "LogMatchingProperty",
    "MetadataLogMatchingProperty",
    "ConsistentReadProperty",
)
ON_DISK = "AckedRecordsAreOnDisk"
FLUSHED = "[partition_flushed EXCEPT ![b] = LeoOf(b)]"
"""A clean shutdown's."""


class Version(NamedTuple):
    """A published specification."""

    folder: str
    module: str
    properties: tuple[str, ...]
    shutdown_limits: tuple[str, str]  # of those that lose nothing, and of those that lose a log
    shutdown: str  # the action that loses nothing
    on_disk: str  # what of the log it leaves on disk
    clean_epoch: str  # what a broker that stops cleanly keeps of its epoch
    spared: str  # whom the published lossy shutdown does not strike


VERSIONS = {
    "kip966": Version(
        "kip-966",
        "kafka_replication_kip_966",
        (*PROPERTIES, "MinIsrRecoveryQuorum", ON_DISK),
        ("NoDataLossShutdownLimit", "DataLossShutdownLimit"),
        "NoDataLossShutdown",
        f"= IF is_clean_shutdown THEN {FLUSHED} ELSE partition_flushed",
        "broker_state[b].broker_epoch",
        "FALSE",
    ),
    "v3_5": Version(
        "v3.5",
        "kafka_replication_v3_5",
        (*PROPERTIES, ON_DISK),
        ("CleanShutdownLimit", "UncleanShutdownLimit"),
        "CleanShutdown",
        f"\\in {{ {FLUSHED}, partition_flushed }}",  # the spec has one for clean ones and for crashes
        "0",
        "AvoidLastReplicaStanding /\\ con_partition_metadata.isr = {b}",
    ),
}

COMMITS_AT_ONCE = "                 THEN UpdateHwmInvariantVars(b, old_hwm, new_hwm, TRUE)\n"
FROM_THE_NEW_LOG = r"""                 THEN /\ inv_pos_acked' = inv_pos_acked \union { w \in inv_sent \union {v} :
                             /\ w \notin inv_pos_acked /\ w \notin inv_neg_acked
                             /\ \E offset \in old_hwm..(new_hwm-1) : /\ new_log[offset].value = w
                                  /\ offset >= (IF aux_flo[b] = IntMax THEN LeoOf(b) ELSE aux_flo[b]) }
                      /\ UNCHANGED inv_neg_acked
                      /\ inv_true_hwm' = IF new_hwm > inv_true_hwm THEN new_hwm ELSE inv_true_hwm
                      /\ inv_consumed' = IF new_hwm > inv_true_hwm
                                         THEN inv_consumed \o SubSeq(new_log, inv_true_hwm, new_hwm-1)
                                         ELSE inv_consumed
"""

DECLARATIONS = r"""
CONSTANTS FlushEveryMessage,   \* a record is on disk before anybody hears of it
          TailLossLimit,       \* shutdowns that lose what was not flushed
          OutageLimit          \* power failures of all brokers
VARIABLES partition_flushed,   \* the flush point: what of the log is below it is on disk
          tail_losses,
          outages
flush_vars == << partition_flushed, tail_losses, outages >>
"""

FLUSHING = r"""
published_vars == << con_vars, broker_vars, part_vars, NetworkVars, inv_vars, aux_vars >>

\* What a step of the published actions leaves on disk: truncation goes to disk at once, records once they are flushed
LogsOnDisk ==
    partition_flushed' = [b \in Brokers |-> IF FlushEveryMessage
                                            THEN partition_data'[b].leo
                                            ELSE Min({partition_flushed[b], partition_data'[b].leo})]

BrokerFlushes(b) ==
    /\ partition_flushed[b] < LeoOf(b)
    /\ partition_flushed' = [partition_flushed EXCEPT ![b] = LeoOf(b)]
    /\ UNCHANGED << published_vars, tail_losses, outages >>

\* A log after a power failure
HasTail(b) == partition_flushed[b] < LeoOf(b)
FlushedPart(b) ==
    IF HasTail(b)
    THEN [log |-> SubSeq(LogOf(b), 1, partition_flushed[b] - 1),
          hwm |-> Min({HwmOf(b), partition_flushed[b]}),
          leo |-> partition_flushed[b]]
    ELSE partition_data[b]

EmptyLog == [log |-> <<>>, hwm |-> 1, leo |-> 1]

\* A broker that was up goes down without a clean shutdown, with this log, which is not what it was if `lost`
Fails(b, data, lost) ==
    /\ broker_state' = [broker_state EXCEPT ![b] = [status         |-> IF lost THEN OFFLINE_DIRTY ELSE OFFLINE_CLEAN,
                                                    broker_epoch   |-> 0,
                                                    incarnation_id |-> 0,
                                                    registered     |-> FALSE]]
    /\ DropFetchSessions(b)
    /\ partition_status' = [partition_status EXCEPT ![b] = Nil]
    /\ partition_data' = [partition_data EXCEPT ![b] = data]
    /\ partition_flushed' = [partition_flushed EXCEPT ![b] = data.leo]
    /\ partition_leso' = [partition_leso EXCEPT ![b] = IF lost THEN Nil ELSE @]
    /\ partition_replica_state' = [partition_replica_state EXCEPT ![b] = [b1 \in Brokers |-> BlankReplicaState]]
    /\ ResetPendingAlterPartition(b)
    /\ FailPendingWritesIfLeader(b)
    /\ HandleBrokerFenced(b)
    /\ con_broker_reg' = [con_broker_reg EXCEPT ![b].status = FENCED]
    /\ ResetPendingAcks(b)
    /\ UNCHANGED << partition_metadata, broker_metadata_log, inv_true_hwm, inv_consumed, inv_sent, aux_broker_epoch,
                    aux_ctrs >>

IsUp(b) == broker_state[b].status \notin { OFFLINE_CLEAN, OFFLINE_DIRTY }

TailLossShutdown(b) ==
    /\ tail_losses < TailLossLimit
    /\ IsUp(b)
    /\ ~(SPARED)
    /\ tail_losses' = tail_losses + 1
    /\ Fails(b, FlushedPart(b), HasTail(b))
    /\ UNCHANGED outages

\* One broker of an outage. The page cache of one whose process is down is gone too.
LosesPower(b, gone) ==
    /\ IF IsUp(b)
       THEN Fails(b, IF b \in gone THEN EmptyLog ELSE FlushedPart(b), b \in gone \/ HasTail(b))
       ELSE /\ partition_data' = [partition_data EXCEPT ![b] = FlushedPart(b)]
            /\ partition_leso' = [partition_leso EXCEPT ![b] = IF HasTail(b) THEN Nil ELSE @]
            /\ broker_state' = [broker_state EXCEPT ![b].status = IF HasTail(b) THEN OFFLINE_DIRTY ELSE @]
            /\ UNCHANGED << con_vars, broker_fetchers, broker_metadata_log, partition_status, partition_metadata,
                            partition_replica_state, partition_pending_ap, NetworkVars, inv_vars, aux_vars,
                            partition_flushed >>
    /\ UNCHANGED << tail_losses, outages >>

Counted ==
    /\ outages' = outages + 1
    /\ UNCHANGED << published_vars, partition_flushed, tail_losses >>

\* All lose power at one instant: the controller fences those that are up in ascending order, but for `last`. Those of
\* `gone` come back with empty logs. Two brokers at most: with more, the controller has choices on the way.
ClusterLosesPower(last, gone) ==
    /\ outages < OutageLimit
    /\ Assert(BrokerCount <= 2, "an outage of more than two brokers")
    /\ IF BrokerCount = 1
       THEN LosesPower(last, gone) \cdot Counted
       ELSE (LosesPower(3 - last, gone) \cdot LosesPower(last, gone)) \cdot Counted

NextWithFlushes ==
    \/ Next /\ LogsOnDisk /\ UNCHANGED << tail_losses, outages >>
    \/ \E b \in Brokers : SHUTDOWN(b) /\ UNCHANGED << tail_losses, outages >>
    \/ \E b \in Brokers : BrokerFlushes(b) \/ TailLossShutdown(b)
    \/ \E last \in { b \in Brokers : IsUp(b) } : \E gone \in SUBSET { b \in Brokers : IsUp(b) } :
           ClusterLosesPower(last, gone)

InitWithFlushes ==
    /\ Init
    /\ partition_flushed = [b \in Brokers |-> 1]
    /\ tail_losses = 0
    /\ outages = 0

wholeview == << con_vars, broker_vars, part_vars, NetworkView, inv_vars, aux_vars, flush_vars >>

\* every acknowledged record is on the disk of some broker: what a power failure leaves
AckedRecordsAreOnDisk ==
    \A v \in inv_pos_acked :
        \E b \in Brokers : \E offset \in 1..(partition_flushed[b] - 1) : LogEntry(b, offset).value = v

\* what the variables mean
DiskIsShorter ==
    \A b \in Brokers : /\ partition_flushed[b] \in 1..LeoOf(b)
                       /\ FlushEveryMessage => partition_flushed[b] = LeoOf(b)
"""


def flushing(version: Version, folder: Path) -> dict[str, str]:
    """The modules by file: that of the version with flushes, and those that it extends."""
    texts = {file.name: file.read_text() for file in (folder / version.folder).glob("*.tla")}
    main = Module(texts.pop(f"{version.module}.tla"))
    main.replace("          /\\ __AvoidCycle(ap_request)\n", "")
    main.replace(COMMITS_AT_ONCE, FROM_THE_NEW_LOG)

    main.replace(f"MODULE {version.module} ", f"MODULE {version.module}_flush ")
    main.insert_before("vars", DECLARATIONS)
    main.within("vars", "aux_vars >>", "aux_vars, flush_vars >>")
    leaves = f"ResetPendingAcks(b)\n        /\\ partition_flushed' {version.on_disk}\n"
    main.within(version.shutdown, "ResetPendingAcks(b)\n", leaves)
    main.replace(f"        \\/ {version.shutdown}(b)\n", "")
    rules = FLUSHING.replace("SPARED", version.spared).replace("SHUTDOWN(b)", f"{version.shutdown}(b)")
    main.append(rules + counting(version.properties))
    return texts | {f"{version.module}_flush.tla": main.text}
