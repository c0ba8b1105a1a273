"""What a sweep shows on screen: data loss always, what else breaks while there is room for it, and how far it is."""

import io
import time

from rich.console import Console

from quorisk.analysis.decision.advice import recommend
from quorisk.say import text
from quorisk.sparkjobs import screen
from tests.plots.tables import frame


def shown(width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(screen.probability_table(ROWS, width))
    return file.getvalue().splitlines()


ROWS = frame([30, 0], faults__message_loss=[0.1, 0.2])
ROWS.loc[ROWS["invariant"].isin(["CompactedLedgerLeak", "DuplicateNullKeyMessage"]), "losses"] = 7


def test_a_wide_screen_shows_all_that_breaks_and_a_narrow_one_says_what_it_leaves_out():
    wide, narrow = shown(400), shown(70)
    assert len(text.shown(ROWS)) > 1
    for invariant in text.shown(ROWS):
        assert f"P({invariant})" in wide[1]
    assert "Not enough room" not in "".join(wide)
    assert "P(data loss)" in " ".join(narrow[:4])
    assert "Not enough room here; see report.html for" in " ".join(narrow)
    assert max(map(len, narrow)) <= 70
    assert any("0.03" in line for line in narrow)


def test_what_follows_for_the_choice_stands_below_the_table():
    file, rows = io.StringIO(), ROWS.assign(target=0.01)
    words = recommend(rows)
    screen.print_results(rows, words, Console(file=file, width=70))
    lines = [line for line in file.getvalue().splitlines() if line and line[0] not in "┏┃┡│└"]
    assert lines[lines.index(words.headline) :] == [words.headline, *(f"- {each}" for each in words.sentences)]


def test_the_bar_counts_on_a_terminal_and_only_there():
    shown, piped = io.StringIO(), io.StringIO()
    for file, is_terminal in ((shown, True), (piped, False)):
        console = Console(file=file, force_terminal=is_terminal, width=120)
        with screen.Bar(console, 2) as bar:
            bar.expect(30.0)
            bar.advance(10.0, 10, 1, 0)
            bar.advance(10.0, 5, 2, 1)
    assert "1 of 2 points 15 runs 3 losses" in shown.getvalue()
    assert piped.getvalue() == ""


def test_the_time_left_of_a_sweep_is_that_from_its_first_results_on(monkeypatch):
    """The time left counts no compilation before it."""
    now, said = [0.0], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    bar = screen.Bar(Console(file=io.StringIO()), 2)
    bar._tell = lambda text, left=str: said.append(left())
    bar.expect(40.0)
    for now[0], done_s in ((60.0, 10.0), (65.0, 10.0), (70.0, 0.0), (75.0, 10.0), (76.0, 10.0)):
        bar.advance(done_s, int(done_s), 0, 0)
    assert said == ["", "; about 10 s left", "; about 5 s left", "; about 10 s left", ""]
