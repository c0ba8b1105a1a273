"""What designs promise, and which of them have a mechanism off."""

import pandas as pd
import pytest

from quorisk.analysis.decision.promises import changed, promise, with_promises
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.kernels.protocols import registry
from tests.support import point_of

QUORUMS = {"model.write_quorum": 3, "model.ack_quorum": 2}


@pytest.mark.parametrize(
    ("given", "copies", "on_disk", "survives"),
    [
        ({}, 2, True, "1 bookie"),
        ({"model.ack_quorum": 1}, 1, True, "no bookie"),
        ({"model.ack_quorum": 3}, 3, True, "2 bookies"),
        ({"faults.max_amnesias": 1}, 2, False, "1 bookie"),
        ({"model.racks": 2, "variant.rack_aware": True}, 2, True, "1 bookie"),
        ({"model.racks": 2, "variant.rack_aware": True, "model.ack_quorum": 3}, 3, True, "2 bookies or 1 zone"),
        ({"model.racks": 2, "variant.rack_aware": False, "model.ack_quorum": 3}, 3, True, "2 bookies"),
    ],
)
def test_an_acknowledged_entry_is_on_as_many_bookies_as_the_ack_quorum(given, copies, on_disk, survives):
    assert promise("bookkeeper", QUORUMS | given) == (copies, 3, on_disk, survives)


def test_kafka_promises_one_copy_in_page_cache():
    assert promise("kafka", {"model.replicas": 3}) == (1, 3, False, "no broker")
    assert promise("compaction", {}) is None


def test_what_is_off_or_of_an_older_version_is_named():
    model = registry.load("kafka")
    today = dotted_values(model, point_of(model, 0.0))
    assert changed(model, today) == ""
    assert changed(model, today | {"variant.truncation": "kip101"}) == "truncation kip101"
    assert changed(model, today | {"variant.fenced_fetch": False}) == "fenced fetch off"
    assert changed(model, today | {"model.track_committed": False}) == ""  # history of the model, no mechanism


def test_a_frame_has_them_for_each_of_its_points():
    model = registry.load("bookkeeper")
    off, on = (dotted_values(model, point_of(model, 0.0, fence_recovery_reads=value)) for value in (False, True))
    frame = pd.DataFrame([{"point_id": name, "losses": 0, **values} for name, values in (("a", off), ("b", on))] * 2)
    found = with_promises(frame, model)
    assert found["changed"].tolist() == ["fence recovery reads off", ""] * 2
    assert found["copies"].tolist() == [2] * 4
