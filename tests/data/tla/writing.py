"""Makes BookKeeperWriting.tla of BookKeeperFlush.tla: when a writer replaces bookies, when it acknowledges, and for how
long it keeps an entry.

WRITING.md states the rules, README.md says where the modules come from.
"""

from tests.data.tla import bookkeeper
from tests.data.tla.patching import Module
from tests.data.tla.tlc import counting

CONSTANTS = "DelayEnsembleChange, Racks, MinRacks, EnforceMinRacks, EnforceMinFaultDomains, GuaranteedWriteQuorum"
BREAKS = (*bookkeeper.BREAKS, "AllCommittedEntriesReachWriteQuorum", "EarlierFragmentsReachWriteQuorum")

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

\* With GuaranteedWriteQuorum: the bookies that hold up the ack quorum of an entry that is still pending
PinnedBookies(c) == UNION { c.confirmed[id] : id \in (c.lafr + 1)..c.lac }

\* The bookies that an ensemble change replaces: all that timed out or, with DelayEnsembleChange, those that keep a
\* pending entry from its ack quorum
FailedBookies(c, recovery) ==
    IF DelayEnsembleChange
    THEN UNION { failed \in { Unanswered(c, recovery, op.entry.id) : op \in c.pending_add_ops } :
                   Cardinality(failed) > WriteQuorum - AckQuorum }
    ELSE { b \in Members(c.curr_fragment.ensemble) : WriteTimeoutForBookie(messages, c.id, b, recovery) }
         \ (IF GuaranteedWriteQuorum THEN PinnedBookies(c) ELSE {})
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

REPLICATED = r"""
\* The last entry that, like all before it, WriteQuorum bookies have confirmed
MaxContiguousReplicatedEntry(confirmed, from) ==
    Max({ id \in from..Len(confirmed) : \A id1 \in (from + 1)..id : Cardinality(confirmed[id1]) = WriteQuorum })

\* What a client says with its adds, and where its next ensemble begins: the entries up to here are done with
LastDone(c) == IF GuaranteedWriteQuorum THEN c.lafr ELSE c.lac
"""

INVARIANTS = r"""
HasWriteQuorum(id) ==
    LET set == WriteSet(id, FragmentOfEntryId(id, meta_fragments).ensemble)
    IN \A b \in set : id \in IdsOf(b_entries[b])

AllCommittedEntriesReachWriteQuorum ==
    meta_status = STATUS_CLOSED => \A id \in 1..meta_last_entry : HasWriteQuorum(id)

\* the same of all fragments but the last, whatever the ledger's status
EarlierFragmentsReachWriteQuorum ==
    meta_fragments # << >> => \A id \in 1..(Last(meta_fragments).first_entry_id - 1) : HasWriteQuorum(id)
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
    keep_until_replicated(module)
    return module.text


def keep_until_replicated(module: Module) -> None:
    """With GuaranteedWriteQuorum, an add is pending until its write quorum has it, and so has that of all before it."""
    unset = "|-> 0,\n     confirmed "
    module.replace(unset, f"|-> 0,\n     lafr                   {unset}")
    module.insert_before("GetAddEntryRequests", REPLICATED)
    module.within("GetAddEntryRequests", "c.lac", "LastDone(c)")
    latest = "IF GuaranteedWriteQuorum /\\ @ > msg.lac THEN @ ELSE msg.lac"
    module.within("BookieSendsAddConfirmedResponse", "= msg.lac]", f"= {latest}]")
    module.within(
        "ReceiveAddConfirmedResponse",
        "IN LET lac == MaxContiguousConfirmedEntry(confirmed, c.lac)\n",
        "IN LET lac == MaxContiguousConfirmedEntry(confirmed, c.lac)\n"
        "                  lafr == IF GuaranteedWriteQuorum THEN MaxContiguousReplicatedEntry(confirmed, c.lafr)\n"
        "                          ELSE 0\n",
    )
    module.within(
        "ReceiveAddConfirmedResponse",
        "= MayBeRemoveFromPending(c, confirmed, lac)",
        "= IF GuaranteedWriteQuorum THEN { op \\in @ : op.entry.id > lafr }\n"
        f"{' ' * 69}ELSE MayBeRemoveFromPending(c, confirmed, lac),\n"
        f"{' ' * 50}!.lafr = lafr",
    )
    module.within("ChangeEnsemble", "first_entry_id == c.lac + 1", "first_entry_id == LastDone(c) + 1")
    is_open = "    /\\ clients[cid].status = STATUS_OPEN\n"
    waits = "    /\\ GuaranteedWriteQuorum => clients[cid].pending_add_ops = {}\n"
    module.within("ClientClosesLedgerSuccess", is_open, is_open + waits)
    module.within(
        "ClientReceivesFencingReadLacResponse",
        "!.lac = IF lac > @ THEN lac ELSE @,",
        "!.lac = IF lac > @ THEN lac ELSE @, !.lafr = IF GuaranteedWriteQuorum /\\ lac > @ THEN lac ELSE @,",
    )
    module.replace(counting(bookkeeper.BREAKS), INVARIANTS + counting(BREAKS))
