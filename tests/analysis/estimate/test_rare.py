"""Losses too rare to count, held against exact answers."""

import math
from functools import cache

import pytest

from quorisk.analysis.estimate import estimate, method, rare
from quorisk.analysis.estimate.stopping import estimator_of_run
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.estimator import Estimator
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.numba_engine import simulate
from quorisk.kernels.engines.points import pack
from quorisk.kernels.engines.starts import starts
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import LOST
from quorisk.kernels.states.exits import exits_of, from_exits
from quorisk.kernels.states.head import STOPPED_BY_SIZE, Head
from tests.support import ROOT

MEMORY = 1 << 28
MODEL = {"messages": 2, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1}
VARIANT = {"persist_cursor_before_delete": False}
RUN = {"runs": 20_000, "seed": 5}


def experiment(*overrides, **rates):
    document = {"protocol": "compaction", "model": MODEL, "variant": VARIANT, "rates": rates, "run": RUN}
    return config.build_experiment(document, "topic", overrides)


def probability(given):
    return exact(given, MEMORY).data_loss.p


@cache
def truth_at(number):
    """The exact answer at one of RATES."""
    return exact(experiment(**RATES[number]), MEMORY)


RATES = [
    {"broker_crash": rate, "compactor_phase_two_write": slow, "compactor_phase_one": first}
    for rate in (1e-3, 1e-8, 1e-14)
    for slow, first in ((1.0, 1.0), (1e-2, 1.0), (1.0, 1e-3))
]


@pytest.mark.parametrize(("asked", "most"), [("head", 1 << 20), ("auto", 1 << 20), ("head", 300), ("exact", 1 << 20)])
def test_every_interval_holds_the_exact_answer(asked, most, monkeypatch):
    """Problems that nothing was tuned to, also with heads that are too small."""
    if asked == "head":
        monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", most)
        monkeypatch.setattr(rare, "STEPS_A_TRANSITION", 1 << 40)
    monkeypatch.setattr(method, "PILOT_RUNS", 10_000)
    monkeypatch.setattr(method, "FEWEST_PILOT_RUNS", 10_000)
    for number, rates in enumerate(RATES):
        given = experiment(f"run.method={asked}", **rates)
        found, truth = estimate.estimate(given, 2, memory_bytes=MEMORY), truth_at(number)
        assert found.data_loss.low <= truth.data_loss.p <= found.data_loss.high
        assert found.data_loss.bounds == (found.data_loss.high > 10.0 * found.data_loss.low)
        assert found.data_loss.low <= found.data_loss.p <= found.data_loss.high
        assert (found.head is None) == (found.data_loss.losses > method.ENOUGH_LOSSES and asked == "auto")
        assert most == 300 or found.data_loss.high < 2 * truth.data_loss.p
        for name in found.data_loss_invariants:
            assert found.invariants[name].low <= truth.invariants[name].p <= found.invariants[name].high


@pytest.mark.parametrize(("runs", "has_head"), [(24_999, False), (25_000, True)])
def test_a_few_runs_that_lose_nothing_are_enough_for_a_head(runs, has_head):
    found = estimate.estimate(experiment(f"run.runs={runs}", **RATES[-1]), 2)
    assert (found.head is not None) is has_head
    assert (found.data_loss.high < 1e-6) is has_head


def test_what_is_not_data_loss_is_counted_in_the_first_runs(monkeypatch):
    """Exits do not tell what was broken before them, and heads as small as these bound next to nothing."""
    monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", 300)
    monkeypatch.setattr(rare, "STEPS_A_TRANSITION", 1 << 40)
    for number, rates in enumerate(RATES[:3]):
        found = estimate.estimate(experiment("run.method=head", "run.confidence=0.9999", **rates), 2)
        truth = truth_at(number)
        assert found.head
        assert found.head.leaves > 0.1
        exposed = found.invariants.keys() - {*found.data_loss_invariants}
        assert exposed
        for name in exposed:
            risk = found.invariants[name]
            assert risk.low <= risk.p <= risk.high
            assert risk.low <= truth.invariants[name].p <= risk.high < risk.low + 0.05


@pytest.mark.parametrize(
    ("inside", "leaves", "losses", "p", "low", "high"),
    [
        (0.0, 1.0, 20, 0.2, 0.126655, 0.291843),  # the head says nothing
        (0.19, 0.02, 20, 0.2, 0.19, 0.21),  # it says all
        (0.15, 0.85, 20, 0.2, 0.15, 0.291843),  # or one end
        (0.3, 0.1, 20, 0.3, 0.3, 0.4),  # the count's interval is one of those that miss
        (1e-9, 0.5, 0, 1e-9, 1e-9, 0.036217),
    ],
)
def test_counts_stay_within_what_is_certain(inside, leaves, losses, p, low, high):
    """The count's ends are those of R's `binom.test(20, 100)` and `binom.test(0, 100)`."""
    part = rare.LossPart(inside, leaves, 0.0, 0, False)
    found = part.counted(Estimator(0.95, 1, False), losses, 100, 0)
    assert found == pytest.approx((p, low, high), abs=1e-6, rel=1e-3 if losses else None)


@pytest.mark.parametrize("enough", [1e-3, 1e-5, 1e-6])
def test_so_many_runs_from_exits_as_make_an_interval_narrow_and_no_more(enough):
    part, estimator = rare.LossPart(0.0, 0.5, 0.0, 10, True), Estimator(0.95, 1, False)

    def width(runs):
        low, high = part.interval(estimator, 0, runs, 0)
        return high - low

    runs = part.num_runs(estimator, 1000, enough)
    assert width(runs) <= enough < width(0.98 * runs)
    assert part.num_runs(estimator, 2 * runs, enough) == 2 * runs  # no fewer than were asked for
    assert part.num_runs(estimator, 1000, 0.0) == part.num_runs(estimator, 1000, 1e-9) == 1000  # more than MOST_RUNS


def test_where_only_a_bound_would_come_out_more_runs_are_made_if_a_number_comes_of_them():
    part, estimator, runs = rare.LossPart(1e-6, 0.5, 0.0, 10, True), Estimator(0.95, 1, False), 50_000
    more = part.num_runs(estimator, runs, 0.0)
    for num, is_bound in ((runs, True), (more, False), (0.98 * more, True)):
        assert Estimator.far_apart(*part.interval(estimator, 0, int(num), 0)) == is_bound
    assert runs < more <= rare.patience(runs)
    assert part.num_runs(estimator, 20_000, 0.0) == 20_000  # more than `patience`
    assert part.num_runs(estimator._replace(is_sequential=True), runs, 0.0) == runs
    near = part._replace(inside=1e-3)
    assert near.num_runs(estimator, runs, 0.0) == runs


def test_what_is_not_rare_is_counted():
    counted = estimate.estimate(experiment("run.method=count", broker_crash=0.1), 2)
    chosen = estimate.estimate(experiment(broker_crash=0.1), 2)
    assert counted.data_loss.losses > method.ENOUGH_LOSSES
    assert (chosen.method, chosen.head, chosen.outcomes) == (counted.method, None, counted.outcomes)
    assert chosen.data_loss == counted.data_loss


def shallow(given):
    """A head of the likeliest paths alone, and its exits."""
    (point,) = given.points
    head = Head(given.model, point.point, MEMORY)
    assert head.grow(rare.MOST_TRANSITIONS)
    solved = head.solve()
    assert solved is not None
    exits = exits_of(head, solved, MEMORY)
    return (
        solved,
        exits,
        pack(given.model, [point.point])._replace(starts=starts(exits.rows, exits.layout, exits.flows)),
    )


MOST = 1500


def test_a_head_goes_on_where_only_a_bound_would_come_out():
    """One of MOST transitions has seen no loss by then. What comes out depends on nothing but that number."""
    given = experiment(broker_crash=1e-3)
    point, truth = given.points[0].point, probability(given)
    found = [rare.solve_head(given.model, point, MEMORY, MOST, is_patient=patient) for patient in (False, True, True)]
    (_, short), (head, solved), (_, again) = filter(None, found)
    assert short.stopped_by == STOPPED_BY_SIZE
    assert rare.only_bounds(short, MOST)
    assert not rare.only_bounds(solved, MOST)
    assert MOST < short.transitions < solved.transitions <= 2 * rare.patience(MOST)
    assert solved.lost * (1 - 1e-9) <= truth <= (solved.lost + solved.leaves) * (1 + 1e-9)
    assert rare.digest(solved, None) == rare.digest(again, None)
    assert len(solved.flows) == head.num_states


@pytest.mark.parametrize("crowded", [1, 2])
def test_where_exits_have_no_room_a_smaller_head_is_tried_and_the_better_bound_kept(crowded, monkeypatch):
    given, tried = experiment(broker_crash=1e-3, compactor_phase_two_write=1e-3), []

    def without_room(head, solved, memory_bytes):
        tried.append(solved)
        exits = exits_of(head, solved, memory_bytes)
        return exits._replace(left_out=solved.leaves if len(tried) <= crowded else 0.0)

    monkeypatch.setattr(method, "exits_of", without_room)
    found = method.known_head(given.model, given.points[0].point, given.run, MOST, MEMORY)
    assert found
    large, small = tried
    assert small.transitions < large.transitions
    assert found.solved == (small if crowded == 1 else large)
    assert found.exits
    assert rare.upper(found.solved, found.exits, MOST) < large.lost + large.leaves * (1.0 + 4.0 / MOST)


def test_a_head_that_cannot_be_solved_any_more_is_the_last_that_could(monkeypatch):
    given = experiment(broker_crash=1e-3)
    point, solve, calls, told = given.points[0].point, Head.solve, [], []

    def but_once(head, wholly=True):
        calls.append(head.transitions)
        return solve(head, wholly) if len(calls) != 2 else None

    monkeypatch.setattr(Head, "solve", but_once)
    found = rare.solve_head(given.model, point, MEMORY, MOST, lambda *each: told.append(each))
    assert found is not None
    assert len(calls) == [most for _, most in told].count(None) == 3
    assert told[0] != told[-1] == (found[1].states, None)
    assert found[0].transitions == found[1].transitions == calls[2] == calls[0] < calls[1]
    assert set(found[1].broken) == {each.name for each in given.model.invariants}


def test_what_time_allows_is_known_before():
    assert rare.affordable(0.0) == rare.SMALL
    assert rare.affordable(1e9) == rare.MOST_TRANSITIONS
    for core_s in (1.0, 10.0, 60.0):
        allowed = rare.patience(rare.affordable(core_s)) / rare.SOLVED_A_S
        assert allowed <= core_s or rare.affordable(core_s) == rare.SMALL


def test_intervals_cover_as_often_as_they_say():
    given = experiment(broker_crash=1e-6)
    solved, exits, points = shallow(given)
    part = rare.parts_by_invariant(given.model, solved, exits)["data loss"]
    p, runs, replicates = probability(given), 500, 1000
    covered = losses = 0
    for replicate in range(replicates):
        k = int(simulate(given.model, points, [Job(0, replicate * runs, runs)], 11)[0][LOST])
        low, high = part.interval(Estimator(0.95), k, runs, 0)
        covered += low <= p <= high
        losses += k
    assert 0.0 < part.inside + part.leaves * losses / (runs * replicates) == pytest.approx(p, rel=0.1)
    assert covered >= replicates * (0.95 - 4.0 * math.sqrt(0.95 * 0.05 / replicates))


def test_runs_from_exits_are_the_same_on_any_number_of_threads():
    given = experiment(broker_crash=1e-6)
    _, _, points = shallow(given)
    jobs = [Job(0, 0, 70_000)]
    assert (simulate(given.model, points, jobs, 3, 1) == simulate(given.model, points, jobs, 3, 2)).all()


def test_an_exit_for_which_there_is_no_room_counts_as_loss():
    given = experiment(broker_crash=1e-6)
    solved, exits, _ = shallow(given)
    all_of_them = rare.parts_by_invariant(given.model, solved, exits)["data loss"]
    half = rare.parts_by_invariant(given.model, solved, exits._replace(left_out=solved.leaves / 2.0))["data loss"]
    given_counts = (estimator_of_run(given.run), 3, 100, 0)
    assert half.interval(*given_counts)[0] <= all_of_them.interval(*given_counts)[0]
    assert half.interval(*given_counts)[1] >= solved.lost + solved.leaves / 2.0 > all_of_them.interval(*given_counts)[1]


@pytest.mark.parametrize("unit", [1.0, 1e-13, 1e13])
def test_a_head_ends_lifetimes_as_the_chain_does(unit):
    """Rates that span thirteen decades, whatever the unit of time."""
    all_of_them = {action.name: 1.0 for action in experiment().model.actions}
    rates = all_of_them | {"broker_crash": 1e-9, "compactor_phase_one": 1e4, "compactor_phase_two_write": 1e-4}
    rates = {name: rate * unit for name, rate in rates.items()}
    given = experiment(f"run.lifetime={2e4 / unit}", **rates)
    (point,) = given.points
    head, truth = Head(given.model, point.point, MEMORY), probability(given)
    assert truth > 0.0
    while head.grow(rare.MOST_TRANSITIONS):
        solved = head.solve()
        assert solved is not None
        assert solved.lost * (1.0 - 1e-9) <= truth <= (solved.lost + solved.leaves) * (1.0 + 1e-9)
    assert solved
    assert solved.complete
    assert solved.lost == pytest.approx(truth, rel=1e-9)
    assert probability(experiment(**rates)) > 1.1 * truth


def test_runs_from_exits_have_all_of_their_lifetime_before_them():
    given = experiment("run.lifetime=5", broker_crash=1e-4)
    solved, exits, points = shallow(given)
    runs = 100_000
    losses = int(simulate(given.model, points, [Job(0, 0, runs)], 7)[0][LOST])
    low, high = rare.parts_by_invariant(given.model, solved, exits)["data loss"].interval(
        Estimator(0.9999), losses, runs, 0
    )
    assert losses > 100
    assert low <= probability(given) <= high


YEAR = config.load(ROOT / "configs" / "pulsar.toml", ("run.runs=131_072",))
"""A year of a Pulsar cluster: rates span more than a dozen decades."""
YEAR_CELLS = {
    (each.scenario, each.varied["model.write_quorum"], each.varied["model.ack_quorum"]): YEAR._replace(points=(each,))
    for each in YEAR.points
    if each.varied["model.ensemble_size"] == each.varied["model.write_quorum"]
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scenario", ["entry", "power_outage"])
@pytest.mark.parametrize(("write_quorum", "ack_quorum"), [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_heads_and_exact_answers_agree_on_scenarios_of_a_year(scenario, write_quorum, ack_quorum):
    given = YEAR_CELLS[scenario, write_quorum, ack_quorum]
    found = estimate.estimate(given, 2, memory_bytes=MEMORY)
    assert found.method == (rare.CERTIFIED if scenario == "entry" else rare.EXACT)
    assert found.data_loss.low <= probability(given) <= found.data_loss.high <= 1.03 * found.data_loss.low


@pytest.mark.exhaustive
@pytest.mark.parametrize(("quorums", "levels"), [((2, 2), 1), ((3, 2), 4), ((3, 3), 4)])
def test_what_a_small_head_leaves_out_is_told_by_hurried_runs(quorums, levels):
    """Of ordinary runs one in 10^8, or in 10^13, is lost."""
    given, runs = YEAR_CELLS["entry", *quorums], 400_000
    model, point = given.model, given.points[0].point
    head = Head(model, point, MEMORY, by_margin=True)
    for _ in range(levels):
        assert head.grow(rare.MOST_TRANSITIONS)
    solved = head.solve()
    assert solved
    exits = exits_of(head, solved, MEMORY)
    part = rare.parts_by_invariant(model, method.sampled_head(solved, exits), exits)[DATA_LOSS]
    points = from_exits(pack(model, [point]), exits)
    losses = int(simulate(model, points, [Job(0, 0, runs)], 7, 2)[0][LOST])
    low, high = part.interval(Estimator(0.9999), losses, runs, 0)
    assert part.inside == 0.0
    assert losses > 1000
    assert low <= probability(given) <= high


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("quorums", "most"), [((2, 1), 4.5e-12), ((4, 2), 1e-8), ((5, 3), 1e-7)])
def test_failovers_have_a_number_or_a_bracket_that_says_more_than_counting(quorums, most, monkeypatch):
    """Their chains do not fit: without one state for all that go on alike, the larger ones were only counted."""
    monkeypatch.setattr(rare, "PATIENCE", 1)  # more would take longer, and they are bounds all the same
    found = estimate.estimate(YEAR_CELLS["failover", *quorums], 2, memory_bytes=MEMORY)
    assert found.head
    assert 0.0 <= found.data_loss.low < found.data_loss.high < most
    assert found.data_loss.bounds == (quorums != (2, 1))


def test_a_fixed_time_that_ends_runs_is_not_for_a_head():
    with pytest.raises(ConfigError, match=r"run\.method = 'head': count or auto, because runs end at a fixed time"):
        estimate.estimate(experiment("run.method=head", "run.horizon=5"), 1)
    assert estimate.estimate(experiment("run.method=auto", "run.horizon=5"), 1).head is None


def test_a_chain_that_does_not_fit_is_said_to(monkeypatch):
    monkeypatch.setattr(rare, "MOST_TRANSITIONS", 60)
    with pytest.raises(ConfigError, match="its chain does not fit"):
        estimate.estimate(experiment("run.method=exact"), 1)
