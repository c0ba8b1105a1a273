"""The figure of what losses depend on."""

from typing import Any

import pandas as pd
import pytest

from quorisk.plots.canvas import caption_of
from quorisk.plots.style import save
from quorisk.plots.tornado import FALLING, RISING, tornado, tornado_figure


def row(key, elasticity, factor=2.0, stated=True):
    ends = {"at_low": factor**-elasticity, "at_high": factor**elasticity}
    about = {"name": key, "ends": "× 0.5 to × 2" if stated else "", "stated": stated}
    return {"key": key, "elasticity": elasticity, "low": None, "high": None, **ends, **about}


def test_the_widest_bar_comes_first_and_bars_go_both_ways():
    axes: Any = tornado(pd.DataFrame([row("rates.a", -0.5), row("rates.b", 2.0), row("rates.c", 1e-6)]))
    labels = [label.get_text().splitlines()[0] for label in axes.get_yticklabels()]
    assert labels == ["rates.b", "rates.a"]
    spans = {
        group: [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches if bar.get_gid() == group]
        for group in (FALLING, RISING)
    }
    assert spans[FALLING][0] == pytest.approx((0.25, 1.0))
    assert spans[RISING][0] == pytest.approx((1.0, 4.0))
    assert spans[RISING][1] == pytest.approx((2**-0.5, 1.0))


def test_the_caption_says_how_far_figures_go_and_what_is_left_out():
    figure: Any = tornado_figure(
        pd.DataFrame([row("rates.a", 1.0), row("rates.b", 1.0, stated=False), row("c", 0.0)]), "Of x."
    )
    caption = caption_of(figure)
    assert caption.startswith("Of x. Bars: about how many times as many losses there would be with one figure at")
    assert "They are extrapolated by the elasticity" in caption
    assert "or halved and doubled where the file gives a value alone" in caption
    assert "Not shown: 1 that change next to nothing." in caption
    assert save(figure, "png")


def test_nothing_is_drawn_of_what_moves_nothing():
    assert tornado_figure(pd.DataFrame([row("rates.a", 0.0)])) is None
