"""Runs that may lose data, shapes of kernels for them, and one that is ready."""

from quorisk.kernels.engines.lanes.switch import Switch
from quorisk.kernels.engines.lanes.traced import Shape
from quorisk.kernels.engines.points import Point, pack
from quorisk.kernels.model import Model
from quorisk.kernels.protocols import registry
from tests.support import point_of

RUNS = 3000
OF_32_BITS, OF_16_BITS = Shape(16, 32), Shape(32, 16)


def losing() -> tuple[Model, Point]:
    """Runs that lose data or not, depending on the state in which they start, one of several."""
    model = registry.load("compaction")
    point = point_of(model, publish_context_before_horizon=False, model_producer=False, retain_null_key=False)
    return model, point


def prepared(shape: Shape = OF_16_BITS) -> Switch:
    model, point = losing()
    found = Switch(model, pack(model, [point]), 0)
    found.prepare(timed=True, shape=shape)
    assert found.kernel is not None, found.why_not
    return found


def of_few_bits(word, total, share_bits):
    """The places that a drawn word may stand for, of which 6 bits are looked at rather than 32: it is often open."""
    drawn = word >> 26
    lowest = drawn * total >> 6
    return lowest, ((drawn + 1) * total - 1 >> 6) - lowest
