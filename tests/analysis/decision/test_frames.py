"""What a notebook loads: tidy frames of what a sweep left behind."""

import math
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from matplotlib import pyplot

from quorisk.analysis.decision import frames
from quorisk.analysis.decision.frames import described
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.identity import dotted_values
from quorisk.analysis.results import schema, sweeps
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.kernels.engines.tally import STEP_BINS, TIME_BINS
from quorisk.kernels.errors import ConfigError, ResultError
from quorisk.say.quantities import YEAR_S
from tests.plots.tables import RUNS, table, write
from tests.support import ROOT

FILE = """# --set run.confidence=0.9
# --set run.simultaneous=true
protocol = "compaction"
[model]
messages = 2
compactions = 3
values = 1
max_crashes = 1
[run]
seed = 1
max_steps = 1000
confidence = 0.5
# --set run.confidence=0.6
[grid]
keys = [1, 2]
"""


@pytest.fixture
def folder(tmp_path):
    write(table([3, 0], model__keys=[1, 2]), tmp_path / sweeps.RESULTS)
    (tmp_path / sweeps.EXPERIMENT).write_text(FILE)
    return tmp_path


def test_a_folder_is_judged_as_its_experiment_was(folder):
    frame, histograms, by_faults = frames.load_sweep(folder)
    assert frame.columns[0] == "model.keys"
    assert set(frame["confidence"]) == {0.9}
    assert set(frame["method"]) == {"simultaneous Clopper-Pearson"}
    assert len(frame) == 2 * (1 + len(frame["invariant"].unique()) - 1)
    assert list(frame["messages"].unique()) == [0, 2 * RUNS]
    assert by_faults.to_dict("records") == [
        {"point_id": frame["point_id"][0], "faults": (), "losses": 3, "share": 1.0, "p": 3 / RUNS}
        | dict(zip(("low", "high"), clopper_pearson(3, 3, 0.9), strict=True))
    ]
    assert list(histograms.columns) == ["point_id", "quantity", "bin_low", "bin_high", "runs"]


def test_runs_that_the_horizon_ended_hide_losses_if_the_experiment_asks_about_any_time(folder):
    write(table([3, 0], horizon=40, model__keys=[1, 2], run__horizon=[5.0]), folder / sweeps.RESULTS)
    (folder / sweeps.EXPERIMENT).write_text(FILE.replace("[run]", "[run]\nhorizon = 5"))
    by_then = frames.load_sweep(folder).frame
    (folder / sweeps.EXPERIMENT).write_text(FILE.replace("[run]", "[run]\nhorizon = 5\nat_any_time = true"))
    at_any_time = frames.load_sweep(folder).frame
    assert (set(by_then["hidden"]), set(at_any_time["hidden"])) == ({0}, {40})
    assert (at_any_time["high"] > by_then["high"]).all()


def test_a_table_alone_has_95_percent_intervals(folder):
    (folder / sweeps.EXPERIMENT).unlink()
    for path in (folder, str(folder), folder / sweeps.RESULTS):
        frame = frames.load_sweep(path).frame
        assert (set(frame["confidence"]), set(frame["method"])) == ({0.95}, {"Clopper-Pearson"})


def test_bins_are_where_they_say():
    counted = table([3, 0], model__keys=[1, 2]).to_pylist()
    for bins, column in ((STEP_BINS, "step_histogram"), (TIME_BINS, "loss_time_histogram")):
        counted[0][column] = list(range(1, bins + 1))
    found = sweeps.histograms(pa.Table.from_pylist(counted, schema.SCHEMA))
    steps = found[(found["point_id"] == "id0") & (found["quantity"] == "steps")]
    assert list(steps["bin_low"])[:5] == [0, 1, 2, 4, 8]
    assert list(steps["bin_high"])[:5] == [0, 1, 3, 7, 15]
    assert list(steps["bin_high"])[-1] == math.inf
    assert list(steps["runs"]) == list(range(1, STEP_BINS + 1))
    time = found[(found["point_id"] == "id0") & (found["quantity"] == "time to loss")]
    assert list(time["bin_high"])[:3] == [2.0**-30, 2.0**-29, 2.0**-28]
    assert list(time["bin_low"])[30:33] == [0.5, 1.0, 2.0]
    assert list(time["bin_low"])[-1] == 2.0**46  # longer ones count as that
    assert list(time["bin_high"])[-2:] == [2.0**46, math.inf]
    assert list(found[found["point_id"] == "id1"]["quantity"]) == ["steps"]  # no empty bins


@pytest.mark.parametrize(
    "broken",
    [
        {"parameters": "[]"},
        {"parameters": "{"},
        {"parameters": "null"},
        {"parameters": "[" * 5000 + "]" * 5000},
        {"parameters": '{"run.horizon": null}'},
        {"parameters": '{"model.keys": "\\ud800"}'},
        {"parameters": '{"run.horizon": 1, "model.keys": [1]}'},
        {"num_runs": 0},
        {"lost": 2 * RUNS},
        {"lost": -1, "stuck": 4},
        {"step_histogram": [1]},
        {"invariants": [None]},
    ],
)
def test_rows_that_no_sweep_wrote_are_refused_in_a_line(tmp_path, broken):
    [row] = table([3]).to_pylist()
    path = tmp_path / sweeps.RESULTS
    write(pa.Table.from_pylist([row | broken], schema.SCHEMA), path)
    with pytest.raises(ResultError, match=r"results\.parquet: not what a sweep writes: ") as raised:
        frames.load_sweep(tmp_path)
    assert "\n" not in str(raised.value)


def test_what_is_not_there_or_not_a_table_is_refused(tmp_path):
    with pytest.raises(ResultError, match="has no results"):
        frames.load_sweep(tmp_path)
    (tmp_path / sweeps.RESULTS).write_bytes(b"PAR1")
    with pytest.raises(ResultError, match="damaged, or not written by"):
        frames.load_sweep(tmp_path)
    schema.write_reproducible(schema.SCHEMA.empty_table(), tmp_path / sweeps.RESULTS)
    with pytest.raises(ResultError, match="no rows"):
        frames.load_sweep(tmp_path)
    write(table([1]), tmp_path / sweeps.RESULTS)
    (tmp_path / sweeps.EXPERIMENT).write_text("protocol = 3")
    with pytest.raises(ConfigError):
        frames.load_sweep(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("keys = [1, 2]", "keys = [1, 3]"), "not the experiment of {}, which has a point with model.keys = 2"),
        (("keys = [1, 2]", "keys = [1]"), "not the experiment of {}, which has a point with model.keys = 2"),
        (("seed = 1", "seed = 7"), "run.seed = 7, but {} is of seed 1"),
    ],
)
def test_an_experiment_that_is_not_that_of_the_results_is_refused(folder, change, said):
    path = folder / sweeps.EXPERIMENT
    path.write_text(FILE.replace(*change))
    with pytest.raises(ConfigError) as raised:
        frames.load_sweep(folder)
    assert str(raised.value).startswith(f"{path}: ")
    assert said.format(folder / sweeps.RESULTS) in str(raised.value)


def test_results_of_another_protocol_are_named(folder):
    starter = ROOT.joinpath("configs", "starters", "kafka.toml").read_text("utf-8")
    (folder / sweeps.EXPERIMENT).write_text(f"# --set run.seed=1\n{starter}")
    with pytest.raises(ConfigError, match=r'results\.parquet, which is of protocol = "compaction"$'):
        frames.load_sweep(folder)


def test_merged_results_are_judged_by_the_first_folder_s_experiment_whatever_else_they_have(folder):
    write(table([3, 0, 9], model__keys=[1, 2, 3]), folder / sweeps.RESULTS)
    (folder / sweeps.EXPERIMENT).write_text(f"{FILE}# merged from a\n# merged from b\n")
    assert set(frames.load_sweep(folder).frame["confidence"]) == {0.9}
    write(table([3, 0, 9], model__keys=[3, 1, 2]), folder / sweeps.RESULTS)
    with pytest.raises(ConfigError, match=r"which has a point with model\.keys = 3$"):
        frames.load_sweep(folder)


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_beside_results_is_neither_waited_for_nor_left_aside(folder, put):
    (folder / sweeps.EXPERIMENT).unlink()
    put(folder / sweeps.EXPERIMENT)
    with pytest.raises(ConfigError, match=r"experiment\.toml: not a file$"):
        frames.load_sweep(folder)


def test_a_point_that_is_there_twice_is_not_counted_twice(folder):
    write(pa.concat_tables([table([3, 0], model__keys=[1, 2])] * 2), folder / sweeps.RESULTS)
    with pytest.raises(ResultError, match=r"not what a sweep writes: point [0-9a-f]{12} is there twice$"):
        frames.load_sweep(folder)


@pytest.mark.filterwarnings("error")
def test_the_example_for_notebooks_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    example = page.partition("```python\n")[2].partition("```")[0]
    assert "load(" in example
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "demo").mkdir(parents=True)
    grid: dict[str, Any] = {
        "model__write_quorum": [2, 3],
        "model__ack_quorum": [1, 2],
        "variant__fence_recovery_reads": [True, False],
        "faults__message_loss": [0.1, 0.2],
    }
    write(table(range(16), **grid), tmp_path / "results" / "demo" / sweeps.RESULTS)
    names: dict[str, Any] = {}
    exec(example, names)
    assert pyplot.gca().get_ylabel() == "probability in a run"
    assert len(names["sweep"].frame()) == 16 * 4
    pyplot.close("all")


def points_of(experiment):
    """A row for each point of a file, as results of a sweep name it."""
    return [
        {"point_id": each.point_id, "invariant": "data loss", **dotted_values(experiment.model, each.point)}
        for each in experiment.points
    ]


@pytest.mark.parametrize("name", ["pulsar", "kraft_year"])
def test_points_that_were_merged_from_another_grid_are_told_by_what_their_scenario_sets(name):
    experiment = config.load(ROOT / "configs" / f"{name}.toml")
    points = points_of(experiment)
    told = described(pd.DataFrame(points), experiment._replace(points=()))
    assert list(told["run.scenario"]) == [each.scenario for each in experiment.points]
    cluster = next(iter(experiment.clusters), None)
    per_year = {each: scenario.event(cluster).per_year for each, scenario in experiment.scenarios.items()}
    if cluster:  # 1,650 entries a second, and one outage a year
        assert per_year == pytest.approx({"entry": 1650 * YEAR_S, "failover": 2000, "power_outage": 1})
    assert (told["per_year"] == told["run.scenario"].map(per_year)).all()
    other = pd.DataFrame(points).assign(**dict.fromkeys(("run.lifetime", "run.horizon"), 1.0))
    assert "per_year" not in described(other, experiment._replace(points=()))


@pytest.mark.parametrize("gone", [0, 4, 8])
def test_a_design_that_lacks_runs_of_a_scenario_has_no_losses_a_year(gone):
    """Its sum was too low: a budget that ended before the worst scenario ran made it the best design."""
    experiment = config.load(ROOT / "configs" / "pulsar.toml")
    points = points_of(experiment)
    lacks = experiment.points[gone].design
    told = described(pd.DataFrame([each for i, each in enumerate(points) if i != gone]), experiment)
    assert set(told["point_id"]) == {each.point_id for each in experiment.points if each.design != lacks}
    assert told["per_year"].notna().all()
    one_scenario = pd.DataFrame(points[:: len(experiment.scenarios)])
    assert "per_year" not in described(one_scenario, experiment)
    assert len(described(one_scenario, experiment)) == len(one_scenario)


@pytest.mark.parametrize(("physical", "said"), [(True, "58.3 min"), (False, "3.5e+03 units of model time")])
def test_how_long_entries_stand_exposed_is_told_in_words(physical, said):
    experiment = config.load(ROOT / "configs" / "pulsar.toml")
    point = points_of(experiment)[0]
    if not physical:
        del point["run.time_unit"]
    frame = described(pd.DataFrame([point | {"mean_exposed": 3500.0}, point | {"mean_exposed": math.nan}]), experiment)
    assert list(frame["exposed_for"]) == [said, ""]
