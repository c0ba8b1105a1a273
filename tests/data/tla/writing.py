"""Makes BookKeeperWriting.tla of BookKeeperFlush.tla: when a writer replaces bookies, and when it acknowledges.

WRITING.md states the rules, README.md says where the modules come from.
"""

from tests.data.tla.patching import Module

CONSTANTS = "DelayEnsembleChange, Racks, MinRacks, EnforceMinRacks, EnforceMinFaultDomains"

FAILED_BOOKIES = r"""
\* Bookies of an entry's write set that have not confirmed it, an add message about it with each having timed out
Unanswered(c, recovery, entry_id) ==
    { b \in WriteSet(entry_id, c.curr_fragment.ensemble) \ c.confirmed[entry_id] :
        \E msg \in DOMAIN messages :
            /\ messages[msg] = -1
            /\ msg.type \in {AddEntryRequestMessage, AddEntryResponseMessage}
            /\ msg.cid = c.id
            /\ msg.recovery = recovery
            /\ msg.bookie = b
            /\ msg.entry.id = entry_id }

\* The bookies that an ensemble change replaces: all that timed out or, with DelayEnsembleChange, those that keep a
\* pending entry from its ack quorum
FailedBookies(c, recovery) ==
    IF DelayEnsembleChange
    THEN UNION { failed \in { Unanswered(c, recovery, op.entry.id) : op \in c.pending_add_ops } :
                   Cardinality(failed) > WriteQuorum - AckQuorum }
    ELSE { b \in Members(c.curr_fragment.ensemble) : WriteTimeoutForBookie(messages, c.id, b, recovery) }
"""


RACKS = r"""
\* Whether these bookies are in as many racks as a write quorum is to span
SpansEnoughRacks(bookies) ==
    LET wanted == IF MinRacks < WriteQuorum THEN MinRacks ELSE WriteQuorum
    IN Cardinality({ rack \in Racks : rack \intersect bookies # {} }) >= wanted

\* Whether placement is content with an ensemble
WellPlaced(ensemble) == Racks = {} \/ SpansEnoughRacks(ensemble)

ReachesAckQuorum(confirmed_by) ==
    /\ Cardinality(confirmed_by) >= AckQuorum
    /\ EnforceMinFaultDomains => SpansEnoughRacks(confirmed_by)

\* An ensemble that placement is content with or, if there is none and nothing is enforced, any that is valid
Eligible(old, set, include_bookies, exclude_bookies) ==
    /\ ValidEnsemble(old, set, include_bookies, exclude_bookies)
    /\ \/ WellPlaced(set)
       \/ /\ ~EnforceMinRacks
          /\ ~\E other \in SUBSET Bookies :
                /\ ValidEnsemble(old, other, include_bookies, exclude_bookies)
                /\ WellPlaced(other)
"""


def writing(flushing: str) -> str:
    """BookKeeperWriting.tla of BookKeeperFlush.tla."""
    module = Module(flushing)
    module.replace("MODULE BookKeeperFlush ", "MODULE BookKeeperWriting ")
    module.replace("          JournalWrite, JournalSync, ", f"          {CONSTANTS}, JournalWrite, JournalSync, ")
    module.insert_before("ChangeEnsemble", FAILED_BOOKIES)
    module.within(
        "ChangeEnsemble",
        r"\E failed_bookies \in SUBSET Members(c.curr_fragment.ensemble) :",
        r"\E failed_bookies \in { FailedBookies(c, recovery) } :",
    )
    module.within(
        "ChangeEnsemble",
        "        /\\ \\A bookie \\in failed_bookies : WriteTimeoutForBookie(messages, c.id, bookie, recovery)\n",
        "",
    )
    module.within(
        "ChangeEnsemble",
        "              /\\ \\A bookie \\in good_bookies : ~WriteTimeoutForBookie(messages, c.id, bookie, recovery)\n",
        "",
    )
    module.insert_before("EnsembleAvailable", RACKS)
    for selecting in ("EnsembleAvailable", "SelectEnsemble"):
        module.within(selecting, "ValidEnsemble(", "Eligible(")
    module.within(
        "MayBeRemoveFromPending",
        "Cardinality(confirmed[op.entry.id]) < AckQuorum",
        "~ReachesAckQuorum(confirmed[op.entry.id])",
    )
    reaching = module.definition("MaxContiguousConfirmedEntry")
    module.redefine(
        "MaxContiguousConfirmedEntry",
        reaching.replace("Cardinality(confirmed[id1]) >= AckQuorum", "ReachesAckQuorum(confirmed[id1])"),
    )
    return module.text
