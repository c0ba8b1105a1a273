"""Makes RaftGuarded.tla of RaftFaults.tla: a follower that has lost what it acknowledged panics, as etcd does.

RAFT.md states the rule. RAFT_TLA names the folder of RaftFaults.tla.
"""

import os
from pathlib import Path
from typing import Any

from tests.data.tla.patching import Module
from tests.data.tla.tlc import Check, counting

INVARIANTS = ("NoLogDivergence", "LeaderHasAllAckedValues", "CommittedEntriesReachMajority", "AckedValuesSurvive")
MODULE = "RaftGuarded"
STATES = ("Follower", "Candidate", "Leader", "Nil", "EqualTerm", "LessOrEqualTerm")
MESSAGES = ("RequestVoteRequest", "RequestVoteResponse", "AppendEntriesRequest", "AppendEntriesResponse")

PANICS = r"""
\* The leader's heartbeat has a commit index that i acknowledged and no longer has: "tocommit is out of range".
Panics(i) ==
    /\ PanicOnLostLog
    /\ state[i] = Follower
    /\ \E l \in Server :
        /\ state[l] = Leader
        /\ currentTerm[l] >= currentTerm[i]
        /\ Min({matchIndex[l][i], commitIndex[l]}) > Len(log[i])
"""


def guarded(faults: Module) -> str:
    """The text of RaftGuarded.tla."""
    faults.replace("MODULE RaftFaults", "MODULE RaftGuarded")
    faults.replace("Resend, RejoinAsNew, Heartbeats", "Resend, RejoinAsNew, Heartbeats, PanicOnLostLog")
    faults.insert_before("Init", PANICS)
    for guard, server, times in (
        ("    /\\ electionCtr < MaxElections", "i", 1),
        ("        /\\ m.mterm > currentTerm[m.mdest]", "m.mdest", 1),
        ("        /\\ ReceivableMessage(", "m.mdest", 5),
    ):
        indent = guard[: guard.index("/")]
        faults.replace(guard, f"{indent}/\\ ~Panics({server})\n{guard}", times)
    faults.text = faults.text[: faults.text.index("\\* States that break each invariant, counted")]
    return f"{faults.text}{counting(INVARIANTS)}\n====\n"


def check_of(row: dict[str, Any]) -> Check:
    """The module and the constants that a row means."""
    given = {**row["model"], **row["faults"], **row["variant"]}
    servers, values = given.pop("servers"), given.pop("values")
    constants = {"".join(word.capitalize() for word in key.split("_")): value for key, value in given.items()}
    constants["Server"] = tuple(f"n{i}" for i in range(1, servers + 1))
    constants["Value"] = tuple(f"v{i}" for i in range(1, values + 1))
    constants |= {name: name for name in (*STATES, *MESSAGES)}
    text = guarded(Module(Path(os.environ["RAFT_TLA"], "RaftFaults.tla").read_text()))
    return Check(MODULE, {f"{MODULE}.tla": text}, constants, ("INIT Init", "NEXT Next"), INVARIANTS)
