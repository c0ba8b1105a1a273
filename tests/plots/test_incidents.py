"""Figures of a cluster's incidents: they look as the others of a report do, and say only what is so."""

import pandas as pd
from matplotlib.container import ErrorbarContainer

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.plots.incidents import sizes_figure
from quorisk.plots.looks import of_designs
from quorisk.say import choose, text
from tests.plots.drawn import all_axes
from tests.plots.tables import QUORUMS, frame


def curves(names):
    ends = {"per_year": 1.0, "low": 0.9, "high": 1.1}
    return pd.DataFrame(
        [
            {"design": each, "entries": at, **{name: 1e-3 * at * end for name, end in ends.items()}}
            for each in names
            for at in (1, 10, 100)
        ]
    )


def test_each_design_has_the_colour_and_the_mark_that_are_its_own_through_a_sweep():
    given = frame(range(1, 13), **QUORUMS).assign(stored=3, survives="", copies=2, on_disk=True, target=0.1)
    rows = choose.rows_of(given, text.ANY_LOSS)
    looks, names = of_designs(rows), [each.settings for each in ranked_designs(rows)[::-1]]
    figure = sizes_figure(curves(names), looks)
    assert figure is not None
    containers = [each for each in all_axes(figure)[0].containers if isinstance(each, ErrorbarContainer)]
    seen = {str(bars.get_label()): (bars.lines[0].get_color(), bars.lines[0].get_marker()) for bars in containers}
    assert seen == {name: (looks[name].colour, looks[name].marker) for name in seen}
    assert len(set(seen.values())) == len(seen) > 2
