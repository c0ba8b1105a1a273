"""Figures, drawn from made-up result frames: what is drawn is what the frame says."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE

from quorisk.plots import canvas, heat_map, loss
from quorisk.plots.figures import Wish, figures
from quorisk.plots.looks import Looks
from quorisk.plots.loss import UPPER_BOUND, caption, loss_figure
from quorisk.plots.style import KINDS, MOST_LINES, save, style_of
from quorisk.say import numbers
from tests.plots.drawn import all_axes, words, xy
from tests.plots.tables import HOSTILE, QUORUMS, RUNS, frame, sweep


def upper_bounds(figure: Figure) -> list[list[float]]:
    """Where upper bounds are drawn."""
    lines = [line for axes in all_axes(figure) for line in axes.lines if line.get_gid() == UPPER_BOUND]
    return [place for line in lines for place in xy(line)]


def drawn(figure: Figure) -> list[float]:
    """Heights of all that is drawn."""
    lines = [line for axes in all_axes(figure) for line in axes.lines if line.get_transform() == axes.transData]
    return [y for line in lines for _, y in xy(line) if not math.isnan(y)]


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_is_not_drawn():
    given = frame([0, 0, 3, 5], faults__message_loss=[0.1, 0.2], model__keys=[1, 2])
    given.loc[given["losses"] == 0, "high"] = 0.0
    assert min(drawn(loss_figure(given, "data loss"))) > 0.0


def test_points_without_losses_are_drawn_as_upper_bounds_and_never_as_0():
    given = frame([0, 0, 30, 200], faults__message_loss=[0.0, 0.01, 0.1, 0.5])
    figure = loss_figure(given, "data loss")
    [axes] = all_axes(figure)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    bounds = upper_bounds(figure)
    assert [y for _, y in bounds] == [given["high"][0]] * 2
    assert sum(line.get_marker() == CARETDOWNBASE for line in axes.lines) == 1  # the arrows' heads
    assert min(drawn(figure)) > 0
    assert {0.03, 0.2} <= set(drawn(figure))


@pytest.mark.parametrize("lost", [0, 4])
def test_no_message_loss_has_a_place_left_of_all_others(lost):
    figure = loss_figure(frame([lost, 5, 9], faults__message_loss=[0.0, 0.01, 0.1]), "data loss")
    [axes] = all_axes(figure)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.01", "0.1"]
    zero, *others = axes.get_xticks()
    assert others == [0.01, 0.1]
    assert 0 < zero < 0.01
    assert [x for x, _ in upper_bounds(figure)] == [pytest.approx(zero)] * (lost == 0)
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]  # marks alone are drawn without a line
    [joined] = [places for places in map(xy, lines) if len(places) == 3]
    assert math.isnan(joined[0][1])  # the line does not lead there


def test_switches_get_panels_and_quorums_get_lines_that_differ_in_more_than_colour():
    given = frame(
        range(1, 19),
        variant__retain_null_key=[True, False],
        model__keys=[1, 2, 3],
        faults__message_loss=[0.1, 0.2, 0.3],
    )
    figure = loss_figure(given, "data loss")
    assert [axes.get_title(loc="left") for axes in all_axes(figure)] == ["retain null key on", "retain null key off"]
    handles, labels = all_axes(figure)[0].get_legend_handles_labels()
    assert labels == ["keys 1", "keys 2", "keys 3"]
    lines = [handle for handle in handles if isinstance(handle, Line2D)]
    assert len({line.get_marker() for line in lines}) == len({line.get_color() for line in lines}) == 3


def test_more_lines_than_can_be_told_apart_are_spread_over_panels():
    given = frame([1] * 40, model__keys=[1, 2, 3, 4], model__values=[1, 2, 3, 4, 5], faults__message_loss=[0.1, 0.2])
    figure = loss_figure(given, "data loss")
    assert len(all_axes(figure)) == 4
    assert all(len(axes.get_legend_handles_labels()[0]) == 5 for axes in all_axes(figure))


def test_a_grid_without_message_loss_gets_a_row_for_each_configuration():
    figure = loss_figure(frame([7, 0, 2], model__keys=[1, 2, 3]), "data loss")
    [axes] = all_axes(figure)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["keys 1", "keys 2", "keys 3"]
    assert axes.get_xscale() == "log"
    [(_, y)] = upper_bounds(figure)
    assert y == 1


@pytest.mark.parametrize("losses", [0, 1, RUNS])
def test_a_single_point_can_be_drawn(losses):
    figure = loss_figure(frame([losses]), "data loss")
    assert len(upper_bounds(figure)) == (losses == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_frame_gives_the_same_bytes(kind):
    first, second = (
        save(loss_figure(frame([0, 5], faults__message_loss=[0.1, 0.2]), "data loss"), kind) for _ in range(2)
    )
    assert first == second
    assert not re.search(rb"Creat(ion|or)|Producer|<dc:date", first)  # which would tell of the time and the machine


def test_a_parameter_that_goes_with_the_axis_has_no_lines_of_its_own():
    given = frame([1, 2, 3], rates__broker_crash=[0.1, 0.2, 0.3])
    given["rates.producer"] = given["rates.broker_crash"] * 2
    figure = loss_figure(given, "data loss")
    [axes] = all_axes(figure)
    assert [len(xy(line)) for line in axes.lines if line.get_linestyle() != "None" and len(xy(line)) > 0] == [3]
    assert "broker crash" in axes.get_xlabel()
    assert axes.get_xlabel().endswith("together with producer")


def test_every_figure_has_a_caption_with_model_faults_runs_and_interval():
    drawn = dict(figures(sweep(range(12), **QUORUMS).frame))
    assert list(drawn) == ["loss_data_loss", "heat_map_data_loss"]
    for figure in drawn.values():
        said = canvas.caption_of(figure)
        for part in ("Model compaction, version 1", "Rates: 1", "1,000 runs a point", "seed 1", "95% intervals"):
            assert part in said
        assert "".join(figure.subfigs[1].texts[0].get_text().split()) == "".join(said.split())


def test_a_caption_says_what_goes_with_what():
    given = frame([1, 2, 3], rates__broker_crash=[0.1, 0.2, 0.3])
    given["rates.producer"] = given["rates.broker_crash"] * 2
    assert "Not named, because others determine it: producer." in caption(given)
    assert "Not named" not in caption(frame([1, 2], rates__broker_crash=[0.1, 0.2]))


def test_a_caption_speaks_of_lost_messages_only_where_some_may_be():
    lossy = caption(frame([1, 2], faults__message_loss=[0.0, 0.1]))
    assert "messages are lost" in lossy
    assert "keys 1" in lossy
    assert "messages are lost" not in caption(frame([1, 2], model__keys=[1, 2]))


def test_a_caption_says_which_mechanisms_are_off():
    assert "Variant: all safety mechanisms on." in caption(frame([1, 2], model__keys=[1, 2]))
    assert "Variant: all other safety mechanisms on." in caption(frame([1, 2], variant__model_producer=[True, False]))
    off = frame([1, 2], model__keys=[1, 2], variant__model_producer=[False])
    assert "Variant: off: model producer; all other safety mechanisms on." in caption(off)


def test_a_figure_for_a_report_ends_above_its_caption():
    [(_, figure)] = [each for each in figures(frame([5, 7], model__keys=[1, 2])) if each[0] == "loss_data_loss"]
    drawn = save(figure, "svg")
    whole, bare = (svg.decode() for svg in (drawn, canvas.without_caption(drawn, figure)))
    assert "Model compaction" in whole
    assert "Model compaction" not in bare
    assert "Probability that" in bare
    heights = [float(re.findall(r'height="([\d.]+)pt"', svg)[0]) for svg in (whole, bare)]
    foot_in = figure.subfigs[1].bbox_relative.height * figure.get_figheight()
    assert heights[0] - heights[1] == pytest.approx(72 * (foot_in - 0.08), abs=1)


def test_labels_are_words_and_nothing_else():
    given = sweep([5, 7, 9, 0], faults__message_loss=[0.1, 0.2], **{f"model__{HOSTILE}": [HOSTILE, "b"]})
    given.frame["invariant"] = given.frame["invariant"].replace("CompactedLedgerLeak", HOSTILE)
    drawn = dict(figures(given.frame, Wish([HOSTILE])))
    for name, figure in drawn.items():
        assert re.fullmatch(r"\w+", name)
        for kind in KINDS:
            picture = save(figure, kind)
            if kind == "svg":
                root = ElementTree.fromstring(picture)
                tags = {element.tag.rpartition("}")[2] for element in root.iter()}
                assert not tags & {"script", "img", "foreignObject", "a"}
                links = [value for element in root.iter() for key, value in element.items() if key.endswith("href")]
                assert all(link.startswith(("#", "data:image/png;")) for link in links)
                assert "$\\frac" in "".join(root.itertext())  # as it is, no fraction


def test_a_function_for_notebooks_draws_into_the_current_axes():
    from matplotlib import pyplot

    given = sweep(range(12), **QUORUMS)
    for draw in (loss.loss, heat_map.heat_map):
        _, current = pyplot.subplots()
        assert draw(given.frame) is current
        pyplot.close("all")


def test_styles_differ_in_marker_as_well_as_colour():
    looks = [style_of(index) for index in range(MOST_LINES)]
    assert len({look.marker for look in looks}) == len({look.colour for look in looks}) == MOST_LINES
    for look, again in zip(looks, (style_of(MOST_LINES + index) for index in range(MOST_LINES)), strict=True):
        assert look.colour == again.colour
        assert not {look.marker, look.dashes, look.fill} & {again.marker, again.dashes, again.fill}


@pytest.mark.parametrize("losses", [(300, 700), (120, 140), (9, 880)])
def test_a_logarithmic_axis_has_two_labels_at_least(losses):
    given = sweep(losses, model__keys=[1, 2])
    axes = loss.loss(given.frame, ax=Figure().subplots())
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= 2


def test_a_design_has_one_look_whatever_its_mechanisms_and_faults():
    given = sweep(
        [60, 50, 40, 30, 20, 10, 6, 5, 4, 3, 2, 1],
        model__keys=[1, 2, 3],
        variant__retain_null_key=[True, False],
        faults__message_loss=[0.1, 0.2],
    )
    named: dict[str, set[tuple[object, ...]]] = {}
    drawn = dict(figures(given.frame))
    for axes in drawn["loss_data_loss"].axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if isinstance(line, Line2D):
                looks = named.setdefault(re.findall(r"keys \d", str(label))[0], set())
                looks.add((line.get_color(), line.get_marker()))
    assert set(named) == {"keys 1", "keys 2", "keys 3"}
    assert all(len(looks) == 1 for looks in named.values())
    assert len({look for looks in named.values() for look in looks}) == 3


def test_mechanisms_that_are_off_have_another_fill_and_other_dashes_and_no_other_colour():
    looks = Looks(frame(range(1, 7), variant__retain_null_key=[False, True], model__keys=[1, 2, 3]))
    on, off = (looks.of({"model.keys": 2, "variant.retain_null_key": value}) for value in (True, False))
    assert (on.colour, on.marker) == (off.colour, off.marker)
    assert (on.fill, on.dashes) == ("full", "-") == (looks.of({"model.keys": 2}).fill, "-")
    assert (off.fill, off.dashes) != (on.fill, on.dashes)


def test_marks_stand_at_their_values():
    given = frame([5] * 16, model__keys=range(1, 9), faults__message_loss=[0.01, 0.5])
    [axes] = all_axes(loss_figure(given))
    low, high = np.log(axes.get_xlim())
    for line in axes.lines:
        for x in np.ravel(line.get_xdata()):
            assert min(abs(math.log(x / value)) for value in (0.01, 0.5)) < 0.02 * (high - low)


def test_the_axis_and_the_lines_can_be_chosen():
    given = frame(range(1, 13), **QUORUMS)
    figure = loss_figure(given, x="model.values", hue="faults.message_loss")
    assert [axes.get_title(loc="left") for axes in all_axes(figure)] == ["keys 1", "keys 2"]
    assert all_axes(figure)[0].get_xlabel() == "values"
    assert all_axes(figure)[0].get_legend_handles_labels()[1] == ["message loss 0.1", "message loss 0.2"]
    assert heat_map.axes_keys(given, x="faults.message_loss") == ("model.keys", "faults.message_loss")
    assert heat_map.axes_keys(given, "model.keys", "model.values") == ("model.values", "model.keys")


def test_a_figure_for_a_slide_has_its_title_and_size_and_no_caption():
    given, wished = sweep(range(12), **QUORUMS), canvas.Frame("Fencing matters", (8.0, 4.5), False)
    drawn = dict(figures(given.frame, Wish(only=("loss", "heat_map"), frame=wished)))
    assert list(drawn) == ["loss_data_loss", "heat_map_data_loss"]
    for figure in drawn.values():
        assert figure.get_size_inches().tolist() == [8.0, pytest.approx(4.5, abs=0.02)]
        said = b"".join(save(figure, "svg").split())
        assert b"Fencingmatters" in said
        assert b"Clopper" not in said
    assert b"Clopper" in save(loss_figure(given.frame), "svg")


def test_words_of_a_heat_map_stay_within_their_cells():
    given = frame([1] * 12, **QUORUMS)
    given["low"], given["high"] = 2.53e-8, 5.58e-6
    figure = heat_map.heat_map_figure(given)
    assert figure is not None
    figure.draw_without_rendering()
    for axes in all_axes(figure)[:2]:
        assert "2.53 × 10⁻⁸ to 5.58 × 10⁻⁶" in words(axes)
        left, right = axes.transData.transform([(0.0, 0.0), (1.0, 0.0)])[:, 0]
        assert all(each.get_window_extent().width < right - left for each in axes.texts)


def test_bytes_do_not_tell_of_the_last_bits_of_the_layout():
    def picture(nudge):
        figure = heat_map.heat_map_figure(frame(range(1, 13), **QUORUMS))
        assert figure is not None
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            box = axes.get_position()
            axes.set_position((box.x0 + nudge, box.y0, box.width, box.height))
        return save(figure, "svg")

    assert picture(0.0) == picture(1e-14)


@pytest.mark.parametrize(
    ("value", "written"),
    [(1e-3, "0.001"), (2e-5, "2 × 10⁻⁵"), (0.5, "0.5"), (1.0, "1"), (63, "63"), (1e6, "10⁶"), (-1e-4, "−10⁻⁴")],
)
def test_ticks_are_in_plain_letters(value, written):
    assert numbers.short(value) == written
