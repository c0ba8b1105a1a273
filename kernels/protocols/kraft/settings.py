"""Settings of a real cluster, and the keys that stand for them, if any: see docs/settings.md."""

from quorisk.kernels.protocols.settings import Setting

SETTINGS = (
    Setting(
        "`replication.factor`, `default.replication.factor`",
        "`model.replication_factor`",
        "1 to 6; files may use Kafka's names",
    ),
    Setting(
        "`min.insync.replicas`",
        "`model.min_isr`",
        "also the size that ISR and ELR together are to keep; files may use Kafka's name",
    ),
    Setting(
        "`acks=all`, `acks=1`",
        "`variant.acks`",
        '`"all"` (or -1) or `1`; with 1 a record counts as acknowledged once its leader has it, whatever the ISR is',
    ),
    Setting("`acks=0`", "not modelled", "nothing is ever acknowledged, so nothing acknowledged can be lost"),
    Setting(
        "`unclean.leader.election.enable`",
        "`variant.unclean_leader_election`",
        "any unfenced replica may lead if nobody else can; files may use Kafka's name",
    ),
    Setting(
        "`eligible.leader.replicas.version`",
        "`variant.version`",
        '1, the default of clusters created with 4.1 or later: `"kip966"`; 0, and so clusters that were upgraded until '
        'somebody turns it on: `"v3_5"`; files may use Kafka\'s name and numbers',
    ),
    Setting(
        "last known leader (with ELR, once ISR and ELR are empty)",
        "`variant.last_known_leader`",
        "on, as in Kafka 4: it leads again once it is back, whatever it lost",
    ),
    Setting(
        "`unclean.recovery.strategy` (by longest log)",
        "not modelled",
        "Kafka has not got it yet; `unclean_leader_election` takes any replica",
    ),
    Setting(
        "`log.flush.interval.messages`, `flush.messages`",
        "`variant.flush_every_message`",
        "on for 1: a record is on disk before anybody hears of it; off for Kafka's default, 9223372036854775807, which "
        "is never; files may use Kafka's names with these two",
    ),
    Setting(
        "`log.flush.interval.ms`, `flush.ms`, and the operating system's write-back",
        "`rates.broker_flushes`",
        "once in 30 s with the defaults of Kafka and Linux, else the rate is one over it, and files may use Kafka's "
        "names in `[rates]`; what is lost before is up to `rates.tail_loss_shutdown` and `rates.cluster_loses_power`",
    ),
    Setting(
        "`broker.session.timeout.ms`",
        "`rates.session_times_out`",
        "the rate is one over it: of a leader that is cut off (`faults.max_isolations`, `rates.leader_is_isolated`); "
        "files may give `broker.session.timeout.ms = 9000` in `[rates]` instead. A broker that goes down is fenced at "
        "once; how often one that is up and not cut off is fenced, the setting does not tell (`rates.fence_broker`)",
    ),
    Setting(
        "`broker.heartbeat.interval.ms`",
        "`rates.unfence_broker`",
        "the rate is one over it; files may give `broker.heartbeat.interval.ms = 2000` in `[rates]` instead",
    ),
    Setting(
        "`replica.lag.time.max.ms`",
        "`rates.leader_removes_stalled`, `latency.cut_ms`",
        "the rate is one over it: of a follower that stalls (`faults.max_stalls`, `rates.follower_stalls`); files may "
        "give `replica.lag.time.max.ms = 30000` in `[rates]` instead; in `[latency]`, how long a write waits for one "
        "that lags",
    ),
    Setting("`replica.fetch.wait.max.ms`", "`rates.send_fetch_request`", "fetches do not wait for new records"),
    Setting("`enable.idempotence`, `retries`", "not modelled", "a record is written once; producers do not retry"),
    Setting(
        "a rolling restart; whether it waits for under-replicated partitions to be 0",
        "`rates.roll_begins`, `rates.roll_restarts`, `rates.restart_ends`, `faults.max_rolls`; `variant.gated_rolls`",
        "all brokers, one after another, each shut down cleanly",
    ),
    Setting(
        "`broker.rack`, replica placement",
        "`model.zones`, `rates.zone_loses_power`, `faults.max_zone_outages`",
        "broker b is in zone b mod zones: replicas are spread as evenly as can be",
    ),
    Setting(
        "a power outage",
        "`rates.cluster_loses_power`, `faults.max_outages`, `faults.p_lost_in_outage`",
        "all brokers at one instant, each without its log with that probability",
    ),
    Setting(
        "controller quorum (`controller.quorum.voters`)",
        "not modelled",
        "the controller's metadata log is never lost and never forks",
    ),
    Setting("`log.retention.*`, compaction, tiered storage", "not modelled"),
)
