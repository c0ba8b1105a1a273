"""The command at its edges: names that no terminal should see, counts as people write them, lines that stay short."""

import json
import os
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from quorisk.analysis.decision import frames
from quorisk.analysis.experiment import config, grid
from quorisk.analysis.results import provenance, schema
from quorisk.command import main, show, show_compare
from quorisk.kernels.errors import ConfigError
from quorisk.plots.figures import Wish
from quorisk.say.waiting import told_on
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.draw import plot
from tests.plots.tables import table, write
from tests.support import ROOT, SMALL_FILE


@pytest.fixture
def file(written):
    return str(written("small.toml", SMALL_FILE))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (os.fsdecode(b"caf\xe9.toml"), r"caf\udce9.toml"),
        ("\x1b[31mred.toml", r"\x1b[31mred.toml"),
        ("safe\u202elmot", r"safe\u202elmot"),
    ],
)
@pytest.mark.parametrize("arguments", [["estimate", "NAME"], ["run", "x.toml", "--out", "NAME"], ["plot", "NAME"]])
def test_names_that_are_no_utf_8_or_move_the_cursor_are_refused_before_anything_is_done(
    refused, tmp_path, monkeypatch, name, shown, arguments
):
    monkeypatch.chdir(tmp_path)
    said = refused(*(name if word == "NAME" else word for word in arguments))
    assert said == f"{shown}: has control characters, or is not UTF-8; rename it"
    assert not list(tmp_path.iterdir())


def test_an_override_without_a_key_is_no_empty_argument(refused):
    said = refused("estimate", str(ROOT / "configs/limbo.toml"), "--set", "=1")
    assert said.split(": ", 1)[1] == '--set "=1": written as section.key=value'


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        (["run", "x.toml", "--out", ""], "--out"),
        (["run", "x.toml", "--out="], "--out"),
        (["merge", "", "--out", "z"], "merge"),
        (["plot", ""], "plot"),
    ],
)
def test_an_empty_argument_is_not_the_current_folder(quorisk, tmp_path, monkeypatch, arguments, after):
    monkeypatch.chdir(tmp_path)
    assert quorisk(*arguments) == (2, "", f"error: after {after}: an empty argument\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("told", ["about = 'x{}'", "simplifications = ['fine', 'x{}']"])
@pytest.mark.parametrize("character", ["\\u001b[31m", "\\u009b2J", "\\u202e"])
def test_what_a_scenario_is_about_does_not_move_the_cursor(quorisk, tmp_path, told, character):
    path = tmp_path / "small.toml"
    words = told.replace("'", '"').format(character)
    path.write_text(f"{SMALL_FILE}[scenarios.one]\nper_year = 1\n{words}\n")
    code, out, err = quorisk("recommend", str(path))
    key = told.partition(" ")[0]
    shown = ascii(json.loads(f'"{character[:6]}"'))[1:-1]
    said = f"error: {path}: scenarios.one.{key}: has a control character, {shown}; remove it\n"
    assert (code, out, err) == (2, "", said)


def test_a_line_about_an_error_stays_a_line(quorisk, file):
    code, _, err = quorisk("estimate", file, "--" + "y" * 100_000)
    assert code == 2
    assert len(err) <= main.MOST_CHARACTERS + 1
    assert err.endswith("...\n")


@pytest.mark.parametrize("runs", ["1e3", "1000.0", "1000"])
def test_runs_are_written_as_people_write_them(quorisk, file, runs):
    code, out, _ = quorisk("estimate", file, "--set", f"runs={runs}", "--json")
    assert (code, json.loads(out)["runs"]) == (0, 1000)


@pytest.mark.parametrize(("key", "value"), [("runs", "1.5"), ("runs", "1e13"), ("messages", "2.0"), ("seed", "1e3")])
def test_other_floats_are_no_integers(quorisk, file, key, value):
    assert quorisk("estimate", file, "--set", f"{key}={value}")[0] == 2


def test_a_large_grid_is_refused_before_its_points_are_built_where_one_design_is_wanted(file, monkeypatch):
    monkeypatch.delattr(grid, "_point")
    axes = [f"grid.rates.{name}={list(range(1, 300))}" for name in ("broker_crash", "producer")]
    with pytest.raises(ConfigError, match=r"needed; set rates\.broker_crash and rates\.producer to"):
        config.load(Path(file), axes, one=True)


def test_a_grid_of_which_one_point_is_left_is_one_design(file):
    axes = ["grid.messages=[1,2,3]", 'grid.where=["messages == 2"]']
    assert [point.varied for point in config.load(Path(file), axes, one=True).points] == [{"model.messages": 2}]


def test_nothing_of_a_table_is_cut_on_a_narrow_terminal():
    out = Console(width=48, record=True)
    made = show.make_table("broken", "losses", "P")
    made.add_row("NoDivergenceBetweenClientAndMetaData *", "1,234,567", "[1.2e-05, 1.3e-05]")
    out.print(made)
    text = out.export_text()
    assert "…" not in text
    cells = [
        "".join(column)
        for column in zip(*(line.split("│")[1:-1] for line in text.splitlines() if "│" in line), strict=True)
    ]
    joined = ["".join(part.strip() for part in cell.split("  ")) for cell in cells]
    assert joined[0].replace(" ", "") == "NoDivergenceBetweenClientAndMetaData*"


def test_where_nothing_asked_for_breaks_in_runs_a_trace_says_what_else_does(printed, file):
    alone = ("--set", "runs=1000", "--set", "retain_null_key=false", "--memory", "1KiB")
    out = printed("trace", file, *alone)
    assert out.startswith("none of 1,000 random runs broke CompactionHorizonCorrectness")
    assert "; CompactedLedgerLeak can break: --invariant shows how" in out


def test_a_small_p_beside_an_interval_that_holds_0_is_explained(file):
    """Six runs lost under one alone, none under the other: p = 0.031, and 95% bounds of the difference that hold 0."""
    from quorisk.analysis.compare import compare
    from quorisk.analysis.statistics import paired
    from quorisk.kernels.cores import num_cores

    plan = compare.vary(lambda *more: config.load(Path(file), ["runs=1000", *more]), ["max_crashes=1,2"])
    result = compare.compare(plan, num_cores())
    out = Console(width=200, record=True)
    show_compare.print_comparison(result, out)
    assert "both are right" not in out.export_text()
    seen = paired.PairTable(0, 6, 0, 994)
    events = dict.fromkeys(result.pairs[0].events, paired.compare_pairs([paired.PairTables(seen, seen, seen)], 0.95)[0])
    show_compare.print_comparison(result._replace(pairs=[result.pairs[0]._replace(events=events)]), out)
    assert "both are right" in out.export_text()


def test_what_no_figure_can_show_is_told_in_a_line(tmp_path, monkeypatch):
    write(table([3], model__keys=[1]), tmp_path / "x.parquet")

    def singular(*_):
        raise ArithmeticError("Singular matrix")
        yield

    monkeypatch.setattr("quorisk.sparkjobs.draw.figures", singular)
    with pytest.raises(ConfigError, match=r"x\.parquet: cannot be drawn: ArithmeticError\('Singular matrix'\)$"):
        plot(tmp_path / "x.parquet", tmp_path, ["svg"], Wish(), None)


PROFILE = """
protocol = "compaction"
about = "a broker that crashes often"
[rates.broker_crash]
value = 2.5
means = "a broker crashes"
source = "assumed"
"""


def test_a_profile_can_be_set_on_the_command_line_and_a_sweep_s_folder_keeps_it(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "shaky.toml").write_text(PROFILE)
    (tmp_path / "small.toml").write_text(SMALL_FILE)
    experiment = config.load(tmp_path / "small.toml", ["profile=shaky"])
    assert experiment.points[0].point.rates["broker_crash"] == 2.5
    out = tmp_path / "out"
    out.mkdir()
    folder.keep_experiment(out, experiment, folder.as_run(experiment))
    (tmp_path / "profiles" / "shaky.toml").unlink()
    assert provenance.experiment_of_folder(out).points == experiment.points
    with pytest.raises(ConfigError, match='profile = "steady": one of '):
        config.load(tmp_path / "small.toml", ["profile=shaky", "profile=steady"])


def test_a_sweep_s_folder_keeps_what_a_built_in_profile_says_is_known(tmp_path, monkeypatch):
    built_in, out = tmp_path / "built in", tmp_path / "out"
    for place in (built_in, out):
        place.mkdir()
    monkeypatch.setattr("quorisk.analysis.experiment.profiles.BUILT_IN", built_in)
    (built_in / "shaky.toml").write_text(PROFILE.replace("value = 2.5", "value = 2.5\nerror_factor = 3"))
    (tmp_path / "small.toml").write_text(f'profile = "shaky"\n{SMALL_FILE}')
    experiment = config.load(tmp_path / "small.toml")
    folder.keep_experiment(out, experiment, folder.as_run(experiment))
    (built_in / "shaky.toml").write_text(PROFILE)
    assert provenance.experiment_of_folder(out).known == experiment.known != {}


def test_a_sweep_s_folder_keeps_measured_latencies_unless_they_lie_elsewhere(tmp_path):
    (tmp_path / "ms.csv").write_text("ms\n" + "1.5\n2.5\n" * 100)
    text = SMALL_FILE.replace("compaction", "kafka").partition("[model]")[0]
    sizes = "[model]\nreplicas = 3\nlog_size = 2\nmax_records = 2\nmax_leader_epoch = 2\n"
    path, out = tmp_path / "small.toml", tmp_path / "out"
    out.mkdir()
    path.write_text(f'{text}{sizes}[latency]\nreplica = {{ csv = "ms.csv" }}\n')
    experiment = config.load(path)
    folder.check_can_hold(out, experiment, False)
    folder.keep_experiment(out, experiment, folder.as_run(experiment))
    (tmp_path / "ms.csv").rename(tmp_path.parent / "ms.csv")
    assert (
        provenance.experiment_of_folder(out).tables["latency"].replica.sorted_ms.tolist() == [1.5] * 100 + [2.5] * 100
    )
    path.write_text(path.read_text().replace("ms.csv", "../ms.csv"))
    with pytest.raises(ConfigError, match=r"small\.toml: \.\./ms\.csv: a sweep keeps a copy of it; put it beside"):
        folder.check_can_hold(tmp_path / "later", config.load(path), False)


def test_seconds_come_back_with_results(tmp_path):
    made = table([3, 4], model__keys=[1, 2])
    write(made, tmp_path / "results.parquet")
    rows = schema.read_rows(tmp_path / "results.parquet").to_pylist()
    assert frames.load_sweep(tmp_path).frame["wall_s"].isna().all()
    (tmp_path / "tasks").mkdir()
    folder.append(tmp_path / "tasks", [row | {"wall_s": 1.5, "attempt": 0, "host": "h"} for row in rows[:1]])
    folder.append(tmp_path / "tasks", [row | {"wall_s": 2.0, "attempt": 0, "host": "h"} for row in rows])
    seconds = frames.load_sweep(tmp_path).frame.groupby("model.keys")["wall_s"].first()
    assert seconds.to_dict() == {1: 3.5, 2: 2.0}


def test_figures_are_not_drawn_where_a_link_in_the_folder_leads(quorisk, tmp_path):
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.write_text("precious")
    (out / "figures").mkdir(parents=True)
    write(table([3, 4], model__keys=[1, 2]), out / "results.parquet")
    (out / "figures" / "loss_data_loss.svg").symlink_to(precious)
    drawn = ("plot", str(out), "--format", "svg", "--only", "loss")
    assert quorisk(*drawn)[0] == 0
    assert precious.read_text() == "precious"
    (tmp_path / "elsewhere").mkdir()
    (out / "figures").rename(out / "before")
    (out / "figures").symlink_to(tmp_path / "elsewhere")
    code, _, err = quorisk(*drawn)
    assert (code, err) == (1, f"error: {out / 'figures'}: is a symbolic link, which is not followed\n")
    assert quorisk(*drawn, "--out", str(out / "figures"))[0] == 0  # as this one was asked for
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["loss_data_loss.svg"]


def test_a_starter_that_finds_no_room_is_not_there(quorisk, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "")))
    path = tmp_path / "mine.toml"
    assert quorisk("init", "kafka", "--out", str(path)) == (
        1,
        "",
        f"error: --out {path}: cannot be written: No space left on device\n",
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("threads", ["0", "x", "-1", "2.0"])
def test_a_number_of_threads_that_numba_cannot_use_is_told_in_a_line(quorisk, file, monkeypatch, threads):
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    said = f"error: NUMBA_NUM_THREADS = {threads}: an integer from 1 up, or leave it unset\n"
    assert quorisk("estimate", str(file)) == (2, "", said)
    for usable in ("", "1", " 2 "):
        monkeypatch.setenv("NUMBA_NUM_THREADS", usable)
        assert quorisk("estimate", str(file), "--set", "runs=10", "--json")[0] == 0


def test_a_file_that_never_ends_is_refused(quorisk):
    said = "error: /dev/zero: an experiment file has at most 16,777,216 bytes\n"
    assert quorisk("estimate", "/dev/zero") == (2, "", said)


def test_a_pipe_among_results_is_no_table(refused, tmp_path):
    (tmp_path / "tasks").mkdir()
    write(table([3, 4], model__keys=[1, 2]), tmp_path / "results.parquet")
    os.mkfifo(tmp_path / "tasks" / "000001.parquet")
    assert refused("plot", str(tmp_path)) == f"{tmp_path / 'tasks' / '000001.parquet'}: not a file"


def test_a_sweep_keeps_its_file_as_it_was_read(written):
    path = written("small.toml", SMALL_FILE)
    experiment = config.load(path, ["run.runs=10"]).changed("run.seed=3")
    path.write_text("changed meanwhile")
    assert folder.as_run(experiment) == f"# --set run.runs=10\n# --set run.seed=3\n{SMALL_FILE}"


def test_what_overrode_the_file_of_another_sweep_does_not_override_its_copy(tmp_path):
    first, copy, out = tmp_path / "first", tmp_path / "copy.toml", tmp_path / "out"
    (tmp_path / "small.toml").write_text(SMALL_FILE.lstrip())
    for where in (first, out):
        where.mkdir()
    experiment = config.load(tmp_path / "small.toml", ["run.confidence=0.5"])
    folder.keep_experiment(first, experiment, folder.as_run(experiment))
    copy.write_text(provenance.experiment_text(first))
    for overrides in ([], ["run.seed=3"]):
        experiment = config.load(copy, overrides)
        folder.keep_experiment(out, experiment, folder.as_run(experiment))
        assert (provenance.experiment_of_folder(out).run, provenance.experiment_of_folder(out).run.confidence) == (
            experiment.run,
            0.95,
        )


@pytest.mark.parametrize("last", ["", "\n"])
def test_names_of_merged_folders_are_comments_whatever_they_are(tmp_path, last):
    source = tmp_path / "a\n[model]\nkeys = 2"
    source.mkdir()
    (source / "experiment.toml").write_text(SMALL_FILE.rstrip() + last)
    text = folder.merged([source])
    assert text == f"{SMALL_FILE.rstrip()}\n# merged from {tmp_path}/a [model] keys = 2\n"
    (tmp_path / "experiment.toml").write_text(text)
    assert provenance.is_merged(text)


def test_results_that_another_process_left_just_before_are_not_overwritten(tmp_path, monkeypatch):
    from quorisk.sparkjobs import spark_conf, sweep

    out, path = tmp_path / "out", tmp_path / "small.toml"
    path.write_text(SMALL_FILE)
    other = config.load(path, ["run.seed=9"])

    def meanwhile(*_):
        write(table([3], model__keys=[1]), out / "results.parquet")
        folder.keep_experiment(out, other, folder.as_run(other))
        return {}

    out.mkdir()
    monkeypatch.setattr(spark_conf, "checked_settings", meanwhile)
    with pytest.raises(ConfigError, match=r"holds results of another experiment: run\.seed is 9 there and 0 here"):
        sweep.sweep(config.load(path), out, sweep.Options(), Console())
    assert provenance.experiment_of_folder(out).run.seed == 9


def test_what_takes_minutes_says_now_and_then_in_a_log_how_far_it_is(monkeypatch):
    log = StringIO()  # and not what pytest captures, where a line is lost that comes while it is read
    for name in ("SOON_S", "EVERY_S"):
        monkeypatch.setattr(f"quorisk.say.waiting.{name}", 0.01)
    with told_on(Console(file=log)) as tell:
        left = iter(["; about 15 s left", "; about 5 s left"])
        tell("timed a few runs of 4,096 of 100,000 points", lambda: next(left, ""))
        while log.getvalue().count("\n") < 3:
            time.sleep(0.001)
    timed = "timed a few runs of 4,096 of 100,000 points"
    assert log.getvalue().splitlines()[:3] == [f"{timed}; about 15 s left", f"{timed}; about 5 s left", timed]
    monkeypatch.undo()
    with told_on(Console(file=(quiet := StringIO()))) as tell:
        tell("planning")
    assert quiet.getvalue() == ""
