"""Runs in queues: their records, and what keeps them apart."""

import ctypes
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

from quorisk.analysis.experiment import config
from quorisk.kernels.engines.job import RECORD
from quorisk.kernels.engines.lanes import traced
from quorisk.kernels.engines.lanes.build import QUEUED
from quorisk.kernels.engines.lanes.parts import choice
from quorisk.kernels.engines.lanes.plan import pack_masks, packed, pieces, places_of_bits
from quorisk.kernels.engines.lanes.queued import queues
from quorisk.kernels.engines.lanes.queued.records import RUNS, Layout, turned
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.tracing import cpu
from quorisk.kernels.tracing.expressions import Graph
from quorisk.kernels.tracing.folding import new_graph
from quorisk.kernels.tracing.machine import I32, I64, POINTER, lanes_of
from quorisk.kernels.tracing.observe import observe
from quorisk.kernels.tracing.trace import Word
from tests.kernels.engines import fuzz, lamps
from tests.kernels.engines.losing import losing, of_few_bits

pytestmark = pytest.mark.usefixtures("no_kernels_at_hand")

Emit = Callable[[ir.IRBuilder, Any, Any], None]


def computed(emit: Emit, given: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What machine code writes that `emit` makes, with the addresses of what it is given and of what it writes."""
    module = ir.Module("test")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER]), "test")
    builder = ir.IRBuilder(function.append_basic_block())
    emit(builder, *function.args)
    builder.ret_void()
    engine, address = cpu.linked(cpu.object_code(str(module)), "test")
    found = np.zeros(shape, dtype)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(given.ctypes.data, found.ctypes.data)
    del engine
    return found


def place(builder: ir.IRBuilder, pointer: Any, index: int, kind: Any) -> Any:
    return builder.gep(pointer, [ir.Constant(I64, index * RUNS)], source_etype=kind)


def test_turned_rows_are_columns():
    rows = np.arange(RUNS * RUNS, dtype=np.int32).reshape(RUNS, RUNS) ** 2

    def emit(builder, given, found):
        kind = lanes_of(I32, RUNS)
        before = [builder.load(place(builder, given, i, I32), typ=kind, align=4) for i in range(RUNS)]
        for i, column in enumerate(turned(builder, before)):
            builder.store(column, place(builder, found, i, I32), align=4)

    assert np.array_equal(computed(emit, rows, rows.shape, np.int32), rows.T)


@pytest.mark.parametrize("seed", range(4))
def test_records_give_back_what_is_put_into_them(seed):
    """Whatever bits values have, far apart or not; those that they may not have do not come back, nor harm others."""
    chance = random.Random(seed)
    values = {i: chance.getrandbits(64) & chance.getrandbits(64) >> chance.randrange(50) | 1 for i in range(30)}
    layout = Layout(values)
    given = np.array([[chance.getrandbits(64) for _ in range(RUNS)] for _ in values], np.uint64)

    def emit(builder, given, found):
        kind = lanes_of(I64, RUNS)
        before = {i: builder.load(place(builder, given, i, I64), typ=kind, align=8) for i in values}
        dwords = layout.packed(builder, before)
        assert sorted(dwords) == list(range(layout.num_dwords))
        for i in values:
            value = layout.get(builder, i, dwords.__getitem__)
            value = builder.zext(value, kind) if value.type != kind else value
            builder.store(value, place(builder, found, i, I64), align=8)

    found = computed(emit, given, given.shape, np.uint64)
    for i, may in values.items():
        assert np.array_equal(found[i], given[i] & np.uint64(may)), i
    room = 32 * layout.num_dwords
    assert room >= sum(bits.bit_count() for bits in layout.taken(list(values)).values())


@pytest.mark.parametrize(
    ("mask", "size", "gap", "found"),
    [
        (0b1011, 32, 8, [(0, 4)]),
        (0b1011 << 20, 32, 8, [(20, 4)]),
        (1 | 1 << 8, 32, 8, [(0, 9)]),
        (1 | 1 << 9, 32, 8, [(0, 1), (9, 1)]),
        ((1 << 40) - 1, 32, 8, [(0, 32), (32, 8)]),
        (1 | 1 << 63, 64, 64, [(0, 64)]),
        (0, 32, 8, []),
    ],
)
def test_pieces_of_masks(mask, size, gap, found):
    assert pieces(mask, size, gap) == found


def words_of(graph: Graph, masks: list[int]) -> list[Word]:
    """Words of which such instances may be enabled."""
    leaves = [graph.leaf(("state", i), mask) for i, mask in enumerate(masks)]
    return [Word(i, i, 0, 1, leaf, 0, 0, None) for i, leaf in enumerate(leaves)]


def test_masks_in_pieces_keep_the_order_in_which_instances_are_drawn():
    masks = [(1 << 40) - 1, 0b11, 1 << 50 | 0b101]
    groups, fields = pack_masks(words_of(new_graph(), masks), 32, 8)
    owners = places_of_bits(fields, len(groups), 32)
    bits = [(field.place, bit) for field in fields for bit in range(field.lowest, field.lowest + field.size)]
    assert [each for each in bits if masks[each[0]] >> each[1] & 1] == [
        *((0, bit) for bit in range(40)), (1, 0), (1, 1), (2, 0), (2, 2), (2, 50),
    ]  # fmt: skip
    for field in fields:
        assert set(owners[32 * field.group + field.offset :][: field.size]) == {field.place}
    whole = [packed(masks, fields, group, range(3)) for group in range(len(groups))]
    assert sum(mask.bit_count() for mask in whole) == sum(mask.bit_count() for mask in masks)
    assert all(mask < 1 << 32 for mask in whole)


def test_words_of_more_instances_than_a_lane_has_bits_and_of_several_rates():
    tables = {"model": {"bookies": 4, "clients": 2, "write_quorum": 3, "ack_quorum": 2, "entries": 2, "inflight": 2}}
    rates = {"bookie_sends_read_response": 3.0, "client_starts_recovery": 1e-9}
    experiment = config.build_experiment(
        {"protocol": "bookkeeper", **tables, "faults": {"message_loss": 0.2}, "rates": rates}, "x"
    )
    compared = fuzz.compare(experiment.model, experiment.points[0].point, QUEUED, True, 11, 3000)
    assert compared.repeated < 300


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pool", [16, 48, 1024])
def test_any_number_of_runs_may_be_under_way(monkeypatch, pool):
    """With 16, hardly any queue is ever full."""
    monkeypatch.setattr(queues, "POOL", pool)
    model, point = losing()
    assert fuzz.compare(model, point, QUEUED, True, 3, 3000).lost > 100


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("values", "others", "repeated"),
    [
        ({"starts": 2}, {}, 0.6),
        ({"starts": 3, "fatal": 7}, {"message_loss": 1.0}, 0.8),
        ({"lamps": 40}, {"message_loss": 0.0, "rates": {"light": 3.0, "flip": 0.25, "tick": 20.0}}, 0.1),
        ({"fatal": 2}, {"rates": {"flip": 1e-6, "idle": 1e3}, "max_steps": 30}, 0.1),
        ({"lamps": 7}, {"lifetime": 1.0, "horizon": 0.1}, 0.1),
        ({"lamps": 32}, {"lifetime": 1e12, "rates": {"tick": 1e-15}, "message_loss": 1e-18, "max_steps": 300}, 0.1),
        ({}, {"lifetime": 2.5, "rates": {"tick": 8.0, "flash": 2e16}}, 0.5),
        ({"lamps": 40}, {"lifetime": 2.5, "rates": {"light": 63.5, "tick": 600.0, "flash": 2e16}}, 0.5),
        ({}, {"max_steps": 1}, 0.1),
        ({"ticks": 2}, {"max_steps": 1 << 30}, 0.1),
    ],
)
def test_runs_of_what_kernels_find_hard(values, others, repeated):
    """The generic engine is left what begins exposed or over, and what draws something and does not accept it."""
    point = lamps.POINT._replace(values={**lamps.POINT.values, **values}, **others)
    assert fuzz.compare(lamps.MODEL, point, QUEUED, True, 12, 1000).repeated < 1000 * repeated


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [Shape(32, 16), QUEUED])
def test_an_action_that_was_not_seen_to_be_enabled_is_left_to_the_generic_engine(monkeypatch, shape):
    flash = len(lamps.MODEL.actions) + 1  # two of those before it have two words

    def without_flashes(*given):
        bounds = observe(*given)
        assert flash in bounds.enabled
        return bounds._replace(enabled=bounds.enabled - {flash}, taken=bounds.taken - {flash})

    monkeypatch.setattr(traced, "observe", without_flashes)
    assert 20 < fuzz.compare(lamps.MODEL, lamps.POINT, shape, True, 14, 1000).repeated < 500


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [Shape(32, 16), QUEUED])
def test_what_the_bits_drawn_leave_open_is_left_to_the_generic_engine(monkeypatch, shape):
    """Here 6 bits are drawn rather than 32, so that they often do."""
    monkeypatch.setattr(choice, "places", of_few_bits)
    compared = fuzz.compare(lamps.MODEL, lamps.POINT._replace(max_steps=2), shape, True, 15, 1000)
    assert 300 < compared.repeated < 1000


def test_more_messages_than_a_lane_has_bits_or_a_narrow_counter_room_for():
    most = 40

    def sends(state, params, instance):
        return (1 << most) - 1

    light, *others = lamps.MODEL.actions
    model = lamps.MODEL._replace(name="loud_lamps", actions=(light._replace(sends=sends), *others), max_sends=most)
    point = lamps.POINT._replace(values={**lamps.POINT.values, "ticks": 1}, rates={"tick": 0.01}, max_steps=1 << 30)
    made = fuzz.make(model, point, 13, 300)
    assert made.records[:, RECORD.index("messages")].max() > 1 << 16
    assert fuzz.by_kernel(made, QUEUED, True).repeated < 30
