"""Exact probabilities: published figures, an independent interpreter, Storm, and random runs all say the same."""

import json
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array
from scipy.stats import beta

from quorisk.analysis.exact import answers, exact, storm
from quorisk.analysis.experiment import config
from quorisk.analysis.plain import plain
from quorisk.kernels.engines.points import Point
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.model import COMPLETED, LOST, OUTCOMES, UNFINISHED
from quorisk.kernels.states import absorption, chain, paths, store
from tests.external import herman, retransmission, tandem
from tests.references import bookkeeper as reference
from tests.support import point_of, run, values_of

MEMORY = 1 << 30
BOOKKEEPER, COMPACTION, KAFKA = (
    import_module(f"quorisk.kernels.protocols.{name}").MODEL for name in ("bookkeeper", "compaction", "kafka")
)
SIZES = ("bookies", "clients", "write_quorum", "ack_quorum", "entries", "inflight")
UNEVEN = {"client_closes_ledger_success": 0.1, "client_closes_ledger_fail": 0.0, "client_starts_recovery": 2.5}
CYCLING = {"leader_shrink_isr": 1e3, "leader_expand_isr": 1e3, "controller_shrink_isr": 0.7}


def named(*sizes):
    return dict(zip(SIZES, sizes, strict=True))


def external_point(values, rates, loss):
    return Point(values, rates, loss, 100_000, math.inf)


def solved(model, point, steps=(), times=()):
    """The chain of a point, its components and its answers."""
    found = chain.build(model, point, MEMORY)
    parts = absorption.components(found)
    return found, parts, answers.solve(found, parts, model, steps, times)


def experiment(protocol="bookkeeper", faults=0.1, **tables):
    sizes = named(2, 2, 1, 1, 1, 1) if protocol == "bookkeeper" else {}
    model = sizes | tables.pop("model", {})
    return config.build({"protocol": protocol, "model": model, "faults": {"message_loss": faults}, **tables}, "test")


def by_hand(rows, initial, ends):
    """A chain from the transitions of each state."""
    return chain.Chain(
        initial=np.array(initial, float),
        first=np.cumsum([0, *map(len, rows)]),
        target=np.array([j for row in rows for j in row], np.int32),
        p=np.array([p for row in rows for p in row.values()]),
        total_rate=np.where(np.array(ends) == UNFINISHED, 1.0, 0.0),
        broken=(np.array(ends) == LOST).astype(np.int64),
        ends=np.array(ends, np.int8),
    )


# Published figures


@pytest.mark.parametrize("retries", retransmission.P1)
def test_bounded_retransmission_protocol(retries):
    values = {"frames": 16, "max_retries": retries}
    point = external_point(values, retransmission.RATES, retransmission.FRAME_LOSS)
    *_, found = solved(retransmission.MODEL, point)
    assert f"{found.invariants['SenderSucceeds']:.6e}" == retransmission.P1[retries]
    assert f"{found.invariants['ReceiverGotSomething']:.6e}" == retransmission.P4[retries]


@pytest.mark.parametrize("capacity", tandem.FIGURES)
def test_tandem_queue(capacity):
    _, parts, found = solved(tandem.MODEL, external_point({"capacity": capacity}, tandem.RATES, 0.0))
    assert f"{found.data_loss:.6e}" == tandem.FIGURES[capacity]
    assert parts.largest == capacity**2 - 1  # all but the ends and an empty system move to and fro


def test_herman_ring():
    _, _, found = solved(herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS))
    assert found.expected_steps == pytest.approx(herman.FIGURE, rel=1e-14)
    assert found.outcomes["completed"] == pytest.approx(1.0, rel=1e-14)


def test_figure_of_the_design_and_the_keys_of_its_json():
    variant = {"semantics": "literal", "fence_recovery_reads": False}
    asked = experiment(model={"write_quorum": 2, "ack_quorum": 2}, variant=variant)
    found = json.loads(json.dumps(plain(exact.exact(asked, 4 * MEMORY, steps=[14, 40], ask_storm=True))))
    assert f"{found['invariants']['NoDivergenceBetweenClientAndMetaData']['p']:.11e}" == "8.93576144389e-06"
    assert f"{found['expected_steps']:.11f}" == "7.52003662239"
    assert found["outcomes"]["lost"] == found["data_loss"]["p"] == pytest.approx(found["p_by_steps"]["40"], rel=1e-12)
    assert 0 < found["p_by_steps"]["14"] < found["p_by_steps"]["40"]
    assert found["invariants"]["AllAckedEntriesAreReadable"] == {"p": 0.0, "proved_zero": True}
    assert found["invariants"]["NoDivergenceBetweenClientAndMetaData"]["proved_zero"] is False
    assert (found["states"], found["transitions"]) == (1_858_469, 7_147_622)
    assert found["storm_difference"] < 1e-12


def test_no_memory_is_so_large_that_states_outnumber_their_numbers(monkeypatch):
    """Places are int32, and so is what elimination counts up to one beyond the number of states."""
    assert np.iinfo(np.int32).max == chain.MOST_STATES + 1
    monkeypatch.setattr(chain, "MOST_STATES", 20_000)
    with pytest.raises(chain.ChainError, match=r"^the first 3,\d{3} states and .* fill 1,024 MiB, and there are more"):
        chain.build(BOOKKEEPER, point_of(BOOKKEEPER), MEMORY)


# Independent solutions of the protocols' chains


def ends_in_fractions(model, point):
    """P by how a run ends, in rational arithmetic, from the states and steps of plain Python."""
    rows, ends, entering = rows_in_fractions(model, point)
    for k in reversed(range(len(rows))):  # eliminates state k: whoever comes there goes where it leads
        if ends[k] is None:
            stay = 1 - rows[k].pop(k, Fraction(0))
            for row in (*rows[:k], entering):
                share = row.pop(k, Fraction(0)) / stay
                for j, p in rows[k].items() if share else ():
                    row[j] = row.get(j, Fraction(0)) + share * p
    found = {name: Fraction(0) for name in OUTCOMES}
    for i, share in entering.items():
        found[ends[i]] += share
    return found | {"horizon": 1 - sum(found.values())}


def rows_in_fractions(model, point):
    """The odds of each state's next ones, how a run ends in it or None, and the odds of starting in it. What the odds
    lack is the end of a lifetime."""
    params, loss = model.make_params(point.values), Fraction(point.message_loss)
    choices = [model.initial(params, choice) for choice in range(model.initial_choices(params))]
    number = {state: i for i, state in enumerate(dict.fromkeys(choices))}
    rows: list[dict[int, Fraction]] = []
    ends: list[str | None] = []
    for state in (todo := list(number)):
        flows: dict[int, Fraction] = {}
        broken = paths.broken(model, state, params)
        is_lost = any(invariant.data_loss and broken >> i & 1 for i, invariant in enumerate(model.invariants))
        for action, instance in () if is_lost else paths.instances(model, state, params):
            rate = Fraction(point.rates.get(model.actions[action].name, 1.0))
            sent = paths.sends(model, state, params, paths.Step(action, instance, 0))
            for lost in paths.subsets(sent):
                k, n = lost.bit_count(), sent.bit_count()
                if flow := rate * loss**k * (1 - loss) ** (n - k):
                    after = paths.after(model, state, params, paths.Step(action, instance, lost))
                    if after not in number:
                        number[after] = len(number)
                        todo.append(after)
                    flows[number[after]] = flows.get(number[after], Fraction(0)) + flow
        ends.append("lost" if is_lost else None if flows else OUTCOMES[model.outcome(state, params)])
        total = sum(flows.values(), Fraction(0)) + (1 / Fraction(point.lifetime) if point.lifetime < math.inf else 0)
        rows.append({i: flow / total for i, flow in flows.items()})
    entering = {number[state]: Fraction(choices.count(state), len(choices)) for state in choices}
    return rows, ends, entering


YEAR_S = 365.25 * 86400
UNFENCED, CURSOR_LATE = {"fence_unknown_ledger": False}, {"persist_cursor_before_delete": False}
FAR_APART = {
    "tandem": (tandem.MODEL, {"capacity": 5}, {"arrive": 1e-9, "serve_first": 4e3, "serve_second": 0.25}, 604800.0),
    "compaction": (COMPACTION, CURSOR_LATE, {"broker_crash": 0.01 / YEAR_S, "compactor_phase_two_write": 4e3}, 60.0),
    "bookkeeper": (BOOKKEEPER, named(1, 2, 1, 1, 1, 1) | UNFENCED, {"client_starts_recovery": 1e-9}, 7.0),
}
"""Model, values, rates, lifetime."""


@pytest.mark.parametrize("name", list(FAR_APART))
def test_lifetimes_and_rates_13_decades_apart_equal_rational_arithmetic(name):
    model, values, rates, lifetime = FAR_APART[name]
    point = Point(values_of(model, **values) if name != "tandem" else values, rates, 0.0, 100_000, math.inf, lifetime)
    point = point._replace(message_loss=1e-6) if name == "bookkeeper" else point
    exactly, (_, _, ours) = ends_in_fractions(model, point), solved(model, point)
    assert set(ours.outcomes) == set(exactly)
    for outcome, p in exactly.items():
        assert ours.outcomes[outcome] == pytest.approx(float(p), rel=1e-12, abs=0.0), outcome
    assert 0 < exactly["lost"] < 1e-6
    assert exactly["horizon"] > 0


@pytest.mark.parametrize(("loss", "rates"), [(0.0, {}), (0.3, {}), (0.3, UNEVEN)], ids=["no-loss", "loss", "uneven"])
@pytest.mark.parametrize(
    ("sizes", "variant"),
    [
        ((1, 2, 1, 1, 2, 2), {"fence_unknown_ledger": False}),
        ((1, 3, 1, 1, 1, 1), {"close_checks_version": False}),
        ((2, 2, 1, 1, 1, 1), {"defer_recovery_ensemble_change": False}),
        ((2, 2, 1, 1, 1, 1), {"semantics": "literal"}),
        ((2, 1, 2, 1, 2, 2), {}),
    ],
    ids=str,
)
def test_bookkeeper_equals_the_reference(sizes, variant, loss, rates):
    expected = reference.loss_chain(reference.Constants(*sizes, **variant), loss, rates)
    found, _, ours = solved(BOOKKEEPER, point_of(BOOKKEEPER, loss, rates, **named(*sizes), **variant))
    assert len(found.ends) == expected["states"]
    assert ours.expected_steps == pytest.approx(expected["expected_steps"], rel=1e-12)
    for name, p in expected["p"].items():
        assert ours.invariants[name] == pytest.approx(p, rel=1e-12, abs=0.0), name


ESTIMATED = [
    (BOOKKEEPER, {"fence_unknown_ledger": False, **named(1, 2, 1, 1, 2, 2)}, 0.3, UNEVEN),
    (BOOKKEEPER, {"defer_recovery_ensemble_change": False, **named(2, 2, 1, 1, 1, 1)}, 0.3, {}),
    (BOOKKEEPER, {"strict_negative_reads": False, **named(2, 2, 2, 1, 1, 1)}, 0.2, {}),
    (BOOKKEEPER, named(2, 2, 1, 1, 1, 1), 0.1, {}),
    (COMPACTION, {}, 0.0, {"broker_crash": 0.3}),
    (COMPACTION, {"persist_cursor_before_delete": False, "max_crashes": 2}, 0.0, {}),
    (COMPACTION, {"publish_context_before_horizon": False, "model_producer": False}, 0.0, {"broker_crash": 2.5}),
    (KAFKA, {"truncation": "kip320"}, 0.0, {}),
    (KAFKA, {"truncation": "high_watermark"}, 0.0, {}),
    (KAFKA, {"truncation": "kip101", "max_records": 1}, 0.0, CYCLING),
    (herman.MODEL, None, herman.MESSAGE_LOSS, {}),
    (tandem.MODEL, {"capacity": 4}, 0.0, tandem.RATES),
    (retransmission.MODEL, {"frames": 16, "max_retries": 2}, retransmission.FRAME_LOSS, retransmission.RATES),
    (BOOKKEEPER, {"fence_unknown_ledger": False, "lifetime": 20.0, **named(1, 2, 1, 1, 2, 2)}, 0.3, UNEVEN),
    (COMPACTION, {"persist_cursor_before_delete": False, "max_crashes": 2, "lifetime": 9.0}, 0.0, {"producer": 1 / 3}),
]


@pytest.mark.parametrize(("model", "values", "loss", "rates"), ESTIMATED, ids=lambda v: getattr(v, "name", ""))
def test_random_runs_agree(model, values, loss, rates):
    """Every probability lies within the 99.9% Clopper-Pearson interval of its count, the mean within 4 sigma."""
    protocol = model in (BOOKKEEPER, COMPACTION, KAFKA)
    point = point_of(model, loss, rates, **values) if protocol else external_point(values or {}, rates, loss)
    *_, ours = solved(model, point)
    runs = 400_000
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


CHECKED = [
    (BOOKKEEPER, point_of(BOOKKEEPER, 0.3, UNEVEN, fence_unknown_ledger=False, **named(1, 2, 1, 1, 2, 2))),
    (COMPACTION, point_of(COMPACTION, model_producer=False, publish_context_before_horizon=False)),
    (KAFKA, point_of(KAFKA, rates=CYCLING, truncation="kip101")),
    (herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS)),
    (tandem.MODEL, external_point({"capacity": 8}, tandem.RATES, 0.0)),
]


@pytest.mark.parametrize(("model", "point"), CHECKED, ids=lambda v: getattr(v, "name", ""))
def test_storm_agrees(model, point):
    pytest.importorskip("stormpy")
    found, parts, ours = solved(model, point, steps=[5, 12, 30], times=[0.5, 4.0])
    theirs = storm.solve(found, parts.largest == 1, model, [5, 12, 30], [0.5, 4.0])
    assert storm.largest_difference(ours, theirs) < 1e-10


@pytest.mark.parametrize("suffix", ["umb", "drn"])
@pytest.mark.parametrize("kind", ["dtmc", "ctmc"])
def test_exported_chains_give_storm_the_same_answer(tmp_path, kind, suffix):
    stormpy = pytest.importorskip("stormpy")
    found, _, ours = solved(*CHECKED[0])
    path = tmp_path / f"chain.{suffix}"
    exact.export(found, BOOKKEEPER, path, kind)
    read = stormpy.build_model_from_drn if suffix == "drn" else stormpy.build_model_from_umb
    model = read(path)
    assert model.nr_states == len(found.ends)
    # DRN leaves out the label of an end that no state has
    end = " | ".join(f'"{name}"' for name in OUTCOMES if model.labeling.contains_label(name))
    for text, expected in (
        ('P=? [F "NoDivergenceBetweenClientAndMetaData"]', ours.data_loss),
        ('P=? [F "stuck"]', ours.outcomes["stuck"]),
        (f'R{{"steps"}}=? [F ({end})]', ours.expected_steps),
        (f'R{{"time"}}=? [F ({end})]', ours.expected_time),
    ):
        (formula,) = stormpy.parse_properties(text)
        assert stormpy.model_checking(model, formula).get_value(0) == pytest.approx(expected, rel=1e-12), text


def test_only_umb_and_drn_are_written(tmp_path):
    found, _, _ = solved(*CHECKED[3])
    with pytest.raises(ConfigError, match=r"chain\.txt: a chain is written to a file that ends in \.umb or \.drn"):
        exact.export(found, herman.MODEL, tmp_path / "chain.txt", "dtmc")


def test_an_answer_comes_with_its_chain_whose_name_is_looked_at_first(tmp_path, monkeypatch):
    asked, path = experiment(), tmp_path / "chain.umb"
    exact.exact(asked, MEMORY, export_to=path)
    exact.export(exact.chain_of(asked, MEMORY), asked.model, tmp_path / "again.umb", "ctmc")
    assert path.read_bytes() == (tmp_path / "again.umb").read_bytes()
    monkeypatch.setattr(exact, "chain_of", None)
    with pytest.raises(ConfigError, match=r"chain\.txt: a chain is written to a file that ends in \.umb or \.drn"):
        exact.exact(asked, MEMORY, export_to=tmp_path / "chain.txt")


@pytest.mark.parametrize("suffix", ["umb", "drn"])
def test_a_chain_that_cannot_be_written_says_why(tmp_path, suffix):
    pytest.importorskip("stormpy")
    found, _, _ = solved(*CHECKED[0])
    with pytest.raises(ConfigError, match=rf"chain\.{suffix}: cannot be written: No such file or directory"):
        exact.export(found, BOOKKEEPER, tmp_path / "absent" / f"chain.{suffix}", "dtmc")


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
    found, _, ours = solved(tandem.MODEL, external_point({"capacity": 7}, rates, 0.0))
    assert ours.data_loss == pytest.approx(float(in_fractions(found)), rel=1e-13, abs=0.0)


def in_fractions(found):
    """P(LOST) from the first state by Gauss-Jordan elimination in exact arithmetic."""
    size = len(found.ends)
    rows = {i: {i: Fraction(1)} for i in range(size)}
    right = {i: Fraction(int(found.ends[i] == LOST)) for i in range(size)}
    for i in range(size):
        odds = [Fraction(float(p)) for p in found.p[found.first[i] : found.first[i + 1]]]
        for j, p in zip(found.target[found.first[i] : found.first[i + 1]].tolist(), odds, strict=True):
            rows[i][j] = rows[i].get(j, Fraction(0)) - p / sum(odds)
    for k in range(size - 1, 0, -1):
        for i in [i for i in range(k) if rows[i].get(k)]:
            factor = rows[i].pop(k) / rows[k][k]
            right[i] -= factor * right[k]
            for j, value in rows[k].items():
                if j != k:
                    rows[i][j] = rows[i].get(j, Fraction(0)) - factor * value
    return right[0] / rows[0][0]


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


# What a chain is


@pytest.mark.parametrize(("model", "point"), CHECKED, ids=lambda v: getattr(v, "name", ""))
def test_chains_are_well_formed(model, point):
    found = chain.build(model, point, MEMORY)
    goes_on = found.ends == UNFINISHED
    sums = np.add.reduceat(np.append(found.p, 0.0), found.first[:-1]) * (np.diff(found.first) > 0)
    assert np.abs(sums - goes_on).max() < 1e-14
    assert (found.p > 0.0).all()
    assert ((found.total_rate > 0.0) | ~goes_on).all()
    pairs = np.repeat(np.arange(len(goes_on)), np.diff(found.first)) * len(goes_on) + found.target
    assert len(np.unique(pairs)) == len(pairs)
    assert found.initial.sum() == pytest.approx(1.0, rel=1e-14)
    assert (found.initial > 0.0).sum() == model.initial_choices(model.make_params(point.values))


@pytest.mark.parametrize(("loss", "fewer"), [(0.0, True), (0.1, False), (1.0, True)])
def test_what_cannot_happen_is_not_followed(loss, fewer):
    states = len(chain.build(BOOKKEEPER, point_of(BOOKKEEPER, loss, **named(2, 2, 1, 1, 1, 1)), MEMORY).ends)
    everything = len(chain.build(BOOKKEEPER, point_of(BOOKKEEPER, 0.5, **named(2, 2, 1, 1, 1, 1)), MEMORY).ends)
    assert (states < everything) == fewer


def test_ways_to_the_same_state_are_one_transition():
    """Every move comes twice, by two actions of rates 1 and 3: the same chain, four times as fast."""
    move = herman.MODEL.actions[0]
    twice = herman.MODEL._replace(name="herman_twice", actions=(move, move._replace(name="again")))
    once = chain.build(herman.MODEL, external_point({}, {}, herman.MESSAGE_LOSS), MEMORY)
    found = chain.build(twice, external_point({}, {"again": 3.0}, herman.MESSAGE_LOSS), MEMORY)
    assert (found.first == once.first).all()
    assert (found.target == once.target).all()
    assert found.p == pytest.approx(once.p, rel=1e-15)
    assert (found.total_rate == 4.0 * once.total_rate).all()


def test_states_and_transitions_together_stay_within_the_memory():
    point = point_of(KAFKA, replicas=3, truncation="kip320")
    found = chain.build(KAFKA, point, MEMORY)
    state_bytes = 8 + store.TABLE_BYTES + chain.STATE_BYTES  # of a state that is told apart by one word
    needed = state_bytes * len(found.ends) + chain.TRANSITION_BYTES * len(found.p)
    with pytest.raises(
        chain.ChainError, match=r"the first \d{3},\d{3} states and 1,\d{3},\d{3} transitions fill \d+ MiB"
    ):
        chain.build(KAFKA, point, int(0.9 * needed))


def test_model_time_is_in_the_unit_of_the_rates():
    rates = {name: 1000.0 * rate for name, rate in tandem.RATES.items()}
    *_, slow = solved(tandem.MODEL, external_point({"capacity": 4}, tandem.RATES, 0.0), times=[1.0])
    *_, fast = solved(tandem.MODEL, external_point({"capacity": 4}, rates, 0.0), times=[0.001])
    assert fast.expected_time == pytest.approx(slow.expected_time / 1000.0, rel=1e-12)
    assert fast.p_by_time[0.001] == pytest.approx(slow.p_by_time[1.0], rel=1e-12)
    assert fast.expected_steps == pytest.approx(slow.expected_steps, rel=1e-12)


def test_components_come_before_those_that_lead_to_them():
    found = chain.build(*CHECKED[2], MEMORY)
    parts = absorption.components(found)
    assert sorted(parts.states.tolist()) == list(range(len(found.ends)))
    of = np.empty(len(found.ends), np.int64)
    of[parts.states] = np.repeat(np.arange(len(parts.first) - 1), np.diff(parts.first))
    source = np.repeat(np.arange(len(found.ends)), np.diff(found.first))
    assert (of[found.target] <= of[source]).all()
    assert parts.largest == 2


def test_runs_that_never_end_are_unfinished():
    rows = [{1: 0.25, 3: 0.75}, {2: 1.0}, {1: 1.0}, {}]
    found = by_hand(rows, [1.0, 0.0, 0.0, 0.0], [UNFINISHED] * 3 + [COMPLETED])
    ours = answers.solve(found, absorption.components(found), herman.MODEL, [], [])
    assert ours.outcomes == {"completed": 0.75, "stuck": 0.0, "lost": 0.0, "horizon": 0.0, "unfinished": 0.25}
    assert math.isinf(ours.expected_steps)
    assert math.isinf(ours.expected_time)


# The function behind the command


def test_a_run_that_takes_no_step_ends_where_it_starts():
    """With a rate of 0 for all that may happen, and without a warning of NumPy's on the way."""
    with np.errstate(all="raise"):
        found = exact.exact(experiment(rates={"client_creates_ledger": 0.0}), MEMORY, times=(1.0,))
    assert (found.states, found.expected_steps, found.expected_time, found.p_by_time) == (1, 0.0, 0.0, {1.0: 0.0})
    assert found.outcomes["stuck"] + found.outcomes["completed"] == 1.0


def test_zero_is_proved_where_no_state_breaks_it():
    found = exact.exact(experiment(), MEMORY)
    assert found.data_loss == exact.Certain(0.0, True)
    assert all(certain == exact.Certain(0.0, True) for certain in found.invariants.values())
    broken = exact.exact(experiment(variant={"defer_recovery_ensemble_change": False}), MEMORY)
    readable, survive = (broken.invariants[name] for name in ("AllAckedEntriesAreReadable", "AckedEntriesSurvive"))
    assert broken.data_loss == survive  # which also counts the entries of a writer that is gone
    assert 0.0 < readable.p < survive.p
    assert not broken.data_loss.proved_zero
    assert set(broken.outcomes) == set(OUTCOMES)


@pytest.mark.parametrize(
    ("asked", "memory", "says"),
    [
        ({"model": {"bookies": 4, "entries": 2}}, 8 << 20, r"memory: the first .* states .* `quorisk estimate`"),
        ({}, 1 << 20, r"memory: the initial state and its successors need \d+\.\d MiB; give it more memory"),
        ({"run": {"horizon": 5.0}}, MEMORY, r"run\.horizon = 5: .* by time 5"),
        ({"run": {"lifetime": 5.0, "at_any_time": True}}, MEMORY, r"run\.at_any_time = true: false, because"),
    ],
    ids=["states", "start", "horizon", "lifetime"],
)
def test_what_cannot_be_solved_is_refused_in_one_line(asked, memory, says):
    with pytest.raises(ConfigError, match=says) as error:
        exact.exact(experiment(**asked), memory)
    assert "\n" not in str(error.value)


def test_large_cycles_are_refused(monkeypatch):
    monkeypatch.setattr(exact, "MAX_COMPONENT", 1)
    model = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
    with pytest.raises(ConfigError, match="back and forth among 2 states"):
        exact.exact(experiment("kafka", 0.0, model=model), MEMORY)
