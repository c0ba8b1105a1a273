"""Variants that hardly ever lose data: held against exact answers, which runs alone could not tell apart."""

import io
import math

import pytest
from rich.console import Console

from quorisk.analysis.compare import compare
from quorisk.analysis.estimate import rare
from quorisk.analysis.estimate.method import PILOT_RUNS
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics.paired import PairTable, PairTables, apart, compare_beyond_head, compare_pairs
from quorisk.command import show_compare

SIZES = {"messages": 2, "compactions": 3, "keys": 1, "values": 1, "max_crashes": 1}
SWITCH = "variant.persist_cursor_before_delete"


def topic(crashes: float, method: str = "auto"):
    document = {"protocol": "compaction", "model": SIZES, "rates": {"broker_crash": crashes}}
    return build_experiment(document | {"run": {"runs": PILOT_RUNS, "method": method}}, "topic.toml")


def test_rare_losses_are_compared_by_what_is_known_of_each():
    experiment = topic(1e-9)
    result = compare.compare(compare.vary(experiment.changed, [f"{SWITCH}=true,false"]), 2)
    truth = {value: exact(experiment.changed(f"{SWITCH}={value}"), 1 << 26).data_loss.p for value in ("true", "false")}
    assert truth["true"] == 0.0
    assert 1e-10 < truth["false"] < 1e-8
    (pair,) = result.pairs
    found = pair.events[DATA_LOSS]
    assert not found.paired
    assert found.difference_low <= truth["false"] <= found.difference_high
    assert found.difference_high < 1.1 * found.difference_low
    assert (found.p_baseline, found.ratio, found.ratio_high) == (0.0, None, None)
    assert set(result.alone) == set(result.variants)
    [losing] = result.data_loss_invariants
    assert pair.events[losing] == found  # it is all that data loss is
    assert all(each.paired for name, each in pair.events.items() if name not in (DATA_LOSS, losing))
    told = io.StringIO()
    show_compare.print_comparison(result, Console(file=told, width=200))
    assert "so each variant was estimated alone" in told.getvalue()
    assert f"{losing}, counted" not in told.getvalue()
    assert f"{losing}  " not in told.getvalue()  # the same
    other = pair._replace(events=pair.events | {losing: found._replace(p_variant=1.1 * found.p_variant)})
    show_compare.print_comparison(result._replace(pairs=[other]), Console(file=told, width=200))
    assert f"{losing}  " in told.getvalue()  # one of several ways to lose
    assert f"{losing}, counted" not in told.getvalue()
    losing, *_ = [line for line in told.getvalue().splitlines() if "delete off" in line]
    assert "baseline never" in losing
    assert "[0, inf]" not in losing
    assert "exact: persist_cursor_before_delete on, persist_cursor_before_delete off" in told.getvalue()
    assert rare.ASSUMPTION in result.assumptions


def test_an_invariant_that_all_seen_losses_break_has_its_own_probability():
    """Two runs of each lost data and broke it, which was taken to be so of all losses: a third too much, in an interval
    of next to no width."""
    sizes = {"bookies": 2, "clients": 2, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1}
    document = {
        **{"protocol": "bookkeeper", "model": sizes, "variant": {"fence_recovery_reads": False}},
        "faults": {"message_loss": 0.05, "max_lost": 2},
        "rates": {"bookie_is_lost": 2e-6, "client_starts_recovery": 0.02, "client_closes_ledger_success": 0.01},
        "run": {"runs": PILOT_RUNS, "lifetime": 100.0, "seed": 1},
    }
    experiment, name = build_experiment(document, "x.toml"), "AllAckedEntriesAreReadable"
    result = compare.compare(compare.vary(experiment.changed, ["rates.bookie_is_lost=2e-6,4e-6"]), 2)
    (pair,) = result.pairs
    found, whole = pair.events[name], pair.events[DATA_LOSS]
    assert (found.table, found.table.both) == (whole.table, 2)
    truth = dict.fromkeys((DATA_LOSS, "AckedEntriesSurvive"), 1.3004275103037145e-05)  # of 1,271,758 states by `exact`
    truth |= {name: 9.712480513414241e-06, "NoDivergenceBetweenClientAndMetaData": 0.0}
    assert truth.keys() == {DATA_LOSS, *result.data_loss_invariants}
    baseline = result.alone["bookie_is_lost 2e-06"]
    for event, p in truth.items():
        assert baseline.of(event).low <= p <= baseline.of(event).high
    assert found.p_baseline == baseline.of(name).p == pytest.approx(truth[name], rel=1e-3)
    assert found.p_baseline < 0.8 * whole.p_baseline
    assert pair.events["AckedEntriesSurvive"] == whole
    told = io.StringIO()
    show_compare.print_comparison(result, Console(file=told, width=200))
    assert f"{name}  " in told.getvalue()
    assert "NoDivergenceBetweenClientAndMetaData  " not in told.getvalue()  # not known to break at all
    assert "AckedEntriesAreOnDisk, counted in these runs" in told.getvalue()


def test_what_is_seen_often_enough_is_compared_run_by_run():
    result = compare.compare(compare.vary(topic(0.1).changed, [f"{SWITCH}=false", "model.max_crashes=1,2"]), 2)
    assert result.alone == {}
    assert result.pairs[0].events[DATA_LOSS].paired


def test_counting_alone_finds_nothing_rare():
    result = compare.compare(compare.vary(topic(1e-9, "count").changed, [f"{SWITCH}=true,false"]), 2)
    assert result.alone == {}
    found = result.pairs[0].events[DATA_LOSS]
    assert (found.paired, found.difference) == (True, 0.0)


def test_variants_that_share_a_head_are_compared_by_the_same_runs_from_its_exits(monkeypatch):
    monkeypatch.setattr(rare, "FEWEST_TRANSITIONS", 10)
    monkeypatch.setattr(rare, "STEPS_A_TRANSITION", 1 << 40)
    monkeypatch.setattr(rare, "LITTLE_KNOWN", 2.0)
    monkeypatch.setattr(rare, "PATIENCE", 1)
    experiment = topic(1e-5).changed(f"{SWITCH}=false", "runs=250_000", "seed=6")
    key = "variant.retain_null_key"
    result = compare.compare(compare.vary(experiment.changed, [f"{key}=true,false", f"{SWITCH}=false"]), 2)
    true, false = (exact(experiment.changed(f"{key}={value}"), 1 << 26).data_loss.p for value in ("true", "false"))
    (pair,) = result.pairs
    found, (baseline, variant) = pair.events[DATA_LOSS], result.alone.values()
    assert found.from_exits
    assert found.ratio_high
    assert baseline.head == variant.head != ""
    assert (found.p_baseline, found.p_variant) == pytest.approx((baseline.risk.p, variant.risk.p))
    assert found.difference_low < false - true < found.difference_high
    assert found.ratio_low < false / true < found.ratio_high
    alone = (variant.risk.high - variant.risk.low) + (baseline.risk.high - baseline.risk.low)
    assert found.difference_high - found.difference_low < 0.9 * alone
    both, only_variant, only_baseline, _ = found.table
    assert (only_variant, only_baseline > 0) == (0, True)
    assert both == variant.risk.losses  # the runs by which each was estimated alone
    assert both + only_baseline == baseline.risk.losses
    told = io.StringIO()
    show_compare.print_comparison(result, Console(file=told, width=200))
    assert (
        "These share a head with their baseline, and the same runs from its exits are compared: retain_null_key off"
        in told.getvalue()
    )


def test_what_a_shared_head_says_of_difference_and_ratio():
    table = PairTable(50, 60, 10, 10_000)
    (tail,) = compare_pairs([PairTables(table, table, table)], 0.99)
    found = compare_beyond_head(tail, (3e-9, 2e-9, 4e-9), tail, (1e-6, 1e-12))
    assert found.difference == pytest.approx(1e-6 * 50 / 10_120)
    assert found.difference_low == pytest.approx(1e-6 * tail.difference_low - 1e-12)
    assert found.difference_high == pytest.approx(1e-6 * tail.difference_high + 1e-12)
    assert (found.p_variant, found.ratio) == pytest.approx((3e-9 + found.difference, 1 + found.difference / 3e-9))
    assert found.difference_low > 0.0
    assert (found.ratio_low, found.ratio_high) == pytest.approx(
        (1 + found.difference_low / 4e-9, 1 + found.difference_high / 2e-9)
    )
    other = compare_beyond_head(tail, (3e-9, 0.0, 4e-9), tail, (1e-6, 1e-8))  # exits left out: nothing is known
    assert (other.ratio_low, other.ratio_high, other.p_value) == (0.0, None, tail.p_value)


def test_difference_and_ratio_of_two_intervals():
    none = PairTable(0, 0, 0, 1000)
    (seen,) = compare_pairs([PairTables(none, none, none)], 0.95)
    found = apart(seen, (4e-9, 3e-9, 5e-9), (2e-9, 1e-9, 3e-9))
    assert (found.difference, found.difference_low, found.difference_high) == pytest.approx((2e-9, 0.0, 4e-9))
    assert (found.ratio, found.ratio_low, found.ratio_high) == pytest.approx((2.0, 1.0, 5.0))
    assert (found.table, found.p_value) == (none, 1.0)
    nothing = apart(seen, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert (nothing.ratio, nothing.ratio_low, nothing.ratio_high) == (None, 0.0, None)
    assert math.copysign(1.0, nothing.difference) == 1.0
