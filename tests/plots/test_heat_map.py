"""Heat maps: a cell for each configuration, shaded by how high its interval reaches."""

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from quorisk.plots import heat_map
from quorisk.plots.style import save
from quorisk.say import choose, numbers
from tests.plots.drawn import all_axes, words
from tests.plots.tables import QUORUMS, frame


def filled(axes: Axes) -> list[Rectangle]:
    return [each for each in axes.patches if isinstance(each, Rectangle) and each.get_fill()]


def light(cell: Rectangle) -> float:
    return float(np.dot(to_rgb(cell.get_facecolor()), (0.299, 0.587, 0.114)))


def cells(axes: Axes, gid: str | None) -> list[tuple[float, float]]:
    """Centres of a heat map's shaded cells with this group id."""
    found = [cell for cell in filled(axes) if (cell.get_gid() or None) == (gid or None)]
    return sorted((cell.get_x() + 0.5, cell.get_y() + 0.5) for cell in found)


def test_a_heat_map_has_a_cell_with_its_interval_for_each_configuration():
    given = frame([0, 7, 30, 200], model__keys=[1, 2], model__values=[5, 6])
    axes = heat_map.heat_map(given, ax=Figure().subplots())
    rows = choose.rows_of(given, "data loss")
    assert cells(axes, heat_map.BOUND) == [(0, 0)]
    assert cells(axes, None) == [(0, 1), (1, 0), (1, 1)]
    said = words(axes)
    assert numbers.bound(rows["high"].iloc[0]) in said
    for row in rows.to_dict("records")[1:]:
        assert numbers.number(row["p"]) in said
        assert numbers.interval(row) in said
    assert "0" not in said
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("keys", "values")


def test_a_heat_map_is_the_darker_in_grey_the_higher_the_interval_reaches():
    given = frame([1, 7, 30, 200], model__keys=[1, 2], model__values=[5, 6])
    axes = heat_map.heat_map(given, ax=Figure().subplots())
    shades = [light(cell) for cell in filled(axes)]
    assert shades == sorted(shades, reverse=True)
    highs = choose.rows_of(given, "data loss")["high"]
    scale = LogNorm(highs.min(), highs.max())
    expected = [pytest.approx(colormaps["YlOrBr"](scale(high))) for high in highs]
    assert [cell.get_facecolor() for cell in filled(axes)] == expected
    inks = {each.get_text(): each.get_color() for each in axes.texts if each.get_fontweight() == "bold"}
    assert len(set(inks.values())) == 2  # light on dark, dark on light
    assert inks["0.200"] == "white"


@pytest.mark.parametrize("losses", [[0, 0, 0, 0], [0, 7, 0, 200]])
def test_what_was_not_seen_has_no_shade(losses):
    given = frame(losses, model__keys=[1, 2], model__values=[5, 6])
    axes = heat_map.heat_map(given, ax=Figure().subplots())
    none_seen = [cell for cell in filled(axes) if cell.get_gid() == heat_map.BOUND]
    assert len(none_seen) == losses.count(0)
    for cell in none_seen:
        assert np.ptp(to_rgb(cell.get_facecolor())) < 0.05  # grey, and lighter than any shade that says something
        assert light(cell) > 0.9
    bars = [
        axes
        for axes in all_axes(heat_map.heat_map_figure(given))
        if axes.get_ylabel().replace("\n", " ") == "upper end of the interval"
    ]
    assert len(bars) == any(losses)


def test_a_heat_map_s_scale_goes_as_far_up_from_the_target_as_down():
    given = frame([0, 7, 30, 200], target=0.002, model__keys=[1, 2], model__values=[5, 6])
    figure = heat_map.heat_map_figure(given)
    [bar] = [axes for axes in all_axes(figure) if axes.get_ylabel().replace("\n", " ") == "upper end of the interval"]
    low, high = bar.get_ylim()
    assert low * high == pytest.approx(0.002**2)
    assert [each.get_text() for each in bar.texts] == ["target"]
    shades = [light(cell) for cell in filled(all_axes(figure)[0]) if cell.get_gid() != heat_map.BOUND]
    middle = float(np.dot(colormaps["YlOrBr"](0.5)[:3], (0.299, 0.587, 0.114)))
    assert all(shade < middle for shade in shades)  # all of them miss it


def test_a_heat_map_hatches_what_the_grid_leaves_out_and_has_a_panel_for_what_else_varies():
    given = frame(range(12), **QUORUMS)
    given = given[~((given["model.keys"] == 1) & (given["model.values"] == 3))]
    figure = heat_map.heat_map_figure(given)
    panels = [axes for axes in all_axes(figure) if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == ["message loss 0.1", "message loss 0.2"]
    for axes in panels:
        assert cells(axes, heat_map.MISSING) == [(2, 0)]
        assert all(each.get_hatch() for each in axes.patches if each.get_gid() == heat_map.MISSING)


def test_a_heat_map_prefers_quorums_and_needs_two_parameters():
    given = frame([1] * 8, faults__message_loss=[0.1, 0.2], model__ack_quorum=[1, 2], model__write_quorum=[2, 3])
    assert heat_map.axes_keys(given) == ("model.write_quorum", "model.ack_quorum")
    alone = frame([1, 2], model__keys=[1, 2])
    assert heat_map.heat_map_figure(alone) is None
    with pytest.raises(ValueError, match="two parameters"):
        heat_map.heat_map(alone, ax=Figure().subplots())
    # a second rate that goes with the first is no second parameter
    alike = frame([1, 2], rates__broker_crash=[0.1, 0.2])
    alike["rates.producer"] = alike["rates.broker_crash"]
    assert heat_map.heat_map_figure(alike) is None


def test_the_name_of_the_rows_does_not_run_into_the_title():
    given = frame([1, 7, 30, 200], variant__min_isr_to_commit_always=[False, True], model__a_long_name_as_well=[5, 6])
    figure = heat_map.heat_map_figure(given, x="model.a_long_name_as_well", hue="variant.min_isr_to_commit_always")
    assert figure is not None
    figure.draw_without_rendering()
    [canvas] = [each for each in figure.subfigs if each.get_suptitle()]
    assert "\n" in canvas.get_supylabel()
    assert canvas.get_supylabel().replace("\n", " ") == "min isr to commit always"
    written = {each.get_text(): each.get_window_extent() for each in canvas.texts}
    title, label = written[canvas.get_suptitle()], written[canvas.get_supylabel()]
    assert label.y1 < title.y0
    assert label.y0 >= 0


def test_long_names_beside_the_rows_leave_the_numbers_room_in_their_cells():
    names = [f"a_name_of_about_forty_letters_number_{number}" for number in range(3)]
    given = frame(range(1, 10), variant__version=names, model__keys=[1, 2, 3])
    figure = heat_map.heat_map_figure(given, hue="variant.version", x="model.keys")
    assert figure
    save(figure, "svg")
    [axes, _] = all_axes(figure)
    width = np.ptp(axes.transData.transform([(0.0, 0.0), (1.0, 0.0)])[:, 0])
    assert max(each.get_window_extent().width for each in axes.texts) < width
