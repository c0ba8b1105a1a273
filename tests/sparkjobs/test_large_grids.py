"""Figures of grids of any size can be read, and say what they leave out."""

import numpy as np
import pytest

from quorisk.plots import canvas
from quorisk.plots.figures import figures
from quorisk.plots.loss import loss_figure
from quorisk.plots.style import MOST_ROWS, MOST_VALUES, save
from quorisk.say import choose
from tests.plots.drawn import all_axes, xy
from tests.plots.tables import frame, sweep


@pytest.mark.sampled(2)
@pytest.mark.parametrize("num_points", [1, 2, 3000])
def test_figures_of_any_grid_are_of_bounded_size(num_points):
    given = sweep([i % 30 for i in range(num_points)], model__keys=range(num_points))
    for name, figure in figures(given.frame):
        assert len(save(figure, "svg")) < 150_000, name
        if num_points > MOST_ROWS:
            assert "of 3,000; all of them are in results.parquet" in canvas.caption_of(figure)


def test_an_axis_of_many_values_shows_some_of_them_from_end_to_end():
    figure = loss_figure(frame([1] * 100, faults__message_loss=np.linspace(0.1, 0.9, 100).tolist()))
    [axes] = all_axes(figure)
    [line] = [xy(line) for line in axes.lines if line.get_linestyle() != "None" and len(xy(line)) > 1]
    assert len(line) == MOST_VALUES
    assert [line[0][0], line[-1][0]] == pytest.approx([0.1, 0.9])
    assert "Shown: the points that there is room for, 24 of 100" in canvas.caption_of(figure)


def test_the_worst_configurations_are_shown_in_the_grids_order():
    given = choose.rows_of(frame([0, 9, 3, 9, 1], model__keys=[1, 2, 3, 4, 5]), "data loss")
    assert list(choose.worst(given, 3)["model.keys"]) == [2, 3, 4]
    assert choose.left_out_note(5, 5) == ""
