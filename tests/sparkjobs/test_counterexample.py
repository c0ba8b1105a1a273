"""The run that a report shows: of the worst configuration, and one that anybody can see again."""

import math
import re
import shlex

import pytest

from quorisk.analysis.experiment import config
from quorisk.sparkjobs import counterexample as shown
from quorisk.sparkjobs.counterexample import counterexample
from tests.sparkjobs.small import directly
from tests.support import SMALL_FILE

FILE = f"""{SMALL_FILE}[run]
runs = 300
first_run = 100000
seed = 5
[grid]
"variant.persist_cursor_before_delete" = [true, false]
"rates.broker_crash" = [0.01, 1.0]
"""


@pytest.fixture
def experiment(written):
    return config.load(written("small.toml", FILE), [])


def test_it_is_of_the_configuration_that_loses_most_and_can_be_run_again(experiment, printed):
    table = directly(experiment)
    rates = [row["lost"] / row["num_runs"] for row in table.to_pylist()]
    worst = experiment.points[rates.index(max(rates))]
    assert sorted(rates)[-2] < max(rates)
    found = counterexample(table, [experiment])
    assert found
    svg, caption, story = found.svg.decode(), found.caption, found.story
    assert "CompactionHorizonCorrectness breaks in" in svg
    assert "CompactionHorizonCorrectness breaks in" in story
    for key, value in worst.varied.items():
        assert f"{key}={str(value).lower()}" in caption
    command = shlex.split(caption.partition("unshortened: quorisk ")[2])
    seed, run = command[command.index("--run") + 1].split(":")
    assert (seed, 100_000 <= int(run) < 100_300) == ("5", True)
    out = printed(*command)
    [steps] = re.findall(r"lost after (\d+) steps at model time \S+, broken: .*CompactionHorizonCorrectness", out)
    [fewest] = re.findall(r"breaks in (\d+) steps", story)
    assert int(steps) >= int(fewest)


def test_an_endless_time_is_written_as_experiment_files_have_it(quorisk, written):
    path = written("endless.toml", FILE.replace("1.0]", '1.0]\n"run.horizon" = [1e-9, inf]'))
    endless = config.load(path)
    found = counterexample(directly(endless), [endless])
    assert found
    command = shlex.split(found.caption.partition("unshortened: quorisk ")[2])
    assert "run.horizon=inf" in command
    assert quorisk(*command)[0] == 0


def test_a_merge_finds_the_point_in_any_of_its_experiments(experiment, tmp_path):
    other = config.load(tmp_path / "small.toml", ["rates.broker_crash=0.5"])
    table = directly(experiment)
    assert counterexample(table, [other, experiment]) == counterexample(table, [experiment])
    assert counterexample(table, [other]) is None


def test_there_is_none_where_no_run_was_lost_or_none_of_the_first(experiment, tmp_path, monkeypatch):
    safe = config.load(tmp_path / "small.toml", ["variant.persist_cursor_before_delete=true"])
    table = directly(safe)
    assert not any(table["lost"].to_pylist())
    with monkeypatch.context() as patch:
        patch.setattr(
            "quorisk.analysis.traces.find.find_in_runs", lambda *_: pytest.fail("looks for what is not there")
        )
        assert counterexample(table, [safe]) is None
    table = directly(experiment)
    monkeypatch.setattr(shown, "MOST_RUNS", 0)
    assert counterexample(table, [experiment]) is None
    monkeypatch.setattr(shown, "MOST_RUNS", math.inf)
    assert counterexample(table, [experiment]) is not None
