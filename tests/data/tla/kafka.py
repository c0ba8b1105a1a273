"""Makes the modules of Kafka before KRaft with flushes: what of a replica's log is on disk, and how it loses the rest.

The published modules are those of hachikuji/kafka-specification. FLUSH.md states the rules, README.md says where the
modules come from.
"""

from pathlib import Path

from tests.data.tla.patching import Module
from tests.data.tla.tlc import counting

INVARIANTS = ("WeakIsr", "StrongIsr")

FLUSHING = r"""
CONSTANTS FlushEveryMessage,  \* a record is on disk before anybody hears of it
          MaxUncleanRestarts  \* restarts that lose what was not flushed
VARIABLES flushed,            \* the flush point: what of the log is below it is on disk
          uncleanRestarts

EndOffset(replica) == replicaLog[replica].endOffset

\* What a step of the published actions leaves on disk: truncation goes to disk at once, records once they are flushed
LogsOnDisk ==
    flushed' = [replica \in Replicas |-> IF FlushEveryMessage
                                         THEN replicaLog'[replica].endOffset
                                         ELSE Min({flushed[replica], replicaLog'[replica].endOffset})]

ReplicaFlushes(replica) ==
    /\ flushed[replica] < EndOffset(replica)
    /\ flushed' = [flushed EXCEPT ![replica] = EndOffset(replica)]
    /\ UNCHANGED << vars, uncleanRestarts >>

\* The controller sees that the broker is gone, as in ControllerShrinkIsr, before it is back
ControllerSeesFailure(replica) ==
    LET leader == IF quorumState.leader = replica THEN None ELSE quorumState.leader
        isr == IF quorumState.leader = replica /\ quorumState.isr = {replica}
               THEN quorumState.isr ELSE quorumState.isr \ {replica}
    IN IF quorumState.leader = replica \/ replica \in quorumState.isr
       THEN ControllerUpdateIsr(leader, isr)
       ELSE UNCHANGED << quorumState, leaderAndIsrRequests, nextLeaderEpoch >>

ReplicaRestartsUnclean(replica) ==
    /\ uncleanRestarts < MaxUncleanRestarts
    /\ uncleanRestarts' = uncleanRestarts + 1
    /\ ControllerSeesFailure(replica)
    /\ ReplicaLog!TruncateTo(replica, flushed[replica])
    /\ replicaState' = [replicaState EXCEPT ![replica].hw = Min({@, flushed[replica]}),
                                            ![replica].leader = IF @ = replica THEN None ELSE @]
    /\ UNCHANGED << flushed, nextRecordId >>

NextWithFlushes ==
    \/ Next /\ LogsOnDisk /\ UNCHANGED uncleanRestarts
    \/ \E replica \in Replicas : ReplicaFlushes(replica) \/ ReplicaRestartsUnclean(replica)

InitWithFlushes ==
    /\ Init
    /\ flushed = [replica \in Replicas |-> 0]
    /\ uncleanRestarts = 0

\* what the variables mean
DiskIsShorter ==
    \A replica \in Replicas : /\ flushed[replica] \in 0..EndOffset(replica)
                              /\ FlushEveryMessage => flushed[replica] = EndOffset(replica)
"""


def flushing(variant: str, folder: Path) -> dict[str, str]:
    """The modules by file: that of the variant with flushes, and those that it extends."""
    texts = {file.name: file.read_text() for file in folder.glob("*.tla")}
    main = Module(texts.pop(f"{variant}.tla"))
    main.replace(f"MODULE {variant} ", f"MODULE {variant}Flush ")
    main.replace("EXTENDS ", "EXTENDS TLC, ")
    end = main.text.index("\n=====")
    main.text = main.text[:end] + f"\n\n{'=' * 77}\n"
    main.append(FLUSHING + counting(INVARIANTS))
    return texts | {f"{variant}Flush.tla": main.text}
