"""Exact probabilities: published figures, an independent interpreter, Storm, and random runs all say the same."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array
from scipy.stats import beta

from quorisk.analysis.exact import exact, storm, umb
from quorisk.kernels import paths
from quorisk.kernels.engines.points import Point
from quorisk.kernels.model import COMPLETED, LOST, OUTCOMES, UNFINISHED
from quorisk.kernels.states import absorption
from quorisk.say.plain import plain_data
from tests.analysis.exact.chains import (
    BOOKKEEPER,
    CHECKED,
    COMPACTION,
    CYCLING,
    ESTIMATED,
    KAFKA,
    MEMORY,
    UNEVEN,
    by_hand,
    experiment,
    external_point,
    named,
    solved,
)
from tests.external import herman, tandem
from tests.kernels.engines import herds
from tests.references import bookkeeper as reference
from tests.support import point_of, run, values_of

# Published figures


@pytest.mark.parametrize("capacity", tandem.FIGURES)
def test_tandem_queue(capacity):
    _, parts, found = solved(tandem.MODEL, external_point({"capacity": capacity}, tandem.RATES, 0.0))
    assert f"{found.data_loss:.6e}" == tandem.FIGURES[capacity]
    assert parts.largest == capacity**2 - 1  # all but the ends and an empty system move to and fro


def test_herman_ring():
    _, _, found = solved(herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS))
    assert found.expected_steps == pytest.approx(herman.FIGURE, rel=1e-14)
    assert found.outcomes["completed"] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.exhaustive
def test_figure_of_the_design():
    variant = {"semantics": "literal", "fence_recovery_reads": False}
    asked = experiment(model={"write_quorum": 2, "ack_quorum": 2}, variant=variant)
    found = exact.exact(asked, 4 * MEMORY)
    assert f"{found.data_loss.p:.11e}" == "8.93576144389e-06"
    assert f"{found.expected_steps:.11f}" == "7.52003662239"
    assert (found.states, found.transitions) == (1_858_469, 7_147_622)


def test_the_keys_of_its_json_and_the_difference_from_storm_if_it_is_asked():
    asked = experiment(variant={"defer_recovery_ensemble_change": False})
    solved_alone, with_storm = (exact.exact(asked, MEMORY, steps=[14, 40], ask_storm=ask) for ask in (False, True))
    assert solved_alone.storm_difference is None
    assert with_storm.storm_difference is not None
    assert with_storm.storm_difference < 1e-12
    found = json.loads(json.dumps(plain_data(solved_alone)))
    assert found["outcomes"]["lost"] == found["data_loss"]["p"] == pytest.approx(found["p_by_steps"]["40"], rel=1e-12)
    assert 0 < found["p_by_steps"]["14"] < found["p_by_steps"]["40"]
    assert found["invariants"]["NoDivergenceBetweenClientAndMetaData"] == {"p": 0.0, "proved_zero": True}
    assert found["invariants"]["AllAckedEntriesAreReadable"]["proved_zero"] is False
    assert (found["states"], found["transitions"]) == (7_083, 15_630)


# Independent solutions of the protocols' chains


def ends_in_fractions(model, point):
    """P by how a run ends, in rational arithmetic, from the states and steps of plain Python."""
    rows, ends, entering = rows_in_fractions(model, point)
    for k in reversed(range(len(rows))):  # eliminates state k: whoever comes there goes where it leads
        if ends[k] is None:
            stay = 1 - rows[k].pop(k, Fraction(0))
            for row in (row for row in (*rows[:k], entering) if k in row):
                share = row.pop(k) / stay
                for j, p in rows[k].items():
                    row[j] = row.get(j, Fraction(0)) + share * p
    found = {name: Fraction(0) for name in OUTCOMES}
    for i, share in entering.items():
        found[ends[i]] += share
    return found | {"horizon": 1 - sum(found.values())}


def rows_in_fractions(model, point):
    """The odds of each state's next ones, how a run ends in it or None, and the odds of starting in it. What the odds
    lack is the end of a lifetime."""
    params = model.make_params(point.values)
    choices = [model.initial(params, choice) for choice in range(model.initial_choices(params))]
    number = {state: i for i, state in enumerate(dict.fromkeys(choices))}
    rows: list[dict[int, Fraction]] = []
    ends: list[str | None] = []
    for state in (todo := list(number)):
        broken = paths.broken(model, state, params)
        is_lost = any(invariant.data_loss and broken >> i & 1 for i, invariant in enumerate(model.invariants))
        flows = {} if is_lost else herds.flows(model, point, params, state, Fraction)
        for after in flows:
            if after not in number:
                number[after] = len(number)
                todo.append(after)
        ends.append("lost" if is_lost else None if flows else OUTCOMES[model.outcome(state, params)])
        total = sum(flows.values(), Fraction(0)) + (1 / Fraction(point.lifetime) if point.lifetime < math.inf else 0)
        rows.append({number[after]: flow / total for after, flow in flows.items()})
    entering = {number[state]: Fraction(choices.count(state), len(choices)) for state in choices}
    return rows, ends, entering


YEAR_S = 365.25 * 86400
UNFENCED, CURSOR_LATE = {"fence_unknown_ledger": False}, {"persist_cursor_before_delete": False}
FAR_APART = {
    "tandem": (tandem.MODEL, {"capacity": 5}, {"arrive": 1e-9, "serve_first": 4e3, "serve_second": 0.25}, 604800.0),
    "compaction": (COMPACTION, CURSOR_LATE, {"broker_crash": 0.01 / YEAR_S, "compactor_phase_two_write": 4e3}, 60.0),
    "bookkeeper": (BOOKKEEPER, named(1, 2, 1, 1, 1, 1) | UNFENCED, {"client_starts_recovery": 1e-9}, 7.0),
    "herds": (herds.MODEL, herds.FEW, {"tick": 1e3}, 0.5),
}
"""Model, values, rates, lifetime."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", list(FAR_APART))
def test_lifetimes_and_rates_13_decades_apart_equal_rational_arithmetic(name):
    model, values, rates, lifetime = FAR_APART[name]
    ours_alone = name in ("compaction", "bookkeeper")
    point = Point(values_of(model, **values) if ours_alone else values, rates, 0.0, 100_000, math.inf, lifetime)
    point = point._replace(message_loss=1e-6) if name in ("bookkeeper", "herds") else point
    point = point._replace(other_losses={"p_lost_in_storm": 1e-3, "p_lost_in_flood": 0.25})
    exactly, (_, _, ours) = ends_in_fractions(model, point), solved(model, point)
    assert set(ours.outcomes) == set(exactly)
    for outcome, p in exactly.items():
        assert ours.outcomes[outcome] == pytest.approx(float(p), rel=1e-12, abs=0.0), outcome
    assert 0 < exactly["lost"] < 1e-6
    assert exactly["horizon"] > 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("loss", "rates"), [(0.0, {}), (0.3, {}), (0.3, UNEVEN)], ids=["no-loss", "loss", "uneven"])
@pytest.mark.parametrize(
    ("sizes", "variant"),
    [
        ((1, 2, 1, 1, 1, 1), {"close_checks_version": False}),
        ((2, 1, 2, 1, 2, 2), {}),
        ((2, 2, 1, 1, 1, 1), {"defer_recovery_ensemble_change": False}),
        ((2, 2, 1, 1, 1, 1), {"semantics": "literal"}),
        ((1, 2, 1, 1, 2, 2), {"fence_unknown_ledger": False}),
    ],
    ids=str,
)
def test_bookkeeper_equals_the_reference(sizes, variant, loss, rates):
    chain_equals_the_reference(sizes, variant, loss, rates)


def chain_equals_the_reference(sizes, given, loss, rates, **p_lost):
    """Returns the probability of each breach by the reference, once the model's are the same."""
    expected = reference.loss_chain(reference.Constants(*sizes, **given), loss, rates, **p_lost)
    found, _, ours = solved(BOOKKEEPER, point_of(BOOKKEEPER, loss, rates, **named(*sizes), **given, **p_lost))
    assert len(found.ends) == expected["states"]
    assert ours.expected_steps == pytest.approx(expected["expected_steps"], rel=1e-12)
    for name, p in expected["p"].items():
        assert ours.invariants[name] == pytest.approx(p, rel=1e-12, abs=0.0), name
    return expected["p"]


OUTAGES = {"cluster_loses_power": 0.4, "rack_loses_power": 1.7, "client_closes_ledger_success": 0.3}
MADE_ANEW = {"auto_recovery": True, "replacement": True}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sizes", "faults"),
    [
        ((2, 1, 2, 1, 1, 1), {"max_outages": 2, "writer_crash": True}),
        ((4, 1, 2, 2, 1, 1), {"max_outages": 1, "ensemble_size": 3, **MADE_ANEW}),
        ((3, 1, 1, 1, 1, 1), {"max_outages": 1, "max_rack_outages": 1, "racks": 2, **MADE_ANEW}),
        ((2, 2, 1, 1, 1, 1), {"max_outages": 1}),
        (
            (2, 1, 2, 2, 1, 1),
            {"max_outages": 1, "max_rack_outages": 1, "racks": 2, "max_lost": 1, "max_empty_restarts": 1},
        ),
        ((3, 1, 2, 2, 1, 1), {"max_rack_outages": 2, "racks": 2, **MADE_ANEW}),
    ],
    ids=str,
)
def test_power_outages_equal_the_reference(sizes, faults):
    p_lost = {"p_lost_in_outage": 0.3, "p_lost_in_rack_outage": 0.7}
    assert chain_equals_the_reference(sizes, faults, 0.1, OUTAGES, **p_lost)["AckedEntriesSurvive"] > 1e-3


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("model", "values", "loss", "rates"), ESTIMATED, ids=lambda v: getattr(v, "name", ""))
def test_random_runs_agree(model, values, loss, rates):
    """Every probability lies within the 99.9% Clopper-Pearson interval of its count, the mean within 4 sigma."""
    protocol = model in (BOOKKEEPER, COMPACTION, KAFKA)
    point = point_of(model, loss, rates, **values) if protocol else external_point(values or {}, rates, loss)
    *_, ours = solved(model, point)
    runs = 100_000 if rates is CYCLING else 400_000  # the former's go round for hundreds of steps
    tally = run(model, point, runs, seed=17, threads=2)
    for counts, probabilities in ((tally.broken, ours.invariants), (tally.outcomes, ours.outcomes)):
        for name, p in probabilities.items():
            hits = counts[name]
            low = beta.ppf(0.0005, hits, runs - hits + 1) if hits else 0.0
            high = beta.ppf(0.9995, hits + 1, runs - hits) if hits < runs else 1.0
            assert low * (1 - 1e-12) <= p <= high * (1 + 1e-12), name
    mean = tally.steps / runs
    sigma = math.sqrt(max(tally.steps_squared / runs - mean**2, 0.0) / runs)
    assert abs(mean - ours.expected_steps) <= 4 * sigma + 1e-9


@pytest.mark.parametrize(("model", "point"), CHECKED, ids=lambda v: getattr(v, "name", ""))
def test_storm_agrees(model, point):
    pytest.importorskip("stormpy")
    found, parts, ours = solved(model, point, steps=[5, 12, 30], times=[0.5, 4.0])
    theirs = storm.storm_answers(found, parts.largest == 1, model, [5, 12, 30], [0.5, 4.0])
    assert storm.largest_difference(ours, theirs) < 1e-10


@pytest.mark.parametrize("time", ["discrete", "stochastic"])
def test_chains_in_files_give_storm_the_same_answer(tmp_path, time):
    stormpy = pytest.importorskip("stormpy")
    found, _, ours = solved(*CHECKED[0])
    path = tmp_path / "chain.umb"
    umb.write_umb(found, BOOKKEEPER, path, time)
    model = stormpy.build_model_from_umb(path)
    assert model.nr_states == len(found.ends)
    end = " | ".join(f'"{name}"' for name in OUTCOMES if model.labeling.contains_label(name))
    for text, expected in (
        ('P=? [F "NoDivergenceBetweenClientAndMetaData"]', ours.data_loss),
        ('P=? [F "stuck"]', ours.outcomes["stuck"]),
        (f'R{{"steps"}}=? [F ({end})]', ours.expected_steps),
        (f'R{{"time"}}=? [F ({end})]', ours.expected_time),
    ):
        (formula,) = stormpy.parse_properties(text)
        assert stormpy.model_checking(model, formula).get_value(0) == pytest.approx(expected, rel=1e-12), text


# Precision


def test_nothing_cancels_where_runs_go_round_for_long():
    """Two states that lead to each other but for some 1e-13: solved by subtraction, 1 - p has three digits left."""
    loss, done = 3e-16, 1e-13
    rows = [{1: 1.0}, {0: 1.0 - loss - done, 2: loss, 3: done}, {}, {}]
    found = by_hand(rows, [0.0, 1.0, 0.0, 0.0], [UNFINISHED, UNFINISHED, LOST, COMPLETED])
    visits = absorption.visits(found, absorption.components(found))
    leaves = Fraction(loss) + Fraction(done)
    assert visits[2] == pytest.approx(float(Fraction(loss) / leaves), rel=1e-15)
    assert visits[:2].sum() == pytest.approx(float(2 / leaves - 1), rel=1e-15)


def test_a_loop_at_one_state():
    rows = [{0: 1.0 - 1e-9, 1: 1e-9}, {}]
    found = by_hand(rows, [1.0, 0.0], [UNFINISHED, COMPLETED])
    visits = absorption.visits(found, absorption.components(found))
    assert visits.tolist() == pytest.approx([1e9, 1.0], rel=1e-15)


@pytest.mark.parametrize("rates", [tandem.RATES, {"arrive": 1e-6, "serve_first": 1.0, "serve_second": 1.0}], ids=str)
def test_small_probabilities_in_rational_arithmetic(rates):
    """Down to 1e-33, where every run comes back to where it was again and again."""
    point = external_point({"capacity": 7}, rates, 0.0)
    exactly, (_, _, ours) = ends_in_fractions(tandem.MODEL, point), solved(tandem.MODEL, point)
    assert ours.data_loss == pytest.approx(float(exactly["lost"]), rel=1e-13, abs=0.0)


def test_bounds_by_steps_and_time_equal_dense_matrices():
    steps, times = [0, 13, 14, 60], [0.01, 1.0, 25.0]
    found, _, ours = solved(tandem.MODEL, external_point({"capacity": 8}, tandem.RATES, 0.0), steps, times)
    size = len(found.ends)
    jump = csr_array((found.p, found.target, found.first), shape=(size, size)).toarray()
    lost = found.ends == LOST
    for n in steps:
        stay = jump + np.diag((found.ends != UNFINISHED).astype(float))
        expected = np.linalg.matrix_power(stay, n)[0, lost].sum()
        assert ours.p_by_steps[n] == pytest.approx(expected, rel=1e-12, abs=0.0)
    generator = found.total_rate[:, None] * jump - np.diag(found.total_rate)
    for t in times[1:]:
        assert ours.p_by_time[t] == pytest.approx(expm(generator * t)[0, lost].sum(), rel=1e-9)
    assert ours.p_by_steps[0] == 0.0
    # the shortest way to loss takes 7 arrivals and 7 services; of that order at an early time
    assert 0.0 < ours.p_by_time[0.01] < (3.0 * 0.01) ** 7 * (2.0 * 0.01) ** 7


def test_more_data_is_lost_by_later():
    *_, ours = solved(*CHECKED[0], steps=range(0, 40, 5), times=[0.1, 1.0, 10.0, 1000.0])
    for bounds in (list(ours.p_by_steps.values()), list(ours.p_by_time.values())):
        assert bounds == sorted(bounds)
        assert bounds[0] < bounds[-1] == pytest.approx(ours.data_loss, rel=1e-12)
