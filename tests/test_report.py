"""Figures and reports, drawn from made-up result frames."""

import itertools
import json
import math
import re
from base64 import b64decode
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import CARETDOWNBASE

from analysis import results
from analysis.identity import canonical_parameters
from kernels.compaction import MODEL
from kernels.points import Point
from kernels.tally import num_columns, read
from plots import text
from plots.loss import UPPER_BOUND, caption, loss_figure
from plots.report import Provenance, report
from plots.style import save
from sparkjobs import screen
from tests.support import values_of

RUNS = 1000
HOSTILE = "<script>alert(1)</script>"
PROVENANCE = Provenance("quorisk run x.toml --out results", "protocol = 1", ["numpy 2"])


def frame(losses: Sequence[int], unfinished=0, **varied: Sequence[object]) -> pd.DataFrame:
    """A frame of the grid of `varied` (double underscores are dots), with so many losses at its points."""
    grid = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
    rows = []
    for number, (values, num_lost) in enumerate(zip(grid, losses, strict=True)):
        point = Point(values_of(MODEL), {}, 0.0, 1000, float("inf"))
        parameters = json.loads(canonical_parameters(MODEL, point))
        parameters |= {key.replace("__", "."): value for key, value in values.items()}
        identity = results.Identity(f"id{number}", "compaction", 1, json.dumps(parameters), 1)
        sums = [RUNS - num_lost - unfinished, 0, num_lost, 0, unfinished] + [0] * (num_columns(MODEL) - 5)
        rows.append(results.row(identity, MODEL, 0, read(MODEL, sums), "numba", 1.0))
    return results.frame(pa.Table.from_pylist(rows, schema=results.SCHEMA), 0.95)


def all_axes(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def xy(line: Line2D) -> list[list[float]]:
    return np.asarray(line.get_xydata()).tolist()


def upper_bounds(figure: Figure) -> list[list[float]]:
    """Where upper bounds are drawn."""
    lines = [line for axes in all_axes(figure) for line in axes.lines if line.get_gid() == UPPER_BOUND]
    return [place for line in lines for place in xy(line)]


def drawn(figure: Figure) -> list[float]:
    """Heights of all that is drawn."""
    lines = [line for axes in all_axes(figure) for line in axes.lines if line.get_transform() == axes.transData]
    return [y for line in lines for _, y in xy(line) if not math.isnan(y)]


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


def test_a_varied_rate_can_be_the_axis():
    figure = loss_figure(frame([3, 5, 7], rates__broker_crash=[0.1, 1.0, 3.0]), "data loss")
    assert "broker crash" in all_axes(figure)[0].get_xlabel()


def test_a_caption_names_model_faults_runs_and_interval():
    said = caption(frame([1, 2], faults__message_loss=[0.1, 0.2]))
    for part in ("Model compaction, version 1", "keys 1", "1,000 runs a point", "seed 1", "95% Clopper-Pearson"):
        assert part in said


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_frame_gives_the_same_bytes(kind):
    first, second = (
        save(loss_figure(frame([0, 5], faults__message_loss=[0.1, 0.2]), "data loss"), kind) for _ in range(2)
    )
    assert first == second


def test_a_report_escapes_whatever_it_is_given():
    given = frame([0, 5], faults__message_loss=[0.1, 0.2], **{f"model__{HOSTILE}": [HOSTILE]})
    given["invariant"] = given["invariant"].replace("CompactedLedgerLeak", HOSTILE)
    given["point_id"] += HOSTILE
    hostile = Provenance(f"quorisk run '{HOSTILE}'", HOSTILE, [HOSTILE])
    html = report(given, {f"breaks \"'{HOSTILE}": b"<svg/>"}, hostile)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 5
    assert not re.search(r"""alt="[^"]*["'][^"]*">""", html.replace("&#34;", "").replace("&#39;", ""))


def test_a_report_needs_and_runs_nothing_else():
    svg = save(loss_figure(frame([0, 5], faults__message_loss=[0.1, 0.2]), "data loss"), "svg")
    html = report(frame([0, 5], faults__message_loss=[0.1, 0.2]), {"data loss": svg}, PROVENANCE)
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in html
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(?!data:)[a-z]+:""", html)
    [image] = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html)
    assert b64decode(image) == svg


def test_a_report_says_less_than_and_not_0_where_nothing_was_lost():
    given = frame([0, 30], faults__message_loss=[0.1, 0.2])
    html = report(given, {}, PROVENANCE)
    high = text.number(given["high"][0])
    assert f"&lt; {high}</td><td>0</td>" in html
    assert "0.0300<small>" in html
    assert "Seen in 1 of 2 configurations. Highest probability: 0.0300" in html
    assert f"Not seen in the other 1: below {high} there." in html


def test_a_report_says_what_became_of_unfinished_runs():
    html = report(frame([0, 30], unfinished=7, faults__message_loss=[0.1, 0.2]), {}, PROVENANCE)
    assert "14 runs reached the limit of steps" in html


def test_invariants_that_say_nothing_more_are_not_shown():
    given = frame([0, 30], faults__message_loss=[0.1, 0.2])
    assert text.shown(given) == ["data loss"]
    given.loc[given["invariant"] == "CompactedLedgerLeak", "losses"] = 3
    lossy = given["invariant"] == "CompactionHorizonCorrectness"
    given.loc[lossy, "losses"] = [0, 30]  # the only way in which data were lost
    assert text.shown(given) == ["data loss", "CompactedLedgerLeak"]
    given.loc[lossy, "losses"] = [0, 29]
    assert text.shown(given) == ["data loss", "CompactedLedgerLeak", "CompactionHorizonCorrectness"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0123456, "0.0123"),
        (0.9996, "0.99960"),
        (99.96, "100"),
        (1.0, "1.00"),
        (123.4, "123"),
        (1234.0, "1234"),
        (3.6888e-6, "3.69 × 10⁻⁶"),
        (9.999e-4, "0.00100"),
        (1e-12, "1.00 × 10⁻¹²"),
        (123456.0, "1.23 × 10⁵"),
    ],
)
def test_numbers_have_three_digits(value, written):
    assert text.number(value) == written


def test_a_summary_on_screen_ends_before_it_fills_the_screen():
    table = screen.summary(frame([1] * 50, model__keys=range(50)))
    assert table.row_count == screen.MOST_LINES
    assert "10 more" in str(table.caption)


def test_a_parameter_that_goes_with_the_axis_has_no_lines_of_its_own():
    given = frame([1, 2, 3], rates__broker_crash=[0.1, 0.2, 0.3])
    given["rates.producer"] = given["rates.broker_crash"] * 2
    figure = loss_figure(given, "data loss")
    [axes] = all_axes(figure)
    assert [len(xy(line)) for line in axes.lines if line.get_linestyle() != "None" and len(xy(line)) > 0] == [3]
    assert axes.get_xlabel().endswith("and with it producer")
