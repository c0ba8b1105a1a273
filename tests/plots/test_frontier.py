"""The frontier and the loss budget, drawn from made-up sweeps with scenarios; years in the figures of losses."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.text import Annotation, Text

from quorisk.analysis.decision import years
from quorisk.analysis.decision.advice import recommend
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.plots import canvas
from quorisk.plots.budget import NO_FAULT, budget_figure, shares_by_faults
from quorisk.plots.figures import Wish, figures
from quorisk.plots.frontier import FRONTIER, LATENCY, PROVED, UPPER_BOUND, frontier_figure
from quorisk.plots.heat_map import heat_map_figure
from quorisk.plots.loss import loss_figure
from quorisk.plots.ranking import mark_style, standing
from quorisk.say import choose, text
from tests.plots import tables
from tests.plots.drawn import all_axes, xy

PER_YEAR = {"entry": 100.0, "failover": 3.0}
LOSSES = (0, 0, 40, 10, 0, 2, 0, 0, 200, 0, 0, 5)


def year(losses=LOSSES, target=1.0, latency=True):
    """A sweep of WQ 2, 3 and AQ 1, 2, 3 under two scenarios; a write waits for AQ of WQ."""
    varied = {"model__write_quorum": [2, 3], "model__ack_quorum": [1, 2, 3], "run__scenario": list(PER_YEAR)}
    sweep = tables.sweep(list(losses), target, **varied)
    frame = sweep.frame
    stored, acks = frame["model.write_quorum"], frame["model.ack_quorum"]
    promised = {"stored": stored, "copies": acks, "nodes": 0, "zones": 0, "on_disk": True, "survives": "1 bookie"}
    delay = {LATENCY: 3.0 * acks / stored, "wants_write_p99_ms": 2.5} if latency else {}
    per_year = frame["run.scenario"].map(PER_YEAR)
    return sweep._replace(frame=frame.assign(per_year=per_year, changed="", given="", **promised, **delay))


def drawn(figure, group):
    [axes] = all_axes(figure)
    return sorted(tuple(map(float, xy(line)[0])) for line in axes.lines if line.get_gid() == group)


def test_the_frontier_has_what_no_other_design_beats_in_losses_latency_and_storage():
    given = year()
    found = {each.settings: each.worst for each in ranked_designs(choose.rows_of(given.frame, text.ANY_LOSS))}
    figure = frontier_figure(given.frame)
    # WQ 2, AQ 1 lost nothing and stores least; WQ 3, AQ 1 is quicker; WQ 3, AQ 2 no better than either
    best = [found["WQ 3, AQ 1"], found["WQ 2, AQ 1"]]
    assert drawn(figure, FRONTIER) == [(each[LATENCY], pytest.approx(each["high"])) for each in best]
    clean = [each for each in found.values() if not each["losses"]]
    assert len(drawn(figure, UPPER_BOUND)) == len(clean) == 2
    assert 1.0 in [xy(line)[0][1] for line in all_axes(figure)[0].lines if len(xy(line)) == 2]  # the target


def test_a_mark_of_the_frontier_looks_as_that_of_the_ranking_figure():
    frame = year(target=3.0).frame
    found = ranked_designs(choose.rows_of(frame, text.ANY_LOSS))
    assert len({standing(each, 3.0) for each in found}) > 2
    [axes] = all_axes(frontier_figure(frame))
    for each in found:
        at = (each.worst[LATENCY], each.worst["p"] if each.worst["losses"] else each.worst["high"])
        drawn = {line.get_marker() for line in axes.lines if line.get_gid() != FRONTIER and tuple(xy(line)[0]) == at}
        assert mark_style(each, 3.0).marker in drawn


def test_a_loss_is_that_of_what_a_scenario_is_about_and_a_cluster_is_named_where_it_helps():
    frame = year().frame
    sentences = " ".join(recommend(frame).sentences)
    assert "A loss is of one thing that a scenario is about (an entry, a ledger, a partition)" in sentences
    without_copies = frame.drop(columns=["copies", "stored", "nodes", "zones", "on_disk", "survives"])
    assert "[cluster]" not in " ".join(recommend(without_copies).sentences)


def test_what_is_proved_to_lose_nothing_stands_below_all_that_is_not():
    given = year().frame
    proved = given["model.ack_quorum"] == 3
    given.loc[proved, ["p", "low", "high", "losses"]] = 0
    figure = frontier_figure(given)
    assert len(drawn(figure, PROVED)) == 2
    assert max(y for _, y in drawn(figure, PROVED)) < min(y for _, y in drawn(figure, UPPER_BOUND)) / 5


def test_without_latencies_copies_go_across_and_without_copies_there_is_no_frontier():
    figure = frontier_figure(year(latency=False).frame)
    assert all_axes(figure)[0].get_xlabel() == "copies stored"
    assert frontier_figure(tables.frame([0, 3], model__keys=[1, 2])) is None


def test_copies_are_whole():
    rows = year(latency=False).frame
    for alike in (rows, rows[rows["model.write_quorum"] == 3]):
        [axes] = all_axes(frontier_figure(alike))
        assert list(axes.get_xticks()) == sorted(alike["stored"].unique())


@pytest.mark.parametrize("num_designs", [1, 6])
def test_a_budget_s_legend_is_between_the_axis_and_the_caption(num_designs):
    keys = range(1, num_designs + 1)
    given = tables.frame([4] * num_designs, model__keys=list(keys))
    met = [{"point_id": each, "faults": ("lost message",), "p": 4e-3} for each in given["point_id"].unique()]
    figure = budget_figure(given, pd.DataFrame(met))
    assert figure is not None
    figure.draw_without_rendering()
    [found] = next(each.legends for each in figure.subfigs if each.legends)
    axes = all_axes(figure)[0]
    legend = found.get_window_extent()
    below = axes.xaxis.get_tightbbox()
    assert below is not None
    assert legend.y1 < below.y0 + 2
    assert legend.y0 > figure.subfigs[1].texts[0].get_window_extent().y1


@pytest.mark.filterwarnings("error")  # of layouts for which there is no room
def test_a_budget_s_bars_have_room_above_a_long_legend():
    given = tables.frame([60, 60], model__keys=[1, 2])
    sets = [(f"a fault with a name so long that it fills a line by itself {i}",) for i in range(20)]
    met = [{"point_id": p, "faults": each, "p": 3e-3} for p in given["point_id"].unique() for each in sets]
    figure = budget_figure(given, pd.DataFrame(met))
    assert figure is not None
    figure.draw_without_rendering()
    assert all_axes(figure)[0].get_window_extent().height > 2 * 0.2 * figure.dpi


def test_a_budget_s_shares_are_those_of_the_counts():
    given = year()
    rows = choose.rows_of(given.frame, text.ANY_LOSS)
    one = next(each for each in ranked_designs(rows) if each.settings == "WQ 2, AQ 2")
    entry, failover = (part["point_id"] for part in one.worst["parts"])
    met = pd.DataFrame(
        [(entry, ("lost bookie",), 0.03), (entry, ("lost bookie", "lost message"), 0.01), (failover, (), 0.01)],
        columns=["point_id", "faults", "p"],
    )
    # 100 a year x 40 / 1000, and 3 x 10 / 1000
    assert one.by_cause == pytest.approx({"entry": 4.0, "failover": 0.03})
    assert {part.of: part.share for part in shares_by_faults(one, met)} == pytest.approx(
        {"lost bookie": 3.0 / 4.03, "lost bookie + lost message": 1.0 / 4.03, NO_FAULT: 0.03 / 4.03}
    )
    figure = budget_figure(given.frame, met)
    [by] = (axes for axes in all_axes(figure) if axes.get_title("left"))
    assert by.get_title("left") == "by scenario"
    place = [label.get_text() for label in by.get_yticklabels()].index("WQ 2, AQ 2")
    bars = [container[place] for container in by.containers]
    assert np.array([bar.get_width() for bar in bars]) == pytest.approx(np.array([0.03, 4.0]) / 4.03)


def test_on_a_cluster_a_budget_is_of_what_incidents_are_put_down_to():
    given = year().frame
    figures = {f"{name}{end}": 0.03 for name in ("any_loss", "incidents", "entries") for end in ("", "_low", "_high")}
    incident = given["run.scenario"] == "failover"
    given = given.assign(**figures, incident=incident, cluster_at="", by_cause_outages=0.02, by_cause_thin_entries=0.01)
    one = next(each for each in ranked_designs(choose.rows_of(given, text.ANY_LOSS)) if each.settings == "WQ 2, AQ 2")
    outages, thin = "outages", text.CAUSES["thin_entries"]
    assert one.by_cause == pytest.approx({outages: 0.02, thin: 0.01, "failover": 0.03})  # 3 x 10 / 1000
    met = pd.DataFrame([(given["point_id"].iloc[0], ("lost bookie",), 0.03)], columns=["point_id", "faults", "p"])
    figure = budget_figure(given, met)
    [axes] = [axes for axes in all_axes(figure) if axes.get_title("left")]
    assert (axes.get_title("left"), axes.get_xlabel()) == ("by cause", "share of the incidents")
    place = [label.get_text() for label in axes.get_yticklabels()].index("WQ 2, AQ 2")
    bars = {bars.get_label(): bars[place].get_width() for bars in axes.containers}
    assert bars == pytest.approx({outages: 1 / 3, thin: 1 / 6, "failover": 1 / 2})


def test_on_a_cluster_intervals_are_the_clusters_and_other_breaches_are_not_told_by_year_without_scenarios():
    ends = {f"{name}{end}": 0.03 for name in ("any_loss", "incidents", "entries") for end in ("", "_low", "_high")}
    given = tables.sweep([5, 3], model__keys=[1, 2])
    clustered = {**ends, "any_loss_method": "strata", "cluster_at": "", "incident": False, "per_year": 0.0}
    alone = given.frame.assign(**clustered, **{text.SCENARIO: "cluster"})
    other = next(name for name in alone["invariant"].unique() if name != text.ANY_LOSS)
    drawn = dict(figures(alone, Wish([text.ANY_LOSS, other], ["loss"])))
    assert "95% intervals (the cluster's: strata), each on its own" in canvas.caption_of(drawn["loss_data_loss"])
    assert canvas.title_of(drawn[f"loss_{other}"]) == f"Probability that a run breaks {other}"
    assert all_axes(drawn[f"loss_{other}"])[0].get_xlabel() == "probability in a run"
    assert "strata" not in canvas.caption_of(drawn[f"loss_{other}"])
    beside = alone.assign(incident=True, per_year=1.0)
    drawn = dict(figures(beside, Wish([text.ANY_LOSS, other], ["loss"])))
    assert "the cluster's: strata; those of scenarios beside it: C" in canvas.caption_of(drawn["loss_data_loss"])
    assert canvas.title_of(drawn[f"loss_{other}"]) == f"How often a year a run breaks {other}"


def test_there_is_no_budget_of_what_lost_nothing_or_cannot_be_told_apart():
    assert budget_figure(year([0] * 12).frame) is None
    assert budget_figure(tables.frame([3, 5], model__keys=[1, 2])) is None


def test_with_scenarios_figures_are_of_losses_a_year():
    given = year()
    assert [name for name, _ in figures(given.frame)] == [
        "frontier", "budget", "loss_data_loss", "heat_map_data_loss",
    ]  # fmt: skip
    whole = choose.rows_of(years.yearly_frame(given.frame), text.ANY_LOSS)
    assert len(whole) == 6
    assert "run.scenario" not in whole
    at = whole[(whole["model.write_quorum"] == 2) & (whole["model.ack_quorum"] == 2)].iloc[0]
    assert at["p"] == pytest.approx(100.0 * 40 / tables.RUNS + 3.0 * 10 / tables.RUNS)
    heat = heat_map_figure(whole)
    cells = [text.get_text() for axes in all_axes(heat) for text in axes.texts]
    assert "4.03" in cells
    assert "at most 1" not in cells
    assert all_axes(loss_figure(whole))[0].get_xlabel() == "losses a year"


def test_lines_to_names_end_where_the_names_begin():
    """Also those of points near the names, which lie one above the other."""
    figure, axes = pyplot.subplots()
    axes.set(yscale="log", xlim=(0.0, 1.0), ylim=(1e-6, 1.0))
    canvas.name_lines(axes, [(x, 1e-3, f"{x}, 18.3 TiB", "black") for x in (0.1, 0.97, 0.98, 0.99)])
    figure.canvas.draw()
    lines = [(each, each.arrow_patch) for each in axes.texts if isinstance(each, Annotation)]
    assert len(lines) == 4
    for name, line in lines:
        assert line
        path = line.get_transform().transform_path(line.get_path())
        assert path.get_extents().x1 <= Text.get_window_extent(name).x0
    pyplot.close(figure)
