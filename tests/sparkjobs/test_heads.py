"""Losses too rare to count, in sweeps: what tasks solve, what tables keep of it, and what folders make of both."""

import math

import numpy as np
import pyarrow as pa
import pytest

from quorisk.analysis.decision import frames
from quorisk.analysis.estimate import estimate, method, rare
from quorisk.analysis.estimate.stopping import estimator_of_run
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.results import heads, schema
from quorisk.kernels.engines.job import Job
from quorisk.kernels.errors import ConfigError, ModelError, ResultError
from quorisk.sparkjobs import folder, plan
from quorisk.sparkjobs.ledger import Ledger, PointEnd, RowCounts
from quorisk.sparkjobs.run import TaskPiece, run_piece
from quorisk.sparkjobs.state import SweepState, identity
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

MOST = 40
"""Transitions of a head that runs leave."""


@pytest.fixture
def load(written):
    """Loads FILE, with overrides."""
    path = written("rare.toml", FILE)
    return lambda *overrides: config.load(path, overrides)


@pytest.fixture
def shallow(monkeypatch):
    """Heads so small that runs leave them."""
    monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", MOST)
    monkeypatch.setattr(rare, "STEPS_A_TRANSITION", 1 << 40)


def sampled(experiment, point=1, first_run=None, num_runs=None):
    """The head of a point with runs from its exits, all that are asked for if nothing else is said."""
    run = experiment.run
    job = Job(point, run.first_run if first_run is None else first_run, num_runs or run.runs)
    done = run_piece(work_of(experiment), TaskPiece(job, MOST), 0)
    assert done.head
    return done.head


def alone(experiment, point=1):
    return estimate.estimate(experiment._replace(points=(experiment.points[point],)), 1)


def test_a_head_that_needs_no_runs_is_told_alike_however_many_transitions_it_might_have_had(load):
    """So topping up, which keeps such heads, writes what asking for all runs at once does."""
    given = load()
    work, job = work_of(given), Job(1, 0, given.run.runs)
    few, many = (heads.merge_heads([run_piece(work, TaskPiece(job, most), 0).head]) for most in (1 << 17, 1 << 18))
    assert few
    assert (few["exits"], few) == (0, many)


def test_heads_that_are_not_alike_do_not_merge(load, shallow):
    head = sampled(load())
    with pytest.raises(ResultError, match="digest of their heads"):
        heads.merge_heads([head, sampled(load(), point=2)])
    with pytest.raises(ResultError, match="runs from a head's exits, from 0 on, are in two rows"):
        heads.merge_heads([head, head])
    assert heads.merge_heads([None, heads.head_record(load().model, None, MOST)]) is None


@pytest.mark.parametrize(
    ("damage", "said"),
    [({"inside": 2.0}, "probabilities"), ({"broken": 2001}, "more losses than runs"), ({"name": "x"}, "invariants")],
)
def test_a_head_that_contradicts_itself_is_noticed(load, shallow, damage, said):
    given = load()
    head = sampled(given)
    names = [invariant.name for invariant in given.model.invariants]
    assert heads.wrong(head, names) == ""
    head["invariants"][0] |= damage
    assert said in heads.wrong(head, names)


def test_a_sweep_solves_what_it_need_not_sample_and_goes_on_where_it_was(spark, no_figures, load, console, tmp_path):
    given, out = load(), tmp_path / "out"
    sweep(given, out, Options(), console)
    whole = (out / folder.RESULTS).read_bytes()
    assert agrees(out, given) == [0] * 3
    frame = frames.load_sweep(out).frame
    assert (frame["runs"] == 2000).all()
    assert (frame["stopped"] == "certain").all()
    last = sorted((out / folder.TASKS).glob("*.parquet"))[-1]
    last.unlink()
    (out / folder.RESULTS).unlink()
    sweep(given, out, Options(resume=True), console)
    assert (out / folder.RESULTS).read_bytes() == whole
    assert pa.types.is_struct(schema.read_rows(out / folder.RESULTS).schema.field("head").type)


def agrees(out, experiment):
    """Holds a sweep's results against estimates of each point alone; how many runs from exits each point has."""
    frame, table = frames.load_sweep(out).frame, folder.result_rows(out)
    for point in range(len(experiment.points)):
        found = alone(experiment, point)
        rows = frame[frame["point_id"] == found.point_id].set_index("invariant")
        for name, risk in {"data loss": found.data_loss, **found.invariants}.items():
            assert list(rows.loc[name, ["p", "low", "high"]]) == [risk.p, risk.low, risk.high]
            assert not rows.loc[name, "data_loss"] or rows.loc[name, "method"] == found.method
        assert set(rows["stopped"]) == {found.stopped}
    return [heads.runs_from_exits(head) for head in table["head"].to_pylist()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rule", ["precision=inf", "precision=0.008"])
def test_a_sweep_samples_in_many_tasks_what_estimates_do(
    spark, no_figures, load, shallow, console, tmp_path, monkeypatch, rule
):
    monkeypatch.setattr(plan, "LONGEST_S", 0.01)
    monkeypatch.setattr("quorisk.sparkjobs.sweep.pilot", lambda *_: np.full(3, 2e-5))
    given, out = load(rule), tmp_path / "out"
    sweep(given, out, Options(), console)
    runs = agrees(out, given)
    assert runs == [2000] * 3 if rule == "precision=inf" else 0 < min(runs) < 2000
    whole = (out / folder.RESULTS).read_bytes()
    tails = [head for head in folder.tasks(out)["head"].to_pylist() if head]
    assert len(tails) > 10  # ranges of runs
    for path in sorted((out / folder.TASKS).glob("*.parquet"))[1:]:
        path.unlink()
    (out / folder.RESULTS).unlink()
    sweep(given, out, Options(resume=True), console)
    assert (out / folder.RESULTS).read_bytes() == whole


def test_more_runs_go_on_from_the_same_head_or_have_another(
    spark, no_figures, load, shallow, console, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    sweep(load(), out, Options(), console)
    for runs, most in ((3000, MOST), (4000, 60)):
        monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", most)
        given = load(f"run.runs={runs}")
        sweep(given, out, Options(resume=True), console)
        assert agrees(out, given) == [runs] * 3
    fresh = tmp_path / "fresh"
    sweep(given, fresh, Options(), console)
    assert (out / folder.RESULTS).read_bytes() == (fresh / folder.RESULTS).read_bytes()


def test_heads_of_other_machines_have_to_agree(load):
    ledger = Ledger(load().run, 1, [2000])
    lost = {"name": DATA_LOSS, "inside": 0.0, "leaves": 1e-2, "sampled": True, "broken": 0}
    head = heads.head_record(load().model, None, rare.FEWEST_TRANSITIONS)
    head |= {"digest": "d", "exits": 2, "invariants": [lost]}
    ledger.solve(0, head)
    ledger.add(0, 0, RowCounts(2000, 0, 0))
    with pytest.raises(ConfigError, match=r"machines differ.*; start again on one kind of them, in another folder"):
        ledger.solve(0, head | {"digest": "e"})


def test_a_chain_that_is_too_large_is_not_to_be_resumed(load, tmp_path):
    """Resuming would need the same method: it is another folder that takes another one."""
    given = load("run.method=exact")
    state = SweepState(given, tmp_path)
    done = run_piece(work_of(given), TaskPiece(Job(1, 0, 1), MOST), 0)
    with pytest.raises(ConfigError, match=r"'exact': the chain of point 2 .* use auto or count, in another folder$"):
        state.take([done._replace(head=heads.head_record(given.model, None, MOST))])


def test_a_budget_bounds_heads_by_the_cores_that_solve_them_and_the_runs_made_with_them(load, tmp_path, monkeypatch):
    """However many runs there may be; one core solves a head."""
    monkeypatch.setattr("quorisk.sparkjobs.state.num_cores", lambda: 2)
    one = load("run.method=auto", "run.runs=1e12", "broker_crash=1e-7")
    three = load("run.method=auto", "run.runs=1e12")
    assert (len(one.points), len(three.points)) == (1, 3)
    for given, core_s in ((one, 52.0 / 4), (three, 52.0 / 4 * 2 / 3)):
        ledger = SweepState(given, tmp_path, 52.0).ledger
        for point in range(len(given.points)):
            ledger.add(point, 0, RowCounts(method.PILOT_RUNS, 0, 0, 1 << 30))
        assert set(ledger.unsolved().values()) == {rare.affordable(core_s)}
    run_s = np.array([1e-3, 1e-5])
    [slow, quick] = plan.solving({0: 1 << 17, 1: 1 << 17}, one.run, run_s, 16.0)["num_runs"].to_pylist()
    assert (slow, quick) == pytest.approx((2000, 200_000), abs=1)


def test_a_point_waits_for_its_head_once_its_pilot_is_done(load):
    run = load("run.method=auto", "run.runs=1_000_000").run
    no_more = heads.head_record(load().model, None, rare.FEWEST_TRANSITIONS)
    lost = {"name": DATA_LOSS, "inside": 2e-5, "leaves": 0.0, "sampled": False, "broken": 0}
    head = no_more | {"digest": "d", "invariants": [lost]}
    ledger = Ledger(run, 3, [method.PILOT_RUNS] * 3)
    assert [job.num_runs for job in ledger.wanted()] == [method.PILOT_RUNS] * 3
    for point, losses in enumerate((method.ENOUGH_LOSSES, 3, 3)):
        ledger.add(point, 0, RowCounts(method.PILOT_RUNS, losses, 0))
    assert ledger.unsolved() == dict.fromkeys([1, 2], rare.FEWEST_TRANSITIONS)
    hurried = Ledger(run, 1, [method.PILOT_RUNS], largest_head=rare.affordable(1.0))
    hurried.add(0, 0, RowCounts(method.PILOT_RUNS, 3, 0))
    assert hurried.unsolved() == {0: rare.affordable(1.0)}
    assert rare.affordable(1.0) < rare.FEWEST_TRANSITIONS
    assert [(job.point, job.first_run) for job in ledger.wanted()] == [(0, method.PILOT_RUNS)]
    ledger.solve(1, head)
    ledger.solve(2, no_more)
    assert ledger.unsolved() == {}
    assert ledger.stops()[1] == PointEnd(method.PILOT_RUNS, "certain", head)
    assert [job.point for job in ledger.wanted()] == [0, 2]
    again = Ledger(run, 1, [method.PILOT_RUNS])
    again.solve(0, head)  # as rows come from disk, in any order
    again.add(0, 0, RowCounts(method.PILOT_RUNS, 0, 0))
    assert again.stops() == ledger.stops()[1:2]
    contradicted = Ledger(run, 1, [method.PILOT_RUNS], "outside")
    contradicted.solve(0, head | {"invariants": [lost | {"inside": 1e-3}]})
    with pytest.raises(ModelError, match=r"'outside': forget, .*: 0 of 131,072 runs lost data, .* is 0.001"):
        contradicted.add(0, 0, RowCounts(method.PILOT_RUNS, 0, 0))


@pytest.mark.parametrize(("inside", "enough"), [(0.0, 0.0), (0.0, 1e-2), (0.0, 1e-8), (1.1e-9, 0.0)])
def test_as_many_runs_start_from_exits_as_a_design_s_year_or_a_number_needs(load, inside, enough):
    run = load("run.method=auto", "run.runs=1_000_000").run
    lost = {"name": DATA_LOSS, "inside": inside, "leaves": 1e-2, "sampled": True, "broken": 0}
    most = rare.FEWEST_TRANSITIONS
    head = heads.head_record(load().model, None, most) | {"digest": "d", "exits": 1, "invariants": [lost]}
    wanted = heads.wanted_runs(head, run, enough)
    assert (wanted > run.runs) == (enough == 1e-8 or inside > 0.0)
    ledger = Ledger(run, 1, [method.PILOT_RUNS], enough=[enough])
    ledger.add(0, 0, RowCounts(method.PILOT_RUNS, 0, 0))
    ledger.solve(0, head | {"runs": [{"first_run": 0, "num_runs": 1000}]})
    jobs = ledger.wanted()
    assert (jobs[0].first_run, sum(job.num_runs for job in jobs)) == (1000, wanted - 1000)
    ledger.solve(0, head | {"runs": [{"first_run": 1000, "num_runs": wanted - 1000}]})
    assert ledger.stops()[0][:2] == (method.PILOT_RUNS, "runs")
    assert ledger.stops()[0].tail_runs == wanted
    low, high = heads.part(head, DATA_LOSS).interval(estimator_of_run(run), 0, wanted, 0)
    assert enough == 0.0 or high - low <= enough
    assert inside == 0.0 or high <= 10.0 * low


def test_where_many_runs_are_cut_off_auto_counts(load):
    run = load("run.method=auto", "run.runs=1_000_000").run
    assert method.is_rare(run, 0, 0)
    for asked, most in ((run, method.PILOT_RUNS // 1000), (run._replace(runs=25_000), 25)):
        assert method.is_rare(asked, 0, most)
        assert not method.is_rare(asked, 0, most + 1)
    assert method.is_rare(run._replace(method="head"), 10**6, 1)
    assert math.isinf(run.precision)


def test_identities_do_not_depend_on_the_method(load):
    first, second = load(), load("run.method=count")
    assert [identity(first, each) for each in first.points] == [identity(second, each) for each in second.points]
