"""Costs beside risks: which configurations are efficient, and what is drawn of them."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWNBASE

from quorisk.plots import cost
from quorisk.say import choose
from tests.plots.drawn import all_axes, xy
from tests.plots.tables import QUORUMS, RUNS, frame


@pytest.mark.parametrize(
    ("costs", "risks", "expected"),
    [
        ([1, 2, 3], [3, 2, 1], [1, 1, 1]),
        ([1, 2, 3], [1, 2, 3], [1, 0, 0]),
        ([2, 1, 2], [1, 1, 0], [0, 1, 1]),
        ([1, 1, 1], [2, 1, 1], [0, 1, 1]),
        ([5], [5], [1]),
    ],
)
def test_efficient_are_those_that_no_other_one_beats(costs, risks, expected):
    mask = cost.efficient_mask(np.array(costs, float), np.array(risks, float))
    assert mask.tolist() == [bool(each) for each in expected]


def test_costs_name_the_efficient_configurations_only_and_draw_no_zeros():
    # steps a run: 8, 9, 10; the first is cheapest, the second safest, the third is beaten by the second
    given = frame([50, 0, 20], model__keys=[1, 2, 3])
    axes = cost.cost(given, ax=Figure().subplots())
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["keys 1", "keys 2"]
    rows = choose.of(given, "data loss").reset_index()
    [bound] = [xy(line) for line in axes.lines if line.get_gid() == cost.UPPER_BOUND]
    assert bound == [[9.0, rows["high"][1]]]
    assert sum(line.get_marker() == CARETDOWNBASE for line in axes.lines) == 1  # its arrow's head
    marks = [place for line in axes.lines for place in xy(line)]
    # the runs that lost data are paid for by the 950, or 980, that completed
    assert [8.0 / 0.95, 0.05] in marks
    assert [10.0 / 0.98, 0.02] in marks
    assert min(y for _, y in marks) > 0


def test_costs_name_all_that_lost_nothing_and_leave_out_what_never_succeeds():
    given = frame([0, 50, 0, 0], model__keys=[1, 2, 3, 4])  # of those without losses the first is cheapest
    given.loc[given["model.keys"] == 4, ["completed", "stuck"]] = [0, RUNS]
    axes = cost.cost(given, ax=Figure().subplots())
    assert axes.get_legend_handles_labels()[1] == ["keys 1", "keys 3"]


def test_costs_have_a_column_of_panels_for_each_kind_of_faults():
    figure = cost.cost_figure(frame(range(1, 13), **QUORUMS))
    assert [axes.get_title(loc="left") for axes in all_axes(figure)][:2] == ["message loss 0.1", "message loss 0.2"]
    assert [axes.get_xlabel().split()[0] for axes in all_axes(figure)] == ["messages"] * 2 + ["steps"] * 2
    many = frame(range(10), model__keys=[1, 2], faults__message_loss=[0.1, 0.2, 0.3, 0.4, 0.5])
    shown = [axes.get_title(loc="left") for axes in all_axes(cost.cost_figure(many))][:3]
    assert shown == ["message loss 0.1", "message loss 0.3", "message loss 0.5"]
    assert cost.cost_figure(frame([1, 2], faults__message_loss=[0.1, 0.2])) is None


def test_designs_that_cost_the_same_are_seen_through_each_other():
    given = frame([0, 0], variant__model_producer=[True, False])
    given[["steps", "messages"]] = 1000
    marks = [line for line in cost.cost(given, ax=Figure().subplots()).lines if line.get_gid() == cost.UPPER_BOUND]
    assert [mark.get_markerfacecolor() for mark in marks] == ["none"] * 2


def test_configurations_whose_names_are_too_long_are_still_told_apart():
    switches = {f"variant__{'long_' * 12}{number}": [True, False] for number in range(2)}
    figure = cost.cost_figure(frame([0, 0, 0, 0], **switches))
    bounds = [line for axes in all_axes(figure) for line in axes.lines if line.get_gid() == cost.UPPER_BOUND]
    assert len({(line.get_color(), line.get_marker()) for line in bounds}) == 4


def test_there_is_no_figure_of_costs_if_no_run_succeeds():
    assert cost.cost_figure(frame([RUNS, RUNS], model__keys=[1, 2])) is None
    assert cost.cost_figure(frame([RUNS, 1], model__keys=[1, 2])) is not None
