"""The figure of what data say of rates."""

import pandas as pd
import pytest

from quorisk.plots.canvas import caption_of
from quorisk.plots.posteriors import posteriors, posteriors_figure
from quorisk.plots.style import MOST_ROWS, save
from quorisk.say.quantities import YEAR_S

ENDS = {"p5": 0.5, "p25": 0.8, "p75": 1.25, "p95": 2.0}


def row(key, about, label, median, in_trials=False, width=1.0):
    ends = {name: median * factor**width for name, factor in ENDS.items()}
    return {"key": key, "about": about, "label": label, "median": median, **ends, "in_trials": in_trials}


def frame(rate=0.01 / YEAR_S, num_models=2, in_trials=False):
    rows = [
        row("rates.x", "posterior", "3 losses", rate, in_trials),
        row("rates.x", "default", "room", rate, in_trials),
    ]
    models = [row("rates.x", "model", f"M{i}", rate, width=1 + i) for i in range(num_models)]
    return pd.DataFrame([*rows, *models, row("rates.x", "period", "2025-01-01 to 2025-01-31", rate)])


@pytest.mark.parametrize(
    ("rate", "in_trials", "unit", "median"),
    [
        (0.01 / YEAR_S, False, "% a year", 1.0),
        (2 / YEAR_S, False, "times a year", 2.0),
        (1 / 3600, False, "times an hour", 1.0),
        (400.0, False, "times a second", 400.0),
        (0.0075, True, "%", 0.75),
    ],
)
def test_rates_are_drawn_in_units_that_people_use(rate, in_trials, unit, median):
    axes = posteriors(frame(rate, in_trials=in_trials), "rates.x")
    drawn = {line.get_gid(): line for line in axes.lines if line.get_gid()}
    assert axes.get_xlabel() == unit
    assert drawn["posterior"].get_xdata() == pytest.approx([median])
    assert [label.get_text() for label in axes.get_yticklabels()][:3] == ["3 losses", "room", "M0"]


def test_of_many_models_those_are_drawn_that_are_known_best_and_the_caption_says_so():
    figure = posteriors_figure(frame(num_models=MOST_ROWS + 3))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels[2 : 2 + MOST_ROWS] == [f"M{i}" for i in range(MOST_ROWS)]
    assert "Not shown: 3 rows" in caption_of(figure)


def test_the_figure_has_a_panel_for_each_key_and_can_be_saved():
    other = frame().assign(key="rates.y")
    figure = posteriors_figure(pd.concat([frame(), other]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["rates.x", "rates.y"]
    assert save(figure, "svg") == save(posteriors_figure(pd.concat([frame(), other])), "svg")
