"""The report in a real browser: complete, quiet, self-contained; it sorts, fits and prints."""

import itertools
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from playwright.sync_api import Page, sync_playwright

from quorisk.analysis.decision import verdict
from quorisk.analysis.decision.designs import ranked_designs
from quorisk.analysis.decision.doubt import Doubt
from quorisk.analysis.statistics.uncertainty import DrawnLosses
from quorisk.plots import canvas
from quorisk.plots.figures import figures
from quorisk.plots.ranking import ranking_figure
from quorisk.plots.report import RANKING, LosingTrace, Picture, Provenance, report
from quorisk.plots.style import save
from quorisk.say import choose, numbers
from tests.plots.tables import HOSTILE, sweep

GRID = {"model__keys": [10, 9], "variant__retain_null_key": [True, False], "faults__message_loss": [0.1, 0.2]}
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><script>document.title = "run"</script></svg>'


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("QUORISK_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    assert path, "no Chromium; scripts/ensure_chromium.sh installs it, or set QUORISK_BROWSER to one"
    with sync_playwright() as playwright:
        # as root, as in containers, Chromium runs without its sandbox or not at all
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def write(path: Path, word: str) -> Path:
    """Writes a report with all its parts, in which `word` stands where words can."""
    given = sweep([0, 30, 4, 200, 0, 0, 1, 999], **GRID, **{f"model__{word}": [word]})
    pictures = []
    found = ranked_designs(choose.rows_of(given.frame, "data loss"))
    drawn = [(RANKING, ranking_figure(found, 0.01, "P(data loss)", "")), *figures(given.frame)]
    for name, figure in drawn:
        assert figure is not None
        svg = canvas.without_caption(save(figure, "svg"), figure)
        pictures.append(Picture(canvas.title_of(figure), canvas.caption_of(figure), svg, name))
    provenance = Provenance(f"quorisk run {word}", word * 40, [word])
    html = report(given.frame.assign(target=0.01), pictures, provenance, LosingTrace(SVG, word, word * 20))
    path.write_bytes(html.encode())
    return path


@pytest.fixture(scope="module", params=["topic", HOSTILE], ids=["plain", "hostile"])
def html(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("report") / "report.html", request.param)


@pytest.fixture(scope="module")
def tab(browser):
    """A tab, and what its pages said, asked for or ran: opening one takes longer than most tests."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: said.append(request.url) if not request.url.startswith("data:") else None)
    page.add_init_script("addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))")
    yield page, said
    page.close()


@contextmanager
def loaded(
    tab: tuple[Page, list[str]], path: Path, media: Literal["screen", "print"] = "screen", width=1400, height=900
) -> Iterator[Page]:
    """A page of so many pixels; fails if it says, asks for or runs anything."""
    page, said = tab
    said.clear()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(media=media)
    page.goto(path.as_uri())
    yield page
    assert said == [path.as_uri()]


OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture
def folded(tab, html):
    with loaded(tab, html, width=1300) as page:
        yield page


@pytest.fixture
def page(tab, html):
    with loaded(tab, html) as page:
        page.evaluate(OPEN_ALL)
        yield page


def column(page: Page, number: int) -> list[str]:
    """The first lines of the cells of a column of the results."""
    cells = page.locator(f"#results tbody tr td:nth-child({number})")
    return [text.split("\n")[0].strip() for text in cells.all_inner_texts()]


def place(page: Page, name: str) -> int:
    """The number of a column of the results, from 1."""
    return 1 + page.locator("#results thead th").all_inner_texts().index(name)


def test_all_figures_are_there_and_can_be_seen(page):
    sizes = page.evaluate("[...document.images].map((i) => [i.complete, i.naturalWidth, i.width, i.height, i.alt])")
    assert len(sizes) == 4  # the ranking; loss, heat map; the counterexample
    for complete, natural, width, height, alt in sizes:
        assert complete
        assert natural > 0
        assert min(width, height) >= 40
        assert alt


def test_results_run_nothing(page):
    assert page.title().startswith("Quorisk")
    assert page.locator("script").count() == 1
    assert page.locator("img[src=x]").count() == 0


def test_nothing_but_our_own_script_would_run(browser, html):
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(html.as_uri())
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = true'>");
    }""")
    assert page.evaluate("window.ran") is None
    assert len(said) >= 2
    assert all("Content Security Policy" in each for each in said)
    page.close()


def test_headings_sort_both_ways_by_number(page):
    keys = place(page, "keys")
    heading = page.locator(f"#results thead th:nth-child({keys})")
    assert column(page, keys) == ["10"] * 4 + ["9"] * 4
    heading.get_by_role("button").click()
    assert column(page, keys) == ["9"] * 4 + ["10"] * 4
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert column(page, keys) == ["10"] * 4 + ["9"] * 4
    assert heading.get_attribute("aria-sort") == "descending"


def test_probabilities_sort_by_the_upper_ends_of_their_intervals(page):
    p = place(page, "P(data loss)")
    page.locator("#results thead button").nth(0).click()
    page.locator("#results thead button").nth(p - 1).press("Enter")  # by keyboard as well
    shown = column(page, p)
    assert shown[:3] == ["< 0.00369"] * 3
    assert shown[3:] == ["0.00100", "0.00400", "0.0300", "0.200", "0.9990"]
    assert page.locator("#results [aria-sort]").count() == 1


def test_without_scripts_it_is_all_there(browser, html):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(html.as_uri())
    assert page.locator("#results tbody tr").count() == 8
    assert page.locator("th button").count() == 0
    context.close()


@pytest.mark.parametrize("width", [400, 768, 1400])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_letters_are_large_enough_on_a_telephone(page):
    page.set_viewport_size({"width": 400, "height": 800})
    scales = page.evaluate("[...document.images].slice(0, 5).map((image) => image.width / image.naturalWidth)")
    assert min(scales) == 1  # figures scroll; they do not shrink


def test_the_first_screen_has_the_choice_its_risk_and_the_picture(folded):
    folded.set_viewport_size({"width": 1300, "height": 900})
    for each in ("h1", ".risk-now", "#figure-ranking img", "#summary dl"):
        assert folded.evaluate(f"document.querySelector('{each}').getBoundingClientRect().bottom <= innerHeight"), each
    assert folded.evaluate("document.documentElement.scrollHeight") <= 4000


@pytest.mark.parametrize("width", [1300, 1400])
def test_no_table_is_wider_than_the_page(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    cut = "[...document.querySelectorAll('.wide')].filter((each) => each.scrollWidth > each.clientWidth + 1).length"
    assert page.evaluate(cut) == 0


def test_folds_open_by_keyboard_and_by_what_points_into_them(folded):
    fold = folded.locator("#found")
    assert not folded.locator("#found .box").is_visible()
    fold.locator("summary").focus()
    folded.keyboard.press("Enter")
    assert folded.locator("#found .box").is_visible()
    assert not folded.locator("#exclusions").is_visible()
    folded.locator("#summary a").click()
    folded.wait_for_function("document.getElementById('model').open")
    assert folded.locator("#exclusions").is_visible()


def test_folded_it_prints_the_choice_on_one_page_and_the_evidence_on_the_next(folded):
    folded.emulate_media(media="print")
    pdf = folded.pdf(prefer_css_page_size=True, outline=True, tagged=True)
    assert pdf.count(b"/Type /Page\n") == 2
    [(first, second)] = re.findall(rb"/Kids \[(\d+) 0 R (\d+) 0 R\]", pdf)
    headings = re.findall(rb"/Title \(([^\n]*)\)\n/Dest \[(\d+) 0 R /XYZ \S+ (\S+) ", pdf)
    at = {title.decode("latin-1"): ([first, second].index(page), float(y_pt)) for title, page, y_pt in headings}
    why, table, (choice,) = at.pop("Why"), at.pop("Try other targets"), at.values()
    assert (choice[0], why[0], table[0]) == (0, 1, 1)
    assert min(choice[1], why[1]) > 770  # both begin at the top of an A4 page, which is 842 points high


def test_it_prints(page, tmp_path):
    pdf = page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 20


def test_on_paper_a_wide_table_lies_across_and_is_whole(tab, tmp_path):
    given = sweep([0, 30, 4, 200, 0, 0, 1, 999], **GRID).frame
    provenance = Provenance("quorisk run", "", [])
    narrow, wide = tmp_path / "narrow.html", tmp_path / "wide.html"
    narrow.write_text(report(given, [], provenance), "utf-8")
    broken = given["invariant"].isin(["CompactedLedgerLeak", "DuplicateNullKeyMessage"])
    given.loc[broken, ["losses", "p", "low", "high"]] = [7, 7.123e-6, 2.345e-6, 1.567e-5]
    given[["completed", "stuck", "horizon"]] = 1_000_000
    wide.write_text(report(given, [], provenance), "utf-8")
    for path, across in ((narrow, False), (wide, True)):
        with loaded(tab, path, "print", 1000, 700) as page:  # A4, across, within its margins
            page.evaluate(OPEN_ALL)
            assert page.locator("section.landscape #results").count() == across
            assert page.evaluate("document.querySelector('#results').scrollWidth <= innerWidth")
            page.set_viewport_size({"width": 688, "height": 1000})  # A4, upright
            assert page.evaluate("document.querySelector('#designs').scrollWidth <= innerWidth")
            assert page.evaluate("document.querySelector('#summary').getBoundingClientRect().bottom < innerHeight")
            page.set_viewport_size({"width": 1000, "height": 700})
            sizes = set(re.findall(rb"/MediaBox \[([^]]*)\]", page.pdf(prefer_css_page_size=True)))
            assert len(sizes) == 1 + across


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
        assert [each.strip() for each in said] == [each.verdict(target) for each in found]
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
    rows = year().assign(incident=lambda given: given["run.scenario"] == "failover", cluster_at="", by_outages=0.02)
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
