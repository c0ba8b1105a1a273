"""Settings of a real cluster, and the keys that stand for them, if any: see docs/settings.md."""

from quorisk.kernels.protocols.settings import Setting

SETTINGS = (
    Setting("replicas of the partition", "`model.replicas`"),
    Setting(
        "inter-broker protocol (KIP-101, KIP-279, KIP-320)",
        "`variant.truncation`",
        "how a follower finds where to truncate",
    ),
    Setting(
        "`min.insync.replicas`, `acks`",
        "not modelled",
        "a record counts once it is below the high watermark, whatever the ISR's size",
    ),
    Setting(
        "`log.flush.interval.messages`, `flush.messages`",
        "`variant.flush_every_message`",
        "on for 1; off for Kafka's default, 9223372036854775807, which is never; files may use Kafka's names with "
        "these two",
    ),
    Setting(
        "`log.flush.interval.ms`, `flush.ms`, and the operating system's write-back",
        "`rates.replica_flushes`",
        "once in 30 s with the defaults of Kafka and Linux, else the rate is one over it, and files may use Kafka's "
        "names in `[rates]`; see `rates.replica_restarts_unclean`",
    ),
    Setting(
        "`broker.rack`, replica placement",
        "`model.zones`, `rates.zone_loses_power`, `faults.max_zone_outages`",
        "replica r is in zone r mod zones: replicas are spread as evenly as can be",
    ),
    Setting(
        "a power outage",
        "`rates.cluster_loses_power`, `faults.max_outages`",
        "all replicas at one instant, each without what it had not flushed; no disk dies",
    ),
    Setting("`unclean.leader.election.enable`", "not modelled", "leaders are elected from the ISR"),
)
