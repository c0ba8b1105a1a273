"""`quorisk merge`: parts of one job as that job, points of several grids as one, and what does not belong together."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from quorisk.analysis.experiment import config
from quorisk.analysis.results import schema
from quorisk.sparkjobs import files, folder
from tests.plots.tables import write
from tests.sparkjobs import small
from tests.support import SMALL_FILE

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("spark"),
]

FILE = f"""{SMALL_FILE}[run]
runs = 200
seed = 5
[grid]
"rates.broker_crash" = [0.1, 1.0]
"variant.persist_cursor_before_delete" = [true, false]
"""
PART = "--set=run.runs=100"
REST = "--set=run.first_run=100"


@pytest.fixture
def leave(tmp_path, monkeypatch):
    """Leaves in a folder of this name what running FILE with settings does, but for drawings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(FILE)

    def leave(name, *settings):
        experiment = config.load(Path("small.toml"), [setting.removeprefix("--set=") for setting in settings])
        out = tmp_path / name
        rows = [row | {"attempt": 0, "host": ""} for row in small.rows(experiment, "numba", 1.0)]
        out.mkdir()
        files.write_in_folder(out / folder.EXPERIMENT, folder.as_run(experiment).encode())
        folder.append(out / folder.TASKS, rows)
        folder.write_results(out, pa.Table.from_pylist(rows, schema=schema.SCHEMA))
        return out

    return leave


def rows(out):
    return folder.result_rows(out).select(schema.REPRODUCIBLE).to_pylist()


@pytest.mark.exhaustive
def test_parts_of_a_job_merge_to_what_the_job_itself_gives(leave, quorisk):
    whole, first, second = leave("whole"), leave("a", PART), leave("b", PART, REST)
    code, out, err = quorisk("merge", "b", "a", "--out", "both", "--json")
    losses = sum(row["lost"] for row in rows(whole))
    came = {"out": "both", "points": 4, "runs": 800, "losses": losses, "stopped": {"runs": 4}}
    assert (code, json.loads(out)) == (0, came)
    assert losses > 0
    both = whole.with_name("both")
    assert (both / folder.RESULTS).read_bytes() == (whole / folder.RESULTS).read_bytes()
    html = (both / folder.REPORT).read_text()
    assert "quorisk merge b a --out both" in html
    assert {path.name for path in (both / folder.FIGURES).iterdir()} >= {"loss_data_loss.svg", "counterexample.svg"}
    assert "both/report.html" in err
    seconds = [sum(folder.result_rows(each)["wall_s"].to_pylist()) for each in (both, first, second)]
    assert seconds[0] == pytest.approx(seconds[1] + seconds[2])


def test_points_of_several_grids_come_together_and_merged_results_merge_again(no_figures, leave, quorisk):
    whole = leave("whole")
    for name, rate in (("a", 0.1), ("b", 1.0)):
        leave(name, f"--set=rates.broker_crash={rate}", PART)
        leave(f"{name}2", f"--set=rates.broker_crash={rate}", PART, REST)
    for sources, out in ((("a", "b"), "first"), (("a2", "b2"), "second"), (("first", "second"), "all")):
        assert quorisk("merge", *sources, "--out", out)[0] == 0
    assert rows(whole.with_name("all")) == rows(whole)


def test_engines_may_differ(no_figures, leave, quorisk, tmp_path):
    leave("a", PART)
    other = leave("b", PART, REST)
    table = schema.read_rows(other / folder.RESULTS)
    place = table.schema.get_field_index("engines")
    other_engine = table.set_column(place, table.schema.field(place), [[["jax"]] * table.num_rows])
    schema.write_reproducible(other_engine, other / folder.RESULTS)
    assert quorisk("merge", "a", "b", "--out", "both")[0] == 0
    assert {tuple(row["engines"]) for row in rows(tmp_path / "both")} == {("jax", "numba")}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([PART, "--set=run.first_run=40"], r"point [0-9a-f]{12}: runs 40 to 99 are both in a and in b"),
        ([PART], r"point [0-9a-f]{12}: runs 0 to 99 are both in a and in b"),
        ([PART, "--set=run.first_run=150"], r"point [0-9a-f]{12}: runs 100 to 149 are missing between two rows"),
        ([PART, REST, "--set=run.seed=6"], r"b: run.seed is 5 in a and 6 here"),
        ([PART, "--set=rates.broker_crash=2.0", "--set=run.seed=6"], r"b: run.seed is 5 in a and 6 here"),
        ([PART, REST, "--set=run.confidence=0.9"], r"b: run.confidence is 0.95 in a and 0.9 here"),
        ([PART, "--set=rates.broker_crash=2 / s"], r'b: run.time_unit is none in a and "s" here'),
    ],
)
def test_what_does_not_belong_together_is_refused_in_a_line(refused, leave, tmp_path, settings, said):
    leave("a", PART)
    leave("b", *settings)
    assert re.fullmatch(said, refused("merge", "a", "b", "--out", "both"))
    assert not (tmp_path / "both" / folder.RESULTS).exists()


YEAR = """[scenarios.busy]
per_year = 365.25
rates.producer = 2.0
[scenarios.quiet]
per_year = 12
rates.producer = 0.5
"""


@pytest.mark.parametrize(
    ("year", "settings", "said"),
    [
        (YEAR, ["--set=scenarios.quiet.per_year=12.5"], "scenarios.quiet.per_year is 12 in a and 12.5 here"),
        (YEAR[: YEAR.index("[scenarios.quiet]")], [], "scenarios.quiet.per_year is 12 in a and missing here"),
        ("", [], "scenarios.busy.per_year is 365.25 in a and missing here"),
    ],
)
def test_years_in_which_scenarios_happen_another_number_of_times_are_refused(
    leave, quorisk, tmp_path, year, settings, said
):
    (tmp_path / "small.toml").write_text(FILE + YEAR)
    leave("a", PART)
    (tmp_path / "small.toml").write_text(FILE + year)
    leave("b", PART, REST, *settings)
    assert quorisk("merge", "a", "b", "--out", "both") == (2, "", f"error: b: {said}\n")
    assert not (tmp_path / "both").exists()


def test_points_of_several_versions_of_a_model_are_refused(leave, quorisk):
    leave("a", PART)
    other = leave("b", PART, "--set=rates.broker_crash=2.0")
    older = [row | {"model_version": 0} for row in schema.read_rows(other / folder.RESULTS).to_pylist()]
    write(pa.Table.from_pylist(older, schema=schema.SCHEMA), other / folder.RESULTS)
    assert quorisk("merge", "a", "b", "--out", "c") == (2, "", "error: b: model version is 2 in a and 0 here\n")


def test_an_interrupted_merge_leaves_no_folder_but_one_that_was_there(leave, quorisk, monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    leave("a", PART)
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("quorisk.sparkjobs.union.merge", interrupted)
    for name in ("b", "empty"):
        assert quorisk("merge", "a", "--out", name)[::2] == (130, "interrupted\n")
    assert not (tmp_path / "b").exists()
    assert (tmp_path / "empty").exists()


def test_folders_without_results_or_that_have_some_already_are_refused(quorisk, refused, no_figures, leave, tmp_path):
    out = leave("a", PART)
    (tmp_path / "empty").mkdir()
    assert quorisk("merge", "a", "empty", "--out", "b")[2].startswith("error: empty: has no results")
    assert quorisk("merge", "a", "--out", "a")[2].startswith("error: --out a: holds results")
    assert quorisk("merge", "a", "--out", "b")[0] == 0
    said = refused("run", "small.toml", PART, "--out", "b", "--resume")
    assert said == "--out b: holds merged results; choose another folder"
    (out / folder.RESULTS).write_bytes((out / folder.RESULTS).read_bytes()[:-9])
    code, _, err = quorisk("merge", "a", "--out", "c")
    assert code == 1
    assert "results.parquet: damaged" in err
    assert len(err.splitlines()) == 1
