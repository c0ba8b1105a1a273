"""Files for protocols that come with none: everything that their models take, explained, and fit to be run."""

import math

import pytest

from quorisk.analysis.experiment.every_key import starter
from quorisk.analysis.experiment.keys import keys_of
from quorisk.kernels.protocols import registry


@pytest.mark.parametrize("protocol", registry.own())
def test_a_starter_is_the_smallest_case_with_the_defaults_of_all_else(protocol, read):
    text = starter(protocol)
    experiment = read(text)
    model, small = registry.load(protocol), registry.cases(protocol).small
    [point] = experiment.points
    keys = {name for name in keys_of(model) if not name.startswith("run.")}
    elsewhere = {a.name for a in model.actions if a.only and not a.only.holds(point.point.values)}
    missing = {"faults.message_loss", *(f"rates.{name}" for name in elsewhere)}  # where nothing is sent; refused
    assert keys - experiment.given <= missing
    assert all(f"\n# {name} = " in text for name in elsewhere)
    assert {name: point.point.values[name] for name in small} == dict(small)
    assert point.point.rates == {action.name: action.rate for action in model.actions}
    assert (point.point.message_loss, point.point.lifetime) == (0.0, math.inf)
    assert all(len(line) < 120 for line in text.splitlines())
    for parameter in model.parameters:
        assert " ".join(parameter.doc.split()[:5]) in text
