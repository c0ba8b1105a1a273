"""What rates allow on a cluster: of each figure that plays a part, and where P(any loss in a year) is near 1."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri
from scipy.stats import binom, qmc

from quorisk.analysis.cluster import interpolated
from quorisk.analysis.cluster.answer import answer, effort_of, placed_designs
from quorisk.analysis.decision.recommend import advise
from quorisk.analysis.decision.weigh import Weigher
from quorisk.analysis.experiment.config import build_experiment
from quorisk.analysis.statistics.known import Z

DOCUMENT: dict[str, Any] = {
    "protocol": "bookkeeper",
    "model": {"bookies": 5, "clients": 1, "write_quorum": 3, "ack_quorum": 3, "entries": 1, "inflight": 1},
    "cluster": {
        "nodes": 10,
        "ledgers": 50,
        "entries_per_ledger": 100,
        "node_bytes": "1 MB",
        "repair_bandwidth": "1 GB/s",
        "events": {
            "power": {"per_year": {"value": "2 / year", "error_factor": 4}, "p_lost": {"low": 0.1, "high": 0.6}}
        },
    },
}
COPIES = 2, 3, 4


@pytest.fixture(scope="module")
def advice():
    where = ["ack_quorum == write_quorum"]
    grid = {"write_quorum": list(COPIES), "ack_quorum": list(COPIES), "where": where}
    return advise(build_experiment({**DOCUMENT, "grid": grid}, "x.toml"), Weigher(1 << 26, 2))


def closed_form(copies: int) -> np.ndarray:
    """5 % and 95 % of P(any): nodes are back before the next outage."""
    outages, lost = qmc.Sobol(2, rng=np.random.default_rng(3)).random_base2(14).T
    rate = 2.0 * np.exp(math.log(4.0) / Z * ndtri(outages))
    p = expit((logit(0.1) + logit(0.6)) / 2.0 + (logit(0.6) - logit(0.1)) / (2.0 * Z) * ndtri(lost))
    sets = [1.0 - math.comb(b, copies) / math.comb(10, copies) for b in range(11)]
    any_lost = sum(binom.pmf(b, 10, p) * (1.0 - each**50) for b, each in enumerate(sets))
    return np.quantile(-np.expm1(-rate * any_lost), [0.05, 0.95])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("copies", COPIES)
def test_ends_are_those_of_the_closed_form_though_no_product_of_powers_has_them(advice, copies):
    found = advice.doubt.allowed[f"{copies}/{copies}/{copies}"]
    assert [found.low, found.high] == pytest.approx(closed_form(copies), rel=0.06)
    assert found.error_factor < 1.05
    assert found.bent > 0.01


def test_ends_are_widened_by_how_far_off_interpolation_is(monkeypatch):
    given = build_experiment(DOCUMENT, "x.toml")
    rates = []
    for factor in (1.0, 2.0):
        monkeypatch.setattr(interpolated, "_factor", lambda *_, factor=factor: factor)
        found = interpolated.losses_on_clusters(given, placed_designs(given), 64)
        assert found is not None
        [design] = found.designs
        assert design is not None
        assert design.error_factor == factor
        rates.append([-math.log1p(-p) for p in (design.low, design.median, design.high)])
    (low, median, high), wider = rates
    assert wider == pytest.approx([low / 2.0, median, 2.0 * high])


def test_a_design_that_loses_least_at_each_draw_is_the_choice_in_all(advice):
    assert advice.doubt.choice == {"4/4/4": 1.0}


def thin(ack_quorum: int, **changes: Any) -> Any:
    exactly = {"events": {"power": {"per_year": 1.0, "p_lost": 0.001}}, "entries_per_second": 1, "retention": "1 day"}
    cluster = {**DOCUMENT["cluster"], **exactly}
    del cluster["ledgers"]
    faults = {"message_loss": {"value": 1e-5, "error_factor": 10}}
    model = {**DOCUMENT["model"], "ack_quorum": ack_quorum}
    document = {**DOCUMENT, "model": model, "cluster": cluster, "faults": faults, "profile": "bookkeeper_ssd"}
    return build_experiment({**document, **changes}, "x.toml")


def p_any(given: Any) -> float:
    return answer(placed_designs(given)[0], effort_of(given, 1)).losses.p_any.value


def test_what_is_known_of_message_loss_reaches_entries_that_stay_on_few_copies():
    """It is most of what is not known, so that P(any) at its ends is what it allows."""
    rates = {"bookie_sends_add_confirmed_response": "400 / s", "client_receives_add_confirmed_response": "4000 / s"}
    given = thin(2, rates=rates)
    found = interpolated.losses_on_clusters(given, placed_designs(given))
    assert found is not None
    [design] = found.designs
    assert design is not None
    assert set(found.of) == set(design.powers) == {"faults.message_loss"}
    assert (found.of["faults.message_loss"].often, found.of["faults.message_loss"].per) == (1e-5, "trial")
    ends = [p_any(given.changed(f"faults.message_loss={1e-5 * factor}")) for factor in (1 / 10, 10)]
    assert ends[1] > 10 * ends[0]
    assert [design.low, design.high] == pytest.approx(ends, rel=0.05)


def test_what_is_known_of_how_long_copies_take_reaches_entries_that_have_few_yet():
    given = thin(1)
    found = interpolated.losses_on_clusters(given, placed_designs(given), 32)
    assert found is not None
    [design] = found.designs
    assert design is not None
    assert design.powers["rates.bookie_sends_add_confirmed_response"] < -0.1
    assert found.of["rates.bookie_sends_add_confirmed_response"].per == "year"


def test_what_is_known_of_flushes_reaches_what_is_not_on_disk():
    cluster = {
        **DOCUMENT["cluster"],
        "events": {"power": {"per_year": 1.0, "p_lost": 0.0}},
        "entries_per_second": 1e-3,
        "entries_per_ledger": 10,
    }
    del cluster["ledgers"]
    flushes = {"bookie_flushes": {"value": "1 / 1 min", "error_factor": 3}}
    document = {"cluster": {**cluster, "retention": "1 day"}, "variant": {"journal_sync": False}, "rates": flushes}
    given = build_experiment({**DOCUMENT, **document, "profile": "bookkeeper_ssd"}, "x.toml")
    found = interpolated.losses_on_clusters(given, placed_designs(given), 32)
    assert found is not None
    [design] = found.designs
    assert design is not None
    assert design.powers == {"rates.bookie_flushes": pytest.approx(-1.0, abs=0.02)}
