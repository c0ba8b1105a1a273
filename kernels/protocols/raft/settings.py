"""Settings of a real cluster, and the keys that stand for them, if any: see docs/settings.md."""

from quorisk.kernels.protocols.settings import Setting

SETTINGS = (
    Setting(
        "members of the group (etcd), replicas (Redpanda), `num_replicas` (JetStream)", "`model.servers`", "1 to 6"
    ),
    Setting(
        "`--unsafe-no-fsync` (etcd)",
        "`variant.follower_fsync_before_reply`, `variant.leader_fsync_before_include_in_quorum`",
        "both off with it; etcd without it syncs before each answer",
    ),
    Setting(
        "`write.caching` (Redpanda)",
        "`variant.follower_fsync_before_reply`, `variant.leader_fsync_before_include_in_quorum`",
        "both off where it is on, or where producers ask for acks=1",
    ),
    Setting(
        "`flush.ms`, `raft_replica_max_flush_delay_ms` (Redpanda)",
        "`rates.advance_fsync_index`",
        'one over half of it where write caching is on; else one over what a sync takes, such as `"1 / 2 ms"`',
    ),
    Setting(
        "`sync_interval` (JetStream)",
        "`rates.advance_fsync_index`, `variant.follower_fsync_before_reply`, "
        "`variant.leader_fsync_before_include_in_quorum`",
        "one over half of it, 2 minutes unless told otherwise, with both switches off; for `always` both on, and one "
        "over what a sync takes",
    ),
    Setting(
        "`--election-timeout` (etcd), `election_timeout_ms` (Redpanda)",
        "`rates.timeout`",
        "one over 1.5 times it (etcd) or 1.6 times (Redpanda), as members wait longer at random; how often a follower "
        "takes a healthy leader for dead is `rates.false_timeout`",
    ),
    Setting("`--heartbeat-interval` (etcd)", "not modelled", "heartbeats that are no news change nothing"),
    Setting(
        "learners (`etcdctl member add --learner`)",
        "`variant.rejoin_as_new`",
        "off where a wiped member comes back under its old name with its old id",
    ),
    Setting(
        "`--initial-cluster-state` (etcd), of a wiped member that starts under its old name",
        "`variant.rejoin_as_new`, `variant.panic_on_lost_log`",
        "`new` is refused until it is added as a new member: the first on. `existing` takes part once its leader is "
        "gone, and panics until then: the first off, the second on",
    ),
    Setting("pre-vote, check-quorum", "not modelled", "they make false timeouts rarer: `rates.false_timeout`"),
    Setting("snapshots, compaction of the log", "not modelled"),
)
