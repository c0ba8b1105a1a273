"""The rules of flushing (tests/data/tla/FLUSH.md): literal interpreters against TLC, and exact chains."""

import json
from collections import Counter
from typing import Any

import pytest

from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.protocols.kafka import MODEL as KAFKA
from quorisk.kernels.protocols.kraft import MODEL as KRAFT
from tests.analysis.exact import chains as chains_of_points
from tests.data.tla import chains
from tests.references import bookkeeper, kafka, kafka_properties, kraft
from tests.references.kraft.chain import p_loss
from tests.references.searching import Found, search
from tests.references.tlc_rows import TLC
from tests.support import ROOT, point_of, values_of

ROWS = [
    row
    for name in ("tlc_flush.json", "tlc_writing.json")
    for row in json.loads((ROOT / "tests" / "data" / name).read_text())
]
NUMBERS = json.loads((ROOT / "tests" / "data" / "numbers_flush.json").read_text())["settings"]
TLCS_OWN = "EarlierFragmentsReachWriteQuorum"
TRUNCATIONS = {"KafkaTruncateToHighWatermark": "high_watermark", "Kip101": "kip101", "Kip320": "kip320"}


def rows_of(module: str, most: int) -> list[Any]:
    """Rows small enough for an interpreter."""
    return [
        pytest.param(row, id=row["name"])
        for row in ROWS
        if row["module"].startswith(module) and row["distinct_states"] <= most
    ]


def equals_tlc(row, first, successors, holds) -> Found:
    found = search(first, successors)
    assert (len(found.states), found.depth) == (row["distinct_states"], row["depth"])
    broken = Counter(name for state in found.states for name, held in holds(state).items() if not held)
    assert row["breaking_states"] == {name: broken[name] for name in row["breaking_states"]}
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", rows_of("BookKeeper", 6_700))
def test_bookkeepers_interpreter_finds_what_tlc_finds(row):
    k = chains.constants_of(row)

    def successors(state):
        for one in bookkeeper.instances(state, k):
            yield from [after for *_, after in one.outcomes] * bookkeeper.branches(state, one, k)

    def holds(state):
        earlier = bookkeeper.earlier_fragments_reach_write_quorum(state, k)
        return {**bookkeeper.invariants(state, k), TLCS_OWN: earlier}

    found = equals_tlc(row, bookkeeper.initial(k), successors, holds)
    assert found.generated_states == row["generated_states"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("row", rows_of("kafka_replication", 20_000))
def test_krafts_interpreter_finds_what_tlc_finds(row):
    tlc = TLC["kraft"]
    given = {str(tlc.constants[name]): {"TRUE": True, "FALSE": False}.get(x, x) for name, x in row["constants"].items()}
    values = values_of(KRAFT, **given, **tlc.modules[row["module"]])
    equals_tlc(
        row,
        kraft.initial(values),
        lambda state: kraft.successors(state, values),
        lambda state: {name: holds(state, values) for name, holds in kraft.PROPERTIES.items()},
    )


@pytest.mark.parametrize(
    ("faults", "p_lost"),
    [({"max_tail_losses": 1, "acks": "1"}, {}), ({"max_outages": 1}, {"p_lost_in_outage": 0.2})],
    ids=lambda given: next(iter(given), ""),
)
@pytest.mark.parametrize("semantics", ["kafka", "specification"])
def test_exact_of_what_brokers_have_not_flushed_is_an_independent_chains(faults, p_lost, semantics):
    given: dict[str, Any] = {**faults, "semantics": semantics, "flush_every_message": False, "max_lossy_shutdowns": 0}
    rates = {"broker_flushes": 3.0, "tail_loss_shutdown": 0.2, "cluster_loses_power": 0.2}
    expected = p_loss(values_of(KRAFT, **given), rates, 20.0, **p_lost_by_action(p_lost))
    *_, found = chains_of_points.solved(KRAFT, point_of(KRAFT, rates=rates, lifetime=20.0, **given, **p_lost))
    assert expected > 1e-3
    assert found.data_loss == pytest.approx(expected, rel=1e-10)


def p_lost_by_action(p_lost):
    return {"cluster_loses_power": p_lost["p_lost_in_outage"]} if p_lost else {}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("row", rows_of("K", 20_000))
def test_kafkas_interpreter_finds_what_tlc_finds(row):
    constants = row["constants"]
    values = values_of(
        KAFKA,
        replicas=constants["Replicas"].count(",") + 1,
        log_size=int(constants["LogSize"]),
        max_records=int(constants["MaxRecords"]),
        max_leader_epoch=int(constants["MaxLeaderEpoch"]),
        truncation=TRUNCATIONS[row["module"].removesuffix("Flush")],
        flush_every_message=constants["FlushEveryMessage"] == "TRUE",
        max_unclean_restarts=int(constants["MaxUncleanRestarts"]),
    )
    actions = kafka.actions(values).values()
    equals_tlc(
        row,
        kafka.initial(values),
        lambda state: (after for action in actions for after in action(state, values)),
        lambda state: {"WeakIsr": kafka_properties.weak_isr(state), "StrongIsr": kafka_properties.strong_isr(state)},
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["name"])
def test_the_kept_figures_are_the_chains(case):
    states, p = chains.p_lost(case)
    assert states == case["states"]
    assert float(p) == pytest.approx(case["p_lost"], rel=1e-14)


@pytest.mark.parametrize("case", NUMBERS, ids=lambda case: case["name"])
def test_exact_answers_are_the_kept_figures(case):
    given = {**case["model"], **case["faults"], **case["variant"]}
    given |= {name: case[name] for name in ("p_lost_in_outage", "p_lost_entry") if name in case}
    point = point_of(BOOKKEEPER, case["message_loss"], case["rates"], lifetime=float(case["lifetime"]), **given)
    *_, found = chains_of_points.solved(BOOKKEEPER, point)
    assert found.data_loss == pytest.approx(case["p_lost"], rel=1e-11)
