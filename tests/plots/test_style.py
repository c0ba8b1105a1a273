"""How figures are saved."""

from io import BytesIO

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from quorisk.plots.style import KINDS, MOST_LINES, quorisk_style, save, style_of


@pytest.fixture
def figure() -> Figure:
    """A figure with a long label in small letters, which are narrower where there are fewer dots an inch."""
    with quorisk_style():
        figure = Figure(figsize=(6, 2), layout="constrained")
        axes = figure.subplots()
        axes.set_yticks([0], ["WQ 2, AQ 1, message loss 0.01, fence recovery reads on"], fontsize=7.5)
    return figure


def test_labels_do_not_touch_the_edge(figure):
    pixels = imread(BytesIO(save(figure, "png")))[..., :3].mean(axis=2)
    inked = np.flatnonzero((pixels < 0.8).any(axis=0))
    assert min(inked[0], pixels.shape[1] - 1 - inked[-1]) >= 4


def test_a_figure_looks_the_same_however_often_and_in_whatever_kind_it_was_saved(figure):
    first = {kind: save(figure, kind) for kind in KINDS}
    assert {kind: save(figure, kind) for kind in reversed(KINDS)} == first
    assert figure.dpi == 100


def test_as_many_variations_of_a_series_as_there_are_lines_differ_without_their_colour():
    looks = [style_of(0, variation) for variation in range(MOST_LINES)]
    assert len({(look.marker, look.dashes, look.fill) for look in looks}) == MOST_LINES
    assert len({look.colour for look in looks}) == 1
