"""Comparisons: tables against separate estimates, intervals by exact enumeration, what the command says and draws."""

import io
import json
import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.special import betainc
from scipy.stats import binomtest, multinomial

from quorisk.analysis.compare import common_random_numbers, compare
from quorisk.analysis.estimate import estimate
from quorisk.analysis.experiment.config import load
from quorisk.analysis.experiment.keys import DATA_LOSS
from quorisk.analysis.statistics import paired
from quorisk.analysis.statistics.paired import PairTable, PairTables
from quorisk.command import show, show_compare
from quorisk.say import numbers
from tests.support import SMALL_FILE

TOPIC = f"""{SMALL_FILE}[run]
runs = 20000
seed = 5
"""
ORDERINGS = ("persist_cursor_before_delete", "publish_context_before_horizon")


@pytest.fixture
def file(written):
    return written("topic.toml", TOPIC)


def table_of(both: int, only_variant: int, only_baseline: int, runs: int) -> PairTable:
    return PairTable(both, only_variant, only_baseline, runs - both - only_variant - only_baseline)


def alone(file: Path, *overrides: str) -> estimate.Estimate:
    return estimate.estimate(load(file, overrides), 1)


@pytest.mark.parametrize("limit", ["max_steps=100000", "max_steps=14", "horizon=3"])
def test_margins_are_those_of_separate_estimates(file, limit, monkeypatch):
    monkeypatch.setattr(common_random_numbers, "CHUNK_RUNS", 3000)  # the last one is shorter
    plan = compare.vary(load(file, [limit]).changed, [f"{key}=true,false" for key in ORDERINGS])
    result = compare.compare(plan, 2)
    assert (result.runs, len(result.variants), len(result.pairs)) == (20_000, 4, 3)
    switches = list(product(("true", "false"), repeat=2))
    separate = {
        label: alone(file, limit, *(f"{key}={value}" for key, value in zip(ORDERINGS, values, strict=True)))
        for label, values in zip(result.variants, switches, strict=True)
    }
    assert {label: each.point_id for label, each in separate.items()} == result.variants
    assert {label: each.outcomes["unfinished"] for label, each in separate.items()} == result.cut_off
    for pair in result.pairs:
        for event, found in pair.events.items():
            assert sum(found.table) == 20_000
            for label, only in ((pair.variant, found.table.only_variant), (pair.baseline, found.table.only_baseline)):
                risk = separate[label].data_loss if event == DATA_LOSS else separate[label].invariants[event]
                assert found.table.both + only == risk.losses
    assert sum(found.table.both > 0 for pair in result.pairs for found in pair.events.values()) > 2


def test_runs_that_the_horizon_ends_are_cut_off_if_the_question_is_about_any_time(file):
    options = [f"{ORDERINGS[1]}=true,false"]
    by_then, at_any_time = (
        compare.compare(compare.vary(load(file, ["horizon=6", f"at_any_time={which}"]).changed, options), 1)
        for which in ("false", "true")
    )
    assert set(by_then.cut_off.values()) == {0}
    ended = [alone(file, "horizon=6", f"{ORDERINGS[1]}={which}").outcomes["horizon"] for which in ("true", "false")]
    assert min(ended) > 0
    assert list(at_any_time.cut_off.values()) == ended
    narrow, wide = (result.pairs[0].events[DATA_LOSS] for result in (by_then, at_any_time))
    assert wide.difference_low < narrow.difference_low < narrow.difference_high < wide.difference_high


def test_a_comparison_does_not_depend_on_threads_or_chunks(file, monkeypatch):
    plan = compare.vary(load(file).changed, ["keys=1,2"])
    ended: list[int] = []
    whole = compare.compare(plan, 1, ended.append)
    monkeypatch.setattr(common_random_numbers, "CHUNK_RUNS", 777)
    assert compare.compare(plan, 3, ended.append) == whole
    assert sum(ended) == 2 * 2 * 20_000


def test_parts_of_a_comparison_add_up_to_the_whole(file):
    def table(*overrides):
        [pair] = compare.compare(compare.vary(load(file, overrides).changed, ["keys=1,2"]), 1).pairs
        return [sum(column) for column in zip(*(found.table for found in pair.events.values()), strict=True)]

    first, rest = table("runs=1000"), table("runs=2000", "first_run=1000")
    assert table("runs=3000") == [a + b for a, b in zip(first, rest, strict=True)]
    assert table("runs=2000") != rest


def test_a_variant_against_itself_differs_in_no_run(file):
    # a limit of crashes where there are none
    result = compare.compare(compare.vary(load(file, ["broker_crash=0"]).changed, ["max_crashes=1,2"]), 1)
    [pair] = result.pairs
    for found in pair.events.values():
        assert found.table.only_variant == found.table.only_baseline == 0
        assert (found.difference, found.p_value) == (0.0, 1.0)
        assert -found.difference_low == found.difference_high > 0


def test_assumptions_that_differ_are_told_by_variant(file):
    result = compare.compare(compare.vary(load(file, ["runs=10"]).changed, ["broker_crash=1,0.5"]), 1)
    shared = [said for said in result.assumptions if not said.startswith("broker_crash")]
    assert len(shared) == 2
    assert result.assumptions[2].startswith("broker_crash 1.0: Each step")
    assert "broker_crash 0.5; all others 1." in result.assumptions[3]


def test_an_ablation_turns_every_switch_off_in_turn(file):
    plan = compare.ablation(load(file, ["retain_null_key=false"]).changed)
    labels = [variant.label for variant in plan.variants]
    switches = ["retain_null_key", "model_producer", "publish_context_before_horizon", "persist_cursor_before_delete"]
    assert labels == ["all on", *(f"{name} off" for name in switches)]
    for place, variant in enumerate(plan.variants):
        assert [name for name in switches if not variant.point.values[name]] == switches[place - 1 : place]
    result = compare.compare(plan, 2)
    worth = {pair.variant: pair.events[DATA_LOSS] for pair in result.pairs}
    assert worth["publish_context_before_horizon off"].difference_low > 0
    assert worth["publish_context_before_horizon off"].ratio is None  # nothing is lost with all on
    assert worth["publish_context_before_horizon off"].p_adjusted < 1e-9
    assert worth["retain_null_key off"].p_adjusted == 1.0


def test_a_mechanism_that_no_run_needs_is_held_against_a_small_case(file):
    """Where nothing crashes, nobody reads a cursor that was not kept."""
    given = ("runs=300", "max_crashes=0")
    result = compare.compare(compare.ablation(load(file, given).changed), 1)
    assert {pair.variant for pair in result.pairs if pair.events[DATA_LOSS].p_variant} == {
        "publish_context_before_horizon off"
    }
    small = result.small_cases["persist_cursor_before_delete off"]
    assert (list(result.small_cases), small.parameters["max_crashes"]) == (["persist_cursor_before_delete off"], 1)
    assert small.steps > 5
    said = show_compare._in_small_cases(result)
    assert (
        f"max_crashes 1) finds ways to lose data without them (persist_cursor_before_delete off: {small.steps}" in said
    )


def test_an_ablation_leaves_alone_what_is_off_by_default(tmp_path):
    path = tmp_path / "partition.toml"
    path.write_text('protocol = "kraft"\n[model]\nbrokers = 2\nreplication_factor = 2\nmin_isr = 1\nvalues = 1\n')
    risky = ("unclean_leader_election", "avoid_last_replica_standing")
    for on in (False, True):
        given = [f"{name}={str(on).lower()}" for name in risky]
        variants = compare.ablation(load(path, given).changed).variants
        assert not any(name in variant.label for variant in variants for name in risky)
        assert {variant.point.values[name] for variant in variants for name in risky} == {on}


def test_an_ablation_turns_off_the_repairs_that_a_file_has(tmp_path):
    path = tmp_path / "ledger.toml"
    sizes = "bookies = 3\nclients = 1\nwrite_quorum = 2\nack_quorum = 2\nentries = 1\ninflight = 1\n"
    path.write_text(f'protocol = "bookkeeper"\n[model]\n{sizes}[faults]\nmax_lost = 2\nauto_recovery = true\n')
    labels = [variant.label for variant in compare.ablation(load(path, []).changed).variants]
    assert labels[-1] == "auto_recovery off"
    assert "limbo_on_unclean_shutdown off" in labels
    assert "replacement off" not in labels
    assert labels[1:-1] == [v.label for v in compare.ablation(load(path, ["auto_recovery=false"]).changed).variants][1:]


def cut_off_counts(seen: np.ndarray) -> PairTables:
    """Of runs with (variant, baseline) each 0, 1, or 2 for unknown."""
    variant, baseline = seen.T
    arguments = [np.where(mask, common_random_numbers._EVERYTHING, 0) for mask in (variant == 2, baseline == 2)]
    counted = common_random_numbers._tables(variant & 1, arguments[0], baseline & 1, arguments[1], 0)
    return PairTables(*(PairTable(*table) for table in counted))


def test_cut_off_runs_widen_intervals_to_whatever_they_may_hide():
    generator = np.random.Generator(np.random.Philox(key=1))
    for _ in range(40):
        seen = generator.choice(3, (30, 2), p=[0.6, 0.3, 0.1])
        counts = cut_off_counts(seen)
        [found] = paired.compare_pairs([counts], 0.9)
        for _ in range(20):
            truth = np.where(seen == 2, generator.integers(0, 2, seen.shape), seen)
            table = cut_off_counts(truth).seen
            low, high = paired.difference_interval(table, 0.9)
            assert found.difference_low <= low < high <= found.difference_high
            low, high = paired.ratio_interval(table, 0.9)
            assert found.ratio_low <= low <= high <= (math.inf if found.ratio_high is None else found.ratio_high)
            assert paired.mcnemar(table) <= found.p_value + 1e-12


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "cells", [(0.3, 0.2, 0.1), (0.0, 0.5, 0.0), (0.05, 0.01, 0.01), (0.4, 0.3, 0.3), (0.02, 0.3, 0.05)]
)
def test_paired_intervals_hold_as_often_as_they_say(cells):
    """By adding up all tables of 24 runs."""
    runs, confidence = 24, 0.9
    p = [*cells, max(0.0, 1 - sum(cells))]
    difference, ratio = cells[1] - cells[2], (cells[0] + cells[1]) / max(cells[0] + cells[2], 1e-300)
    covered = {"difference": 0.0, "ratio": 0.0}
    for both, variant, baseline in product(range(runs + 1), repeat=3):
        if both + variant + baseline <= runs:
            table = table_of(both, variant, baseline, runs)
            weight = multinomial.pmf(table, runs, p)
            low, high = paired.difference_interval(table, confidence)
            covered["difference"] += weight * (low <= difference <= high)
            low, high = paired.ratio_interval(table, confidence)
            covered["ratio"] += weight * (low <= ratio <= high)
    assert min(covered.values()) >= confidence


def test_intervals_that_were_computed_by_hand():
    # the 0.0125 and 0.9875 quantiles of Beta(9, 93) and so on, by bisection of the binomial sums
    def quantile(a: float, b: float, q: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if betainc(a, b, middle) < q else (low, middle)
        return low

    table = table_of(3, 9, 2, 100)
    low, high = paired.difference_interval(table, 0.95)
    assert low == pytest.approx(quantile(9, 92, 0.0125) - quantile(3, 98, 0.9875))
    assert high == pytest.approx(quantile(10, 91, 0.9875) - quantile(2, 99, 0.0125))
    low, high = paired.ratio_interval(table, 0.95)
    assert low == pytest.approx((1 - quantile(3, 12, 0.9875)) / (1 - quantile(9, 6, 0.0125)))
    assert high == pytest.approx((1 - quantile(2, 13, 0.0125)) / (1 - quantile(10, 5, 0.9875)))
    assert low < 12 / 5 < high
    assert paired.ratio_interval(table_of(0, 0, 0, 100), 0.95) == (0.0, math.inf)
    assert paired.ratio_interval(table_of(0, 9, 0, 100), 0.95)[1] == math.inf


@pytest.mark.parametrize(
    ("variant", "baseline"), [(0, 0), (5, 0), (0, 5), (7, 7), (9, 2), (121, 59), (10**6, 10**6 - 3000)]
)
def test_mcnemars_test_is_scipys_exact_one(variant, baseline):
    expected = binomtest(variant, variant + baseline).pvalue if variant + baseline else 1.0
    assert paired.mcnemar(table_of(3, variant, baseline, 10**7)) == pytest.approx(expected, rel=1e-6)


def test_holms_adjustment():
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert paired.holm([0.2]) == [0.2]
    assert paired.holm([0.5, 0.9, 0.6]) == [1.0, 1.0, 1.0]


def test_more_pairs_widen_every_interval_and_raise_every_p():
    count = PairTables(*[table_of(3, 9, 2, 100)] * 3)
    [one], four = paired.compare_pairs([count], 0.95), paired.compare_pairs([count] * 4, 0.95)
    for each in four:
        assert each.difference_low < one.difference_low < one.difference_high < each.difference_high
        assert each.p_adjusted == pytest.approx(4 * one.p_value)
    assert (one.p_variant, one.p_baseline, one.difference) == pytest.approx((0.12, 0.05, 0.07))
    assert one.ratio == pytest.approx(12 / 5)


def test_compare_as_json(printed, file):
    vary = ("--vary", "variant.persist_cursor_before_delete=true,false")
    result = json.loads(printed("compare", str(file), *vary, "--json", "--threads", "2"))
    assert (result["runs"], result["seed"], result["confidence"]) == (20_000, 5, 0.95)
    assert list(result["variants"]) == ["persist_cursor_before_delete on", "persist_cursor_before_delete off"]
    assert "variant.persist_cursor_before_delete" not in result["parameters"]
    assert result["parameters"]["model.keys"] == 1
    [pair] = result["pairs"]
    assert (pair["variant"], pair["baseline"]) == tuple(list(result["variants"])[::-1])
    lost = pair["events"]["data loss"]
    assert lost["difference_low"] < lost["difference"] < lost["difference_high"]
    assert lost["table"]["both"] + lost["table"]["only_baseline"] == 0
    assert (lost["ratio"], lost["ratio_high"]) == (None, None)


def test_compare_as_text_prints_no_zero(quorisk, file):
    code, out, _ = quorisk("compare", str(file), "--ablation", "--set", "runs=2000")
    rows = {line.split("│")[1].strip(): line for line in out.splitlines()[:12] if line.startswith("│")}
    assert code == 0
    assert "baseline" in rows["all on"]
    assert "│ < 0.00185 │" in rows["all on"]
    assert "none seen" in rows["retain_null_key off"]
    assert "│ [−0.00289, +0.00289] │" in out
    assert "+1" in rows["publish_context_before_horizon off"]
    assert "hold together for all 4 pairs" in out
    code, out, _ = quorisk("compare", str(file), "--ablation", "--set", "runs=2000", "--set", "max_steps=9")
    assert "warning: runs that were cut off and may hide a loss: all on 2,000" in out
    assert (
        "│ at most 1 │" in {line.split("│")[1].strip(): line for line in out.splitlines()[:8] if "│" in line}["all on"]
    )


def test_where_no_run_differed_the_bound_is_that_of_the_larger_end():
    seen, least = table_of(0, 0, 0, 100), table_of(0, 0, 40, 100)  # 40 runs of the baseline were cut off
    [found] = paired.compare_pairs([PairTables(seen, least, seen)], 0.95)
    assert -found.difference_low > 0.4 > found.difference_high
    assert show_compare._cells(found, "")[0].startswith("none seen\n[−0.517, +")
    alone = found._replace(paired=False)
    assert show_compare._cells(alone, "")[0].startswith("not told apart\n[−0.517, +")


def test_a_ratio_with_a_proved_zero_says_which_of_the_two_it_is():
    seen = table_of(0, 3, 0, 97)
    [found] = paired.compare_pairs([PairTables(seen, seen, seen)], 0.95)
    said = [show_compare._ratio(found, never, baseline) for never in (False, True) for baseline in (False, True)]
    assert said == [numbers.in_brackets(found.ratio_low, math.inf), "baseline never", "0", ""]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--vary, --ablation: give one of the two"),
        (["--ablation", "--vary", "keys=1,2"], "--vary, --ablation: give one of the two"),
        (["--vary", "keys"], "--vary keys: written as section.key=value,value"),
        (["--vary", "keys=1,"], "--vary keys=1,: written as section.key=value,value"),
        (["--vary", "keys=1"], "--vary keys=1: a single configuration"),
        (["--vary", "keys=1,2", "--vary", "model.keys=2,1"], "--vary model.keys=2,1: give each key once"),
        (
            ["--vary", "keys=1,2,3", "--set", 'grid.where=["keys <= 2"]'],
            "--vary keys=1,2,3: grid.where leaves out 1 of its 3 values",
        ),
        (["--vary", "keys=1,7"], "FILE: value 2 of grid.model.keys = 7: an integer from 1 to 6"),
        (["--vary", "keyz=1,2"], "FILE: grid.keyz = [1, 2]: there is no key keyz"),
        (["--vary", "seed=1,2"], "FILE: grid.run.seed = [1, 2]: cannot vary"),
        (["--vary", "keys=1,2", "--set", "grid.values=[1, 2]"], "FILE: grid.model.values: varies too"),
        (["--ablation", "--set", "grid.values=[1, 2]"], "FILE: grid.model.values: 2 grid points, but one is needed"),
        (
            ["--ablation", "--set", "run.precision=0.1"],
            "FILE: run.precision = 0.1: inf, because only `quorisk estimate`",
        ),
    ],
)
def test_bad_input_ends_with_2_and_one_line(refused, file, arguments, said):
    assert refused("compare", str(file), *arguments).startswith(said.replace("FILE", str(file)))


def test_on_screen_too(file):
    result = compare.compare(compare.ablation(load(file, ["runs=2000"]).changed), 2)
    for pair in result.pairs:
        pair.events["CompactedLedgerLeak"] = pair.events[DATA_LOSS]
    out = io.StringIO()
    show_compare.print_comparison(result, Console(file=out, width=show.PIPED_WIDTH))
    assert not re.search("× *[│\n]", out.getvalue())  # no number continues on the next line
    titles = [line.strip() for line in out.getvalue().splitlines() if line[:1].isalpha()]
    assert titles[:3] == [DATA_LOSS, "CompactedLedgerLeak", "DuplicateNullKeyMessage"]
