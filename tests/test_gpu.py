"""scripts/gpu.py: steps are done once, begun again where they were killed, and what they came to is on the page."""

import json
import math
import os
import sys
import time
from typing import Any

import pytest

from quorisk.kernels.protocols import registry
from scripts import gpu, gpu_page, gpu_steps
from scripts.gpu import STEPS, Failed, Step, child, do, left
from tests.support import ROOT

SOME = tuple(Step(name, "does something", 1.5) for name in ("first", "second", "third"))
PAGE = (ROOT / "docs" / "gpus.md").read_text()


def names(steps):
    return [step.name for step in steps]


def test_steps_are_of_every_protocol_and_end_within_ten_minutes():
    assert sorted(registry.names()) == gpu.PROTOCOLS
    assert len(set(names(STEPS))) == len(STEPS) == 3 + 3 * len(gpu.PROTOCOLS)
    assert all(step.minutes < 10 for step in STEPS)
    assert all(hasattr(gpu_steps, step.name.partition("-")[0]) for step in STEPS[1:])


def test_what_was_done_stays_done_and_the_rest_is_done_again(tmp_path):
    asked = []

    def work(step, seconds):
        asked.append((step.name, round(seconds)))
        if step.name == "first" and len(asked) == 1:
            raise Failed("no such thing")
        return {"found": step.name}

    assert do(SOME[:2], tmp_path, False, math.inf, work) == ["first: no such thing"]
    (tmp_path / "third.json").write_text('{"step": "th')  # cut off
    assert names(left(tmp_path, SOME)) == ["third", "first"]
    assert do(left(tmp_path, SOME), tmp_path, False, math.inf, work) == []
    assert asked == [("first", 90), ("second", 90), ("third", 90), ("first", 90)]
    assert not left(tmp_path, SOME)
    assert gpu_page.read(tmp_path, "first")["found"] == "first"
    assert "failed" not in gpu_page.read(tmp_path, "first")


def test_a_step_killed_in_the_middle_leaves_nothing(tmp_path):
    def work(step, seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(SOME, tmp_path, False, math.inf, work)
    assert not list(tmp_path.iterdir())


def test_steps_have_the_time_that_is_left_and_none_is_begun_with_too_little(tmp_path):
    asked = list[float]()

    def work(step, seconds):
        asked.append(seconds)
        return {}

    do(SOME[:2], tmp_path, False, time.monotonic() + 70, work)
    assert len(asked) == 2
    assert all(60 < seconds <= 70 for seconds in asked)
    do(SOME[2:], tmp_path, False, time.monotonic() + gpu.LEAST_S - 1, lambda step, seconds: pytest.fail("begun"))
    assert names(left(tmp_path, SOME)) == ["third"]


def test_a_process_says_what_it_found_or_why_not():
    def python(program, seconds=10.0):
        return child([sys.executable, "-c", program], seconds)

    assert python("print('so far'); print('{\"p\": 1}')") == {"p": 1}
    with pytest.raises(Failed, match=r"^no GPU$"):
        python('print(\'{"failed": "no GPU"}\')')
    with pytest.raises(Failed, match="code 3 and said nothing"):
        python("raise SystemExit(3)")


def test_a_process_that_takes_too_long_is_ended_with_its_own(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    start = time.monotonic()
    with pytest.raises(Failed, match="longer than 1 s"):
        child(["sh", "-c", f"(exec > {pipe}; echo; sleep 9) & sleep 9"], 0.6)
    os.set_blocking(reader, True)
    assert os.read(reader, 9) == b"\n"
    assert os.read(reader, 9) == b""  # nobody holds it any more
    os.close(reader)
    assert time.monotonic() - start < 8


ENGINE = {"configurations": 31, "runs": 620_000, "lost": 1, "repeated": 2, "differ": [], "without": {"too wide": 1}}
WAYS = {"numba, two cores": [1e7, 2e7], "lanes, two cores": [5e7], "XLA": [9e8], "kernel": [7e9, 6e9]}
RESULTS: dict[str, dict[str, Any]] = {
    "install": {"made": "2030-01-01 10:00 UTC", "commit": "abc", "devices": 1, "device": "NVIDIA H200", "driver": "600"}
    | {"versions": "JAX 1", "cores": 16, "processor": "fast"},
    "equal-kafka": {"variants": 13, "of_variants": 14, "engines": {"JAX": ENGINE | {"differ": ["run 7"]}}},
    "speed-kafka": {"steps_per_s": WAYS, "most_by_operations": 4.5e9, "same": True},
    "profile-kafka": {"ways": {"kernel": {"busy": 0.98, "top": [["kafka_runs", 0.9], ["a|b", 0.1]]}}},
    "count": {"kernels": {"kafka": {"most_steps_per_s": 14e9}}},
    "spark": {"failed": "no Java"},
    "speed-kraft": {},
}


def test_the_section_has_every_figure_and_says_what_is_left():
    section = gpu_page.section(RESULTS)
    for said in (
        "1 × NVIDIA H200, driver 600, JAX 1, 16 cores of fast; commit abc; 2030-01-01 10:00 UTC",
        "| kafka | JAX | 13 of 14 | 31 | 620,000 | 1 | 2 | 1 | 1: too wide |",
        "**run 7**",
        "| kafka | 20 million | 50 million | 900 million | 20.0% | 18 | 7 billion | 50.0% | 140 | yes |",
        "| kafka | kernel | 98% | `kafka_runs` 90%, `a\\|b` 10% |",
        "- `spark`: no Java",
        "- `speed-kraft`: not done yet",
    ):
        assert said in section
    assert "rehearsal" not in section
    assert "rehearsal" in gpu_page.section(RESULTS | {"count": RESULTS["count"] | {"rehearsed": True}})


def test_the_section_takes_its_place_on_the_page():
    once = gpu_page.placed(PAGE, "figures\n")
    assert gpu_page.placed(once, "figures\n") == once
    assert "figures" in once
    assert PAGE.split(gpu_page.BEGIN)[0] in once
    assert PAGE.split(gpu_page.END)[1] in once


EVENTS = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "Stream #1(Compute)"}},
    {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "/host:CPU"}},
    {"ph": "M", "pid": 9, "tid": 1, "name": "thread_name", "args": {"name": "python"}},
    {"ph": "X", "pid": 1, "tid": 1, "name": "kafka_runs", "dur": 6e5},
    {"ph": "X", "pid": 1, "tid": 1, "name": "memset", "dur": 2e5},
    {"ph": "X", "pid": 1, "tid": 2, "name": "kafka_runs", "dur": 6e5},
    {"ph": "X", "pid": 9, "tid": 1, "name": "$jax.py", "dur": 9e5},
    {"ph": "X", "pid": 9, "tid": 1, "name": "Execute", "dur": 9e5},
]


def test_a_profile_counts_what_streams_of_a_gpu_did_or_without_one_what_threads_did():
    found = gpu_steps.spent(EVENTS, 1.0)
    assert found == {"busy": pytest.approx(0.8), "top": [("kafka_runs", pytest.approx(0.75)), ("memset", 0.25)]}
    assert gpu_steps.spent([each for each in EVENTS if each["pid"] == 9], 1.0)["top"] == [("Execute", 1.0)]
    with pytest.raises(RuntimeError, match="CUPTI"):
        gpu_steps.spent(EVENTS[:5], 1.0)


def test_without_a_python_that_has_what_it_takes_install_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "_run", lambda command, seconds: "")
    probed: dict[str, Any] = {"platform": "gpu", "missing": ["pyspark"], "device": "NVIDIA H200"}
    monkeypatch.setattr(gpu, "_said", lambda command: json.dumps(probed) if command[0] != "nvidia-smi" else "600\n")
    found = gpu.install(False, 60.0)
    assert found["python"] == str(tmp_path / ".venv" / "bin" / "python")
    assert found["pip"] == "installed; pyspark missing, which spark needs"
    probed |= {"missing": ["numba"]}
    with pytest.raises(Failed, match=r"python has no numba; .*python\S* has no numba$"):
        gpu.install(False, 60.0)
    probed |= {"missing": [], "platform": "cpu", "sees": "GPU that JAX sees, but cpu"}
    with pytest.raises(Failed, match="has no GPU that JAX sees, but cpu"):
        gpu.install(False, 60.0)
