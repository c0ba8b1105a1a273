"""tests/reality: that a loss is found, that predictions are held against it, and that nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quorisk.analysis.experiment.config import load
from tests.reality import lab
from tests.reality.compare import compared, told
from tests.reality.experiments import Prediction, experiments
from tests.reality.judge import Reading, judge
from tests.reality.load import Load, numbers_in, payload
from tests.reality.run import trials
from tests.reality.year import YEAR_S, Rates, losses_a_year, losses_drawn

SEED = 7


def written(write, seconds=0.3):
    load = Load(write, SEED, pause_s=0.001)
    time.sleep(seconds)
    return load.end()


def test_the_message_that_a_server_loses_is_found():
    kept, lost = {}, 5

    def write(number, message):
        if number == 3:
            raise TimeoutError
        kept[number] = message

    acknowledged = written(write)
    assert 3 not in acknowledged
    assert lost in acknowledged
    instant = max(acknowledged.values())
    del kept[lost]
    row = judge(SEED, acknowledged, Reading(list(kept.values()), True), instant)
    assert (row["outcome"], row["acked"], row["lost"], row["differ"]) == ("read", len(acknowledged), 1, 0)
    assert row["oldest_lost_s"] == pytest.approx(instant - acknowledged[lost], abs=1e-3)


def test_a_message_that_came_back_as_another_is_found_and_one_that_is_there_twice_is_not():
    messages = [payload(SEED, 1), payload(SEED, 1), payload(SEED + 1, 2), payload(SEED, 3)]
    row = judge(SEED, {1: 10.0, 2: 11.0, 3: 12.0}, Reading(messages, True), 13.0)
    assert (row["lost"], row["differ"], row["oldest_lost_s"]) == (0, 1, 2.0)


def test_what_was_not_acknowledged_is_nobodys_loss():
    row = judge(SEED, {1: 10.0}, Reading([payload(SEED, 1), payload(SEED, 2)], True), 13.0)
    assert (row["acked"], row["lost"], row["oldest_lost_s"]) == (1, 0, 0.0)


def test_what_cannot_be_read_is_lost_and_whether_a_disk_has_it_is_told():
    disk = b"\0\1" + b"7" + payload(SEED, 1) + b"\xff" + payload(SEED, 2)[:-1]
    assert numbers_in(disk) == {1}
    row = judge(SEED, {1: 10.0, 2: 11.0, 3: 9.5}, Reading([payload(SEED, 3)], False), 13.0, lambda: numbers_in(disk))
    assert (row["outcome"], row["lost"], row["on_no_disk"], row["oldest_lost_s"]) == ("unanswered", 2, 1, 3.0)


def row_of(seed, lost, oldest, outcome="read"):
    return {"seed": seed, "outcome": outcome, "acked": 100, "lost": lost, "differ": 0, "oldest_lost_s": oldest}


@pytest.mark.parametrize(("p", "age", "agrees"), [(1.0, 2.0, True), (0.5, 2.0, False), (1.0, 3.0, False)])
def test_a_prediction_is_held_against_whether_and_how_much_is_lost(p, age, agrees):
    rng = Random(1)
    rows = [row_of(seed, 10, rng.uniform(0.0, 4.0)) for seed in range(40)]
    rows += [{"seed": 41, "outcome": "broken", "why": "x"}]
    found = compared("nats_5s_all", Prediction(p, p, p, age, "test"), rows)
    assert (found["agrees"], found["trials"], found["broken"]) == (agrees, 40, 1)
    assert found["trials_with_loss"] == 40
    assert found["observed_p_low"] == pytest.approx(0.005 ** (1 / 40))
    assert found["oldest_lost_s_low"] < 2.0 < found["oldest_lost_s_high"]
    assert ("NOT" in told(found)) != agrees


def test_no_trial_is_no_agreement():
    found = compared("nats_5s_all", Prediction(1.0, 1.0, 1.0, 2.0, "test"), [])
    assert found["agrees"] is None
    assert "No trial" in told(found)


def test_the_ages_of_independent_timers_are_what_the_predictions_say():
    """The better of two logs, synced every 5 s; one; the best or the second best of three, with two timers each."""
    table, ages = experiments(), np.sort(np.random.default_rng(1).uniform(0.0, 5.0, (400_000, 3)), axis=1)
    others = np.random.default_rng(3).uniform(0.0, 5.0, (400_000, 2))
    for name, expected in {
        "nats_5s_two": 0.213 * others.min(axis=1).mean(),
        "nats_5s_one_away": ages.mean(),
        "nats_5s_all_two_timers": np.minimum(ages[:, :2], others).mean(),
    }.items():
        predicted = table[name].predicted
        assert predicted is not None
        assert predicted["oldest_lost_s"] == pytest.approx(expected, rel=0.01)


def test_the_rate_that_stands_for_a_timer_has_the_mean_of_the_log_that_survives():
    """docs/reality.md: exponential ages with rate 14 / (9 T) are 3 T / 8 for the best or the second best of three."""
    ages = np.sort(np.random.default_rng(1).exponential(9.0 / 14.0, (400_000, 3)), axis=1)
    assert ages[:, :2].mean() == pytest.approx(3.0 / 8.0, rel=0.01)
    assert experiments()["nats_5s_all"].predicted["set"]["rates.advance_fsync_index"] == "14 / 45 s"


def test_what_a_year_loses_is_what_a_simulation_says_where_that_sees_losses():
    often = Rates(cut=0.02, heal=0.1, power=0.03, restart=0.2, sync=0.05)
    assert losses_drawn(often, 200, np.random.default_rng(1)) == pytest.approx(losses_a_year(often), rel=0.3)


def test_what_a_year_loses_is_the_product_of_what_has_to_come_together():
    """One of three is away, one of the others loses power, the third one is cut off before either is back, and is the
    last of the three to come back. Writes are on disk by then: else a second power failure would lose some, too.
    """
    rare = Rates(cut=1e-7, heal=1e-3, power=1e-9, restart=1e-3, sync=1e3)
    away, before_either, the_last = rare.cut / rare.heal, rare.cut / 2e-3, 1 / 3
    product = 6 * away * rare.power * before_either * the_last * YEAR_S
    assert losses_a_year(rare) == pytest.approx(product, rel=0.05)


def test_every_experiment_has_a_fault_and_a_prediction_that_its_file_can_answer():
    from tests.reality import faults

    for name, each in experiments().items():
        assert callable(getattr(faults, each.fault["name"])), name
        if "file" in each.predicted:
            file = lab.ROOT / f"tests/reality/predictions/{each.predicted['file']}.toml"
            load(file, [f"{key}={json.dumps(value)}" for key, value in each.predicted["set"].items()])
        else:
            assert {"p", "oldest_lost_s", "by"} == set(each.predicted), name


needs_a_lab = pytest.mark.skipif(lab.missing() is not None, reason=str(lab.missing()))


@needs_a_lab
def test_power_takes_what_was_not_synced_and_a_killed_room_leaves_nothing(tmp_path):
    """A machine syncs one file and not another, and loses power; then the process in front of the room is killed."""
    program = tmp_path / "inside.py"
    program.write_text("""
import os, subprocess, time
from quorisk.analysis.experiment.config import load
from tests.reality import lab
from tests.reality.machines import Machine
machine = Machine(lab.furnish(), 0)
machine.command = ["sleep", "1000"]
machine.start()
with open(machine.disk / "synced", "w") as file:
    file.write("x")
    file.flush()
    os.fsync(file.fileno())
(machine.disk / "not synced").write_text("x")
machine.cut_power()
machine.kill()
machine.remount()
names = sorted(path.name for path in machine.disk.iterdir() if path.is_file() and path.read_text())
machine.start()
print(names, subprocess.run(["losetup", "-j", machine.image], capture_output=True, text=True).stdout, flush=True)
time.sleep(1000)
""")
    environment = {**os.environ, "PYTHONPATH": str(lab.ROOT)}
    command = [*lab.ROOM, sys.executable, str(program)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as room:
        assert room.stdout is not None
        names, _, loop = room.stdout.readline().partition("] ")
        in_use = loops()
        room.send_signal(signal.SIGKILL)
    assert names == "['synced'"
    assert loop in in_use
    for _ in range(100):
        if loop not in loops():
            break
        time.sleep(0.1)
    assert loop not in loops()
    assert "reality" not in Path("/proc/mounts").read_text()
    assert not any(str(program) in line for line in commands())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("experiment", "loses"), [("nats_5s_all", True), ("nats_always_all", False)])
def test_a_power_cut_takes_what_nats_had_not_synced(experiment, loses):
    if lacking := lab.missing() or lab.missing(*experiments()[experiment].cluster().programs("")):
        pytest.skip(lacking)
    [row] = trials(experiment, range(1, 2), at_once=1)
    assert row["outcome"] in ("read", "unanswered"), row
    assert row["acked"] > 100
    assert (row["lost"] > 0) == loses


def loops():
    """The loop devices in use, a line each."""
    return subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def commands():
    """The command line of every process."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def test_the_command_says_in_a_line_what_is_missing(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert lab.missing() == "reality needs root: it mounts file systems and makes network namespaces"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(lab, "NEEDED", ("no-such-tool",))
    assert "no-such-tool" in (lab.missing() or "")
