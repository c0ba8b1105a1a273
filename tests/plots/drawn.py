"""What is drawn in a figure."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D


def all_axes(figure: Figure | None) -> list[Axes]:
    assert figure is not None
    return [axes for axes in figure.axes if axes.axison]


def xy(line: Line2D) -> list[list[float]]:
    return np.asarray(line.get_xydata()).tolist()


def words(axes: Axes) -> list[str]:
    return [each.get_text() for each in axes.texts]
