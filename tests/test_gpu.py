"""scripts/gpu.py: steps are done once, begun again where they were killed, and what they came to is on the page."""

import math
import os
import sys
import time
from typing import Any

import pytest

from quorisk.kernels.protocols import registry
from scripts import gpu, gpu_page
from scripts.gpu import EVERY, Here, Step, apart, left, work
from tests.support import ROOT

SOME = tuple(Step(name, "does something", 1.5) for name in ("first", "second", "third"))
PAGE = (ROOT / "docs" / "gpus.md").read_text()
DOES = """
import json, sys
name, seconds = sys.argv[2], float(sys.argv[4])
with open(f"{sys.argv[1]}/asked", "a") as asked:
    asked.write(f"{name} {seconds:.0f}\\n")
if name == "second":
    sys.exit(3)
with open(f"{sys.argv[1]}/{name}.json", "w") as file:
    json.dump({"found": name}, file)
"""
"""A step, instead of a real one."""


def names(steps):
    return [step.name for step in steps]


def do(steps, out, until=math.inf):
    return work(steps, Here(out, False), until, [sys.executable, "-c", DOES, str(out)])


def asked(out):
    return (out / "asked").read_text().splitlines()


def test_steps_are_of_every_protocol_and_end_within_ten_minutes():
    assert len(set(names(EVERY))) == len(EVERY) == 1 + 3 * len(registry.names())
    assert all(step.minutes < 10 for step in EVERY)


def test_what_was_done_stays_done_and_the_rest_is_done_again(tmp_path):
    assert do(SOME[:2], tmp_path) == ["second: it ended with code 3"]
    (tmp_path / "third.json").write_text('{"step": "th')  # cut off
    assert names(left(tmp_path, SOME)) == ["third", "second"]
    assert do(left(tmp_path, SOME), tmp_path) == ["second: it ended with code 3"]
    assert asked(tmp_path) == ["first 81", "second 81", "third 81", "second 81"]
    assert names(left(tmp_path, SOME)) == ["second"]
    assert gpu_page.read(tmp_path, "first") == {"found": "first"}


def test_steps_have_the_time_that_is_left_and_none_is_begun_with_too_little(tmp_path):
    do(SOME[:1], tmp_path, time.monotonic() + 70)
    assert 54 < float(asked(tmp_path)[0].split()[1]) <= 63
    do(SOME[2:], tmp_path, time.monotonic() + gpu.LEAST_S - 1)
    assert len(asked(tmp_path)) == 1


def test_a_step_that_fails_says_why(tmp_path):
    with pytest.raises(SystemExit):
        gpu.worked("equal-nothing", Here(tmp_path, True))
    assert "nothing" in gpu_page.read(tmp_path, "equal-nothing")["failed"]


def test_a_process_that_takes_too_long_is_ended_with_its_own(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    start = time.monotonic()
    assert apart(["sh", "-c", f"(exec > {pipe}; echo; sleep 9) & sleep 9"], 0.6) == "it took longer than 1 s"
    os.set_blocking(reader, True)
    assert os.read(reader, 9) == b"\n"
    assert os.read(reader, 9) == b""  # nobody holds it any more
    os.close(reader)
    assert time.monotonic() - start < 8


ABOUT = {"made": "2030-01-01 10:00 UTC", "commit": "commit abc", "machine": "1 × NVIDIA H200", "rehearsed": False}
ENGINE = {"configurations": 31, "runs": 620_000, "lost": 1, "repeated": 2, "differ": [], "without": {"too wide": 1}}
WAYS = {"numba, two cores": [1e7, 2e7], "lanes, two cores": [5e7], "XLA": [9e8], "kernel": [7e9, 6e9]}
SWEPT = {"master": "local", "gpus": "0", "runs": 2000, "points": 40, "gpu_s": 9.0, "cpu_s": 8.0, "same": True}
RESULTS: dict[str, dict[str, Any]] = {
    "equal-kafka": ABOUT | {"variants": 13, "of_variants": 14, "engines": {"JAX": ENGINE | {"differ": ["run 7"]}}},
    "speed-kafka": ABOUT | {"steps_per_s": WAYS, "most_by_operations": 4.5e9, "same": True},
    "profile-kafka": ABOUT | {"ways": {"kernel": {"busy": 0.98, "top": [["kafka_runs", 0.9], ["a|b", 0.1]]}}},
    "spark": {"failed": "no Java"},
    "speed-kraft": {},
}


def test_the_section_has_every_figure_and_says_what_is_left():
    section = gpu_page.section(RESULTS)
    for said in (
        "1 × NVIDIA H200; commit abc; 2030-01-01 10:00 UTC",
        "| kafka | JAX | 13 of 14 | 31 | 620,000 | 1 | 2 | 1 | 1: too wide |",
        "**run 7**",
        "| kafka | 20 million | 50 million | 900 million | 7 billion | 18 | 140 | 20.0% | yes |",
        "| kafka | kernel | 98% | `kafka_runs` 90%, `a\\|b` 10% |",
        "- `spark`: no Java",
        "- `speed-kraft`: not done yet",
    ):
        assert said in section
    assert "rehearsal" not in section
    assert "rehearsal" in gpu_page.section(RESULTS | {"spark": ABOUT | SWEPT | {"rehearsed": True}})


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
    found = gpu.spent(EVENTS, 1.0)
    assert found == {"busy": pytest.approx(0.8), "top": [("kafka_runs", pytest.approx(0.75)), ("memset", 0.25)]}
    assert gpu.spent([each for each in EVENTS if each["pid"] == 9], 1.0)["top"] == [("Execute", 1.0)]
    with pytest.raises(RuntimeError, match="CUPTI"):
        gpu.spent(EVENTS[:5], 1.0)
