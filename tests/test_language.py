"""Docstrings name the thing first: a noun, or a function's verb, and no clause of "what" or "of"."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("analysis", "kernels", "plots", "quorisk", "say", "sparkjobs")
CLAUSE = re.compile(r"(What|Of|That|Those|Which|Who|Whoever|Where|How|So|As|If|Up to|By|From|To|On|In|For|With)\b")


def docstrings(tree):
    """Line and text of each docstring of a module, of its classes and functions, and of constants and fields."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or is_help(node):
            continue
        for before, each in zip([None, *node.body], node.body, strict=False):
            is_own = before is None or (
                isinstance(node, ast.Module | ast.ClassDef) and isinstance(before, ast.Assign | ast.AnnAssign)
            )
            if (
                is_own
                and isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield each.lineno, each.value.value


def is_help(node):
    """Whether a docstring is the text of `--help`, in which a question may stand."""
    return any("app." in ast.unparse(each) for each in getattr(node, "decorator_list", []))


def inverted(source):
    return [(line, text) for line, text in docstrings(ast.parse(source)) if CLAUSE.match(text)]


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_name_the_thing_first(room):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in sorted((ROOT / room).rglob("*.py"))
        if not any(each.is_symlink() for each in path.parents)
        for line, text in inverted(path.read_text("utf-8"))
    ]
    assert found == []


def test_a_clause_is_seen_wherever_a_docstring_stands():
    source = (
        '"""What it is."""\nA = 1\n"""Of entries."""\nB = 2\n"""Number of entries."""\ndef f():\n    """How it is."""\n'
    )
    assert [line for line, _ in inverted(source)] == [1, 3, 7]
