"""The decision in a real browser: readers drag targets and tick scenarios, and the choice follows by the rules."""

import itertools
import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.statistics.uncertainty import DrawnLosses
from quorisk.plots.report import Provenance, report
from quorisk.say import choose, numbers
from tests.plots.pages import loaded
from tests.plots.tables import sweep


def year():
    """A frame of four quorums in two scenarios; nothing is seen to be lost by the last two."""
    quorums = [(2, 1), (2, 2), (3, 2), (3, 3)]
    given = sweep([30, 20, 9, 1, 0, 0, 0, 0], model__design=[f"{stored}/{copies}" for stored, copies in quorums],
                  run__scenario=["entry", "failover"]).frame  # fmt: skip
    place = given["point_id"].str.removeprefix("id").astype(int) // 2
    stored, copies = (place.map(dict(enumerate(each))) for each in zip(*quorums, strict=True))
    given = given.assign(stored=stored, copies=copies, on_disk=True, survives="a bookie", changed="", together=2)
    p99_ms = stored * 1.0 + copies * 10.0
    for name, ms in (("p50", p99_ms / 2), ("p99", p99_ms), ("p999", 2 * p99_ms)):
        given = given.assign(**{f"write_{name}_{end}ms": ms for end in ("", "low_", "high_")})
    return given.assign(per_year=given["run.scenario"].map({"entry": 1.0, "failover": 10.0}), target=1.0)


DRAG = """(slider, value) => {
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def drag(page: Page, name: str, value: float) -> None:
    page.locator(f"#controls input[name={name}]").evaluate(DRAG, value)


def order(page: Page) -> list[str]:
    return [text.removeprefix("design ") for text in page.locator("#designs tbody td:nth-child(2)").all_inner_texts()]


def chosen(page: Page) -> str:
    return re.sub(r"^Run (design )?|\. Runner-up.*|\.$", "", page.locator("#chosen").inner_text())


@pytest.fixture(scope="module")
def year_html(tmp_path_factory):
    path = tmp_path_factory.mktemp("year") / "year.html"
    path.write_text(report(year(), [], Provenance("quorisk run", "", [])), "utf-8")
    return path


@pytest.fixture
def decision(tab, year_html):
    with loaded(tab, year_html) as page:
        yield page


def test_a_reader_drags_a_target_and_sees_another_choice(decision):
    assert chosen(decision) == "2/2"  # which stores least of those that meet the target
    assert "2/2" in decision.locator("#designs tr.chosen").inner_text()
    drag(decision, "target", -1.2)  # more than is known of it
    assert chosen(decision) == "3/3"  # and not 3/2, of which no run lost data either
    assert "3/3" in decision.locator("#designs tr.chosen").inner_text()
    drag(decision, "copies", 2)  # who says that two copies will do gets the faster one
    assert chosen(decision) == "3/2"
    slider = decision.locator("#controls input[name=target]")
    slider.focus()
    slider.press("End")  # no target at all
    assert "any" in decision.locator("#target-said").inner_text()
    drag(decision, "target", -3.0)
    assert chosen(decision) == "No design meets this"
    assert decision.locator("#designs tr.chosen").count() == 0


def test_sliders_say_numbers_without_zeros_at_the_end(decision):
    for power, said in ((0.0, "1"), (-1.0, "0.1"), (math.log10(0.0205), "0.0205"), (-1.0001, "0.1"), (0.5, "3.16")):
        drag(decision, "target", power)
        assert decision.locator("#target-said").inner_text() == said
    for p99_ms in (20, 25.5):
        drag(decision, "p99", math.log10(p99_ms))
        assert decision.locator("#p99-said").inner_text() == f"{p99_ms} ms"


def test_the_slider_of_the_target_says_it_as_the_page_does(tab, written):
    for target in (1e-3, 1e-5, 2e-5, 1.25e-5):
        html = report(year().assign(target=target), [], Provenance("quorisk run", "", []))
        assert f'<output id="target-said">{numbers.short(target)}<' in html
        with loaded(tab, written("target.html", html)) as page:
            assert page.locator("#target-said").inner_text() == numbers.short(target)


def test_designs_change_places_as_scenarios_are_switched_off(decision):
    assert order(decision) == ["3/3", "3/2", "2/2", "2/1"]
    ranks = decision.locator("#designs [data-cell=rank]").all_inner_texts()
    assert ranks == ["1", "1", "1", "4"]
    losses = decision.locator("#designs [data-cell=losses]").all_inner_texts()
    decision.locator("#controls input[value=failover]").uncheck()
    assert decision.locator("#designs [data-cell=losses]").all_inner_texts() != losses
    decision.locator("#controls input[value=entry]").uncheck()
    decision.locator("#controls input[value=failover]").check()
    assert decision.locator("#designs [data-cell=losses]").all_inner_texts()[2].startswith("0.0100")


def test_a_design_that_misses_a_target_says_which(browser, written):
    """With scripts and without: here one on minutes without writes, which no slider moves."""
    figures = {"any_loss": 0.02, "entries": 50.0, "incidents": 0.02, "incident_p50": 3.0, "incident_p99": 9.0}
    given = year().assign(**{f"{name}{end}": value for name, value in figures.items() for end in ("", "_low", "_high")})
    given = given.assign(incident=False, cluster_at="", target=math.inf, wants_copies=3, copies=given["copies"] - 1)
    given = given.assign(write_minutes_lost_per_year=2 * given["stored"] - 4, wants_write_minutes_lost_per_year=0.5)
    path = written("missed.html", report(given, [], Provenance("quorisk run", "", [])))
    for scripts in (False, True):
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.goto(path.as_uri())
        said = page.locator("#designs [data-cell=verdict]").all_inner_texts()
        page.context.close()
        slow, acks = (
            "2 minutes a year without writes",
            [f"{few} when acknowledged" for few in ("no copy", "1 copy", "2 copies")],
        )
        missed = [{"does not meet", *each} for each in ([slow, acks[2]], [slow, acks[1]], [acks[1]], [acks[0]])]
        assert sorted(sorted(each.split("\n")) for each in said) == sorted(map(sorted, missed))


def test_the_page_writes_numbers_as_the_report_does(browser, written):
    given = year().assign(per_year=lambda frame: frame["per_year"] * 10_000)  # thousands, which are written in full
    path = written("thousands.html", report(given, [], Provenance("quorisk run", "", [])))
    said = []
    for scripts in (False, True):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto(path.as_uri())
        said.append(page.locator("#designs [data-cell=losses]").all_inner_texts())
        context.close()
    assert said[0] == said[1]
    assert any(re.match(r"2300\s*1\d{3} to 3\d{3}$", each) for each in said[0]), said[0]


def test_the_page_s_rules_are_those_of_the_report(decision):
    """The one in JavaScript against the one in Python, for targets that each design meets or misses."""
    assert len(same_choices(decision, year())) >= 3


def test_the_page_chooses_last_what_stops_at_any_restart(tab, written):
    given = year()
    stops = given.assign(stops_with_one=(given["stored"] == given["copies"]).astype(int))
    path = written("stops.html", report(stops, [], Provenance("quorisk run", "", [])))
    with loaded(tab, path) as page:
        assert "3/2" in same_choices(page, stops)


def same_choices(decision, rows):
    """Choices at targets, each the same by the page and by the report's rules."""
    seen = set()
    for target, p99_ms in itertools.product([0.03, 0.06, 0.1, 0.4, 1.0], [13.0, 25.0, 60.0]):
        given = rows.assign(target=target, wants_write_p99_ms=p99_ms)
        found = ranked_designs(choose.rows_of(given, "data loss"))
        drag(decision, "target", math.log10(target))
        drag(decision, "p99", math.log10(p99_ms))
        expected = verdict.choice(found, target)
        name = expected[0].settings.removeprefix("design ") if expected else "No design meets this"
        assert chosen(decision) == name
        seen.add(name)
        assert order(decision) == [each.settings.removeprefix("design ") for each in found]
        said = decision.locator("#designs [data-cell=verdict]").all_inner_texts()
        above = [["loses more than the target"] * (each.interval[0] > target) for each in found]
        missed = [[*more, *each.shortfalls()] for more, each in zip(above, found, strict=True)]
        told = [[each.verdict(target), *why] for each, why in zip(found, missed, strict=True)]
        assert [each.split("\n") for each in said] == told
    return seen


def test_what_was_dragged_is_printed(decision):
    drag(decision, "target", -1.0)
    decision.emulate_media(media="print")
    assert decision.locator("#target-said").is_visible()
    assert not decision.locator("#controls input[name=target]").is_visible()
    decision.set_viewport_size({"width": 688, "height": 1000})  # A4
    assert decision.evaluate("document.querySelector('#designs').scrollWidth <= innerWidth")


def test_where_no_scenario_is_ticked_nothing_is_said(decision):
    for name in ("entry", "failover"):
        decision.locator(f"#controls input[value={name}]").uncheck()
    assert decision.locator("#chosen").inner_text() == "No scenario is ticked: there is nothing to say."
    assert not decision.locator("#designs").is_visible()
    decision.locator("#controls input[value=entry]").check()
    assert decision.locator("#designs").is_visible()


def test_other_rates_move_what_a_cluster_loses_and_not_what_failovers_add(tab, written):
    rows = year().assign(
        incident=lambda given: given["run.scenario"] == "failover", cluster_at="", by_cause_outages=0.02
    )
    figures = {"any_loss": 0.02, "entries": 50.0, "incidents": 0.02}
    ends = {f"{name}{end}": value for name, value in figures.items() for end in ("", "_low", "_high")}
    rows = rows.assign(incident_p50=3.0, incident_p99=9.0, incident_p99_high=9.0, **ends)
    found = ranked_designs(choose.rows_of(rows, "data loss"))
    known = DrawnLosses(np.ones(1), 1.0, 0.5, 2.0, 1.0, 1, {"cluster.node_loss": 2.0}, {"cluster.node_loss": 1.0}, 0.0)
    sure = Doubt({each.settings: known for each in found}, {}, {}, None, {})
    path = written("cluster.html", report(rows, [], Provenance("", "", []), sure=sure))
    added = [sum(part["per_year"] * part["p"] for part in each.worst["parts"] if part["incident"]) for each in found]
    hazards = [-4.0 * math.log1p(-0.02) + each for each in added]
    with loaded(tab, path) as page:
        assert page.locator("#controls input[type=checkbox]").count() == 1

        def told() -> list[str]:
            return [text.split("\n")[0] for text in page.locator("#designs [data-cell=losses]").all_inner_texts()]

        assert told() == [numbers.number(each.worst["p"]) for each in found]
        page.locator("#controls input[data-figure]").evaluate(DRAG, math.log10(2))  # four times the cluster's hazard
        assert sorted(told()) == sorted(numbers.number(-math.expm1(-each)) for each in hazards)


def test_a_figure_of_a_scenario_that_is_off_moves_nothing(tab, written):
    rows, key = year(), "scenarios.failover.per_year"
    known = DrawnLosses(np.ones(1), 0.1, 0.05, 0.2, 1.0, 1, {key: 1.0}, {key: 1.0}, 0.0)
    sure = Doubt({each.settings: known for each in ranked_designs(choose.rows_of(rows, "data loss"))}, {}, {}, None, {})
    path = written("off.html", report(rows, [], Provenance("", "", []), sure=sure))
    with loaded(tab, path) as page:
        losses = page.locator("#designs [data-cell=losses]")
        page.locator("#controls input[value=failover]").uncheck()
        before = losses.all_inner_texts()
        page.locator("#controls input[data-figure]").evaluate(DRAG, 1.0)
        assert losses.all_inner_texts() == before
        page.locator("#controls input[value=failover]").check()
        assert losses.all_inner_texts() != before


def test_at_other_rates_no_probability_is_above_1(tab, written):
    rows = sweep([300, 20], model__design=["2/1", "2/2"]).frame.assign(target=0.5)
    known = DrawnLosses(np.ones(1), 0.1, 0.05, 0.2, 1.0, 1, {"rates.crash": 2.0}, {"rates.crash": 1.0}, 0.0)
    sure = Doubt({each.settings: known for each in ranked_designs(choose.rows_of(rows, "data loss"))}, {}, {}, None, {})
    path = written("run.html", report(rows, [], Provenance("", "", []), sure=sure))
    with loaded(tab, path) as page:
        page.locator("#controls input[data-figure]").evaluate(DRAG, 1.0)
        losses = page.locator("#designs [data-cell=losses]")
        assert sorted(text.split("\n")[0] for text in losses.all_inner_texts()) == ["1.00", "1.00"]
