"""The tables of tests/data/tlc_flush.json, tlc_operations.json, tlc_raft_guarded.json and tlc_writing.json: what TLC is
to look at.

What a row does not give is off; KRaft's rows name both versions' limits after KIP-966's, as tlc_kraft.json does.
"""

from typing import Any

from tests.data.tla import operations
from tests.data.tla.kraft import VERSIONS

Row = dict[str, Any]

BROKER_CONSTANTS = (
    *("BrokerCount", "InitReplicationFactor", "MinISR", "InitIsrSize", "Values"),
    *VERSIONS["kip966"].shutdown_limits,
    *("FenceBrokerLimit", "LeaderShrinkIsrLimit", "ReassignmentLimit"),
)


def bookies(name: str, sizes: tuple[int, ...], **given: Any) -> Row:
    """A row of BookKeeperFlush: bookies, clients, write quorum, ack quorum, entries, inflight; faults and switches."""
    model = dict(zip(("bookies", "clients", "write_quorum", "ack_quorum", "entries", "inflight"), sizes, strict=True))
    if "ensemble_size" in given:
        model["ensemble_size"] = given.pop("ensemble_size")
    faults: Row = dict.fromkeys(("max_lost", "max_empty_restarts", "max_outages"), 0)
    faults |= {"max_unclean_restarts": 0, "max_partial_losses": 0}
    faults |= dict.fromkeys(("writer_crash", "auto_recovery", "replacement"), False)
    variant: Row = dict.fromkeys(("fence_on_unclean_shutdown", "limbo_on_unclean_shutdown"), False)
    variant |= dict.fromkeys(("journal_write", "journal_sync", "damaged_reads_unknown"), True)
    unknown = given.keys() - faults.keys() - variant.keys()
    if unknown:
        raise KeyError(f"{name}: {unknown}")
    faults |= {key: value for key, value in given.items() if key in faults}
    variant |= {key: value for key, value in given.items() if key in variant}
    return {"name": name, "module": "BookKeeperFlush", "model": model, "faults": faults, "variant": variant}


def written(name: str, sizes: tuple[int, ...], **given: Any) -> Row:
    """A row of BookKeeperWriting: likewise; a writer changes the ensemble once it has to."""
    row = bookies(name, sizes, **given)
    return row | {"module": "BookKeeperWriting", "variant": row["variant"] | {"delay_ensemble_change": True}}


def guaranteed(name: str, sizes: tuple[int, ...], **given: Any) -> Row:
    """A row of BookKeeperWriting: likewise; an entry is pending until its write quorum has it."""
    row = bookies(name, sizes, **given)
    return row | {"module": "BookKeeperWriting", "variant": row["variant"] | {"guaranteed_write_quorum": True}}


def in_racks(name: str, sizes: tuple[int, ...], racks: int, enforced: Row, min_racks: int = 2, **given: Any) -> Row:
    """A row of BookKeeperWriting with racks, bookie b being in rack b mod racks."""
    row = bookies(name, sizes, **given)
    model = row["model"] | {"racks": racks, "min_racks_per_write_quorum": min_racks}
    return row | {"module": "BookKeeperWriting", "model": model, "variant": row["variant"] | enforced}


def brokers(name: str, version: str, sizes: tuple[int, ...], faults: tuple[int, ...] = (0,) * 5, **given: Any) -> Row:
    """A row of KRaft: brokers, replication factor, min ISR, initial ISR, values; the specification's own faults."""
    constants: Row = dict(zip(BROKER_CONSTANTS, sizes + faults, strict=True))
    constants |= {"FlushEveryMessage": "FALSE", "TailLossLimit": 0, "OutageLimit": 0} | given
    return {"name": name, "module": f"{VERSIONS[version].module}_flush", "constants": constants}


def operated(name: str, version: str, sizes: tuple[int, ...], faults: tuple[int, ...] = (0,) * 5, **given: Any) -> Row:
    """A row of KRaft with stalls, rolls and leaders that are cut off; every message is flushed unless given."""
    row = brokers(name, version, sizes, faults, **{**EVERY, **operations.CONSTANTS, **given})
    return row | {"module": f"{VERSIONS[version].module}_operations"}


def replicas(name: str, variant: str, sizes: tuple[int, ...], restarts: int) -> Row:
    """A row of Kafka before KRaft: replicas, log size, records, last leader epoch."""
    constants: Row = dict(zip(("Replicas", "LogSize", "MaxRecords", "MaxLeaderEpoch"), map(str, sizes), strict=True))
    constants["Replicas"] = "{" + ",".join(f"r{i}" for i in range(1, sizes[0] + 1)) + "}"
    constants |= {"FlushEveryMessage": "FALSE", "MaxUncleanRestarts": str(restarts)}
    return {"name": name, "module": f"{variant}Flush", "constants": constants}


def servers(name: str, sizes: tuple[int, int], elections: int, **given: bool | int) -> Row:
    """A row of RaftGuarded: servers and values; followers that have lost what they acknowledged panic."""
    fsync = (
        "leader_fsync_before_append_entries",
        "leader_fsync_before_include_in_quorum",
        "follower_fsync_before_reply",
    )
    variant: Row = dict.fromkeys((*fsync, "rejoin_as_new", "heartbeats"), False) | {"resend": True}
    faults: Row = dict.fromkeys(("max_restarts", "max_crashes", "max_disk_losses", "max_outages"), 0)
    variant |= {key: value for key, value in given.items() if key in variant} | {"panic_on_lost_log": True}
    faults |= {key: value for key, value in given.items() if key in faults} | {"max_elections": elections}
    model = dict(zip(("servers", "values"), sizes, strict=True))
    return {"name": name, "module": "RaftGuarded", "model": model, "variant": variant, "faults": faults}


SYNCED: Row = {"leader_fsync_before_include_in_quorum": True, "follower_fsync_before_reply": True}
NO_SYNC: Row = {"journal_sync": False}
NO_WRITE: Row = {"journal_write": False}
NOTICED: Row = {"fence_on_unclean_shutdown": True, "limbo_on_unclean_shutdown": True}
REPAIR: Row = {"auto_recovery": True, "replacement": True}
RESTART: Row = {"max_unclean_restarts": 1}
DAMAGE: Row = {"max_partial_losses": 1}
OUTAGE: Row = {"max_outages": 1}
EVERY: Row = {"FlushEveryMessage": "TRUE"}
SPARED: Row = {"AvoidLastReplicaStanding": "TRUE"}
STRUCK: Row = {"AvoidLastReplicaStanding": "FALSE"}
TAIL: Row = {"TailLossLimit": 1}
POWER: Row = {"OutageLimit": 1}
ACKS: Row = {"enforce_min_fault_domains_for_write": True}
ENSEMBLES: Row = {"enforce_min_racks_per_write_quorum": True}
ALONE, PAIR, TRIO = (1, 2, 1, 1, 1, 1), (2, 1, 2, 2, 1, 1), (3, 1, 2, 2, 1, 1)
STALL: Row = {"StallLimit": 1}
ROLL: Row = {"RollLimit": 1}
FREE: Row = {"GatedRolls": "FALSE"}
CUT_OFF: Row = {"IsolationLimit": 1}
MIN_1, MIN_2 = (2, 2, 1, 2, 1), (2, 2, 2, 2, 1)
CLEAN, DISK, FENCED = (1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 1, 0, 0)

ROWS = (
    bookies("restart", ALONE, **RESTART),
    bookies("restart_nosync", ALONE, **RESTART, **NO_SYNC),
    bookies("restart_nosync_unnoticed", ALONE, **RESTART, **NO_SYNC, **NOTICED),
    bookies("restart_nosync_one_client", (2, 1, 1, 1, 2, 1), **RESTART, **NO_SYNC),
    bookies("restart_nosync_two_entries", (1, 2, 1, 1, 2, 1), **RESTART, **NO_SYNC),
    bookies("restart_nowrite", ALONE, **RESTART, **NO_WRITE),
    bookies("restart_nowrite_noticed", ALONE, **RESTART, **NO_WRITE, **NOTICED),
    bookies("restart_neither_limbo", ALONE, **RESTART, **NO_WRITE, **NO_SYNC, limbo_on_unclean_shutdown=True),
    bookies("restarts_nosync", ALONE, max_unclean_restarts=2, **NO_SYNC),
    bookies(
        "restart_and_empty_noticed", ALONE, max_empty_restarts=1, **RESTART, **NO_WRITE, **NOTICED, writer_crash=True
    ),
    bookies("damage", ALONE, **DAMAGE),
    bookies("damage_believed", ALONE, **DAMAGE, damaged_reads_unknown=False),
    bookies("damage_and_restart_nosync", ALONE, **DAMAGE, **RESTART, **NO_SYNC),
    bookies("damage_two_entries_nosync", (2, 1, 2, 1, 2, 2), max_partial_losses=2, **NO_SYNC),
    bookies("outage_nowrite_noticed", ALONE, **OUTAGE, **NO_WRITE, **NOTICED),
    bookies("outage_and_restart_nosync", PAIR, **OUTAGE, **RESTART, **NO_SYNC),
    bookies("outage_nosync", (2, 2, 1, 1, 1, 1), **OUTAGE, **NO_SYNC),
    bookies("outage_and_damage_nosync_repair", TRIO, **OUTAGE, **DAMAGE, max_lost=1, **NO_SYNC, **REPAIR),
    bookies("lost_and_restart_nosync_repair", TRIO, **RESTART, max_lost=1, writer_crash=True, **NO_SYNC, **REPAIR),
    bookies("outage_nosync_stripes", (3, 1, 2, 1, 2, 1), ensemble_size=3, **OUTAGE, **NO_SYNC),
    bookies("damage_lost_stripes", (3, 1, 2, 2, 2, 2), ensemble_size=3, **DAMAGE, max_lost=1),
    brokers("kip966_tail", "kip966", MIN_1, **TAIL),
    brokers("kip966_tail_flushed", "kip966", MIN_1, **TAIL, **EVERY),
    brokers("kip966_tail_fenced_min_2", "kip966", MIN_2, FENCED, **TAIL),
    brokers("kip966_tail_shutdown", "kip966", MIN_1, CLEAN, **TAIL),
    brokers("kip966_tail_disk_min_2", "kip966", MIN_2, DISK, **TAIL),
    brokers("kip966_tail_two_values", "kip966", (2, 2, 1, 2, 2), **TAIL),
    brokers("kip966_outage", "kip966", MIN_1, **POWER),
    brokers("kip966_outage_shutdown_flushed", "kip966", MIN_2, CLEAN, **POWER, **EVERY),
    brokers("v3_5_tail_spared", "v3_5", MIN_1, FENCED, **TAIL, **SPARED),
    brokers("v3_5_tail", "v3_5", MIN_1, FENCED, **TAIL, **STRUCK),
    brokers("v3_5_outage_shutdown", "v3_5", MIN_1, CLEAN, **POWER, **STRUCK),
    replicas("high_watermark_restart", "KafkaTruncateToHighWatermark", (2, 1, 1, 3), 1),
    replicas("kip101_restart", "Kip101", (2, 1, 2, 2), 1),
    replicas("kip320_restart", "Kip320", (2, 2, 2, 2), 1),
    replicas("kip320_restart_of_three", "Kip320", (3, 1, 1, 2), 1),
)
WRITTEN = (
    written("delayed", (3, 1, 2, 1, 1, 1)),
    written("delayed_two_entries", (3, 1, 2, 1, 2, 2)),
    written("delayed_no_slack", (3, 1, 2, 2, 2, 2)),
    written("delayed_recovery", (2, 2, 2, 1, 1, 1)),
    written("delayed_recovery_spare", (3, 2, 1, 1, 1, 1)),
    written("delayed_lost_repair", (3, 1, 2, 1, 1, 1), max_lost=1, writer_crash=True, **REPAIR),
    written("delayed_outage_nosync", (3, 1, 2, 1, 1, 1), **OUTAGE, **NO_SYNC),
    written("delayed_stripes", (4, 1, 2, 1, 2, 2), ensemble_size=3),
    written("delayed_stripes_lost", (4, 1, 2, 2, 2, 1), ensemble_size=3, max_lost=1),
    written("delayed_restart_nowrite", (3, 1, 2, 1, 1, 1), **RESTART, **NO_WRITE),
    written("delayed_restart_nosync_recovery", (3, 2, 1, 1, 1, 1), **RESTART, **NO_SYNC),
    written("delayed_damage", (3, 1, 2, 1, 2, 2), **DAMAGE),
    in_racks("racks", (4, 1, 2, 1, 1, 1), 2, {}),
    in_racks("racks_acks", (3, 1, 2, 1, 2, 2), 2, ACKS),
    in_racks("racks_acks_of_three", (4, 1, 3, 2, 1, 1), 2, ACKS, max_lost=1),
    in_racks("racks_acks_delayed", (4, 1, 3, 2, 1, 1), 2, ACKS | {"delay_ensemble_change": True}),
    in_racks("racks_ensembles", (4, 1, 2, 2, 1, 1), 2, ENSEMBLES, max_lost=1),
    in_racks("racks_three", (4, 1, 3, 2, 1, 1), 3, ENSEMBLES | ACKS, min_racks=3),
    in_racks("racks_recovery", (2, 2, 2, 1, 1, 1), 2, ACKS | ENSEMBLES),
    in_racks("racks_outage_nosync", (4, 1, 2, 1, 1, 1), 2, ACKS, **OUTAGE, **NO_SYNC),
    in_racks("racks_restart_nowrite", (4, 1, 2, 2, 1, 1), 2, ENSEMBLES, **RESTART, **NO_WRITE),
    guaranteed("guaranteed", (3, 1, 2, 1, 1, 1)),
    guaranteed("guaranteed_no_spare", (2, 1, 2, 1, 2, 2)),
    guaranteed("guaranteed_one_inflight", (3, 1, 2, 1, 2, 1)),
    guaranteed("guaranteed_two_entries", (3, 1, 2, 1, 2, 2)),
    guaranteed("guaranteed_of_three", (4, 1, 3, 2, 1, 1)),
    guaranteed("guaranteed_recovery", (2, 2, 2, 1, 1, 1)),
    guaranteed("guaranteed_lost_repair", (3, 1, 2, 1, 1, 1), max_lost=1, writer_crash=True, **REPAIR),
    guaranteed("guaranteed_outage_nosync", (3, 1, 2, 1, 1, 1), **OUTAGE, **NO_SYNC),
    guaranteed("guaranteed_restart_nowrite_noticed", (3, 1, 2, 1, 1, 1), **RESTART, **NO_WRITE, **NOTICED),
    guaranteed("guaranteed_restart_nosync_recovery", ALONE, **RESTART, **NO_SYNC),
    guaranteed("guaranteed_damage", (3, 1, 2, 1, 2, 1), **DAMAGE),
    guaranteed("guaranteed_stripes", (3, 1, 2, 1, 2, 2), ensemble_size=3),
)
GUARDED = (
    servers("guarded_disk", (2, 1), 1, max_disk_losses=1, **SYNCED),
    servers("guarded_restart_no_fsync", (2, 1), 1, max_restarts=1, resend=False, heartbeats=True),
    servers("guarded_disk_crash", (2, 1), 1, max_disk_losses=1, max_crashes=1, resend=False, **SYNCED),
    servers("guarded_two_values", (2, 2), 1, max_disk_losses=1, resend=False),
    servers("guarded_two_elections", (2, 1), 2, max_disk_losses=1, resend=False),
)
OPERATED = (
    operated("kip966_stall", "kip966", MIN_1, **STALL),
    operated("kip966_stalls_min_2", "kip966", MIN_2, StallLimit=2),
    operated("kip966_stall_fenced", "kip966", MIN_1, FENCED, **STALL),
    operated("kip966_stall_tail", "kip966", MIN_1, **STALL, **TAIL, FlushEveryMessage="FALSE"),
    operated("kip966_stall_isolated", "kip966", MIN_1, **STALL, **CUT_OFF),
    operated("kip966_roll", "kip966", MIN_1, **ROLL),
    operated("kip966_roll_free", "kip966", MIN_1, **ROLL, **FREE),
    operated("kip966_roll_free_disk", "kip966", MIN_1, DISK, **ROLL, **FREE),
    operated("kip966_isolated", "kip966", MIN_1, **CUT_OFF),
    operated("kip966_isolated_min_2", "kip966", MIN_2, **CUT_OFF),
    operated("kip966_isolated_twice", "kip966", MIN_1, IsolationLimit=2),
    operated("v3_5_stall", "v3_5", MIN_1, **STALL, **STRUCK),
    operated("v3_5_stall_roll_min_2", "v3_5", MIN_2, **STALL, **ROLL, **STRUCK),
    operated("v3_5_roll_free_min_2", "v3_5", MIN_2, **ROLL, **FREE, **STRUCK),
    operated("v3_5_isolated", "v3_5", MIN_1, **CUT_OFF, **STRUCK),
)
