"""`quorisk trace`: what it proves, shows, writes and replays, and one line for what it cannot."""

import json
import re

import pytest

from quorisk.analysis.estimate.estimate import only_point
from quorisk.analysis.experiment import config
from quorisk.analysis.traces import formats, trace
from quorisk.kernels.engines import numba_engine, points
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.tally import TIME_TICK, ticks
from quorisk.kernels.model import COMPLETED, LOST, OUTCOMES
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from tests.analysis.traces.showcases import CONFIGS, showcase


def test_the_command_proves_that_nothing_breaks(quorisk, printed):
    file = str(CONFIGS / "leaked_ledger.toml")
    out = printed("trace", file, "--memory", "64MiB")
    proof = "no reachable state breaks CompactionHorizonCorrectness: 3,082 states, depth 22"
    assert out == f"{proof}; CompactedLedgerLeak and DuplicateNullKeyMessage can break: --invariant shows how\n"
    code, out, _ = quorisk("trace", file, "--memory", "64MiB", "--json")
    assert (code, json.loads(out)["trace"], json.loads(out)["proved"]) == (0, None, True)


@pytest.mark.parametrize("index", [77, 106])
def test_the_command_shows_any_run_as_the_engine_counts_it(quorisk, index):
    experiment = config.load(CONFIGS / "defect1.toml", ["message_loss=0.2"] if index == 77 else [])
    packed = points.pack(BOOKKEEPER, [only_point(experiment).point])
    outcome, broken_mask, _, steps, _, *time = numba_engine.record(BOOKKEEPER, packed, Job(0, index, 1), 1)[0].tolist()
    changed = [word for each in experiment.overrides for word in ("--set", each)]
    code, out, err = quorisk("trace", experiment.path, "--run", f"1:{index}", *changed)
    said = re.match(rf"Run 1:{index}: (\w+) after (\d+) steps at model time (.*), broken: (.*)\n", out)
    assert (code, err) == (0, "")
    assert said
    broken = [invariant.name for i, invariant in enumerate(BOOKKEEPER.invariants) if broken_mask >> i & 1]
    assert (said[1], int(said[2]), said[4]) == (OUTCOMES[outcome], steps, ", ".join(broken) or "nothing")
    assert float(said[3]) == pytest.approx(ticks(*time) * TIME_TICK, rel=1e-5)
    assert f"\n{steps:>3}  " in out
    assert f"\n{steps + 1:>3}  " not in out
    assert outcome == (LOST if index == 106 else COMPLETED)


def test_a_saved_trace_is_replayed(quorisk, printed, tmp_path):
    file, saved, drawn = str(CONFIGS / "kip101.toml"), tmp_path / "trace.json", tmp_path / "trace.svg"
    asked = ("trace", file, "--invariant", "StrongIsr")
    out = printed(*asked, "--json", "--out", str(drawn))
    assert drawn.read_text() == formats.picture(showcase("kip101"))
    assert quorisk(*asked, "--out", str(saved))[0] == 0
    assert json.loads(saved.read_text()) == json.loads(out)
    again = quorisk("trace", file, "--replay", str(saved))
    assert again == quorisk(*asked)
    assert again[1].startswith("StrongIsr breaks in 11 steps\n")


@pytest.mark.parametrize("form", formats.FORMATS)
def test_the_command_prints_or_writes_every_format(quorisk, tmp_path, form):
    file, written = str(CONFIGS / "kip101.toml"), tmp_path / "written"
    expected = formats.FORMATS[form](showcase("kip101"), trace.replay_in_words(showcase("kip101")))
    asked = ("trace", file, "--invariant", "StrongIsr", "--format", form)
    assert quorisk(*asked) == (0, expected, "")
    code, out, _ = quorisk(*asked, "--out", str(written))
    assert (code, written.read_text()) == (0, expected)
    assert out.startswith(f"{written}: shortest; ")


def test_a_file_name_asks_for_its_format(quorisk, tmp_path):
    drawn = tmp_path / "drawn.mmd"
    assert quorisk("trace", str(CONFIGS / "kip101.toml"), "--invariant", "StrongIsr", "--out", str(drawn))[0] == 0
    assert drawn.read_text().startswith("sequenceDiagram\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t["steps"].pop(3), "step 4: leader_write, instance 0: not enabled"),
        (lambda t: t["steps"].pop(), "trace.invariant = \"StrongIsr\": the last step breaks nothing"),
        (lambda t: t["steps"][0].update(action="__import__('os')"), "kafka has controller_elect_leader, "),
        (lambda t: t["steps"][0].update(lost=1), "controller_elect_leader, lost 1: of the messages sent, mask 0"),
        (lambda t: t["steps"][0].update(instance=-1), "trace.steps.0.instance = -1: an integer from 0 to 65535"),
        (lambda t: t["steps"][0].update(instance=640), "step 1: controller_elect_leader, instance 640: not enabled"),
        (lambda t: t.update(choice=1), "initial state 1: there are 1, counted from 0"),
        (lambda t: t.update(more=1), "trace.more: "),
        (lambda t: t.update(version=0), "version = 0: the experiment file says 3"),
        (lambda t: t["parameters"].update({"model.replicas": 3}), "model.replicas = 3: the experiment file says 2"),
        (lambda t: t["parameters"].pop("model.replicas"), "model.replicas = null: the experiment file says 2"),
    ],
)  # fmt: skip
def test_what_is_not_a_run_of_the_model_is_not_replayed(quorisk, refused, tmp_path, change, said):
    file, saved = str(CONFIGS / "kip101.toml"), tmp_path / "trace.json"
    document = json.loads(quorisk("trace", file, "--invariant", "StrongIsr", "--json")[1])
    change(document["trace"])
    saved.write_text(json.dumps(document))
    err = refused("trace", file, "--replay", str(saved))
    assert err.startswith(f"--replay {saved}: ")
    assert said in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--invariant", "Fairness"], "WeakIsr, StrongIsr, LeaderInIsr, CommittedRecordsSurvive, or 'data loss'"),
        (["--run", "1"], "--run '1': SEED:INDEX"),
        (["--run", "1:1000000000000"], "a run's index from 0 to 999999999999"),
        (["--run", f"{2**64}:0"], "a seed from 0 to 18446744073709551615"),
        (["--run", "1:1", "--replay", "x"], "give only one of the two"),
        (["--replay", "nowhere.json"], "--replay nowhere.json: cannot be read"),
        (["--set", "grid.replicas=[2,3]"], "2 grid points"),
        (["--out", "/nowhere/x.svg", "--invariant", "StrongIsr"], "--out /nowhere/x.svg: cannot be written"),
        (["--out", "x.foo"], "--out x.foo: .svg, .mmd, .json, or .txt for text; a browser shows .svg"),
        (["--out", "x.PDF"], "--out x.PDF: .svg, .mmd, .json, or .txt for text; a browser shows .svg"),
        (["--out", "x.png", "--format", "svg"], "--out x.png: .svg, .mmd, .json, or .txt for text"),
        (["--out", "x.svg", "--format", "tlc"], "--out x.svg: ends in .svg, which is svg, not tlc"),
    ],
)
def test_bad_input_is_one_line(refused, arguments, said):
    assert said in refused("trace", str(CONFIGS / "kip101.toml"), *arguments)
