"""Has TLC check rows of constants.

    python -m tests.data.tla.checks [NAME...]            rows of rows.py: of ROWS, or those named
    python -m tests.data.tla.checks --operated           those of OPERATED
    python -m tests.data.tla.checks --guarded            those of GUARDED
    python -m tests.data.tla.checks --written            those of WRITTEN
    python -m tests.data.tla.checks --unchanged FILE...  rows of other files anew, with all that is added here off

Environment, besides that of tlc.py: BOOKKEEPER_TLA, the folder of BookKeeperStriped.tla and MessagePassingF.tla; KT,
the folder kafka_data_replication/kraft; KAFKA_TLA, that of KafkaReplication.tla; RAFT_TLA, that of RaftFaults.tla.
README.md says where they come from.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.data.tla import bookkeeper, kafka, kraft, operations, raft, writing
from tests.data.tla.patching import Module
from tests.data.tla.rows import GUARDED, OPERATED, ROWS, WRITTEN, Row
from tests.data.tla.tlc import Check, run

MODEL_VALUES = (
    *("AddEntryRequestMessage", "AddEntryResponseMessage", "FenceRequestMessage", "FenceResponseMessage"),
    *("ReadRequestMessage", "ReadResponseMessage", "OK", "NoSuchEntry", "Unknown", "NeedMoreResponses", "Nil"),
    *("STATUS_OPEN", "STATUS_CLOSED", "STATUS_IN_RECOVERY", "CLIENT_WITHDRAWN", "RECOVERY_ABORTED"),
)
KEYS = {
    "write_quorum": "WriteQuorum",
    "ack_quorum": "AckQuorum",
    "ensemble_size": "EnsembleSize",
    "entries": "SendLimit",
    "inflight": "InflightLimit",
    "max_lost": "MaxLost",
    "max_empty_restarts": "MaxAmnesias",
    "max_amnesias": "MaxAmnesias",
    "max_outages": "MaxOutages",
    "max_unclean_restarts": "MaxUncleanRestarts",
    "max_partial_losses": "MaxPartialAmnesias",
    "writer_crash": "WriterMayCrash",
    "auto_recovery": "AutoRecovery",
    "replacement": "Replacement",
    "fence_on_unclean_shutdown": "FenceOnUncleanShutdown",
    "limbo_on_unclean_shutdown": "LimboOnUncleanShutdown",
    "journal_write": "JournalWrite",
    "journal_sync": "JournalSync",
    "damaged_reads_unknown": "DamagedReadsUnknown",
    "delay_ensemble_change": "DelayEnsembleChange",
    "min_racks_per_write_quorum": "MinRacks",
    "enforce_min_racks_per_write_quorum": "EnforceMinRacks",
    "enforce_min_fault_domains_for_write": "EnforceMinFaultDomains",
    "guaranteed_write_quorum": "GuaranteedWriteQuorum",
}
"""Keys of experiment files, and the constants of BookKeeperWriting that they are."""
EXTENDED = ("BookKeeperFaults", "BookKeeperStriped", "kafka_replication", "KafkaTruncate", "Kip")
"""How the names of the modules begin that are extended here."""


def check_of(row: Row) -> Check:
    """The module and the constants that a row means, with what it does not give off."""
    module = row["module"]
    if module == raft.MODULE:
        return raft.check_of(row)
    if "BookKeeper" in module:
        return check_of_bookies(row)
    for version in kraft.VERSIONS.values():
        if module.startswith(version.module):
            return check_of_brokers(version, row["constants"], module.endswith("_operations"))
    constants = {name: _plain(value) for name, value in row["constants"].items()}
    variant = module.removesuffix("Flush")
    modules = kafka.flushing(variant, Path(os.environ["KAFKA_TLA"]))
    behaviour = ("INIT InitWithFlushes", "NEXT NextWithFlushes", "INVARIANT DiskIsShorter")
    off = {"FlushEveryMessage": True, "MaxUncleanRestarts": 0}
    return Check(f"{variant}Flush", modules, off | constants, behaviour, kafka.INVARIANTS)


def check_of_bookies(row: Row) -> Check:
    folder = Path(os.environ["BOOKKEEPER_TLA"])
    striped = Module((folder / "BookKeeperStriped.tla").read_text())
    if not row["variant"].get("fence_recovery_reads", True):
        striped.within("GetRecoveryReadRequests", "fence    |-> TRUE]", "fence    |-> FALSE]")
    modules = {"BookKeeperWriting.tla": writing.writing(bookkeeper.flushing(striped))}
    modules["MessagePassingF.tla"] = (folder / "MessagePassingF.tla").read_text()
    given = {**row["model"], **row["faults"], **row["variant"]}
    off: Row = {"EnsembleSize": given["write_quorum"], "MaxOutages": 0}
    off |= {"MaxUncleanRestarts": 0, "MaxPartialAmnesias": 0}
    racks = [tuple(_members("b", given["bookies"])[r :: given["racks"]]) for r in range(given.get("racks", 0))]
    off |= {"DelayEnsembleChange": False, "MinRacks": 2, "EnforceMinRacks": False, "EnforceMinFaultDomains": False}
    off |= {"GuaranteedWriteQuorum": False}
    off |= {"JournalWrite": True, "JournalSync": True, "DamagedReadsUnknown": True}
    named = {KEYS[key]: value for key, value in given.items() if key in KEYS}
    sets = {
        "Bookies": _members("b", given["bookies"]),
        "Racks": tuple(racks),
        "Clients": _members("c", given["clients"]),
    }
    constants = sets | off | named | {name: name for name in MODEL_VALUES}
    behaviour = ("INIT Init", "NEXT Next", "INVARIANT DiskIsOlder")
    return Check("BookKeeperWriting", modules, constants, behaviour, writing.BREAKS)


def check_of_brokers(version: kraft.Version, given: Row, operated: bool) -> Check:
    folder = Path(os.environ["KT"])
    config = (folder / version.folder / f"{version.module}.cfg").read_text()
    published = dict(re.findall(r"(?m)^\s*(\w+) = (.*?)\s*$", config.partition("INIT")[0]))
    constants = published | {"FlushEveryMessage": True, "TailLossLimit": 0, "OutageLimit": 0, **given}
    constants["Values"] = tuple("ABCD"[: given["Values"]])
    # the rows of tlc_kraft.json name both versions' limits after KIP-966's
    for name, other in zip(version.shutdown_limits, kraft.VERSIONS["kip966"].shutdown_limits, strict=True):
        constants[name] = constants.pop(other)
    if operated:
        modules, name = operations.with_operations(version, folder), f"{version.module}_operations"
        behaviour = ("INIT InitWithOperations", "NEXT NextWithOperations", "VIEW viewofall", "INVARIANT DiskIsShorter")
    else:
        modules, name = kraft.flushing(version, folder), f"{version.module}_flush"
        behaviour = ("INIT InitWithFlushes", "NEXT NextWithFlushes", "VIEW wholeview", "INVARIANT DiskIsShorter")
    return Check(name, modules, constants, behaviour, version.properties)


def _members(letter: str, number: int) -> tuple[str, ...]:
    return tuple(f"{letter}{i}" for i in range(1, number + 1))


def _plain(value: str) -> Any:
    """A set as a tuple."""
    return tuple(value[1:-1].split(",")) if value.startswith("{") else value


def unchanged(row: Row) -> Iterator[str]:
    """What TLC finds otherwise than a row says."""
    found = run(check_of(row))
    for key in ("distinct_states", "depth"):
        if found[key] != row[key]:
            yield f"{key}: {found[key]} instead of {row[key]}"
    for name, states in row.get("breaking_states", {}).items():
        if found["breaking_states"][name] != states:
            yield f"{name}: {found['breaking_states'][name]} instead of {states}"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--unchanged"]:
        for row in (row for file in arguments[1:] for row in json.loads(Path(file).read_text())):
            if row["module"].startswith(EXTENDED):
                print(row["name"], *list(unchanged(row)) or ["unchanged"], sep=": ", flush=True)
        return
    tables = {"--operated": OPERATED, "--guarded": GUARDED, "--written": WRITTEN}
    named = [row for row in (*ROWS, *OPERATED, *GUARDED, *WRITTEN) if row["name"] in arguments]
    rows = tables.get(" ".join(arguments), named or ROWS)
    found = []
    for row in rows:
        found.append(row | run(check_of(row)))
        print(row["name"], found[-1]["distinct_states"], "states", file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
