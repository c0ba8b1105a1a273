"""Makes BookKeeperWriting.tla of BookKeeperFlush.tla: when a writer replaces bookies, and when it acknowledges.

WRITING.md states the rules, README.md says where the modules come from.
"""

from tests.data.tla.patching import Module

CONSTANTS = "DelayEnsembleChange"

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
    return module.text
