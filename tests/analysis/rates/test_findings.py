"""From counts to a profile: which keys they tell, whose rate it is, and a file that experiments read."""

import tomllib
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from quorisk.analysis.experiment import config, profiles
from quorisk.analysis.experiment.known import Stated
from quorisk.analysis.rates.answer import RatesAnswer, as_json, rows
from quorisk.analysis.rates.files import Files
from quorisk.analysis.rates.findings import findings
from quorisk.analysis.rates.fleet import Drives, Fleet
from quorisk.analysis.rates.observed import DAY_S, Observed, Series, periods, series
from quorisk.analysis.rates.oddities import Oddity, Sightings
from quorisk.analysis.rates.profile import profile_text
from quorisk.analysis.statistics.known import Beta, Gamma
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols import evidence, registry

LOST = "rates.bookie_is_lost"
TOLD_BY = {evidence.NODE_LOSSES: LOST, evidence.DRIVE_FAILURES: LOST, evidence.REPAIRS: "rates.x"}
DEFAULTS = {LOST: Stated(1e-9, None)}


def drives(model, failures, drive_days, days=1):
    return Drives(model, 10**12, Series(20_000, np.array([failures]), np.array([float(drive_days)])))


FLEET = Fleet((drives("M1", 5, 281_692), drives("M2", 59, 1_701_967), drives("M3", 0, 79_740)), 9, {})


def observed(kind, events, exposure):
    return Observed(kind, series([20_000], [events], [exposure]), "a test")


def answer(found, fleet=None):
    base = profiles.find_profile("bookkeeper_ssd", Path())
    return RatesAnswer(base, found, fleet, Files((), (), ()), {Oddity("rows", "left out"): Sightings(3, "x.csv")})


@pytest.mark.parametrize(
    ("of", "failures", "known"),
    [("fleet", 64, Gamma(64, (281_692 + 1_701_967 + 79_740) * DAY_S)), ("M2", 59, Gamma(59, 1_701_967 * DAY_S))],
)
def test_a_fleet_or_a_model_is_known_by_its_counts(of, failures, known):
    [found] = findings([], FLEET, of, TOLD_BY, DEFAULTS)
    assert (found.key, found.observed.events, found.known) == (LOST, failures, known)


def test_another_model_is_known_less_well_than_any_fleet():
    [another], [fleet] = (findings([], FLEET, of, TOLD_BY, DEFAULTS) for of in ("any", "fleet"))
    low, high = another.known.quantile([0.05, 0.95]) / fleet.known.quantile([0.05, 0.95])
    assert low < 0.8
    assert high > 1.5
    alone = findings([], FLEET._replace(groups=FLEET.groups[:1]), "any", TOLD_BY, DEFAULTS)
    assert alone[0].known == Gamma(5, 281_692 * DAY_S)


def test_no_failure_of_any_model_bounds_another_model_no_lower_than_all_drives():
    fleet = Fleet(tuple(drives(f"M{n}", 0, 3650 * n) for n in (1, 2, 3)), 60, {})
    [another], [every] = (findings([], fleet, of, TOLD_BY, DEFAULTS) for of in ("any", "fleet"))
    assert every.known == Gamma(0, 21_900 * DAY_S)
    assert every.known.quantile(0.95) < another.known.quantile(0.95) < 3 * every.known.quantile(0.95)


def test_a_model_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match=r"^of M9: any, fleet, or one of the models M1, M2, M3$"):
        findings([], FLEET, "M9", TOLD_BY, DEFAULTS)


def test_a_model_is_refused_where_there_are_no_drives():
    with pytest.raises(ConfigError, match=r"^of M9: any, .* of drive statistics, but there are none here$"):
        findings([], None, "M9", {}, {})
    assert findings([], None, "fleet", {}, {}) == []


def test_the_better_of_two_kinds_tells_a_key_and_every_other_says_why_it_tells_none():
    each = [observed(kind, 3, 1e9) for kind in (evidence.REPAIRS, evidence.NODE_STOPS, evidence.NODE_LOSSES)]
    found = findings(each, FLEET, "fleet", TOLD_BY, DEFAULTS)
    assert [(one.observed.kind, one.key, one.why) for one in found] == [
        (evidence.NODE_LOSSES, LOST, "all counts together"),
        (evidence.DRIVE_FAILURES, "", f"node losses tell {LOST} better"),
        (evidence.REPAIRS, "", "rates.x would follow, which this protocol does not have"),
        (evidence.NODE_STOPS, "", "no figure of this protocol follows"),
    ]


def profile_of(found, tmp_path, **tables):
    text = profile_text(answer(found), "quorisk rates x\n", date(2026, 11, 23))
    (tmp_path / "profiles").mkdir(exist_ok=True)
    (tmp_path / "profiles" / "ours.toml").write_text(text)
    model = {"bookies": 3, "clients": 1, "write_quorum": 2, "ack_quorum": 1, "entries": 1, "inflight": 1}
    document = {"protocol": "bookkeeper", "profile": "ours", "model": model, **tables}
    return config.build_experiment(document, str(tmp_path / "x.toml")), tomllib.loads(text)


def test_a_profile_of_counts_is_read_as_these_counts(tmp_path):
    each = [observed(evidence.NODE_LOSSES, 3, 200 * 365.25 * DAY_S), observed(evidence.REPAIRS, 7, 12_345.0)]
    told_by = registry.evidence("bookkeeper")
    keys = {LOST: None, "rates.auditor_replicates_fragment": None}
    experiment, text = profile_of(findings(each, None, "any", told_by, keys), tmp_path)
    assert experiment.known[LOST] == pytest.approx(Gamma(3, 200 * 365.25 * DAY_S))
    assert experiment.known["rates.auditor_replicates_fragment"] == pytest.approx(Gamma(7, 12_345.0))
    assert experiment.points[0].point.rates["bookie_is_lost"] == pytest.approx(
        Gamma(3, 200 * 365.25 * DAY_S).median, rel=5e-3
    )
    assert experiment.points[0].point.rates["bookie_is_replaced"] == pytest.approx(1 / DAY_S)
    assert text["date"] == date(2026, 11, 23)
    assert experiment.notes == ()
    figure = text["rates"]["bookie_is_lost"]
    assert figure["source"] == "node losses: 3 in 200 years of node time (a test); read on 2026-11-23"
    assert (figure["value"], figure["events"], figure["exposure"]) == ("1.59 % / year", 3, "73050 days")


def test_a_profile_of_pooled_models_has_their_range(tmp_path):
    found = findings([], FLEET, "any", TOLD_BY, DEFAULTS)
    experiment, _ = profile_of(found, tmp_path)
    ends = experiment.known[LOST].quantile([0.05, 0.95])
    assert ends == pytest.approx(found[0].known.quantile([0.05, 0.95]), rel=5e-3)


def test_a_probability_is_written_with_its_trials():
    hit = observed(evidence.LOST_IN_OUTAGES, 1, 40)
    told_by = {evidence.LOST_IN_OUTAGES: "faults.message_loss"}
    text = profile_text(
        answer(findings([hit], None, "any", told_by, {"faults.message_loss": None})), "x", date(2026, 1, 1)
    )
    figure = tomllib.loads(text)["faults"]["message_loss"]
    assert (figure["value"], figure["events"], figure["trials"]) == (0.0293, 1, 40)
    assert hit.known == Beta(1, 40)


def test_json_has_published_failure_rates_by_model_and_in_all():
    found = as_json(answer(findings([], FLEET, "fleet", TOLD_BY, DEFAULTS), FLEET))["drives"]
    first, second, third = found["models"]
    assert [round(100 * each["afr"], 2) for each in (first, second, third)] == [0.65, 1.27, 0.0]
    assert (round(100 * third["mean"], 3), round(100 * third["high_95"], 3)) == (0.229, 1.150)
    assert found["failures"] == 64
    assert found["another_model"]["low"] < found["low"] < found["afr"] < found["high"] < found["another_model"]["high"]


def test_json_tells_what_was_odd():
    assert as_json(answer([]))["told"] == [{"what": "rows", "times": 3, "done": "left out", "where": "x.csv"}]


def test_rows_of_the_figure_have_what_data_and_profile_say_and_times():
    each = Observed(evidence.NODE_LOSSES, Series(19_723, np.array([1] * 60), np.array([1e8] * 60)), "a test")
    table = rows(answer(findings([each], None, "any", TOLD_BY, DEFAULTS)))
    assert [row["about"] for row in table] == ["posterior", "default", "period", "period"]
    assert [row["label"] for row in table][1:3] == ["bookkeeper_ssd", "2024-01-01 to 2024-01-31 (31)"]
    assert table[0]["p5"] < table[0]["p25"] < table[0]["median"] < table[0]["p75"] < table[0]["p95"]
    assert table[1]["p5"] == table[1]["median"] == table[1]["p95"] == 1e-9


@pytest.mark.parametrize(
    ("num_days", "num_periods", "second"), [(60, 2, "2024-02-01"), (800, 9, "2024-04-01"), (3000, 9, "2025-01-01")]
)
def test_periods_are_months_quarters_or_years_and_lose_nothing(num_days, num_periods, second):
    whole = Series(19_723, np.arange(num_days), np.arange(num_days) * 2.0)  # from 2024-01-01 on
    found = list(periods(whole))
    assert (len(found), found[1].first.isoformat()) == (num_periods, second)
    assert sum(each.events for each in found) == whole.events.sum()
    assert sum(each.exposure for each in found) == whole.exposure.sum()


CLUSTER = {"nodes": 20, "ledgers": 100, "entries_per_ledger": 1000, "entry_bytes": 1000, "repair_bandwidth": 1e8}


def test_a_cluster_takes_from_a_profile_what_it_has_no_figure_for(tmp_path):
    lost = observed(evidence.NODE_LOSSES, 3, 200 * 365.25 * DAY_S)
    each = [lost, observed(evidence.OUTAGES, 2, 1e8), observed(evidence.LOST_IN_OUTAGES, 1, 60)]
    found = findings(each, FLEET, "any", registry.evidence("bookkeeper"), {LOST: None})
    experiment, _ = profile_of(found, tmp_path, cluster=CLUSTER)
    cluster = experiment.clusters[0].cluster
    assert cluster.node_loss == pytest.approx(Gamma(3, 200.0).median, rel=5e-3)
    assert cluster.events[0].p_lost == pytest.approx(Beta(1, 60).median, rel=5e-3)
    assert cluster.outages > 0.0
    assert experiment.known["cluster.node_loss"] == pytest.approx(Gamma(3, 200.0))
    own, _ = profile_of(
        found, tmp_path, cluster=CLUSTER | {"node_loss": 0.01}, grid={"cluster.events.power_outage.per_year": [1, 2]}
    )
    assert own.clusters[0].cluster.node_loss == 0.01
    mine = "cluster.node_loss, cluster.events.power_outage.per_year"
    assert own.notes == (f"the file has its own {mine}: without these lines it takes those of profile ours",)


def test_nodes_that_were_lost_together_become_events_of_the_cluster(tmp_path):
    counts = (
        (evidence.BATCH_LOSSES, 2, 1e8),
        (evidence.LOST_IN_BATCH, 5, 6),
        (evidence.RACK_LOSSES, 1, 4e8),
        (evidence.LOST_IN_RACK, 3, 5),
        (evidence.NODE_LOSSES, 7, 1e9),
    )
    found = findings([observed(*each) for each in counts], None, "any", registry.evidence("bookkeeper"), {LOST: None})
    assert [each.why for each in found][1:3] == [
        "tells cluster.events.nodes_lost_together.per_year alone",
        "tells cluster.events.nodes_lost_together.p_lost alone",
    ]
    experiment, _ = profile_of(found, tmp_path, cluster=CLUSTER | {"racks": 4})
    events = {each.name: each for each in experiment.clusters[0].cluster.events}
    year_s = 365.25 * DAY_S
    for name, scope, nodes, per_year, p_lost in (
        ("nodes_lost_together", "batch", 3, Gamma(2, 1e8 / year_s), Beta(5, 6)),
        ("rack_lost", "rack", 0, Gamma(1, 4e8 / year_s), Beta(3, 5)),
    ):
        event = events[name]
        assert (event.scope, event.nodes) == (scope, nodes)
        assert (event.per_year, event.p_lost) == pytest.approx((per_year.median, p_lost.median), rel=5e-3)
        assert experiment.known[f"cluster.events.{name}.per_year"] == pytest.approx(per_year)
        assert experiment.known[f"cluster.events.{name}.p_lost"] == pytest.approx(p_lost)


def test_an_event_of_which_one_figure_is_told_is_not_in_the_profile(tmp_path):
    """An experiment without that event could not be read any more."""
    each = [observed(evidence.OUTAGES, 0, 1e8), observed(evidence.NODE_LOSSES, 7, 1e9)]
    found = findings(each, None, "any", registry.evidence("bookkeeper"), {LOST: None})
    experiment, _ = profile_of(found, tmp_path, cluster=CLUSTER)
    assert experiment.clusters[0].cluster.events == ()
