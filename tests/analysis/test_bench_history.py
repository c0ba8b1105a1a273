"""Speeds beside those of the last benchmark."""

import pytest

from quorisk.analysis import bench_history
from quorisk.analysis.bench import Speed


def speed(steps_per_s, model="kafka", engine="numba"):
    return Speed(model, engine, 1, steps_per_s, None, 0.0)


def ratios(rows, file):
    return [row.to_last for row in bench_history.beside_last(rows, file)]


def test_ratios_are_to_the_last_time_that_the_same_was_measured_on_this_machine(tmp_path, monkeypatch):
    file = tmp_path / "cache" / "bench.json"
    assert ratios([speed(100.0), speed(7.0, "kraft")], file) == [None, None]
    assert ratios([speed(150.0)], file) == [1.5]
    assert ratios([speed(75.0), speed(7.0, "kraft"), speed(1.0, engine="jax")], file) == [0.5, 1.0, None]
    here = bench_history.machine()
    monkeypatch.setattr(bench_history, "machine", lambda: f"not {here}")
    assert ratios([speed(75.0)], file) == [None]
    monkeypatch.setattr(bench_history, "machine", lambda: here)
    assert ratios([speed(75.0)], file) == [1.0]


@pytest.mark.parametrize("damaged", [b"", b"[1]", b"{", b'{"here": 3}', b"[" * 100_000, b"\xff"])
def test_a_damaged_file_is_none(tmp_path, damaged):
    file = tmp_path / "bench.json"
    file.write_bytes(damaged)
    assert ratios([speed(2.0)], file) == [None]
    assert ratios([speed(1.0)], file) == [0.5]


def test_a_benchmark_is_told_where_it_cannot_be_kept(tmp_path):
    (tmp_path / "file").write_text("")
    assert ratios([speed(2.0)], tmp_path / "file" / "bench.json") == [None]
