"""Figures of a cluster's incidents: they look as the others of a report do, and say only what is so."""

import pandas as pd

from quorisk.analysis.decision.designs import designs
from quorisk.plots import canvas
from quorisk.plots.frontier import FRONTIER, frontier_figure
from quorisk.plots.incidents import nodes_figure, sizes_figure
from quorisk.plots.looks import of_designs
from quorisk.plots.style import style_of
from quorisk.say import choose, text
from tests.plots.drawn import all_axes, xy
from tests.plots.tables import QUORUMS, frame

AXES = {"nodes": [20, 40, 80], "entries": [1, 10, 100]}


def curves(names, x, y):
    return pd.DataFrame([{"design": each, x: at, y: 1e-3 * at} for each in names for at in AXES[x]])


def test_a_design_has_the_colour_and_the_mark_that_the_frontier_gives_it():
    given = frame(range(1, 13), **QUORUMS).assign(stored=3, survives="", copies=2, on_disk=True, target=0.1)
    rows = choose.of(given, text.ANY_LOSS)
    drawn = frontier_figure(given)
    assert drawn is not None
    lines = [line for line in all_axes(drawn)[0].lines if line.get_gid() != FRONTIER]
    marks = {xy(line)[0][1]: (line.get_color(), line.get_marker()) for line in lines}
    found = designs(rows)[::-1]
    looks, names = of_designs(rows), [each.settings for each in found]
    for make, x, y in ((sizes_figure, "entries", "per_year"), (nodes_figure, "nodes", "p")):
        figure = make(curves(names, x, y), looks)
        assert figure is not None
        seen = {line.get_label(): (line.get_color(), line.get_marker()) for line in all_axes(figure)[0].lines}
        assert [seen[each.settings] for each in found] == [marks[each.worst["p"]] for each in found]


def test_of_other_numbers_of_nodes_no_more_is_said_than_is_so():
    figure = nodes_figure(curves(["a"], "nodes", "p"), {"a": style_of(0)})
    assert figure is not None
    said = canvas.caption_of(figure)
    assert "What a node stores is what the file says, or follows from the entries" in said
    assert "choice" not in said
