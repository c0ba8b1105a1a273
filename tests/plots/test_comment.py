"""Comments for pull requests, from made-up designs: what changed, in ten lines; names that run nothing."""

from quorisk.analysis.decision.designs import ranked_designs
from quorisk.plots.comment import Judged, comment
from quorisk.say import choose, text
from tests.plots import tables


def made(losses, target=0.1, **varied):
    given = tables.frame(losses, **varied or {"model__keys": range(len(losses))})
    return Judged(ranked_designs(choose.rows_of(given, text.ANY_LOSS)), target)


def test_a_choice_stands_first_and_the_table_has_five_designs_at_most():
    said = comment(made([30, 1, 40, 50, 60, 70, 80]), ["Because."])
    lines = said.splitlines()
    assert lines[0] == "### Quorisk: run keys 1"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 5
    assert table[2].startswith("| **keys 1** | 0.00100 (2.53 × 10⁻⁵ to 0.00556) |")
    assert table[2].endswith("| meets |")
    assert "<details><summary>Reasons, and 2 more designs</summary>" in lines
    assert "- Because." in lines
    assert len(lines[: lines.index("<details><summary>Reasons, and 2 more designs</summary>")]) <= 10


def test_a_change_is_told_by_intervals_and_with_what_it_makes_of_the_choice():
    before, after = made([5, 300, 40]), made([200, 1, 41])
    said = comment(after, [], before).splitlines()
    assert said[0] == "### Quorisk: run keys 1 (before: keys 0)"
    rows = {line.split(" | ")[0].strip("| *"): line for line in said if line.startswith("|")}
    assert ": fewer losses |" in rows["keys 1"]
    assert "does not meet → meets" in rows["keys 1"]
    assert ": more losses |" in rows["keys 0"]
    assert ": no difference shown |" in rows["keys 2"]
    assert comment(after, [], after).startswith("### Quorisk: run keys 1, as before\n")


def test_a_design_that_is_new_says_so_and_none_that_meets_is_told():
    before, after = made([500], model__keys=[1]), made([500, 600], model__keys=[1, 2], target=0.001)
    said = comment(after, [], before)
    assert said.startswith("### Quorisk: no design meets the targets, as before\n")
    assert "keys 2 (new) |" in said


def test_a_heading_says_where_it_is_undecided_whether_a_design_meets_the_targets():
    undecided, none = made([1, 500], target=0.003), made([400, 500], target=0.003)
    heading = "### Quorisk: it is undecided whether a design meets the targets"
    assert comment(undecided, []).splitlines()[0] == heading
    assert comment(undecided, [], undecided).splitlines()[0] == f"{heading}, as before"
    assert comment(undecided, [], none).splitlines()[0] == f"{heading} (before: no design meets the targets)"
    assert comment(none, [], undecided).splitlines()[0] == (
        "### Quorisk: no design meets the targets (before: it is undecided whether a design meets the targets)"
    )
    assert comment(made([0, 500], target=0.005), [], undecided).splitlines()[0] == (
        "### Quorisk: run keys 0 (before: it is undecided whether a design meets the targets)"
    )


def test_a_heading_names_no_design_that_meets_the_targets_with_a_mechanism_off():
    off, fails = made([1, 500], target=0.1).designs
    changed = Judged([off._replace(worst={**off.worst, "changed": "fencing off"}), fails], 0.1)
    assert comment(changed, []).splitlines()[0] == "### Quorisk: no design is recommended"


def test_words_of_a_table_are_no_markdown_and_no_html():
    said = comment(made([30, 1], **{"model__a|b<c>": ["*x*", "@team [y](z)"]}), ["<script>", "`code` #1"])
    assert "<script>" not in said
    assert "@team" not in said.replace("\\@team", "")
    assert "[y]" not in said.replace("\\[y\\]", "")
    assert all(line.replace("\\|", "").count("|") == 7 for line in said.splitlines() if line.startswith("|"))
