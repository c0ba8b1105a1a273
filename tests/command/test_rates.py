"""`quorisk rates`: a profile from data, which an experiment takes its figures from."""

import json
import os

import pytest
from scipy import stats

from quorisk.analysis.experiment import config
from quorisk.analysis.statistics.known import Gamma
from quorisk.say import numbers
from tests.analysis.experiment.files import BOOKKEEPER
from tests.analysis.rates.stats import days, row, write
from tests.support import ROOT

START = 1_735_689_600


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with drive statistics of two models, of which one fails."""
    monkeypatch.chdir(tmp_path)
    for path in days(tmp_path / "data", "abcdefgh", 40 - 9):
        day = path.stem
        with path.open("a") as file:
            file.write(f"{row(day, 'x', int(day == '2025-01-31'), 'M2')}\n")
    return tmp_path / "data"


def test_drive_statistics_become_a_profile_that_experiments_read(printed, data):
    found = json.loads(printed("rates", str(data), "--of", "fleet", "--out", "profiles/ours.toml", "--json"))
    assert found["drives"]["drive_days"] == found["drives"]["rows"] == 9 * 31
    assert [(each["model"], each["failures"]) for each in found["drives"]["models"]] == [("M1", 0), ("M2", 1)]
    [figure] = found["figures"]
    assert (figure["key"], figure["events"], figure["exposure_s"]) == ("rates.bookie_is_lost", 1, 9 * 31 * 86_400)
    assert figure["low_95"] < figure["low"] < figure["value"] < figure["high"] < figure["high_95"]
    assert figure["default"]["low"] < figure["default"]["value"] < figure["default"]["high"]
    assert (found["profile"], found["based_on"], found["told"]) == ("profiles/ours.toml", "bookkeeper_ssd", [])
    experiment = config.build_experiment(_document(), "x.toml")
    assert experiment.known["rates.bookie_is_lost"] == pytest.approx(Gamma(1, 9 * 31 * 86_400))
    assert experiment.points[0].point.rates["bookie_is_lost"] == pytest.approx(figure["value"], rel=5e-3)


def test_a_profile_goes_on_from_one_that_was_made_of_data(quorisk, data):
    asked = ("rates", str(data), "--of", "fleet", "--out")
    assert quorisk(*asked, "profiles/ours.toml")[0] == 0
    assert quorisk(*asked, "profiles/more.toml", "--profile", "ours")[0] == 0


def _document():
    import tomllib

    return tomllib.loads('profile = "ours"\n' + BOOKKEEPER)


def test_what_data_say_is_printed_for_people(printed, data):
    write(data / "2025-02-01.csv", [row("2025-02-02", "a")])
    out = printed("rates", str(data))
    assert "│ M2 " in out
    assert "│ 1 % / year (a factor of 2 either way) │" in out
    assert "Another model, of which nothing is known: " in out
    assert (
        "drive failures: 1 in 280 drive-days (drive statistics of 2025-01-01 to 2025-02-02); a model that is not" in out
    )
    assert "rows with another day than their file's name: 1, counted on their own day (first: " in out


def test_time_outs_of_adds_give_message_loss(printed):
    """14 in twice 77,760,016 messages: medians and 90 % of the posterior, which no percentage shows."""
    metrics = str(ROOT / "tests" / "data" / "metrics" / "pulsar.json")
    out = printed("rates", metrics, "--profile", "pulsar_cloud")
    [told] = [line for line in out.splitlines() if "faults.message_loss" in line]
    found = [each.strip() for each in told.strip("│").split("│")]
    posterior = stats.gamma(14.5)
    ends = [numbers.plain(posterior.ppf(level) / 155_520_032) for level in (0.5, 0.05, 0.95)]
    assert found[1] == ends[0]
    assert found[2].startswith(f"{ends[1]} to")


def test_a_table_with_long_keys_is_not_cut_off(quorisk):
    code, out, _ = quorisk("rates", str(ROOT / "tests/data/metrics/kubernetes.json"), "--profile", "kafka_kraft")
    lines = [line for line in out.splitlines() if line[0] in "┏┃┡│└"]
    assert code == 0
    assert len(lines) > 5
    assert {line[-1] for line in lines} <= set("┓┃┩│┘")


def test_incidents_and_metrics_are_read_together(quorisk, tmp_path):
    (tmp_path / "list.csv").write_text("kind,node,start,end,data_lost\nnode,b1,2025-02-01,2025-02-02,true\n")
    up = {"metric": {"__name__": "up"}, "values": [[START, "1"], [START + 60, "0"], [START + 120, "1"]]}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [up]}}
    (tmp_path / "up.json").write_text(json.dumps(answer))
    watched = ("--nodes", "10", "--since", "2025-01-01", "--until", "2026-01-01")
    code, out, err = quorisk("rates", str(tmp_path), *watched, "--profile", "kafka_kraft", "--json")
    found = {each["key"]: each for each in json.loads(out)["figures"]}
    assert (code, err) == (0, "")
    assert found.keys() >= {"rates.data_loss_shutdown", "rates.no_data_loss_unclean_shutdown", "rates.broker_start"}
    assert found["rates.data_loss_shutdown"]["exposure_s"] == 10 * 365 * 86_400


def listed(nodes="1", since="2025-01-01", until="2026-01-01"):
    return ["list.csv", "--nodes", nodes, "--since", since, "--until", until]


NO_DRIVES = "no drive statistics (CSV or Parquet with date, serial_number, model, capacity_bytes, f"
NOTHING = "nothing that can be counted"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "none: no such file or folder"),
        (["x.csv"], f"x.csv: {NO_DRIVES}ailure)"),
        (["data", "--of", "M9"], "--of M9: any, fleet, or one of the models M1, M2"),
        (["data", "--profile", "none"], 'profile = "none": one of bookkeeper_ssd'),
        (["data", "--out", "x.json"], "--out x.json: a file name that ends in .toml"),
        (["list.csv"], "list.csv: a list of incidents does not say how many nodes were watched, nor for how long: "),
        (listed(nodes="0", since="2025"), "--since 2025: a date or time, such as"),
        (listed(nodes="0"), "--nodes 0.0: a number above 0"),
        *((listed(nodes=given), f"--nodes {given}: a number above 0") for given in ("nan", "inf", "-2.0")),
        (listed(since="2026-01-01", until="2025-01-01"), "--until 2025-01-01: a time after"),
        (listed(since="0001-01-01", until="2025-01-01"), "--since 0001-01-01: a time after 2000-01-01"),
        (listed(until="9999-12-31"), "--until 9999-12-31: a time that has passed"),
        (["data", "--master", "x"], '--master "x": local[CORES], spark://HOST:PORT'),
        (["empty.csv"], f"empty.csv: {NOTHING}, as there are no rows"),
        (["fifo.json"], "fifo.json: neither a file nor a folder"),
        (["wide.csv"], f"wide.csv: {NO_DRIVES}"),
        (["up.json"], f"up.json: {NOTHING}; samples of a switch that are neither 0 nor 1, as of"),
        (["data", "other.json"], f"other.json: {NOTHING}; series of other metrics: 1 (fir"),
    ],
)
def test_what_cannot_be_read_is_refused(refused, data, arguments, said):
    write(data.parent / "x.csv", [], "date,serial_number,model")
    write(data.parent / "empty.csv", [])
    write(data.parent / "list.csv", [], "kind,node,start,end,data_lost")
    os.mkfifo(data.parent / "fifo.json")
    (data.parent / "wide.csv").write_text("kind,node,start,end,data_lost\n", "utf-16")
    for name, value in (("up", "0.5"), ("go_goroutines", "1")):
        series = {"metric": {"__name__": name}, "values": [[START, value], [START + 60, value]]}
        answer = {"status": "success", "data": {"resultType": "matrix", "result": [series]}}
        (data.parent / f"{'up' if name == 'up' else 'other'}.json").write_text(json.dumps(answer))
    assert refused("rates", *arguments).startswith(said)
