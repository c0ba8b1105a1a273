"""A protocol's programs are made once on a machine, whoever asks for them at the same time."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from quorisk.kernels.protocols import registry
from quorisk.kernels.states import programs


def test_of_two_that_begin_together_one_makes_them(monkeypatch, tmp_path):
    model, made, write = registry.load("compaction"), list[str](), programs._write

    def slowly(model):
        made.append(model.name)
        time.sleep(0.2)
        return write(model)

    monkeypatch.setattr(programs, "_write", slowly)
    monkeypatch.setattr(programs, "code_folder", lambda name: tmp_path)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(programs.written.__wrapped__, [model, model])
    assert made == ["compaction"]
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name].steps, other[name].steps) for name in one)
