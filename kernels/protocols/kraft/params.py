"""Parameters of a partition in an experiment file, and the numbers that the rules read."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from quorisk.kernels.model import Condition, Parameter, Probability, switch
from quorisk.kernels.protocols.cluster_settings import FLUSHED_AFTER, LOG_FLUSH_INTERVAL_MESSAGES
from quorisk.kernels.protocols.kraft.layout import MAX_BROKERS, MAX_EPOCH, MAX_RECORDS, MAX_STARTS, MAX_VALUES
from quorisk.kernels.protocols.rows import rows_of_zones
from quorisk.kernels.telling import with_docs


class Params(NamedTuple):
    """The spec's constants and the variant, as integers (switches: 0 or 1)."""

    brokers: int  # BrokerCount
    replication_factor: int  # InitReplicationFactor
    min_isr: int  # MinISR
    init_isr: int  # InitIsrSize
    values: int  # as a set
    max_clean_shutdowns: int  # NoDataLossShutdownLimit
    max_lossy_shutdowns: int  # DataLossShutdownLimit
    max_fencings: int  # FenceBrokerLimit
    max_isr_shrinks: int  # LeaderShrinkIsrLimit
    max_reassignments: int  # ReassignmentLimit
    max_outages: int
    max_zone_outages: int
    max_tail_losses: int
    max_stalls: int
    max_rolls: int
    max_isolations: int
    zones: int  # row z: the brokers of zone z
    kip966: int
    kafka: int  # semantics: what Kafka does, where the spec has it otherwise
    avoid_last_replica_standing: int  # 0 in KIP-966's version, which has no such restriction
    exclude_unclean_brokers: int
    check_broker_epochs: int
    maximal_isr: int
    min_isr_to_commit: int
    last_known_leader: int
    fence_fetches: int
    truncate_on_divergence: int
    catch_up_to_high_watermark: int
    catch_up_to_epoch_start: int
    unclean_leader_election: int
    ack_all: int
    flush_every_message: int
    gated_rolls: int
    continuous_writes: int
    lost_without_leader: int
    stalls_go_on: int


PARAMETERS = with_docs(
    __file__,
    Parameter("brokers", "model", (1, MAX_BROKERS)),
    Parameter(
        "replication_factor", "model", (1, MAX_BROKERS), called=("replication.factor", "default.replication.factor")
    ),
    Parameter("min_isr", "model", (1, MAX_BROKERS), called=("min.insync.replicas",)),
    Parameter("init_isr", "model", (0, MAX_BROKERS), default=0),
    Parameter("values", "model", (1, MAX_VALUES)),
    switch("continuous_writes", table="model", default=False, later=True),
    switch("lost_without_leader", table="model"),
    switch("stalls_go_on", table="model", default=False, later=True),
    Parameter("zones", "model", (0, MAX_BROKERS), default=0),
    Parameter("max_clean_shutdowns", "faults", (0, MAX_STARTS)),
    Parameter("max_lossy_shutdowns", "faults", (0, MAX_STARTS)),
    Parameter("max_fencings", "faults", (0, 7)),
    Parameter("max_isr_shrinks", "faults", (0, 7)),
    Parameter("max_reassignments", "faults", (0, 2)),
    Parameter("max_outages", "faults", (0, MAX_STARTS)),
    Parameter("max_zone_outages", "faults", (0, MAX_STARTS)),
    Parameter("max_tail_losses", "faults", (0, 7), later=True),
    Parameter("max_stalls", "faults", (0, 7)),
    Parameter("max_rolls", "faults", (0, 7)),
    Parameter("max_isolations", "faults", (0, 7)),
    Parameter("semantics", "variant", ("kafka", "specification")),
    Parameter(
        "version",
        "variant",
        ("kip966", "v3_5"),
        called=("eligible.leader.replicas.version",),
        spelled=((1, "kip966"), (0, "v3_5")),
    ),
    switch("avoid_last_replica_standing", default=False),
    switch("exclude_unclean_brokers"),
    switch("check_broker_epochs"),
    switch("maximal_isr"),
    switch("min_isr_to_commit"),
    switch("fence_fetches"),
    switch("truncate_on_divergence"),
    switch("catch_up_to_high_watermark"),
    switch("catch_up_to_epoch_start"),
    switch("last_known_leader"),
    switch("unclean_leader_election", default=False, called=("unclean.leader.election.enable",)),
    Parameter("acks", "variant", ("all", "1"), spelled=((-1, "all"),)),
    switch("flush_every_message", called=LOG_FLUSH_INTERVAL_MESSAGES, spelled=FLUSHED_AFTER, later=True),
    switch("gated_rolls"),
)


PROBABILITIES = (
    Probability("p_lost_in_outage", "that a broker's log is lost when the cluster loses power"),
    Probability("p_lost_in_zone_outage", "that a broker's log is lost when its zone loses power"),
)


def first_isr(values: Mapping[str, Any]) -> int:
    """InitIsrSize."""
    return int(values["init_isr"] or values["replication_factor"])


def most_shutdowns(values: Mapping[str, Any]) -> int:
    """The most shutdowns: those of single brokers, of rolls, and of all brokers in power outages."""
    brokers, zones = values["brokers"], values["zones"]
    in_zone = -(-brokers // zones) if zones else 0
    together = brokers * values["max_outages"] + in_zone * values["max_zone_outages"]
    alone = ("max_clean_shutdowns", "max_lossy_shutdowns", "max_tail_losses")
    return int(sum(values[name] for name in alone) + together + rolled(values))


def rolled(values: Mapping[str, Any]) -> int:
    """The restarts of all rolls."""
    return int(values["brokers"] * values["max_rolls"])


def most_records(values: Mapping[str, Any]) -> int:
    """The last partition epoch that can be reached.

    A broker that goes leaves the ISR or the leadership, and comes back with an election or into the ISR; one that comes
    back unclean leaves the ELR besides. A follower that stalls leaves the ISR and joins again. A leader that shrinks
    its ISR may remove all others, who join again one by one; a reassignment may add as many.
    """
    shutdowns = most_shutdowns(values)
    out_of_sync = values["replication_factor"] - first_isr(values)
    replicas = values["brokers"] if values["max_reassignments"] else values["replication_factor"]
    return (
        1
        + (out_of_sync > 0)
        + out_of_sync
        + (3 if values["version"] == "kip966" else 2) * (shutdowns - rolled(values))
        + 2 * (rolled(values) + values["max_fencings"] + values["max_isolations"] + values["max_stalls"])
        + replicas * values["max_isr_shrinks"]
        + values["brokers"] * values["max_reassignments"]
    )


def most_leader_epochs(values: Mapping[str, Any]) -> int:
    """The last leader epoch that can be reached: each fault may take the leader away and give it back. A restart of a
    gated roll leaves members of the ISR, of which one leads at once."""
    keeps_leader = values["gated_rolls"] and values["replication_factor"] > 1
    faults = most_shutdowns(values) + int(values["max_fencings"] + values["max_isolations"])
    return 1 + 2 * faults + 2 * int(values["max_reassignments"]) - (rolled(values) if keeps_leader else 0)


CONDITIONS = (
    Condition(
        "max_isr_shrinks",
        '0, unless semantics = "specification": a follower lags as it stalls, which is up to max_stalls',
        lambda v: v["semantics"] == "specification" or v["max_isr_shrinks"] == 0,
    ),
    Condition("replication_factor", "at most brokers", lambda v: v["replication_factor"] <= v["brokers"]),
    Condition("init_isr", "at most replication_factor", lambda v: first_isr(v) <= v["replication_factor"]),
    Condition("min_isr", "at most replication_factor and init_isr", lambda v: v["min_isr"] <= first_isr(v)),
    Condition(
        "continuous_writes",
        "off without fence_fetches or truncate_on_divergence, as logs of unequal lengths are compared there",
        lambda v: not v["continuous_writes"] or (v["fence_fetches"] and v["truncate_on_divergence"]),
    ),
    Condition(
        "stalls_go_on",
        'off unless semantics = "kafka" and init_isr = replication_factor',
        lambda v: not v["stalls_go_on"] or (v["semantics"] == "kafka" and first_isr(v) == v["replication_factor"]),
    ),
    Condition("zones", "at most brokers", lambda v: v["zones"] <= v["brokers"]),
    Condition("max_zone_outages", "0 without zones", lambda v: v["zones"] > 0 or v["max_zone_outages"] == 0),
    Condition(
        "max_lossy_shutdowns",
        f"fewer shutdowns in all: there is room for {MAX_STARTS}, those of max_clean_shutdowns and max_tail_losses "
        "among them, one for each broker in an outage or a roll, and one for each broker of a zone in a zone outage",
        lambda v: most_shutdowns(v) <= MAX_STARTS,
    ),
    Condition(
        "max_fencings",
        "fewer faults in all: there is room for "
        f"{MAX_RECORDS} partition epochs (each fencing, isolation and stall may take 2, each shutdown 3, or 2 in v3_5 "
        "and in a roll, each ISR shrink as many as there are replicas, each reassignment as many as there are brokers)",
        lambda v: most_records(v) <= MAX_RECORDS and most_leader_epochs(v) <= MAX_EPOCH,
    ),
)


def make_params(values: Mapping[str, Any]) -> Params:
    """`Params` from checked values of PARAMETERS."""
    kip966, kafka = values["version"] == "kip966", values["semantics"] == "kafka"
    given = {
        **values,
        "init_isr": first_isr(values),
        "values": (1 << values["values"]) - 1,
        "zones": rows_of_zones(values["brokers"], values["zones"]),
        "kip966": kip966,
        "kafka": kafka,
        "avoid_last_replica_standing": not kip966 and values["avoid_last_replica_standing"],
        "ack_all": values["acks"] == "all",
        "min_isr_to_commit": (kip966 or kafka) and values["min_isr_to_commit"],
        "last_known_leader": kip966 and kafka and values["last_known_leader"],
        "exclude_unclean_brokers": kip966 and values["exclude_unclean_brokers"],
        "gated_rolls": not values["max_rolls"] or values["gated_rolls"],  # nothing else asks for it
    }
    return Params(**{name: int(given[name]) for name in Params._fields})
