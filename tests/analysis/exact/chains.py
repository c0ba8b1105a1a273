"""Chains that several tests and checks solve: of protocols, of published models, and made by hand."""

import math
from importlib import import_module

import numpy as np

from quorisk.analysis.exact import answers
from quorisk.analysis.experiment import config
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import LOST, UNFINISHED
from quorisk.kernels.states import absorption, chain
from tests.external import herman, retransmission, tandem
from tests.support import point_of

MEMORY = 1 << 30
BOOKKEEPER, COMPACTION, KAFKA = (
    import_module(f"quorisk.kernels.protocols.{name}").MODEL for name in ("bookkeeper", "compaction", "kafka")
)
SIZES = ("bookies", "clients", "write_quorum", "ack_quorum", "entries", "inflight")
UNEVEN = {"client_closes_ledger_success": 0.1, "client_closes_ledger_fail": 0.0, "client_starts_recovery": 2.5}
CYCLING = {"leader_shrink_isr": 1e3, "leader_expand_isr": 1e3, "controller_shrink_isr": 0.7}


def named(*sizes):
    return dict(zip(SIZES, sizes, strict=True))


def external_point(values, rates, loss):
    return Point(values, rates, loss, 100_000, math.inf)


def solved(model, point, steps=(), times=()):
    """The chain of a point, its components and its answers."""
    found = chain.build_chain(model, point, MEMORY)
    parts = absorption.components(found)
    return found, parts, answers.solve_chain(found, parts, model, steps, times)


def experiment(protocol="bookkeeper", faults=0.1, **tables):
    sizes = named(2, 2, 1, 1, 1, 1) if protocol == "bookkeeper" else {}
    model = sizes | tables.pop("model", {})
    return config.build_experiment(
        {"protocol": protocol, "model": model, "faults": {"message_loss": faults}, **tables}, "test"
    )


def by_hand(rows, initial, ends):
    """A chain from the transitions of each state."""
    return chain.Chain(
        initial=np.array(initial, float),
        first=np.cumsum([0, *map(len, rows)]),
        target=np.array([j for row in rows for j in row], np.int32),
        p=np.array([p for row in rows for p in row.values()]),
        total_rate=np.where(np.array(ends) == UNFINISHED, 1.0, 0.0),
        broken=(np.array(ends) == LOST).astype(np.int64),
        ends=np.array(ends, np.int8),
    )


ESTIMATED = [
    (BOOKKEEPER, {"fence_unknown_ledger": False, **named(1, 2, 1, 1, 2, 2)}, 0.3, UNEVEN),
    (BOOKKEEPER, {"defer_recovery_ensemble_change": False, **named(2, 2, 1, 1, 1, 1)}, 0.3, {}),
    (BOOKKEEPER, {"strict_negative_reads": False, **named(2, 2, 2, 1, 1, 1)}, 0.2, {}),
    (BOOKKEEPER, named(2, 2, 1, 1, 1, 1), 0.1, {}),
    (COMPACTION, {}, 0.0, {"broker_crash": 0.3}),
    (COMPACTION, {"persist_cursor_before_delete": False, "max_crashes": 2}, 0.0, {}),
    (COMPACTION, {"publish_context_before_horizon": False, "model_producer": False}, 0.0, {"broker_crash": 2.5}),
    (KAFKA, {"truncation": "kip320"}, 0.0, {}),
    (KAFKA, {"truncation": "high_watermark"}, 0.0, {}),
    (KAFKA, {"truncation": "kip101", "max_records": 1}, 0.0, CYCLING),
    (herman.MODEL, None, herman.MESSAGE_LOSS, {}),
    (tandem.MODEL, {"capacity": 4}, 0.0, tandem.RATES),
    (retransmission.MODEL, {"frames": 16, "max_retries": 2}, retransmission.FRAME_LOSS, retransmission.RATES),
    (BOOKKEEPER, {"fence_unknown_ledger": False, "lifetime": 20.0, **named(1, 2, 1, 1, 2, 2)}, 0.3, UNEVEN),
    (COMPACTION, {"persist_cursor_before_delete": False, "max_crashes": 2, "lifetime": 9.0}, 0.0, {"producer": 1 / 3}),
]
"""Model, values, message loss, rates: that random runs agree with."""
CHECKED = [
    (BOOKKEEPER, point_of(BOOKKEEPER, 0.3, UNEVEN, fence_unknown_ledger=False, **named(1, 2, 1, 1, 2, 2))),
    (COMPACTION, point_of(COMPACTION, model_producer=False, publish_context_before_horizon=False)),
    (KAFKA, point_of(KAFKA, rates=CYCLING, truncation="kip101")),
    (herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS)),
    (tandem.MODEL, external_point({"capacity": 8}, tandem.RATES, 0.0)),
]
"""Model, point: that Storm agrees with."""
