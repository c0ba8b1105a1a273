"""Checks of states and probabilities: against TLC, Storm, published figures, and one another."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import beta

from quorisk.analysis import calibrate
from quorisk.analysis.decision.latency import BUILT_IN
from quorisk.analysis.exact import storm
from quorisk.kernels.protocols import registry
from quorisk.kernels.states.search import explore
from tests.analysis.exact import chains
from tests.external import copysets, herman, mttdl, pbs, retransmission, tandem
from tests.kernels.protocols import test_oracle as oracle
from tests.support import point_of, run, values_of
from tests.validation.page import Check, relative

SMALL = 20_000
"""States that a quick check searches at most."""


def tlc(quick: bool) -> Check:
    """TLC's states, by search."""
    rows, equal = [], True
    for row in sorted(oracle.ROWS, key=lambda each: each["distinct_states"]):
        if quick and row["distinct_states"] > SMALL:
            continue
        name = oracle.protocol_of(row)
        model = registry.load(name)
        found = explore(model, model.make_params(values_of(model, **oracle.parameters_of(row))), oracle.MEMORY)
        counted = row.get("states_by_first_broken_invariant", {}) | row.get("breaking_states", {})
        counted = {each: number for each, number in counted.items() if each != oracle.NOT_HERE}
        ours = found.first_broken if "states_by_first_broken_invariant" in row else found.breaking_states
        same = all(ours.get(each, 0) == number for each, number in counted.items())
        same = same and (found.distinct_states, found.depth) == (row["distinct_states"], row["depth"])
        equal = equal and same
        states = (f"{row['distinct_states']:,}", f"{found.distinct_states:,}", row["depth"], found.depth)
        broken = f"{sum(counted.values()):,} in {len(counted)}"
        rows.append((f"`{row['name']}`", name, row["module"], *states, broken, "equal" if same else "**differs**"))
    total = sum(int(each[3].replace(",", "")) for each in rows)
    return Check(
        "States, against TLC",
        "The model checker TLC ran TLA+ specifications; `quorisk explore` searches the same constants. Distinct "
        "states, depth, and for each invariant the number of states that break it are compared; the last column but "
        "one has the sum of these numbers, and of how many invariants. TLC's numbers are in `tests/data/`, with the "
        "constants that make a row. The modules are those that their authors published, with two exceptions. In rows "
        "`bkint`, three conditions of BookKeeperProtocol are written as the protocol means them "
        "([concepts](concepts.md#the-protocols)). Modules whose names end in Faults, Striped, Flush, Writing, "
        "Operations or Guarded (in any case) add [faults](faults.md) or a mechanism to what was published. Left out is "
        f"`{oracle.NOT_HERE}`, which no model has: a test compares it with a literal interpreter.",
        (
            "row",
            "protocol",
            "module",
            "states, TLC",
            "states",
            "depth, TLC",
            "depth",
            "broken states in invariants",
            "",
        ),
        rows,
        f"{len(rows)} of {len(oracle.ROWS)} rows were compared, with {total:,} states: all numbers have to be equal.",
        equal,
    )


def published(quick: bool) -> Check:
    """Chains and times that others printed, by exact; quick or not, it takes seconds."""
    rows: list[tuple[str, str, str, str, float]] = []

    def add(source: str, what: str, figure: str, ours: float, printed: str) -> None:
        rows.append((source, what, figure, printed, relative(ours, float(figure))))

    for retries, p1 in retransmission.P1.items():
        point = chains.external_point({"frames": 16, "max_retries": retries}, retransmission.RATES, 0.02)
        *_, found = chains.solved(retransmission.MODEL, point)
        for what, figure in (("SenderSucceeds", p1), ("ReceiverGotSomething", retransmission.P4[retries])):
            p = found.invariants[what]
            add("bounded retransmission protocol", f"P(not {what}), {retries} retries", figure, p, f"{p:.6e}")
    for capacity, figure in tandem.FIGURES.items():
        *_, found = chains.solved(tandem.MODEL, chains.external_point({"capacity": capacity}, tandem.RATES, 0.0))
        add("tandem queue", f"P(full before empty), {capacity}", figure, found.data_loss, f"{found.data_loss:.6e}")
    *_, found = chains.solved(herman.MODEL, chains.external_point({}, {}, herman.MESSAGE_LOSS))
    steps = found.expected_steps
    add("Herman's ring", "mean steps, three processes", f"{herman.FIGURE:.15g}", steps, f"{steps:.15g}")
    for row in mttdl.PUBLISHED:
        time = mttdl.ours(row)
        parts = f"{row.needed} of {row.copies} parts needed" if row.needed > 1 else f"{row.copies} copies"
        add(
            row.source,
            f"mean time to {row.ends}, {parts}, {row.unit}",
            row.figure,
            time,
            f"{time:{row.digits}}",
        )
    nodes, dead, paper = copysets.NODES, copysets.DEAD, "Cidon et al., Copysets, USENIX ATC 2013"
    for number, figure in (copysets.FIGURES | copysets.CORRECTED).items():
        p = 100 * copysets.p_loss(nodes, dead, copysets.COPIES, number)
        source = f"{paper}, by its own rule" if number in copysets.CORRECTED else paper
        add(source, f"P(loss) in %, {number:,} copysets", figure, p, f"{p:.{len(figure.partition('.')[2])}f}")
    p = 100 * copysets.windowed(nodes, dead, copysets.WINDOW)
    add(f"{paper}, exactly", "P(loss) in %, a node and two of the ten after it", copysets.EXACTLY, p, f"{p:.3f}")
    same = all(float(figure) == float(printed) for _, _, figure, printed, _ in rows)
    return Check(
        "Probabilities and times, against published figures",
        "Other people's models, written like our protocols and solved by `exact`. Figures are compared in all the "
        "digits that the sources print; the deviation is between all of our digits and the printed ones.",
        ("source", "what", "published", "Quorisk", "deviation"),
        [(*row[:4], f"{row[4]:.1e}") for row in rows],
        f"{len(rows)} figures, equal in every printed digit.",
        same,
    )


def latency(quick: bool) -> Check:
    """PBS's latencies."""
    rows = [
        ("PBS, section 5.8: YMMR, reads + writes", f"R = {acks}, W = 1", figure, pbs.yammer(acks))
        for acks, figure in pbs.YAMMER_MS.items()
    ]
    for name, figures in pbs.WRITES_MS.items():
        delays = BUILT_IN[name]
        rows += [
            (f"PBS, Table 4: {name}, writes", f"W = {acks}", figure, pbs.p999(delays, acks))
            for acks, figure in enumerate(figures, 1)
        ]
    most = max(relative(ours, figure) for *_, figure, ours in rows)
    return Check(
        "Write latency, against PBS",
        "Bailis et al., Probabilistically Bounded Staleness, VLDB 2012: 99.9th percentiles of three replicas, in "
        "milliseconds. They simulated them; we compute them from the distributions that they fitted.",
        ("source", "quorum", "published", "Quorisk", "deviation"),
        [(*row[:3], f"{row[3]:.2f}", f"{relative(row[3], row[2]):.1%}") for row in rows],
        f"the largest deviation is {most:.1%}, of {pbs.DEVIATION:.0%} allowed, as their parameters are printed with "
        "only two or three digits.",
        most <= pbs.DEVIATION,
    )


def by_storm(quick: bool) -> Check:
    """The model checker Storm, with the same chains."""
    rows, most = [], 0.0
    for model, point in chains.CHECKED:
        found, parts, ours = chains.solved(model, point, [5, 12, 30], [0.5, 4.0])
        theirs = storm.storm_answers(found, parts.largest == 1, model, [5, 12, 30], [0.5, 4.0])
        deviation = storm.largest_difference(ours, theirs)
        most = max(most, deviation)
        numbers = (f"{theirs.data_loss:.12g}", f"{ours.data_loss:.12g}", f"{theirs.expected_steps:.12g}")
        states = f"{len(found.ends):,}"
        rows.append((model.name, states, *numbers, f"{ours.expected_steps:.12g}", f"{deviation:.1e}"))
    return Check(
        "Exact answers, against Storm",
        "The model checker Storm solves the chains that `exact` builds, with no code in common: probabilities of "
        "data loss, of breaking every invariant and of every end, by steps and by time, and mean steps and times. The "
        "deviation is the largest of them.",
        ("model", "states", "P(data loss), Storm", "P(data loss)", "steps, Storm", "steps", "deviation"),
        rows,
        f"the largest relative deviation is {most:.1e}, of 1e-10 allowed.",
        most < 1e-10,
    )


def sampling(quick: bool) -> Check:
    """Random runs against exact answers."""
    runs, rows, inside = 50_000 if quick else 400_000, [], True
    for model, values, loss, rates in chains.ESTIMATED[:: 4 if quick else 1]:
        protocol = model in (chains.BOOKKEEPER, chains.COMPACTION, chains.KAFKA)
        point = point_of(model, loss, rates, **values) if protocol else chains.external_point(values or {}, rates, loss)
        *_, exact = chains.solved(model, point)
        tally = run(model, point, runs, seed=17, threads=2)
        name, p = max(exact.invariants.items(), key=lambda each: (0 < each[1] < 1, each[1]))
        hits = tally.broken[name]
        low = float(beta.ppf(0.0005, hits, runs - hits + 1)) if hits else 0.0
        high = float(beta.ppf(0.9995, hits + 1, runs - hits)) if hits < runs else 1.0
        holds = low * (1 - 1e-12) <= p <= high * (1 + 1e-12)
        inside = inside and holds
        sigma = math.sqrt(p * (1 - p) / runs)
        apart = f"{(hits / runs - p) / sigma:+.1f}" if sigma > 1e-12 else "0" if hits == p * runs else "**never**"
        said = (model.name, _said(values or {}, loss, rates), name, f"{p:.6g}", f"{hits / runs:.6g}", apart)
        rows.append((*said, f"{low:.6g} to {high:.6g}", holds))
    return Check(
        "Random runs, against exact answers",
        f"The same configuration by {runs:,} random runs and by `exact`, for the invariant that breaks most often; "
        "where none can break, no run may break one. The deviation of the runs' share is in standard deviations. The "
        "interval is Clopper-Pearson's with 99.9% confidence, so one row of a thousand may miss.",
        (
            "model",
            "what is not the default",
            "invariant",
            "P, exact",
            "share of runs",
            "deviation",
            "interval",
            "holds it",
        ),
        [(*row[:-1], "yes" if row[-1] else "**no**") for row in rows],
        f"{sum(row[-1] for row in rows)} of {len(rows)} intervals hold the exact probability.",
        inside,
    )


def _said(values: Mapping[str, Any], loss: float, rates: Mapping[str, float]) -> str:
    """A configuration in a cell of a table: what it sets."""
    settings = [
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}" for key, value in values.items()
    ]
    settings += [f"message_loss = {loss:g}"] if loss else []
    return ", ".join([*settings, *(f"rate of {action} = {rate:.4g}" for action, rate in rates.items())]).lower()


def coverage(quick: bool, count: int, seed: int) -> Check:
    """How often intervals hold the truth."""
    probabilities, runs = ([0.5, 0.05], 500) if quick else ([0.5, 0.1, 0.01], 2000)
    slow = "until half-width P/2"
    chosen = [each for each in calibrate.kinds(probabilities, runs, seed) if each.method != slow or each.truth > 0.05]
    result = [calibrate.calibrate(each, count) for each in chosen]
    rows = [
        (
            each.method,
            each.chain,
            f"{each.truth:.6g}",
            f"{each.coverage:.3f}",
            f"{each.coverage_low:.3f} to {each.coverage_high:.3f}",
        )
        for each in result
    ]
    short = [each for each in result if each.coverage_high < 0.95]
    least = min(each.coverage for each in result)
    return Check(
        "Intervals, against what they promise",
        f"Every kind of 95% interval, {count:,} times on chains whose answer is known: how often it contained the "
        "answer. The last column has 99.9% intervals of that share, made as `quorisk calibrate` makes them.",
        ("interval", "chain", "truth", "coverage", "99.9% interval"),
        rows,
        f"the least coverage seen is {least:.3f}; {len(short)} of {len(rows)} rows are below 0.95 beyond chance.",
        not short and not np.isnan(least) and not math.isinf(least),
    )
