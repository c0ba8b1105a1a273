"""Makes the KRaft modules with what operators meet: followers that stall, rolls, and leaders that are cut off.

It starts from the modules with flushes that `kraft.py` makes. OPERATIONS.md states the rules.
"""

from pathlib import Path

from tests.data.tla import kraft
from tests.data.tla.patching import Module

CONSTANTS = {"StallLimit": 0, "RollLimit": 0, "GatedRolls": "TRUE", "IsolationLimit": 0}
"""What rows do not give."""

DECLARATIONS = r"""
CONSTANTS StallLimit,      \* times that followers stall
          RollLimit,       \* rolls of all brokers
          GatedRolls,      \* a roll waits until all replicas are in the ISR
          IsolationLimit   \* times that leaders are cut off
VARIABLES stalled,         \* brokers that fetch nothing
          stalls,
          to_restart,      \* brokers that the roll under way has not shut down yet
          restarting,      \* brokers that it has shut down and not started yet
          rolls,
          isolated,        \* brokers that only producers reach
          isolations
stall_vars == << stalled, stalls >>
roll_vars == << to_restart, restarting, rolls >>
isolation_vars == << isolated, isolations >>
"""

GO_ON = r"""
\* What a step of the other actions leaves of it: a broker that goes down no longer stalls, and is not cut off
StaysUp(b) == broker_state'[b].status \notin { OFFLINE_CLEAN, OFFLINE_DIRTY }
OperationsGoOn ==
    /\ stalled' = { b \in stalled : StaysUp(b) }
    /\ isolated' = { b \in isolated : StaysUp(b) }
    /\ UNCHANGED << stalls, roll_vars, isolations >>
"""

OPERATIONS = r"""
FollowerStalls(b) ==
    /\ stalls < StallLimit
    /\ b \in con_partition_metadata.replicas
    /\ b # con_partition_metadata.leader
    /\ broker_state[b].status = RUNNING
    /\ b \notin stalled
    /\ stalled' = stalled \union {b}
    /\ stalls' = stalls + 1
    /\ UNCHANGED << published_vars, flush_vars, roll_vars, isolation_vars >>

FollowerResumes(b) ==
    /\ b \in stalled
    /\ stalled' = stalled \ {b}
    /\ UNCHANGED << published_vars, flush_vars, stalls, roll_vars, isolation_vars >>

LeaderRemovesStalled(b, follower) ==
    /\ broker_state[b].status = RUNNING
    /\ ~PendingAlterPartitionResponse(b)
    /\ partition_status[b] = Leader
    /\ b \notin isolated
    /\ follower \in (stalled \cap partition_metadata[b].isr) \ {b}
    /\ AsksWithout(b, {follower})
    /\ UNCHANGED << flush_vars, stall_vars, roll_vars, isolation_vars >>

RollBegins ==
    /\ rolls < RollLimit
    /\ to_restart = {}
    /\ restarting = {}
    /\ to_restart' = Brokers
    /\ rolls' = rolls + 1
    /\ UNCHANGED << published_vars, flush_vars, stall_vars, restarting, isolation_vars >>

\* The published clean shutdown, which counts in no limit
StopsCleanly(b) ==
    /\ broker_state' = [broker_state EXCEPT ![b] = [status         |-> OFFLINE_CLEAN,
                                                    broker_epoch   |-> CLEAN_EPOCH,
                                                    incarnation_id |-> 0,
                                                    registered     |-> FALSE]]
    /\ DropFetchSessions(b)
    /\ partition_status' = [partition_status EXCEPT ![b] = Nil]
    /\ partition_flushed' = [partition_flushed EXCEPT ![b] = LeoOf(b)]
    /\ partition_replica_state' = [partition_replica_state EXCEPT ![b] = [b1 \in Brokers |-> BlankReplicaState]]
    /\ ResetPendingAlterPartition(b)
    /\ FailPendingWritesIfLeader(b)
    /\ HandleBrokerFenced(b)
    /\ con_broker_reg' = [con_broker_reg EXCEPT ![b].status = FENCED]
    /\ ResetPendingAcks(b)
    /\ UNCHANGED << partition_metadata, partition_data, partition_leso, broker_metadata_log, inv_sent, inv_true_hwm,
                    inv_consumed, aux_broker_epoch, aux_ctrs, tail_losses, outages >>

RollRestarts(b) ==
    /\ b \in to_restart
    /\ \A b1 \in to_restart : b <= b1
    /\ broker_state[b].status = RUNNING
    /\ GatedRolls => /\ restarting = {}
                     /\ con_partition_metadata.replicas \subseteq con_partition_metadata.isr
    /\ StopsCleanly(b)
    /\ to_restart' = to_restart \ {b}
    /\ restarting' = restarting \union {b}
    /\ stalled' = stalled \ {b}
    /\ isolated' = isolated \ {b}
    /\ UNCHANGED << stalls, rolls, isolations >>

RestartEnds(b) ==
    /\ b \in restarting
    /\ BrokerStart(b)
    /\ restarting' = restarting \ {b}
    /\ UNCHANGED << flush_vars, stall_vars, to_restart, rolls, isolation_vars >>

LeaderIsIsolated(b) ==
    /\ isolations < IsolationLimit
    /\ b = con_partition_metadata.leader
    /\ broker_state[b].status = RUNNING
    /\ partition_status[b] = Leader
    /\ b \notin isolated
    /\ DropFetchSessions(b)
    /\ isolated' = isolated \union {b}
    /\ isolations' = isolations + 1
    /\ UNCHANGED << con_vars, broker_state, broker_metadata_log, part_vars, inv_vars, aux_vars, flush_vars, stall_vars,
                    roll_vars >>

IsolationEnds(b) ==
    /\ b \in isolated
    /\ isolated' = isolated \ {b}
    /\ UNCHANGED << published_vars, flush_vars, stall_vars, roll_vars, isolations >>

SessionTimesOut(b) ==
    /\ b \in isolated
    /\ con_broker_reg[b].status = UNFENCED
    /\ HandleBrokerFenced(b)
    /\ con_broker_reg' = [con_broker_reg EXCEPT ![b].status = FENCED]
    /\ UNCHANGED << broker_vars, part_vars, NetworkVars, inv_vars, aux_vars, flush_vars, stall_vars, roll_vars,
                    isolation_vars >>

NextWithOperations ==
    \/ NextWithFlushes /\ OperationsGoOn
    \/ RollBegins
    \/ \E b \in Brokers :
        \/ FollowerStalls(b) \/ FollowerResumes(b)
        \/ \E follower \in Brokers : LeaderRemovesStalled(b, follower)
        \/ RollRestarts(b) \/ RestartEnds(b)
        \/ LeaderIsIsolated(b) \/ IsolationEnds(b) \/ SessionTimesOut(b)

InitWithOperations ==
    /\ InitWithFlushes
    /\ stalled = {} /\ stalls = 0
    /\ to_restart = {} /\ restarting = {} /\ rolls = 0
    /\ isolated = {} /\ isolations = 0

viewofall == << wholeview, stall_vars, roll_vars, isolation_vars >>
"""

ONLY_IN_REACH = ("ReceiveMetadataUpdate", "SendAlterPartitionRequest", "ReceiveAlterPartitionResponse", "UnfenceBroker")
"""What a broker that is cut off has no part in, besides fetches."""


def with_operations(version: kraft.Version, folder: Path) -> dict[str, str]:
    """The modules by file: that of the version with flushes and operations, and those that it extends."""
    texts = kraft.flushing(version, folder)
    main = Module(texts.pop(f"{version.module}_flush.tla"))
    main.replace(f"MODULE {version.module}_flush ", f"MODULE {version.module}_operations ")
    main.insert_before("vars", DECLARATIONS)
    caught_up = "/\\ follower_leo # Nil "
    main.within("FollowerIsCaughtUp", caught_up, f"/\\ follower \\notin stalled\n       {caught_up}")
    reached = "/\\ from # to\n        /\\ from \\notin stalled\n        /\\ {from, to} \\cap isolated = {}\n"
    main.within("SendFetchRequest", "/\\ from # to\n", reached)
    main.within("Next", "\\/ BrokerStart(b)", "\\/ b \\notin restarting /\\ BrokerStart(b)")
    for action in ONLY_IN_REACH:
        main.within("Next", f"\\/ {action}(b)", f"\\/ b \\notin isolated /\\ {action}(b)")
    asks = Module(main.definition("DoSendAlterPartitionRequest"))
    asks.replace("DoSendAlterPartitionRequest", "AsksWithout")
    asks.replace("ProposeNewISR(b, curr_isr, timed_out_isr)", "curr_isr \\ timed_out_isr")
    asks.replace("MaybeIncrementShrinkCtr(curr_isr, proposed_isr)", "UNCHANGED aux_ctrs")
    main.insert_before("SendAlterPartitionRequest", asks.text)
    main.insert_before("LosesPower", GO_ON)
    unchanged = "    /\\ UNCHANGED << tail_losses, outages >>"
    main.within("LosesPower", unchanged, f"{unchanged}\n    /\\ OperationsGoOn")
    counted = "UNCHANGED << published_vars, partition_flushed, tail_losses"
    main.within("Counted", counted, f"{counted}, stall_vars, roll_vars, isolation_vars")
    main.append(OPERATIONS.replace("CLEAN_EPOCH", version.clean_epoch))
    return texts | {f"{version.module}_operations.tla": main.text}
