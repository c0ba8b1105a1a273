"""What is kept for a configuration: made once, told apart by all that runs depend on, and not without end."""

from quorisk.kernels.engines.lanes.by_configuration import ByConfiguration
from quorisk.kernels.engines.points import kin, pack
from quorisk.kernels.protocols import registry
from tests.support import point_of

MODEL = registry.load("kafka")


def test_one_thing_is_made_for_each_configuration_and_the_oldest_goes():
    packed = pack(MODEL, [point_of(MODEL, lifetime=lifetime) for lifetime in (1.0, 2.0, 1.0, 3.0)])
    made = []

    def make(model, points):
        made.append((model.name, len(points.losses), points.weights[0, -1] / points.weights[0, 0]))
        return object()

    kept = ByConfiguration(make, most=2)
    first, second, again = (kept.get(MODEL, packed, point) for point in (0, 1, 2))
    assert first is again
    assert first is not second
    assert made == [("kafka", 1, 1.0), ("kafka", 1, 0.5)]
    kept.get(MODEL, packed, 3)
    assert kept.get(MODEL, packed, 1) is second
    assert kept.get(MODEL, packed, 0) is not first


def test_points_are_kin_whose_losses_are_alike_and_all_else_is_the_same():
    bookkeeper = registry.load("bookkeeper")
    given = [(0.1, 2.0), (0.2, 2.0), (0.1, 3.0), (0.0, 2.0), (0.3, 3.0), (1e-9, 2.0), (1.0, 2.0), (0.0, 2.0)]
    packed = pack(bookkeeper, [point_of(bookkeeper, loss, lifetime=lifetime) for loss, lifetime in given])
    assert kin(packed) == [0, 0, 2, 3, 2, 5, 0, 3]
