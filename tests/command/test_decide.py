"""The verbs that lead from a question to a choice."""

import io
import json
import math

import pyarrow as pa
import pytest
from rich.console import Console

from quorisk.analysis.decision import diff
from quorisk.analysis.decision.recommend import advise
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.grid import by_design
from quorisk.analysis.experiment.starters import FOLDER as STARTERS
from quorisk.analysis.results import schema
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.command import show_decision
from quorisk.say.quantities import YEAR_S
from tests.plots import tables
from tests.support import EACH_PROTOCOL

PROTOCOLS = ("bookkeeper", "kafka", "kraft", "raft", "compaction")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_init_writes_a_file_that_can_be_run(printed, tmp_path, protocol):
    path = tmp_path / "mine.toml"
    out = printed("init", protocol, "--out", str(path))
    assert str(path) in out
    experiment = config.load(path)
    assert experiment.protocol == protocol
    assert len(experiment.points) > 1
    # physical, with scenarios that add up to a year, but for what nobody has measured
    assert (experiment.profile is not None) == bool(experiment.scenarios) == (protocol != "compaction")
    lines = path.read_text("utf-8").splitlines()
    keys = [line for line in lines if "=" in line and not line.startswith("#")]
    assert sum("#" in line for line in lines) > len(keys) / 2  # beside a key, or above several
    assert all(len(line) <= 120 for line in lines)


def test_init_overwrites_nothing_and_has_a_starter_for_each_protocol(quorisk, refused, tmp_path, written):
    path = written("mine.toml", "mine")
    assert refused("init", "kafka", "--out", str(path)) == f"--out {path}: exists already; choose another name"
    assert path.read_text("utf-8") == "mine"
    code, out, _ = quorisk("init", "kafka")  # to a pipe
    assert (code, out) == (0, (STARTERS / "kafka.toml").read_text("utf-8"))
    assert {each.stem for each in STARTERS.glob("*.toml")} == set(PROTOCOLS)
    assert refused("init", "paxos") == "init paxos: one of bookkeeper, kafka, kraft, raft or compaction"
    said = refused("init", "pulsar")
    assert "quorisk init bookkeeper" in said
    assert 'profile = "pulsar_cloud"' in said
    pulsar = (STARTERS / "bookkeeper.toml").read_text("utf-8").replace('"bookkeeper_ssd"', '"pulsar_cloud"')
    (tmp_path / "pulsar.toml").write_text(pulsar, "utf-8")
    assert getattr(config.load(tmp_path / "pulsar.toml").profile, "name", "") == "pulsar_cloud"


@pytest.mark.parametrize("protocol", EACH_PROTOCOL)
def test_each_scenario_of_a_starter_can_lose_something_and_the_design_matters(protocol):
    experiment = config.load(
        STARTERS / f"{protocol}.toml", ["run.runs=1000", "min_isr=1"] if protocol == "kraft" else ["run.runs=3000"]
    )
    assert len(by_design(experiment.points)) > 1
    p = dict(Weigher(1 << 22, 2).frame(experiment)[["point_id", "p"]].to_numpy())
    for scenario in {each.scenario for each in experiment.points}:
        losses = [p[each.point_id] for each in experiment.points if each.scenario == scenario]
        assert max(losses) > 2 * min(losses), scenario


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_the_table_of_designs_fits_the_screen_and_says_what_it_leaves_out(width, monkeypatch, tmp_path):
    (tmp_path / "x.toml").write_text(
        'protocol = "bookkeeper"\n[model]\nbookies = 3\nclients = 1\nwrite_quorum = 2\nack_quorum = 1\nentries = 1\n'
        'inflight = 1\n[latency]\nreplica = "LNKD-SSD"\n[cost]\nentry_bytes = 1\n[run]\ntarget = 0.5\n[grid]\n'
        "ack_quorum = [1, 2]\n"
    )
    experiment = config.load(tmp_path / "x.toml")
    advice = advise(experiment, Weigher(1 << 26, 1))
    screens = [io.StringIO(), io.StringIO()]
    for there, details in zip(screens, (False, True), strict=True):
        monkeypatch.setattr(show_decision, "console", lambda there=there: Console(width=width, file=there))
        show_decision.print_advice(advice, experiment, details=details)
    short, long = (there.getvalue() for there in screens)
    assert len(short.splitlines()) <= 25
    assert "Not modelled" in long
    assert "Not modelled" not in short
    lines = long.splitlines()
    lines = lines[next(place for place, line in enumerate(lines) if line.startswith("┏")) :]
    end = next(place for place, line in enumerate(lines) if line.startswith("└"))
    assert max(map(len, lines[: end + 1])) <= width
    headings = " ".join(" ".join(lines[1:4]).replace("┃", " ").split())
    left_out = lines[end + 1].partition("--json: ")[2].split(", ") if "for lack of room" in lines[end + 1] else []
    assert len(left_out) == {60: 3, 80: 1, 100: 0, 120: 0}[width]
    for heading in ("interval", "copies", "survives", "stores"):
        assert (heading in headings) != (heading in left_out)


def test_the_version_is_told(printed):
    out = printed("--version")
    assert out.startswith("quorisk 0.")


@pytest.fixture
def sweeps(tmp_path):
    """Two sweeps of three configurations, of which two are in both."""
    for name, losses, keys in (("before", [0, 30, 5], [1, 2, 3]), ("after", [0, 200, 9], [1, 2, 4])):
        (tmp_path / name).mkdir()
        tables.write(tables.table(losses, model__keys=keys), tmp_path / name / "results.parquet")
    return str(tmp_path / "before"), str(tmp_path / "after")


def test_diff_writes_a_comment_and_the_picture_beside_it(quorisk, sweeps, tmp_path):
    code, _, _ = quorisk("diff", *sweeps, "--markdown", str(tmp_path / "comment.md"))
    assert code == 0
    said = (tmp_path / "comment.md").read_text("utf-8")
    assert "| keys 2 | 0.0300 " in said
    assert ": more losses |" in said
    assert "keys 4 (new)" in said
    assert (tmp_path / "comment.svg").read_bytes().startswith(b"<?xml")


def test_diff_tells_which_configurations_differ_and_by_how_much(printed, sweeps):
    out = printed("diff", *sweeps, "--json")
    found = json.loads(out)
    one, two = found["changes"]
    assert (one["settings"], one["verdict"]) == ({"model.keys": 1}, "no difference shown")
    assert (two["settings"], two["verdict"]) == ({"model.keys": 2}, "more losses")
    assert two["difference"] == pytest.approx(0.17)
    # at 1 - 0.05 / 4 each, so that all four intervals hold together
    high, low = (
        frame_of(tables.table([30], model__keys=[2]), 1 - 0.05 / 4),
        frame_of(tables.table([200], model__keys=[2]), 1 - 0.05 / 4),
    )
    assert two["difference_low"] == pytest.approx(low["low"][0] - high["high"][0])
    assert (found["only_before"], found["only_after"]) == (1, 1)
    out = printed("diff", *sweeps)
    assert "1 of 2 configurations differs." in out
    assert "configurations in one sweep only: 1 before, 1 after" in out
    assert out.index("keys 2") < out.index("keys 1")  # what differs comes first
    out = printed("diff", *reversed(sweeps), "--json")
    assert [each["verdict"] for each in json.loads(out)["changes"]] == ["no difference shown", "fewer losses"]


def test_diff_tells_no_difference_from_a_configuration_without_losses(printed, tmp_path):
    for name, losses in (("a", 0), ("b", 1)):
        tables.write(tables.table([losses], model__keys=[1]), tmp_path / f"{name}.parquet")
    assert "not told apart [−" in printed("diff", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"))


def test_diff_names_what_else_the_sweeps_differ_in(quorisk, tmp_path):
    for name, crashes in (("a", 1), ("b", 2)):
        tables.write(tables.table([3], model__max_crashes=[crashes]), tmp_path / f"{name}.parquet")
    found = json.loads(quorisk("diff", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"), "--json")[1])
    assert found["settings"] == {"model.max_crashes": [1, 2]}
    assert len(found["changes"]) == 1


def test_rates_and_times_that_differ_have_their_units(printed, tmp_path):
    for name, of_a_year, minutes in (("a", 0.02, 10), ("b", 0.04, 20)):
        rate, lifetime_s = of_a_year / YEAR_S, 60.0 * minutes
        table = tables.table([3], run__time_unit=["s"], rates__broker_crash=[rate], run__lifetime=[lifetime_s])
        tables.write(table, tmp_path / f"{name}.parquet")
    said = printed("diff", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"))
    assert "rates.broker_crash: 2 % / year before, 4 % / year after" in said
    assert "run.lifetime: 10 min before, 20 min after" in said


def test_diff_compares_a_scenario_whose_rates_were_changed(quorisk, tmp_path):
    """What a scenario sets differs within each sweep, yet it is no reason to take the two for different ones."""
    sweeps = {"a": {"calm": 0.1, "storm": 0.5}, "b": {"calm": 0.1, "storm": 0.6}}
    for name, scenarios in sweeps.items():
        rows = [
            row | {"point_id": f"{scenario}{row['point_id']}"}
            for scenario, loss in scenarios.items()
            for row in tables.table(
                [3, 400], model__keys=[1, 2], run__scenario=[scenario], faults__message_loss=[loss]
            ).to_pylist()
        ]
        tables.write(pa.Table.from_pylist(rows, schema=schema.SCHEMA), tmp_path / f"{name}.parquet")
    found = json.loads(quorisk("diff", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"), "--json")[1])
    assert found["settings"] == {"scenarios.storm.faults.message_loss": [0.5, 0.6]}
    assert (len(found["changes"]), found["only_before"], found["only_after"]) == (4, 0, 0)
    assert found["changes"][0]["settings"] == {"model.keys": 1, "run.scenario": "calm"}


def test_diff_takes_no_configuration_for_another(refused, sweeps, tmp_path):
    """A key that one sweep alone has told its configurations apart, and the last of them stood for all."""
    tables.write(tables.table([3, 400], model__keys=[1], model__brokers=[1, 2]), tmp_path / "more.parquet")
    for both in ((sweeps[0], str(tmp_path / "more.parquet")), (str(tmp_path / "more.parquet"), sweeps[0])):
        said = refused("diff", *both)
        assert said.endswith("its configurations differ in model.brokers, which the other sweep does not have")
    rows = tables.table([7], model__keys=[1]).to_pylist()
    other = pa.Table.from_pylist([row | {"protocol": "raft"} for row in rows], schema=schema.SCHEMA)
    tables.write(other, tmp_path / "raft.parquet")
    said = refused("diff", sweeps[0], str(tmp_path / "raft.parquet"))
    assert said.endswith("the two sweeps are of compaction and raft: give two of one protocol")


def test_diff_says_what_it_cannot_compare(quorisk, refused, sweeps, tmp_path):
    assert "--invariant Leak: " in quorisk("diff", *sweeps, "--invariant", "Leak")[2]
    assert "has no results" in quorisk("diff", sweeps[0], str(tmp_path / "none"))[2]
    tables.write(tables.table([3, 4], model__keys=[5, 6]), tmp_path / "other.parquet")
    assert refused("diff", sweeps[0], str(tmp_path / "other.parquet")).endswith("they have no configuration in common")


def test_diff_adds_up_the_year_of_each_design():
    frames = []
    for losses in ([0, 30, 5, 5], [0, 300, 5, 5]):
        rows = tables.frame(losses, model__keys=[1, 2], run__scenario=["calm", "storm"])
        often = rows["run.scenario"].map({"calm": 10.0, "storm": 2.0})
        frames.append(rows[rows["invariant"] == "data loss"].assign(per_year=often, hits=1.0, fates=""))
    one, two = diff._years(frames, ["model.keys", "run.scenario"])
    assert (one.settings, one.verdict) == ({"model.keys": 1}, "more losses")
    assert one.before.p == pytest.approx(1 - math.exp(-2 * 0.03))
    assert one.after.p == pytest.approx(1 - math.exp(-2 * 0.3))
    assert one.difference_low < one.difference < one.difference_high
    assert two.verdict == "no difference shown"
    assert diff._years([frames[0], frames[1].drop(columns="per_year")], ["model.keys", "run.scenario"]) == []


def test_all_break_even_points_have_their_time_and_what_there_was_none_for_is_named(quorisk, tmp_path):
    """A file with a profile has dozens of figures: without an end to it nobody has seen the answer."""
    path = tmp_path / "x.toml"
    path.write_text(
        'protocol = "bookkeeper"\n[model]\nbookies = 2\nclients = 1\nwrite_quorum = 2\nack_quorum = 1\nentries = 1\n'
        "inflight = 1\n[faults]\nmessage_loss = 0.1\n[run]\ntarget = 0.5\nruns = 1000\n[grid]\nack_quorum = [1, 2]\n"
    )
    code, out, _ = quorisk("recommend", str(path), "--break-even", "all", "--break-even-s", "0", "--details")
    assert code == 0
    assert 'Not tried: "message loss"' in out
    assert f"  quorisk recommend {path} --break-even all --break-even-s 600\n" in out
    code, out, _ = quorisk("recommend", str(path), "--break-even", "all", "--details")
    assert (code, "Not tried" in out) == (0, False)


ALONE = 'protocol = "compaction"\nmodel = { messages = 2, compactions = 1, keys = 1, values = 1, max_crashes = 0 }\n'


def test_a_comment_that_cannot_be_written_is_refused_before_anything_is_weighed(
    quorisk, written, tmp_path, monkeypatch
):
    monkeypatch.setattr("quorisk.analysis.decision.recommend.advise", lambda *_: pytest.fail("weighed"))
    file = written("mine.toml", ALONE)
    (tmp_path / "folder.md").mkdir()
    for there, why in (
        (tmp_path / "folder.md", "Is a directory"),
        (tmp_path / "none" / "x.md", "No such file or directory"),
    ):
        said = 2, "", f"error: --markdown {there}: cannot be written: {why}\n"
        assert quorisk("recommend", str(file), "--markdown", str(there)) == said


@pytest.mark.parametrize("verb", ["recommend", "diff"])
def test_a_comment_takes_the_place_of_no_file_of_another_kind(quorisk, written, sweeps, tmp_path, monkeypatch, verb):
    """An experiment file was lost to one, and a picture to the text after it."""
    for work in ("decision.recommend.advise", "decision.diff.diff"):
        monkeypatch.setattr(f"quorisk.analysis.{work}", lambda *_: pytest.fail("weighed"))
    file = written("mine.toml", ALONE)
    for there in (file, tmp_path / "new.svg", tmp_path / "new"):
        asked = [str(file)] if verb == "recommend" else sweeps
        said = 2, "", f"error: --markdown {there}: a file name that ends in .md\n"
        assert quorisk(verb, *asked, "--markdown", str(there)) == said
    assert file.read_text("utf-8") == ALONE
    assert not list(tmp_path.glob("new*"))


def test_a_scenario_of_a_file_that_has_none_is_refused(quorisk, written):
    file = written("mine.toml", ALONE)
    said = f'error: {file}: run.scenario = "x": there is no key run.scenario; the file has no [scenarios]\n'
    assert quorisk("estimate", str(file), "--scenario", "x") == (2, "", said)


def test_what_is_asked_of_a_figure_stands_on_the_first_screen_and_in_the_comment(quorisk, written, tmp_path):
    text = (
        'protocol = "bookkeeper"\nmodel = { bookies = 3, clients = 1, write_quorum = 2, entries = 1, inflight = 1 }\n'
    )
    text += "rates.bookie_is_lost = 0.01\nrun.target = 0.5\ngrid.ack_quorum = [1, 2]\n"
    given = "recommend", str(written("mine.toml", text)), "--markdown", str(tmp_path / "comment.md")
    for asked in (["--break-even", "rates.bookie_is_lost"], []):
        code, out, _ = quorisk(*given, *asked)
        assert code == 0
        for found in (out, (tmp_path / "comment.md").read_text()):
            assert ('Switched off: "bookie is lost".' in found) == bool(asked)
