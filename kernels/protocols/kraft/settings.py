"""Which setting of a real cluster is which key here, and which is none: see docs/settings.md."""

from quorisk.kernels.protocols.settings import Setting

SETTINGS = (
    Setting("`replication.factor`", "`model.replication_factor`", "1 to 5"),
    Setting("`min.insync.replicas`", "`model.min_isr`", "also the size that ISR and ELR together are to keep"),
    Setting(
        "`acks=all`, `acks=1`", "`variant.acks`", 'with `"1"` a record counts as acknowledged once its leader has it'
    ),
    Setting("`acks=0`", "not modelled", "nothing is ever acknowledged, so nothing acknowledged can be lost"),
    Setting(
        "`unclean.leader.election.enable`",
        "`variant.unclean_leader_election`",
        "any unfenced replica may lead if nobody else can",
    ),
    Setting(
        "`eligible.leader.replicas.version`",
        "`variant.version`",
        '1, the default from 4.1 on: `"kip966"`; 0, and older brokers: `"v3_5"`',
    ),
    Setting(
        "`unclean.recovery.strategy` (the last known ELR, by longest log)",
        "not modelled",
        "`unclean_leader_election` takes any replica",
    ),
    Setting(
        "`log.flush.interval.messages`, `log.flush.interval.ms`",
        "`rates.data_loss_shutdown`, `faults.max_lossy_shutdowns`",
        "0 for a broker that flushes before it answers, as it loses nothing; else a lossy shutdown takes its whole "
        "log, which is right for records that were just written",
    ),
    Setting(
        "`broker.session.timeout.ms`",
        "`rates.fence_broker`",
        "how often a running broker misses it; a broker that goes down is fenced at once",
    ),
    Setting("`broker.heartbeat.interval.ms`", "`rates.unfence_broker`"),
    Setting("`replica.lag.time.max.ms`", "`rates.leader_shrink_isr`", "how often followers lag for longer than that"),
    Setting("`replica.fetch.wait.max.ms`", "`rates.send_fetch_request`", "fetches do not wait for new records"),
    Setting("`enable.idempotence`, `retries`", "not modelled", "a record is written once; producers do not retry"),
    Setting(
        "`broker.rack`, replica placement",
        "not modelled",
        "brokers fail one at a time",
    ),
    Setting(
        "controller quorum (`controller.quorum.voters`)",
        "not modelled",
        "the controller's metadata log is never lost and never forks",
    ),
    Setting("`log.retention.*`, compaction, tiered storage", "not modelled"),
)
