"""The verbs of the command: what each prints, as text and as JSON, and what its help loads."""

import json
import math
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from quorisk.analysis import bench, explore
from quorisk.analysis.estimate.rare import HeadPart
from quorisk.command import bars, show
from quorisk.command.app import app
from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs import sweep
from tests.plots.tables import table, write
from tests.support import ROOT


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([(50, 100)], "of 100 transitions"),
        ([(50, 100), (1234, None)], "of 1,234 states"),
        ([(9, None), (80, 100)], "80%"),
    ],
)
def test_a_bar_says_how_many_states_of_a_head_are_solved(monkeypatch, told, said):
    screen = StringIO()
    monkeypatch.setattr(bars, "console", lambda stderr: Console(file=screen, force_terminal=True, width=120))
    with bars.estimate_bar(100) as (_, solving):
        for each in told:
            solving(*each)
    last = screen.getvalue().split("\r")[-2]
    assert said in last
    assert ("solving" in last) == (told[-1][1] is None)


def test_a_head_is_said_without_its_cost_which_no_reader_has_met():
    screen = StringIO()
    head = HeadPart(3, 5, 9, 1e-3, 0.5, 2, 0.5, 0.0, 100, 1, "size", 26_000_000)
    show._head("exact head", head, Console(file=screen, width=200))
    assert "P(loss) on the likeliest paths is 0.001; P(leaving them)" in screen.getvalue()
    assert "would take about 2.6 × 10⁷ such runs" in screen.getvalue()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([], "preparing; the first time, code is compiled (100 runs)"),
        ([(50, 100)], "following the likeliest paths (50 of 100 transitions)"),
        ([(50, 100), (1234, None)], "solving (1,234 states)"),
        ([(9, None), 40], "40 of 100 runs"),
        ([100], "all 100 runs"),
    ],
)
def test_a_bar_is_a_line_in_a_log(monkeypatch, capsys, told, said):
    monkeypatch.setattr("quorisk.say.waiting.SOON_S", 0.1)  # by when it knows what to tell
    with bars.estimate_bar(100) as (ended, solving):
        for each in told:
            if isinstance(each, tuple):
                solving(*each)
            else:
                ended(each)
        lines = ""
        while not lines:
            lines = capsys.readouterr().err
    assert lines == f"{said}\n"


def test_estimate_as_json(printed, file):
    result = json.loads(printed("estimate", file, "--json", "--threads", "2", "--set", "run.seed=4"))
    assert (result["runs"], result["seed"], result["threads"], result["engine"]) == (5000, 4, 2, "lanes")
    assert (result["confidence"], result["method"]) == (0.95, "Clopper-Pearson")
    assert sum(result["outcomes"].values()) == 5000
    assert result["steps"] == pytest.approx(result["mean_steps"] * 5000)
    assert {"seconds", "steps_per_s", "runs_per_s", "compile_s", "point_id", "assumptions"} < set(result)
    leak = result["invariants"]["CompactedLedgerLeak"]
    assert leak.keys() == {"losses", "p", "low", "high", "bounds"}
    assert leak["low"] < leak["p"] == leak["losses"] / 5000 < leak["high"]
    assert result["data_loss"]["losses"] == result["outcomes"]["lost"] == 0


def test_estimate_as_text(quorisk, file):
    code, out, err = quorisk("estimate", file)
    lines = {line.split("│")[1].strip(): line for line in out.splitlines() if line.startswith("│")}
    assert (code, err) == (0, "")
    assert "│ < 7.38 × 10⁻⁴ │" in lines["CompactionHorizonCorrectness *"]
    assert "[0, 7.38 × 10⁻⁴]" in lines["data loss: any *"]
    assert "<" not in lines["CompactedLedgerLeak"]
    assert "unfinished 0" in out
    assert "warning" not in out
    told = "Data loss is a breach of CompactionHorizonCorrectness; it ends the run, so other invariants count what"
    assert out.rstrip().endswith(f"{told} breaks before.")


def test_unfinished_runs_are_warned_of(printed, file):
    out = printed("estimate", file, "--set", "max_steps=5")
    assert "unfinished 5,000" in out
    assert "warning: 5,000 unfinished runs" in out


def test_explore_as_json_finds_what_tlc_finds(printed, file):
    result = json.loads(printed("explore", file, "--json", "--memory", "64MiB"))
    assert (result["distinct_states"], result["depth"], result["complete"]) == (2866, 22, True)
    assert result["generated_states"] > 2866
    assert result["invariants"]["CompactedLedgerLeak"]["breaking_states"] == 412
    assert result["invariants"]["CompactedLedgerLeak"]["first_depth"] > 1
    assert result["invariants"]["CompactionHorizonCorrectness"] == {"breaking_states": 0, "first_depth": None}
    assert result["first_broken"] == {
        "CompactedLedgerLeak": 412,
        "CompactionHorizonCorrectness": 0,
        "DuplicateNullKeyMessage": 0,
    }
    assert result["action_counts"]["broker_crash"] > 0
    assert result["seconds"] > 0


def test_a_search_that_did_not_see_all_states_tells_no_count_of_0(printed, file):
    result = json.loads(printed("explore", file, "--json", "--max-depth", "3"))
    assert not result["complete"]
    assert result["invariants"]["CompactedLedgerLeak"] == {"breaking_states": None, "first_depth": None}
    assert set(result["first_broken"].values()) == {None}
    out = printed("explore", file, "--max-depth", "3")
    assert "warning: incomplete: at the limit of --memory or --max-depth." in out
    assert "none found" in out
    assert "never enabled" not in out


def test_explore_as_text(printed, file):
    out = printed("explore", file, "--memory", "64MiB", "--set", "max_crashes=0")
    assert re.search(r"broker_crash +│ never enabled", out.replace("|", "│"))
    assert "depth" in out
    assert "incomplete" not in out


def test_a_search_that_runs_out_of_memory_says_so(quorisk, printed, file):
    larger = ("--set", "messages=4", "--set", "keys=3", "--memory", "2MiB")
    code, out, _ = quorisk("explore", file, *larger, "--json")
    result = json.loads(out)
    assert (code, result["complete"]) == (0, False)
    assert result["distinct_states"] > 1000
    out = printed("explore", file, *larger)
    assert out.startswith("warning: incomplete")
    assert "not seen so far" in out
    assert "never enabled" not in out


@pytest.mark.parametrize(
    ("text", "size"), [("4GiB", 2**32), ("512 mib", 2**29), ("1.5KiB", 1536), ("7", 7), ("7B", 7), ("1TiB", 2**40)]
)
def test_memory_sizes(text, size):
    assert explore.parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "4GB", "-1GiB", "0", "1e9", "4 Gi B", "1025TiB"])
def test_what_is_no_memory_size(text):
    with pytest.raises(
        ConfigError, match=r"^memory .*: above 0 and at most 1024TiB, written as 4GiB \(or B, KiB, MiB, GiB, TiB\)$"
    ):
        explore.parse_memory(text)


def test_bench_as_json_and_text(printed, monkeypatch):
    rows = [bench.Speed("kafka", "numba", 2, 1.5e7, 1e6, 0.25), bench.Speed("kafka", "search", 1, 2e6, None, 0.5)]
    rows += [bench.Speed("kafka", "jax", 1, 2e9, 1e8, 6.5, "2 x GPU")]
    rows.append(bench.Speed("kafka", "lanes", 1, 9e7, 3e6, 1.5, "16 runs at a time"))
    asked = []

    def stub(engine, threads, progress):
        asked.append((engine, threads))
        progress("kafka (numba)")
        return iter(rows)

    monkeypatch.setattr(bench, "bench", stub)
    out = printed("bench", "--json", "--threads", "2")
    expected = {"model": "kafka", "engine": "numba", "threads": 2}
    expected |= {"steps_per_s": 1.5e7, "runs_per_s": 1e6, "compile_s": 0.25, "device": None}
    assert json.loads(out)[0].items() >= expected.items()
    assert json.loads(out)[1]["runs_per_s"] is None
    out = printed("bench", "--engine", "numba", "--threads", "1")
    assert "1.5e+07" in out
    assert "2 x GPU" in out
    assert "9e+07" in out
    assert "16 runs at a time" in out
    assert asked == [(None, 2), ("numba", 1)]


def test_run_hands_its_grid_to_spark(quorisk, printed, file, monkeypatch):
    calls: list[tuple] = []
    came = sweep.SweepSummary(2, 10_000, 3, {"runs": 2})

    def record(*arguments):
        calls.append(arguments)
        return came

    monkeypatch.setattr(sweep, "sweep", record)
    options = ("--out", "results/x", "--set", "grid.keys=[1, 2]", "--master", "local[2]", "--resume", "--budget-s", "9")
    out = printed("run", file, *options, "--conf", "spark.a=b", "--json")
    assert json.loads(out).items() >= ({"out": "results/x"} | came._asdict()).items()
    [(experiment, out_folder, given, console)] = calls
    assert experiment.varied == ("model.keys",)
    assert (out_folder, given, console.stderr) == (
        Path("results/x"),
        sweep.Options("local[2]", ["spark.a=b"], True, 9.0),
        True,
    )
    code, out, _ = quorisk("run", file, "--out", "results/y")
    assert (code, len(out.splitlines())) == (0, 1)
    assert calls[1][1:3] == (Path("results/y"), sweep.Options(None, [], False, math.inf))


def test_a_dry_run_says_what_a_run_would_take_and_leaves_a_plan(quorisk, file, tmp_path):
    arguments = ("run", file, "--out", str(tmp_path / "out"), "--set", "grid.keys=[1, 2]", "--dry-run")
    code, out, _ = quorisk(*arguments, "--json")
    expected = json.loads(out)
    assert code == 0
    assert (expected["points"], expected["runs"]) == (2, 10_000)
    assert 0 < expected["core_s"] == pytest.approx(expected["most_core_s"])
    plan = pq.read_table(tmp_path / "out" / "plan.parquet")
    assert sum(plan["num_runs"].to_pylist()) == 10_000
    assert len(set(plan["task"].to_pylist())) == expected["tasks"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["plan.parquet"]
    code, out, err = quorisk(*arguments)  # again, as nothing has run
    assert (code, len(out.splitlines())) == (0, 1)
    assert "core seconds" in err


def test_plot_draws_what_a_sweep_left(printed, tmp_path):
    write(table([3, 0], model__keys=[1, 2]), tmp_path / "results.parquet")
    out = printed("plot", str(tmp_path), "--format", "png", "--format", "pdf", "--json")
    files = [Path(file) for file in json.loads(out)]
    assert {file.parent for file in files} == {tmp_path / "figures"}
    assert [file.name for file in files] == [f"loss_data_loss.{kind}" for kind in ("png", "pdf")]
    for file in files:
        assert file.read_bytes().startswith(b"%PDF" if file.suffix == ".pdf" else b"\x89PNG")


def test_plot_draws_another_invariant_elsewhere(printed, refused, tmp_path):
    write(table([3], model__keys=[1]), tmp_path / "some.parquet")
    arguments = ("plot", str(tmp_path / "some.parquet"), "--format", "svg", "--out", str(tmp_path / "a" / "b"))
    out = printed(*arguments, "--invariant", "CompactedLedgerLeak")
    assert out.splitlines()[0] == str(tmp_path / "a" / "b" / "loss_CompactedLedgerLeak.svg")
    assert refused(*arguments, "--invariant", "Leak").startswith("--invariant Leak: one of data loss, ")


def test_plot_draws_one_figure_as_a_slide_has_it(printed, tmp_path):
    write(table([3, 0, 5, 9], model__keys=[1, 2], model__values=[3, 4]), tmp_path / "results.parquet")
    arguments = ("plot", str(tmp_path), "--format", "svg", "--only", "heat_map", "--x", "keys", "--hue", "model.values")
    out = printed(*arguments, "--title", "Fewer keys", "--size", "8x4.5", "--no-caption")
    [file] = out.splitlines()
    svg = Path(file).read_text("utf-8")
    assert 'width="576pt"' in svg
    assert "Fewer keys" in svg
    assert "Clopper" not in svg


@pytest.mark.parametrize("values", [[True, False], [1.0, math.inf], [-1, 1], ["a", "b"]])
def test_plot_draws_no_losses_against_what_has_no_place_on_a_logarithmic_axis(refused, tmp_path, values):
    write(table([3, 0], model__keys=values), tmp_path / "results.parquet")
    said = refused("plot", str(tmp_path), "--x", "keys", "--only", "loss")
    assert said.startswith("--x keys: has values that are no numbers from 0 up, which figures of losses need")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "pie"], "--only pie: one of frontier, budget, loss, heat_map"),
        (["--x", "key"], "--x key: one of model.keys, model.values"),
        (["--x", "keys", "--hue", "keys"], "--hue keys: must differ from --x"),
        (["--size", "wide"], "--size wide: width and height in inches from 1 to 100, such as 8x4.5"),
        (["--size", "0x4"], "--size 0x4: width"),
        (["--size", "８x４"], "--size ８x４: width"),
    ],
)
def test_plot_says_what_it_cannot_draw(refused, tmp_path, arguments, said):
    write(table([3, 0, 5, 9], model__keys=[1, 2], model__values=[3, 4]), tmp_path / "results.parquet")
    assert refused("plot", str(tmp_path), *arguments).startswith(said)


VERBS = {str(command.name) for command in app.registered_commands} - {"recommend"}  # which has two examples


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_has_an_example_that_can_be_copied(quorisk, printed, verb):
    out = printed(verb, "--help")
    assert f"Example: quorisk {verb}" in out
    assert out.partition("Example:")[2].splitlines()[1] == ""  # it is one line
    assert "--json" in out
    assert verb in quorisk()[1]


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a command loads."""
    program = f"""
import sys
from quorisk.command.main import main
try:
    main({arguments!r})
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sys.modules, file=sys.stderr)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_loads_next_to_nothing_and_an_estimate_no_more_than_it_needs(file):
    heavy = {"jax", "pyspark", "pandas", "matplotlib", "pyarrow"}
    assert not loaded_by("--help") & (heavy | {"numba", "numpy", "scipy", "quorisk.kernels.compiled"})
    estimating = loaded_by("estimate", file, "--set", "runs=10")
    assert "numba" in estimating
    assert not estimating & heavy
