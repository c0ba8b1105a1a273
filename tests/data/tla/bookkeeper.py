"""Makes BookKeeperFlush.tla of BookKeeperStriped.tla: what a bookie has on disk, and how it loses the rest.

FLUSH.md states the rules, README.md says where the modules come from.
"""

from tests.data.tla.patching import Module
from tests.data.tla.tlc import counting

CONSTANTS = "JournalWrite, JournalSync, DamagedReadsUnknown, MaxUncleanRestarts, MaxPartialAmnesias"

BREAKS = (
    "NoDivergenceBetweenClientAndMetaData",
    "AllAckedEntriesAreReadable",
    "AllCommittedEntriesReachAckQuorum",
    "AckedEntriesSurvive",
    "NoOutOfOrderEntries",
    "AckedEntriesAreOnDisk",
)

ON_DISK = r"""
\* The four settings of the journal
EntriesAreDurable == JournalWrite /\ JournalSync  \* before they are confirmed
FencesAreDurable == JournalSync                   \* they are always written to the journal
UncleanIsNoticed == ~JournalWrite                 \* else a bookie trusts its journal

IdsOf(entries) == { e.id : e \in entries }

\* After b_entries and b_lac of some bookie: what of it is on disk at once
EntriesAreWritten ==
    /\ IF EntriesAreDurable
       THEN d_entries' = b_entries' /\ d_lac' = b_lac'
       ELSE UNCHANGED << d_entries, d_lac >>
    /\ b_damaged' = [b \in Bookies |-> b_damaged[b] \ IdsOf(d_entries'[b])]

\* The same after b_fenced
FencesAreWritten == IF FencesAreDurable THEN d_fenced' = b_fenced' ELSE UNCHANGED d_fenced

\* After b_fenced of a bookie that lost its disk
DiskIsEmpty(b) ==
    /\ d_entries' = [d_entries EXCEPT ![b] = {}]
    /\ d_lac' = [d_lac EXCEPT ![b] = 0]
    /\ d_fenced' = [d_fenced EXCEPT ![b] = b_fenced'[b]]
    /\ b_damaged' = [b_damaged EXCEPT ![b] = {}]
"""

ACTIONS = r"""
BookieFlushes(b) ==
    /\ << d_entries[b], d_lac[b], d_fenced[b] >> # << b_entries[b], b_lac[b], b_fenced[b] >>
    /\ d_entries' = [d_entries EXCEPT ![b] = b_entries[b]]
    /\ d_lac' = [d_lac EXCEPT ![b] = b_lac[b]]
    /\ d_fenced' = [d_fenced EXCEPT ![b] = b_fenced[b]]
    /\ b_damaged' = [b_damaged EXCEPT ![b] = @ \ IdsOf(b_entries[b])]
    /\ UNCHANGED << b_entries, b_lac, b_fenced, fault_vars, messages, clients, meta_vars >>

\* These bookies are back with what they had on disk
BackFromDisk(bookies) ==
    /\ b_entries' = [b \in Bookies |-> IF b \in bookies THEN d_entries[b] ELSE b_entries[b]]
    /\ b_lac' = [b \in Bookies |-> IF b \in bookies THEN d_lac[b] ELSE b_lac[b]]
    /\ b_fenced' = [b \in Bookies |-> IF b \in bookies
                                      THEN d_fenced[b] \/ (UncleanIsNoticed /\ FenceOnUncleanShutdown)
                                      ELSE b_fenced[b]]
    /\ b_limbo' = [b \in Bookies |-> \/ b_limbo[b]
                                     \/ b \in bookies /\ UncleanIsNoticed /\ LimboOnUncleanShutdown]
    /\ d_fenced' = [b \in Bookies |-> IF b \in bookies THEN b_fenced'[b] ELSE d_fenced[b]]

BookieRestartsUnclean(b) ==
    /\ meta_status # Nil
    /\ b \notin b_down
    /\ unclean_restarts < MaxUncleanRestarts
    /\ unclean_restarts' = unclean_restarts + 1
    /\ BackFromDisk({b})
    /\ BreakRequests(b)
    /\ UNCHANGED << d_entries, d_lac, b_damaged, b_down, amnesias, outages, partial_amnesias, clients, meta_vars >>

\* a part of what the bookie has on disk is gone
BookieLosesSome(b, gone) ==
    /\ meta_status # Nil
    /\ b \notin b_down
    /\ partial_amnesias < MaxPartialAmnesias
    /\ partial_amnesias' = partial_amnesias + 1
    /\ b_entries' = [b_entries EXCEPT ![b] = @ \ gone]
    /\ d_entries' = [d_entries EXCEPT ![b] = @ \ gone]
    /\ b_damaged' = [b_damaged EXCEPT ![b] = IF DamagedReadsUnknown THEN @ \union IdsOf(gone) ELSE @]
    /\ UNCHANGED << b_lac, b_fenced, b_limbo, b_down, d_lac, d_fenced, amnesias, outages, unclean_restarts >>
    /\ UNCHANGED << messages, clients, meta_vars >>
"""

CLUSTER_LOSES_POWER = r"""
ClusterLosesPower(gone) ==
    LET back == (Bookies \ b_down) \ gone
        Kept(b, value, nothing) == IF b \in gone THEN nothing ELSE value
    IN /\ meta_status # Nil
       /\ outages < MaxOutages
       /\ outages' = outages + 1
       /\ b_down' = b_down \union gone
       /\ d_entries' = [b \in Bookies |-> Kept(b, d_entries[b], {})]
       /\ d_lac' = [b \in Bookies |-> Kept(b, d_lac[b], 0)]
       /\ d_fenced' = [b \in Bookies |-> \/ Kept(b, d_fenced[b], FALSE)
                                         \/ b \in back /\ UncleanIsNoticed /\ FenceOnUncleanShutdown]
       /\ b_entries' = d_entries'
       /\ b_lac' = d_lac'
       /\ b_fenced' = d_fenced'
       /\ b_limbo' = [b \in Bookies |-> \/ Kept(b, b_limbo[b], FALSE)
                                        \/ b \in back /\ UncleanIsNoticed /\ LimboOnUncleanShutdown]
       /\ b_damaged' = [b \in Bookies |-> Kept(b, b_damaged[b], {})]
       /\ messages' = [msg \in DOMAIN messages |->
              IF /\ msg.type \in {AddEntryRequestMessage, FenceRequestMessage, ReadRequestMessage}
                 /\ messages[msg] = 1
              THEN -1 ELSE messages[msg]]
       /\ UNCHANGED << amnesias, unclean_restarts, partial_amnesias, clients, meta_vars >>
"""

INVARIANTS = r"""
\* every acknowledged entry is on the disk of some bookie of its write set: what a power failure leaves
AckedEntriesAreOnDisk ==
    \A cid \in Clients :
        clients[cid].status \in {STATUS_OPEN, STATUS_CLOSED, CLIENT_WITHDRAWN} =>
            \A id \in 1..clients[cid].lac :
                \E b \in WriteSet(id, FragmentOfEntryId(id, meta_fragments).ensemble) : id \in IdsOf(d_entries[b])

\* what the variables mean
DiskIsOlder ==
    \A b \in Bookies :
        /\ d_entries[b] \subseteq b_entries[b]
        /\ d_fenced[b] => b_fenced[b]
        /\ b_damaged[b] \intersect IdsOf(d_entries[b]) = {}
        /\ EntriesAreDurable => d_entries[b] = b_entries[b] /\ d_lac[b] = b_lac[b]
        /\ FencesAreDurable => d_fenced[b] = b_fenced[b]
        /\ b \in b_down => b_entries[b] = {} /\ d_entries[b] = {} /\ d_lac[b] = 0 /\ ~b_fenced[b] /\ b_damaged[b] = {}
"""

INIT = r"""    /\ outages = 0
    /\ unclean_restarts = 0
    /\ partial_amnesias = 0
    /\ d_entries = [b \in Bookies |-> {}]
    /\ d_lac = [b \in Bookies |-> 0]
    /\ d_fenced = [b \in Bookies |-> FALSE]
    /\ b_damaged = [b \in Bookies |-> {}]"""

NEXT = r"""
    \/ \E b \in Bookies : BookieFlushes(b) \/ BookieRestartsUnclean(b)
    \/ \E b \in Bookies : \E gone \in SUBSET d_entries[b] : BookieLosesSome(b, gone)"""


def flushing(striped: Module) -> str:
    """BookKeeperFlush.tla of BookKeeperStriped.tla."""
    module = Module(striped.text)
    module.replace("MODULE BookKeeperStriped ", "MODULE BookKeeperFlush ")
    module.replace("          EnsembleSize, MaxOutages, ", f"          {CONSTANTS}, EnsembleSize, MaxOutages, ")
    module.replace(
        "VARIABLES b_limbo, amnesias, outages",
        "VARIABLES b_limbo, amnesias, outages, unclean_restarts,\n"
        "          partial_amnesias, d_entries, d_lac, d_fenced, b_damaged",
    )
    module.replace(
        "b_down, amnesias, outages >>\n",
        "b_down, amnesias, outages, unclean_restarts, partial_amnesias >>\n"
        "disk_vars == << d_entries, d_lac, d_fenced, b_damaged >>\n",
    )
    module.replace("b_entries, b_lac, fault_vars >>", "b_entries, b_lac, fault_vars, disk_vars >>")
    module.insert_before("ClientCreatesLedger", ON_DISK)

    # what bookies store and fence
    module.within(
        "BookieSendsAddConfirmedResponse",
        "UNCHANGED << fault_vars, b_fenced,",
        "EntriesAreWritten\n        /\\ UNCHANGED << fault_vars, b_fenced, d_fenced,",
    )
    for fencing in ("BookieSendsFencingReadLacResponse", "BookieSendsReadResponse"):
        module.within(
            fencing,
            "UNCHANGED << fault_vars, b_entries, b_lac,",
            "FencesAreWritten\n        /\\ UNCHANGED << fault_vars, b_entries, b_lac, d_entries, d_lac, b_damaged,",
        )
    module.within(
        "GetReadResponseMessage",
        "IF b_limbo[msg.bookie] THEN",
        "IF b_limbo[msg.bookie] \\/ msg.entry_id \\in b_damaged[msg.bookie] THEN",
    )
    module.within(
        "AuditorReplicatesFragment",
        "UNCHANGED << b_fenced, b_lac, fault_vars,",
        "UNCHANGED << b_lac >>\n    /\\ EntriesAreWritten\n    /\\ UNCHANGED << b_fenced, d_fenced, fault_vars,",
    )

    # faults that were there
    others = "unclean_restarts, partial_amnesias, "
    for losing in ("BookieRestartsEmpty", "BookieIsLost"):
        module.within(losing, "UNCHANGED << outages, ", f"DiskIsEmpty(b)\n    /\\ UNCHANGED << {others}outages, ")
    module.within("BookieIsReplaced", "UNCHANGED << ", f"UNCHANGED << disk_vars, {others}")
    module.redefine("ClusterLosesPower", CLUSTER_LOSES_POWER)
    module.insert_before("AuditorReplicatesFragment", ACTIONS)
    module.replace("    /\\ outages = 0", INIT)
    module.replace("BookieIsReplaced(b)\n", f"BookieIsReplaced(b){NEXT}\n")

    start, end = module.text.index("ASSUME \\A i \\in 1..5"), module.text.index("(****", module.text.index("Report =="))
    module.text = module.text[:start] + INVARIANTS.lstrip("\n") + counting(BREAKS) + "\n" + module.text[end:]
    return module.text
