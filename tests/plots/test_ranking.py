"""The first screen's picture: designs on a line of losses, drawn from made-up designs."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.statistics.uncertainty import DrawnLosses
from quorisk.plots import ranking
from quorisk.say import choose, text
from tests.plots import tables
from tests.plots.drawn import all_axes, xy


def made(losses, **varied):
    return ranked_designs(
        choose.rows_of(tables.frame(losses, **varied or {"model__keys": range(len(losses))}), text.ANY_LOSS)
    )


def points(figure: Figure, group: str):
    axes = all_axes(figure)[0]
    return sorted(tuple(map(float, xy(line)[0])) for line in axes.lines if line.get_gid() == group)


def test_each_design_has_a_row_the_choice_a_ring_and_the_target_a_line():
    found = made([30, 0, 200])
    figure = ranking.ranking_figure(found, 0.1, "P(data loss)", "Of a model.")
    assert figure is not None
    axes = all_axes(figure)[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [each.settings for each in found]
    assert [x for x, _ in points(figure, ranking.COMPUTED)] == [0.03, 0.2]
    [(bound, row)] = points(figure, ranking.UPPER_BOUND)
    assert (bound, row) == (pytest.approx(found[0].worst["high"]), 0.0)
    assert points(figure, ranking.CHOSEN) == [(bound, row)]
    assert 0.1 in [xy(line)[0][0] for line in axes.lines if len(xy(line)) == 2]
    assert "target 0.1" in [each.get_text() for each in axes.texts]


@pytest.mark.parametrize(("losses", "told"), [([30, 0], {"bar", "hollow"}), ([30, 200], {"bar"}), ([0, 0], {"hollow"})])
def test_bars_and_hollow_marks_are_in_the_legend_where_there_are_any(losses, told):
    figure = ranking.ranking_figure(made(losses), math.inf, "P(data loss)", "")
    assert figure is not None
    named = {each.get_text() for each in figure.subfigs[0].legends[0].get_texts()}
    meant = {"bar": "interval, at the rates given", "hollow": "hollow: at most"}
    assert {name for name, label in meant.items() if label in named} == told


@pytest.mark.parametrize(
    ("more", "target", "stands"),
    [
        ({}, 0.5, "meets the targets"),
        ({}, 0.001, "loses more than the target"),
        ({}, 0.03, "undecided"),
        ({"nodes": 0, "wants_nodes": 1}, 0.5, "misses another target"),
        ({"changed": "fencing off"}, 0.5, "a mechanism off, or a risky setting on"),
        ({"stops_with_one": True}, 0.5, "meets them, but any restart stops writes"),
    ],
)
def test_a_design_that_stops_short_is_told_by_its_shape(more, target, stands):
    [design] = made([30])
    worst = design.worst | more
    assert ranking.standing(design._replace(worst=worst, points=[worst]), target) == stands
    assert ("any restart stops writes" in ranking._note(design._replace(worst=worst), [])) == ("stops_with_one" in more)


@pytest.mark.parametrize(("low", "note"), [(2e-2, "0.0300"), (2e-8, "0.0300, up to 0.0400")])
def test_an_estimate_whose_interval_is_wide_stands_beside_its_upper_end(low, note):
    """Strangers read 9 in 100 million beside "< 0.0012, the choice", and took the risky design for the safer one."""
    [design] = made([30])
    worst = design.worst | {"p": 0.03, "low": low, "high": 0.04}
    assert ranking._note(design._replace(worst=worst), []) == note


def test_what_the_rates_allow_is_a_bar_of_its_own():
    found = made([30, 5])
    known = DrawnLosses(np.ones(1), 0.03, 0.01, 0.09, 1.0, 1, {}, {}, 0.0)
    sure = Doubt({found[0].settings: known}, {}, {}, None, {})
    figure = ranking.ranking_figure(found, math.inf, "P(data loss)", "", sure)
    assert figure is not None
    [bar] = [patch for patch in all_axes(figure)[0].patches if patch.get_gid() == ranking.ALLOWED]
    assert isinstance(bar, Rectangle)
    assert bar.get_x() == 0.01
    assert bar.get_width() == pytest.approx(0.08)
    assert "uncertain rates" in figure.subfigs[0].legends[0].get_texts()[-1].get_text()


def test_what_is_proved_has_no_place_and_many_designs_leave_some_out():
    [design] = made([30])
    worst = design.worst | {"losses": 0, "p": 0.0, "low": 0.0, "high": 0.0}
    assert ranking.ranking_figure([design._replace(worst=worst, points=[worst])], 1.0, "P", "") is None
    figure = ranking.ranking_figure(made([5 + i for i in range(40)]), 1.0, "P", "")
    assert figure is not None
    assert "16 of 40" in str(figure.subfigs[1].get_label())


def test_a_line_of_next_to_no_length_has_an_axis_that_can_be_read():
    found = made([200])
    worst = found[0].worst | {"p": 0.0198, "low": 0.0198 * (1 - 1e-12), "high": 0.0198 * (1 + 1e-12)}
    figure = ranking.ranking_figure([found[0]._replace(points=[worst], worst=worst)], math.inf, "P", "")
    assert figure is not None
    low, high = all_axes(figure)[0].get_xlim()
    assert high / low == pytest.approx(4.0)


def test_without_a_target_each_kind_of_design_has_a_label_of_its_own():
    """Two marks of different shapes were both said to mean that no target was set."""
    found = made([0, 30, 31])
    for place, more in ((1, {"changed": "a switch"}), (2, {"stops_with_one": 1})):
        worst = found[place].worst | more
        found[place] = found[place]._replace(points=[worst], worst=worst)
    figure = ranking.ranking_figure(found, math.inf, "P", "")
    assert figure is not None
    named = [each.get_text() for each in figure.subfigs[0].legends[0].get_texts()]
    assert {ranking._RISKY, *ranking._WITHOUT_TARGET.values()} < set(named)
    assert len(set(named)) == len(named)


def test_designs_that_lost_nothing_are_not_told_apart_rather_than_tied():
    [first, other] = made([0, 0])
    assert other.tie(first) == "not told apart: neither lost anything in 1,000 runs"
    figure = ranking.ranking_figure([first, other], 0.5, "P(data loss)", "")
    assert figure is not None
    assert any(each.get_text().endswith(", not told apart") for each in figure.findobj(Text))
    [first, other] = made([30, 31])
    assert other.tie(first) == "a tie in losses"
    [first, other] = made([30, 300])
    assert other.tie(first) == ""


def test_what_is_said_of_a_design_has_a_shape_of_its_own():
    """In grey, colours do not tell them apart."""
    shapes = [shape for shape, _ in ranking._SHAPES.values()]
    assert len({*shapes}) == len(shapes)
