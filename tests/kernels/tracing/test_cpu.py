"""Machine code of long texts comes from a process of its own, and from this one where that fails."""

import sys

import pytest

from quorisk.kernels.tracing import cpu

TEXT = "define i64 @f(i64 %x) {\n  %y = add i64 %x, 1\n  ret i64 %y\n}\n"


@pytest.fixture
def asked(monkeypatch):
    """The texts that this process compiled itself, if all are long."""
    texts, compile_here = [], cpu._object_code

    def noted(text, soon):
        texts.append(text)
        return compile_here(text, soon)

    monkeypatch.setattr(cpu, "_LONG", len(TEXT))
    monkeypatch.setattr(cpu, "_object_code", noted)
    return texts


@pytest.mark.parametrize("soon", [True, False])
def test_a_process_of_its_own_compiles_what_is_long(asked, soon):
    code = cpu.object_code(TEXT, soon)
    assert not asked
    assert code == cpu._object_code(TEXT, soon)
    assert cpu.object_code(TEXT[:-1])  # which is short
    assert len(asked) == 2


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
def test_without_that_process_this_one_compiles(asked, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    assert cpu.object_code(TEXT) == cpu._object_code(TEXT, False)
    assert len(asked) == 2


def test_optimized_code_is_another(asked):
    text = TEXT.replace("add i64 %x, 1", "mul i64 %x, 0")
    assert cpu.object_code(text) != cpu.object_code(text, soon=True)
