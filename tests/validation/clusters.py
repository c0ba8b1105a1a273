"""Clusters against an independent program: P(any loss in a year), incidents and entries lost a year, three ways."""

import math
from collections.abc import Iterator
from itertools import islice

from quorisk.analysis.cluster.certified import DrawPlan, certified
from quorisk.analysis.cluster.figures import YearFigure
from quorisk.analysis.cluster.sampled import losses_of_years
from quorisk.kernels.cluster.setting import Cluster, Event
from quorisk.kernels.cluster.years import INCIDENTS, draw_years
from tests.analysis.cluster.clusters import KNOWN, cluster_of
from tests.external.incidents import EVERY_SET
from tests.references.cluster import enumerated, literal
from tests.validation.page import Check

CONFIDENCE, Z = 0.95, 1.959964
YEARS, QUICK_YEARS, LITERAL_YEARS = 1_000_000, 20_000, 20_000
MOST_Z = 4.5
"""Of some hundred differences, one that is larger has a chance of 1 in 1,000."""
LEDGERS = "single ledgers"
WHAT = ("any", "incidents", "entries")
SEED, THREADS = 20261123, 2


def clusters(quick: bool) -> Check:
    """Every cluster that the independent program told, by strata, by years and by single ledgers."""
    rows = [row for name in KNOWN for row in _rows(name, quick)]
    worst = max(abs(row[-1]) for row in rows)
    return Check(
        "Clusters, against an independent program",
        "Another program, written apart from Quorisk from the model on its page, found what twelve clusters lose, by "
        "strata and by sampled years (`tests/data/clusters.json`). Quorisk finds the same by strata, by years drawn at "
        "random, and by years in which every ledger is kept by itself (`tests/references/cluster`). A z-score is a "
        "difference divided by the standard error of both sides; the program's side is its strata, or its own years "
        "of single ledgers where these are compared.",
        ("cluster", "what", "way", "the other program", "Quorisk", "z"),
        [(*row[:3], f"{row[3]:.6g}", f"{row[4]:.6g}", f"{row[5]:+.1f}") for row in rows],
        f"{len(rows)} figures; the largest z-score is {worst:.1f}, and may be {MOST_Z}.",
        worst <= MOST_Z,
    )


def majority(nodes: int, **fields: object) -> Cluster:
    """Returns a cluster that has an incident where a node is lost and a majority of its nodes is gone."""
    needed = nodes // 2 + 1
    return Cluster(nodes, needed, needed, EVERY_SET, 1, **fields)  # type: ignore[arg-type]


def majorities(quick: bool) -> Check:
    """Majorities of nodes that fail independently, alike and not."""
    rows: list[tuple[str, ...]] = []
    off: list[float] = []
    for nodes in (3, 5, 7, 9):
        for p in (0.01, 0.02, 0.04, 0.08):
            truth = enumerated.p_at_least(nodes // 2 + 1, [p] * nodes)
            ours = certified(majority(nodes, events=(Event("fail", "cluster", 1.0, p),)), CONFIDENCE, DrawPlan(SEED, 1))
            found = ours.incidents.value
            off.append(abs(found / truth - 1.0))
            rows.append((f"{nodes} nodes at {p:.0%}", "strata", f"{truth:.6e}", f"{found:.6e}", f"{off[-1]:.0e}"))
    for good, rate in ((3, 0.08), (3, 0.01), (4, 0.01)):
        # so often a year that each node is down for such a part of the time, a day after each loss
        day = 1.0 / 365.25
        bad = Event("bad", "node", 0.08 / 0.92 / day, 1.0, 7 - good)
        better = Event("good", "node", rate / (1.0 - rate) / day, 1.0, good, first=7 - good)
        cluster = majority(7, detection_delay=day, events=(bad, better))
        truth, num = enumerated.incidents(cluster), QUICK_YEARS // 10 if quick else YEARS // 100
        tally = draw_years(cluster, 0, num, SEED, THREADS)
        found = tally.mean(INCIDENTS)
        z = (found - truth) / math.sqrt((tally.mean(INCIDENTS + 1) - found**2) / num)
        off.append(0.0 if abs(z) < MOST_Z else 1.0)
        rows.append(
            (f"{7 - good} nodes at 8%, {good} at {rate:.0%}", "years", f"{truth:.6g}", f"{found:.6g}", f"z {z:+.1f}")
        )
    return Check(
        "Majorities of nodes, alike and not",
        "Frank et al., Real Life Is Uncertain. Consensus Should Be Too! (HotOS 2025), asks how often a majority of "
        "3 to 9 nodes fails, each with a probability of 1 to 8 %. The cells of its table were not at hand: here every "
        "set of nodes that may fail is enumerated (`tests/references/cluster/enumerated.py`). The last rows have nodes "
        "that are not alike: each is down for such a part of the time, a day after each loss, and the figure is how "
        "often a year a node is lost while a majority is down with it.",
        ("cluster", "way", "enumerated", "Quorisk", "deviation"),
        rows,
        f"{len(rows)} figures; the largest relative deviation is {max(off):.0e}, and z-scores are below {MOST_Z}.",
        max(off) <= 1e-8,
    )


def _rows(name: str, quick: bool) -> Iterator[tuple[str, str, str, float, float, float]]:
    cluster, truth, by_ledgers = cluster_of(name), KNOWN[name]["strata"], KNOWN[name].get("literal", {})
    ways = {"strata": _figures(certified(cluster, CONFIDENCE, DrawPlan(SEED, THREADS)))}
    if "sampled" in KNOWN[name]:
        tally = draw_years(cluster, 0, QUICK_YEARS if quick else YEARS, SEED, THREADS)
        ways["years"] = _figures(losses_of_years(cluster, tally, CONFIDENCE))
    if by_ledgers and not cluster.sets and cluster.placement != "copysets":
        ways[LEDGERS] = _literal(cluster, QUICK_YEARS // 10 if quick else LITERAL_YEARS)
    for way, figures in ways.items():
        for what in WHAT:
            (value, error), (ours, own) = (by_ledgers if way == LEDGERS else truth)[what], figures[what]
            yield name, what, way, value, ours, (ours - value) / math.hypot(error, own)


def _figures(found: object) -> dict[str, tuple[float, float]]:
    """Values and standard errors: a quarter of an interval's width, or so."""
    named = dict(zip(WHAT, (getattr(found, name) for name in ("p_any", "incidents", "entries")), strict=True))
    return {what: (each.value, _error(each)) for what, each in named.items()}


def _error(figure: YearFigure) -> float:
    return (figure.high - figure.low) / (2.0 * Z)


def _literal(cluster: Cluster, num: int) -> dict[str, tuple[float, float]]:
    years = list(islice(literal.years(cluster, [], num, SEED), num))
    values = {
        "any": [float(bool(year.incidents)) for year in years],
        "incidents": [float(len(year.incidents)) for year in years],
        "entries": [float(sum(year.incidents)) for year in years],
    }
    return {what: _mean(each) for what, each in values.items()}


def _mean(values: list[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(spread / len(values))
