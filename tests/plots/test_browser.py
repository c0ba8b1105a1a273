"""The report in a real browser: complete, quiet, self-contained; it sorts, fits and prints."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.plots import canvas
from quorisk.plots.figures import figures
from quorisk.plots.ranking import ranking_figure
from quorisk.plots.report import RANKING, LosingTrace, Picture, Provenance, report
from quorisk.plots.style import save
from quorisk.say import choose
from tests.plots.pages import loaded
from tests.plots.tables import HOSTILE, sweep

GRID = {"model__keys": [10, 9], "variant__retain_null_key": [True, False], "faults__message_loss": [0.1, 0.2]}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><script>document.title = "run"</script></svg>'


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


@pytest.fixture(
    scope="module", params=[pytest.param("topic", marks=pytest.mark.exhaustive), HOSTILE], ids=["plain", "hostile"]
)
def html(request, tmp_path_factory):
    return write(tmp_path_factory.mktemp("report") / "report.html", request.param)


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


def test_all_figures_are_there_and_can_be_seen_and_results_run_nothing(page):
    sizes = page.evaluate("[...document.images].map((i) => [i.complete, i.naturalWidth, i.width, i.height, i.alt])")
    assert len(sizes) == 4  # the ranking; loss, heat map; the counterexample
    for complete, natural, width, height, alt in sizes:
        assert complete
        assert natural > 0
        assert min(width, height) >= 40
        assert alt
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


def test_headings_sort_both_ways_by_number_and_probabilities_by_the_upper_ends_of_their_intervals(page):
    keys = place(page, "keys")
    heading = page.locator(f"#results thead th:nth-child({keys})")
    assert column(page, keys) == ["10"] * 4 + ["9"] * 4
    heading.get_by_role("button").click()
    assert column(page, keys) == ["9"] * 4 + ["10"] * 4
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").click()
    assert column(page, keys) == ["10"] * 4 + ["9"] * 4
    assert heading.get_attribute("aria-sort") == "descending"
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


def test_nothing_runs_over_the_edge_and_letters_are_large_enough_on_a_telephone(page):
    cut = "[...document.querySelectorAll('.wide')].filter((each) => each.scrollWidth > each.clientWidth + 1).length"
    for width in (1400, 1300, 768, 400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert width < 1300 or page.evaluate(cut) == 0, width  # no table is wider than the page
    scales = page.evaluate("[...document.images].slice(0, 5).map((image) => image.width / image.naturalWidth)")
    assert min(scales) == 1  # figures scroll; they do not shrink


def test_the_first_screen_has_the_choice_its_risk_and_the_picture(folded):
    folded.set_viewport_size({"width": 1300, "height": 900})
    for each in ("h1", ".risk-now", "#figure-ranking img", "#summary dl"):
        assert folded.evaluate(f"document.querySelector('{each}').getBoundingClientRect().bottom <= innerHeight"), each
    assert folded.evaluate("document.documentElement.scrollHeight") <= 4000


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
