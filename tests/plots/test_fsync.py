"""The figure of flush settings: a proved zero is a hollow mark, since a logarithmic axis has no room for it."""

import pandas as pd
import pytest

from quorisk.plots.fsync import fsync_figure
from tests.plots.drawn import all_axes, xy

FLUSHES = ("each message", "each second", "never")
LOSSES = pd.DataFrame(
    [("each message", "one broker", 0.0), ("each second", "one broker", 1e-6), ("never", "one broker", 1e-3)]
    + [(each, "the cluster", p) for each, p in zip(FLUSHES, (0.0, 1e-4, 0.5), strict=True)],
    columns=["flushes", "what", "p"],
)


@pytest.fixture
def axes():
    figure = fsync_figure(LOSSES, FLUSHES, "What a power failure takes", "As solved.")
    figure.draw_without_rendering()
    [axes] = all_axes(figure)
    return axes


def test_marks_stand_at_what_is_lost_and_zeros_below_all_of_them(axes):
    solid = [line for line in axes.lines if line.get_fillstyle() == "full"]
    hollow = [line for line in axes.lines if line.get_fillstyle() == "none"]
    assert [xy(line)[0][1] for line in solid] == [1e-6, 1e-4]
    assert [list(line.get_ydata()) for line in solid] == [[1e-6, 1e-3], [1e-4, 0.5]]
    for line in hollow:
        assert list(line.get_ydata()) == [pytest.approx(1e-6 / 30)]
        assert axes.get_ylim()[0] < line.get_ydata()[0]
    assert [round(line.get_xdata()[0]) for line in hollow] == [0, 0]


def test_each_failure_is_named_once_and_each_setting_is_on_the_axis(axes):
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one broker", "the cluster"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == list(FLUSHES)
