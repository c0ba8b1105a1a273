"""Parameters of a partition in an experiment file, and the numbers that the rules read."""

from typing import NamedTuple

from quorisk.kernels.model import Condition, Parameter, switch
from quorisk.kernels.protocols.cluster_settings import FLUSHED_AFTER, LOG_FLUSH_INTERVAL_MESSAGES
from quorisk.kernels.protocols.kafka.layout import MAX_EPOCHS, MAX_RECORDS, MAX_REPLICAS
from quorisk.kernels.protocols.rows import rows_of_zones
from quorisk.kernels.telling import with_docs

PLAIN, FIRST_TRY, FENCED = range(3)
"""The modules that actions are of: KafkaReplication, Kip320FirstTry or Kip320."""
TO_HIGH_WATERMARK, TO_EPOCH_END, TO_MATCH, NOT_AT_ONCE, TO_MATCH_IN_EPOCH = range(5)
"""Ways in which a replica truncates when it becomes a follower."""

_BECOME_FOLLOWER = {
    "high_watermark": TO_HIGH_WATERMARK,
    "kip101": TO_EPOCH_END,
    "kip279": TO_MATCH,
    "kip320_first_try": NOT_AT_ONCE,
    "kip320": TO_MATCH_IN_EPOCH,
}


class Params(NamedTuple):
    """The spec's constants and which variant's action stands for each step of the protocol, as integers."""

    replicas: int
    log_size: int  # LogSize
    max_records: int  # MaxRecords
    epochs: int  # MaxLeaderEpoch + 1
    expand_isr: int  # PLAIN, FIRST_TRY or FENCED, as the next three
    shrink_isr: int
    inc_high_watermark: int
    fetch: int
    become_follower: int  # TO_HIGH_WATERMARK, ...
    keep_short_logs: int  # truncation_beyond_end is no_op
    track_committed: int
    flush_every_message: int
    max_unclean_restarts: int
    max_outages: int
    max_zone_outages: int
    zones: int  # row z: the replicas of zone z
    continuous_writes: int


PARAMETERS = with_docs(
    __file__,
    Parameter("replicas", "model", (1, MAX_REPLICAS)),
    Parameter("log_size", "model", (1, MAX_RECORDS)),
    Parameter("max_records", "model", (1, MAX_RECORDS)),
    switch("continuous_writes", table="model", default=False, later=True),
    Parameter("max_leader_epoch", "model", (0, MAX_EPOCHS - 1)),
    switch("track_committed", table="model", history=True),
    Parameter("truncation", "variant", ("kip320", "kip320_first_try", "kip279", "kip101", "high_watermark")),
    switch("fenced_fetch"),
    switch("fenced_high_watermark"),
    switch("fenced_isr_shrink"),
    switch("fenced_isr_expand"),
    switch("truncate_same_epoch_only"),
    Parameter("truncation_beyond_end", "variant", ("disabled", "no_op")),
    switch("flush_every_message", called=LOG_FLUSH_INTERVAL_MESSAGES, spelled=FLUSHED_AFTER, later=True),
    Parameter("max_unclean_restarts", "faults", (0, 7), later=True),
    Parameter("zones", "model", (0, MAX_REPLICAS), default=0, later=True),
    Parameter("max_outages", "faults", (0, 7), later=True),
    Parameter("max_zone_outages", "faults", (0, 7), later=True),
)
_FENCE = ("fenced_fetch", "fenced_high_watermark", "fenced_isr_shrink", "fenced_isr_expand", "truncate_same_epoch_only")
CONDITIONS = (
    Condition(
        "continuous_writes",
        'off but for truncation = "kip320" with all its fences and track_committed, as logs of unequal lengths are '
        "compared without them",
        lambda v: (
            not v["continuous_writes"]
            or (v["truncation"] == "kip320" and v["track_committed"] and all(v[name] for name in _FENCE))
        ),
    ),
    Condition("zones", "at most replicas", lambda v: v["zones"] <= v["replicas"]),
    Condition("max_zone_outages", "0 without zones", lambda v: v["zones"] > 0 or v["max_zone_outages"] == 0),
)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    truncation = values["truncation"]
    fences = {"kip320": FENCED, "kip320_first_try": FIRST_TRY}

    def fencing(switch):
        dropped = truncation == "kip320" and not values[switch]
        return PLAIN if dropped else fences.get(truncation, PLAIN)

    unfenced_truncation = truncation == "kip320" and not values["truncate_same_epoch_only"]
    derived = {
        "epochs": values["max_leader_epoch"] + 1,
        "expand_isr": fencing("fenced_isr_expand"),
        "shrink_isr": fencing("fenced_isr_shrink"),
        "inc_high_watermark": fencing("fenced_high_watermark"),
        "fetch": fencing("fenced_fetch"),
        "become_follower": TO_MATCH if unfenced_truncation else _BECOME_FOLLOWER[truncation],
        "keep_short_logs": values["truncation_beyond_end"] == "no_op",
        "zones": rows_of_zones(values["replicas"], values["zones"]),
    }
    return Params(**{name: int((values | derived)[name]) for name in Params._fields})
