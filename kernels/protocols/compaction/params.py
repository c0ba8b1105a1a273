"""Parameters of a topic in an experiment file, and the numbers that the rules read."""

from typing import NamedTuple

from quorisk.kernels.model import Parameter, switch
from quorisk.kernels.protocols.compaction.layout import MAX_COMPACTIONS, MAX_CRASHES, MAX_KEYS, MAX_MESSAGES, MAX_VALUES
from quorisk.kernels.telling import with_docs


class Params(NamedTuple):
    """The spec's constants and the variant, as integers (switches: 0 or 1)."""

    messages: int  # MessageSentLimit
    compactions: int  # CompactionTimesLimit
    values: int  # size of ValueSet, NullValue included
    max_crashes: int  # MaxCrashTimes
    producible: int  # the producer's instances, bit 8 key + value
    initial_messages: int  # messages there are at the start: all if the producer is not modelled, else none
    sequences: int  # number of sequences of that many messages
    retain_null_key: int
    publish_context_before_horizon: int
    persist_cursor_before_delete: int


PARAMETERS = with_docs(
    __file__,
    Parameter("messages", "model", (1, MAX_MESSAGES)),
    Parameter("compactions", "model", (1, MAX_COMPACTIONS)),
    Parameter("keys", "model", (1, MAX_KEYS)),
    Parameter("values", "model", (1, MAX_VALUES)),
    Parameter("max_crashes", "model", (0, MAX_CRASHES)),
    switch("retain_null_key"),
    switch("model_producer"),
    switch("publish_context_before_horizon"),
    switch("persist_cursor_before_delete"),
)


def make_params(values) -> Params:
    """`Params` from checked values of PARAMETERS."""
    keys, value_set = values["keys"] + 1, values["values"] + 1
    initial_messages = 0 if values["model_producer"] else values["messages"]
    derived = {
        "values": value_set,
        "producible": sum(1 << (8 * key + value) for key in range(keys) for value in range(value_set)),
        "initial_messages": initial_messages,
        "sequences": (keys * value_set) ** initial_messages,
    }
    return Params(**{name: int((values | derived)[name]) for name in Params._fields})
