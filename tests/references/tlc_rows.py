"""How the rows that TLC left in `tests/data/tlc*.json` read in the parameters of the protocols' models."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Tlc(NamedTuple):
    """How a row reads in one model's parameters."""

    modules: Mapping[str, Mapping[str, Any]]
    """The TLA+ modules that this model stands for, each with the parameters that its name implies."""
    constants: Mapping[str, str | None]
    """The parameter of each of their constants; None for a constant that changes nothing here."""


TLC = {
    "bookkeeper": Tlc(
        modules={
            "BookKeeperProtocol": {},
            "BookKeeperFaults": {},
            "BookKeeperStriped": {},
            "BookKeeperFlush": {},
            "BookKeeperWriting": {},
        },
        constants={
            "Bookies": "bookies",
            "Clients": "clients",
            "WriteQuorum": "write_quorum",
            "AckQuorum": "ack_quorum",
            "SendLimit": "entries",
            "InflightLimit": "inflight",
        },
    ),
    "kafka": Tlc(
        modules={
            f"{module}{ending}": {"truncation": truncation, "track_committed": False}
            for ending in ("", "Flush")
            for module, truncation in {
                "KafkaTruncateToHighWatermark": "high_watermark",
                "Kip101": "kip101",
                "Kip279": "kip279",
                "Kip320": "kip320",
                "Kip320FirstTry": "kip320_first_try",
            }.items()
        },
        constants={
            "Replicas": "replicas",
            "LogSize": "log_size",
            "MaxRecords": "max_records",
            "MaxLeaderEpoch": "max_leader_epoch",
            "FlushEveryMessage": "flush_every_message",
            "MaxUncleanRestarts": "max_unclean_restarts",
        },
    ),
    "kraft": Tlc(
        modules={
            "kafka_replication_kip_966": {"version": "kip966", "semantics": "specification"},
            "kafka_replication_v3_5": {"version": "v3_5", "semantics": "specification"},
            "kafka_replication_kip_966_flush": {"version": "kip966", "semantics": "specification"},
            "kafka_replication_v3_5_flush": {"version": "v3_5", "semantics": "specification"},
            "kafka_replication_kip_966_operations": {"version": "kip966", "semantics": "specification"},
            "kafka_replication_v3_5_operations": {"version": "v3_5", "semantics": "specification"},
        },
        constants={
            "BrokerCount": "brokers",
            "InitReplicationFactor": "replication_factor",
            "MinISR": "min_isr",
            "InitIsrSize": "init_isr",
            "Values": "values",
            "NoDataLossShutdownLimit": "max_clean_shutdowns",
            "CleanShutdownLimit": "max_clean_shutdowns",
            "DataLossShutdownLimit": "max_lossy_shutdowns",
            "UncleanShutdownLimit": "max_lossy_shutdowns",
            "FenceBrokerLimit": "max_fencings",
            "LeaderShrinkIsrLimit": "max_isr_shrinks",
            "ReassignmentLimit": "max_reassignments",
            "AvoidLastReplicaStanding": "avoid_last_replica_standing",
            "FlushEveryMessage": "flush_every_message",
            "TailLossLimit": "max_tail_losses",
            "OutageLimit": "max_outages",
            "StallLimit": "max_stalls",
            "RollLimit": "max_rolls",
            "GatedRolls": "gated_rolls",
            "IsolationLimit": "max_isolations",
        },
    ),
    "raft": Tlc(modules={name: {"lossy_network": False} for name in ("RaftFaults", "RaftGuarded")}, constants={}),
    "compaction": Tlc(
        modules={"compaction": {}},
        constants={
            "MessageSentLimit": "messages",
            "CompactionTimesLimit": "compactions",
            "KeySpace": "keys",
            "ValueSpace": "values",
            "MaxCrashTimes": "max_crashes",
            "RetainNullKey": "retain_null_key",
            "ModelProducer": "model_producer",
            "ModelConsumer": None,  # it changes nothing else
            "ConsumeTimesLimit": None,
        },
    ),
}
