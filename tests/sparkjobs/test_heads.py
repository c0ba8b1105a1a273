"""Losses too rare to count, in sweeps: what tasks solve, what tables keep of it, and what folders make of both."""

import io
import math

import pyarrow as pa
import pytest
from rich.console import Console

from quorisk.analysis import estimate, heads, method, rare, results, tidy
from quorisk.analysis.experiment import config
from quorisk.analysis.judge import estimator_of
from quorisk.kernels.engines.job import Job
from quorisk.kernels.errors import ResultError
from quorisk.sparkjobs import folder
from quorisk.sparkjobs.ledger import Counts, Ledger
from quorisk.sparkjobs.run import run_job
from quorisk.sparkjobs.state import identities
from quorisk.sparkjobs.sweep import Options, sweep, work_of
from tests.support import SMALL_FILE

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

FILE = f"""{SMALL_FILE}[variant]
persist_cursor_before_delete = false
[run]
runs = 2000
seed = 5
method = "head"
[grid]
"rates.broker_crash" = [1e-3, 1e-6, 1e-12]
"""


@pytest.fixture
def load(tmp_path):
    """Loads FILE, with overrides."""
    path = tmp_path / "rare.toml"
    path.write_text(FILE)
    return lambda *overrides: config.load(path, overrides)


@pytest.fixture
def shallow(monkeypatch):
    """Heads so small that runs leave them."""
    monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", 40)
    monkeypatch.setattr(rare, "STEPS_A_TRANSITION", 1 << 40)


def solved(experiment, point=1):
    """The row of a point's head, and the head."""
    done = run_job(work_of(experiment), Job(point, experiment.run.first_run, 0), 0)
    assert done.head
    return done.head


def alone(experiment, point=1):
    return estimate.estimate(experiment._replace(points=(experiment.points[point],)), 1)


@pytest.mark.parametrize("rule", ["precision=inf", "relative_precision=0.2"])
def test_a_task_solves_what_an_estimate_does(load, shallow, rule):
    given = load(rule)
    head, found = solved(given), alone(given)
    assert found.head
    assert heads.num_runs(head) == found.head.runs > 0
    assert (head["stopped"], head["exits"], head["cost"]) == (found.stopped, found.head.exits, found.head.cost)
    for name, risk in {"data loss": found.data_loss, **found.invariants}.items():
        p, low, high, named = heads.answer(head, name, estimator_of(given.run))
        assert (p, low, high, named) == (risk.p, risk.low, risk.high, found.method)


def test_tails_of_one_head_add_up(load, shallow):
    first, then = load(), load("run.first_run=2000")
    both = heads.merge([solved(then, 0), None, solved(first, 0)])
    assert both
    assert both["runs"] == [{"first_run": start, "num_runs": 2000} for start in (0, 2000)]
    broken = [each["invariants"][0]["broken"] for each in (solved(first, 0), solved(then, 0), both)]
    assert broken[0] + broken[1] == broken[2] > 0


def test_heads_that_are_not_alike_do_not_merge(load, shallow):
    head = solved(load())
    with pytest.raises(ResultError, match="digest of their heads"):
        heads.merge([head, solved(load(), point=2)])
    with pytest.raises(ResultError, match="runs from a head's exits, from 0 on, are in two rows"):
        heads.merge([head, head])
    assert heads.merge([None, heads.COUNTED]) is None


@pytest.mark.parametrize(
    ("damage", "said"),
    [({"inside": 2.0}, "probabilities"), ({"broken": 2001}, "more losses than runs"), ({"name": "x"}, "invariants")],
)
def test_a_head_that_contradicts_itself_is_noticed(load, shallow, damage, said):
    given = load()
    head = solved(given)
    names = [invariant.name for invariant in given.model.invariants]
    assert heads.wrong(head, names) == ""
    head["invariants"][0] |= damage
    assert said in heads.wrong(head, names)


def test_a_sweep_solves_what_it_need_not_sample_and_goes_on_where_it_was(load, tmp_path):
    given, out, console = load(), tmp_path / "out", Console(file=io.StringIO(), width=200)
    sweep(given, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    frame = tidy.load(out).frame
    for point in range(3):
        found = alone(given, point)
        rows = frame[frame["point_id"] == found.point_id].set_index("invariant")
        for name, risk in {"data loss": found.data_loss, **found.invariants}.items():
            assert list(rows.loc[name, ["p", "low", "high", "method"]]) == [risk.p, risk.low, risk.high, found.method]
        assert rows["runs"].iloc[0] == 2000
    assert (frame["stopped"] == "certain").all()
    last = sorted((out / folder.TASKS).glob("*.parquet"))[-1]
    last.unlink()
    (out / folder.RESULTS).unlink()
    sweep(given, out, Options(resume=True), console)
    assert (out / folder.RESULTS).read_bytes() == whole
    assert pa.types.is_struct(results.read(out / folder.RESULTS).schema.field("head").type)


def test_a_point_waits_for_its_head_once_its_pilot_is_done(load):
    run = load("run.method=auto", "run.runs=1_000_000").run
    head = dict(heads.COUNTED, digest="d", stopped="certain")
    ledger = Ledger(run, 3, [method.PILOT_RUNS] * 3)
    assert [job.num_runs for job in ledger.wanted()] == [method.PILOT_RUNS] * 3
    for point, losses in enumerate((method.ENOUGH_LOSSES, 3, 3)):
        ledger.add(point, 0, Counts(method.PILOT_RUNS, losses, 0))
    assert ledger.unsolved() == [1, 2]
    assert [(job.point, job.first_run) for job in ledger.wanted()] == [(0, method.PILOT_RUNS)]
    ledger.solve(1, head)
    ledger.solve(2, heads.COUNTED)  # a head knows no more
    assert ledger.unsolved() == []
    assert ledger.stops()[1] == (method.PILOT_RUNS, "certain")
    assert [job.point for job in ledger.wanted()] == [0, 2]
    again = Ledger(run, 1, [method.PILOT_RUNS])
    again.solve(0, head)  # as rows come from disk, in any order
    again.add(0, 0, Counts(method.PILOT_RUNS, 0, 0))
    assert again.stops() == ledger.stops()[1:2]


def test_runs_that_are_cut_off_are_counted(load):
    run = load("run.method=auto", "run.runs=1_000_000").run
    assert method.is_rare(run, 0, 0)
    assert not method.is_rare(run, 0, 1)
    assert method.is_rare(run._replace(method="head"), 10**6, 1)
    assert math.isinf(run.precision)


def test_identities_do_not_depend_on_the_method(load):
    assert identities(load()) == identities(load("run.method=count"))
