"""scripts/validate.py: that its checks can fail, and that the page keeps what was not checked again."""

import sys

import pytest

from scripts import validate
from scripts.validation import numbers, page
from scripts.validation.page import Check
from tests.external import pbs


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "validation.md")
    return tmp_path / "validation.md"


def test_a_section_takes_the_place_of_its_last_one_and_leaves_the_others(there):
    def write(name, cell, holds):
        page.write(
            name, Check(name.title(), "What.", ("a", "b"), [(cell, 2)], "so it is.", holds), "cmd", 1.0, ["x", "y"]
        )

    write("y", "old", True)
    write("x", "first", True)
    write("y", "a|b", False)
    text = there.read_text()
    assert text.startswith("# Validation\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## X", "## Y"]
    assert "| first | 2 |" in text
    assert "| a\\|b | 2 |" in text
    assert "| old |" not in text
    assert "Holds: so it is." in text
    assert "**Does not hold**: so it is." in text
    assert "numpy " in text


def test_what_deviates_does_not_hold(there, monkeypatch, capsys):
    assert numbers.latency(True).holds
    monkeypatch.setitem(pbs.YAMMER_MS, 1, 10.0)
    found = numbers.latency(True)
    assert not found.holds
    assert any(row[2] == 10.0 and str(row[-1]) > "60" for row in found.rows)
    monkeypatch.setattr(sys, "argv", ["validate.py", "--only", "latency", "--quick"])
    with pytest.raises(SystemExit) as ended:
        validate.main()
    assert ended.value.code == 1
    assert capsys.readouterr().out.startswith("latency: DOES NOT HOLD: ")
    assert not there.exists()
