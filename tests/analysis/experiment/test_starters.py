"""Files about a cluster, filled with what its operator knows."""

from itertools import product

import pytest

from quorisk.analysis.cluster.answer import placed_designs
from quorisk.analysis.cluster.joined import enough_of
from quorisk.analysis.estimate.estimate import estimate
from quorisk.analysis.exact.exact import exact
from quorisk.analysis.experiment import config, starters
from quorisk.analysis.experiment.switches import idle
from quorisk.kernels.cluster.setting import DISTINCT_RACKS, RANDOM, TWO_RACKS
from quorisk.kernels.errors import ConfigError
from tests.support import refusal

PER_SECOND = 'a number above 0, and 1e12 at most, such as "1,600" or "1e4"'
MINE = starters.OperatorAnswers("40", "3", "1,600", "3 days", "E 3, WQ 3, AQ 2")


def load(protocol, answers, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(starters.filled_template(protocol, answers), "utf-8")
    return config.load(path)


def test_the_file_is_about_the_cluster_and_has_today_s_design(tmp_path):
    experiment = load("bookkeeper", MINE, tmp_path)
    cluster = experiment.clusters[0].cluster
    assert (cluster.nodes, cluster.racks, cluster.placement) == (40, 3, TWO_RACKS)
    assert cluster.entries == pytest.approx(1600 * 3 * 86_400)
    designs = [tuple(each.varied[f"model.{key}"] for key in KEYS["bookkeeper"]) for each in experiment.clusters]
    today = [each for each in designs if each[0] == 3]
    assert sorted(designs) == [(2, 2, 2), *sorted(today), (4, 4, 2), (4, 4, 3), (4, 4, 4)]
    assert sorted(today) == [(3, 3, 2), (3, 3, 2), (3, 3, 3), (3, 3, 3)]  # with either placement
    assert all(each.thin is not None for each in experiment.clusters)
    assert experiment.points[0].point.lifetime == 3 * 86_400


@pytest.mark.parametrize("said", ["1e4", "1E+4", "10,000", "10,000.0", "1,000e1", "010000", "1_0000.0"])
def test_a_number_of_entries_may_be_written_as_numbers_are(said, tmp_path):
    experiment = load("bookkeeper", MINE._replace(entries_per_second=said), tmp_path)
    assert experiment.clusters[0].cluster.entries == pytest.approx(10_000 * 3 * 86_400)


@pytest.mark.parametrize(
    ("retention", "ledgers", "said"), [("2 h", 1, "one ledger has all"), ("3 days", 25.92, "Pulsar's")]
)
def test_a_ledger_is_no_larger_than_what_is_kept(retention, ledgers, said, tmp_path):
    """`quorisk recommend` refused the file else."""
    answers = MINE._replace(entries_per_second="5", retention=retention)
    assert load("bookkeeper", answers, tmp_path).clusters[0].cluster.ledgers == pytest.approx(ledgers)
    assert f"# assumed: {said}" in (tmp_path / "mine.toml").read_text("utf-8")


KEYS = {
    "bookkeeper": ("ensemble_size", "write_quorum", "ack_quorum"),
    "kraft": ("replication_factor", "min_isr", "acks"),
}


@pytest.mark.parametrize(
    ("protocol", "quorums", "today"),
    [
        ("bookkeeper", "1/1/1", (1, 1, 1)),
        ("bookkeeper", "3 2 2", (3, 2, 2)),
        ("bookkeeper", "e 5, wq 3, aq 2", (5, 3, 2)),
        ("bookkeeper", "5/5/1", (5, 5, 1)),
        ("kraft", "rf 2, min isr 2, acks -1", (2, 2, "all")),
        ("kraft", "3/2/all", (3, 2, "all")),
        ("kraft", "5,3,all", (5, 3, "all")),
    ],
)
def test_whatever_is_answered_the_file_loads_and_has_today_s_design(protocol, quorums, today, tmp_path):
    for nodes, racks in product(("5", "30"), ("1", "2", "5")):
        experiment = load(protocol, starters.OperatorAnswers(nodes, racks, "0.5", "36 h", quorums), tmp_path)
        values = [
            {name.partition(".")[2]: value for name, value in each.varied.items()} for each in experiment.clusters
        ]
        found = [tuple(each[key] for key in KEYS[protocol]) for each in values]
        has_two = protocol == "bookkeeper" and today[1] > 1 and 3 <= today[0] <= int(racks)
        assert found.count(today) == 1 + has_two
        assert len(found) > 1
        assert idle(experiment) == []
        assert [each.refused for each in experiment.clusters if each.refused] == []
        assert (experiment.clusters[0].cluster.placement == RANDOM) == (
            racks == "1" or today[:2] == (1, 1) or ((racks, today[:2]) == ("2", (3, 2)) and protocol == "bookkeeper")
        )
        if protocol == "kraft" and racks == "5" and today[0] > 1:
            assert experiment.clusters[0].cluster.placement == DISTINCT_RACKS


def test_partitions_and_several_kinds_of_topics_of_kafka_are_in_the_file(tmp_path):
    answers = starters.OperatorAnswers("30", "3", "5e4", "7 days", "3/2/all; 2/1/-1", partitions="12,000")
    experiment = load("kraft", answers, tmp_path)
    designs = {(each.varied["model.replication_factor"], each.varied["model.min_isr"]) for each in experiment.clusters}
    assert designs == {(2, 1), (2, 2), (3, 1), (3, 2)}
    of_each = [each.point.values for each in experiment.points]
    assert all(values["zones"] == values["replication_factor"] for values in of_each)  # a zone for each replica
    assert experiment.clusters[0].cluster.ledgers == pytest.approx(12_000, rel=1e-3)
    for placed in experiment.clusters:
        assert hazard(experiment, *BY_BROKER, placed) == pytest.approx(12 * 12_000 * 0.0157, rel=0.005)
        lost = experiment.scenarios["broker_lost"].event(placed)
        replicas = placed.varied["model.replication_factor"]  # its own, not the largest of the file
        assert lost.hits == pytest.approx(12_000 * replicas / 30, rel=1e-3)
        assert lost.per_year == pytest.approx(30 * 0.0157 / 730.5 / replicas)


def test_the_divisors_of_how_often_a_scenario_happens_are_numbers_or_keys_of_the_model(tmp_path):
    mine = load("kraft", starters.OperatorAnswers("30", "3", "5e4", "7 days", "3/2/all"), tmp_path)
    lost = mine.changed('scenarios.broker_lost.per_year="node_losses / 2.5 / 4"').scenarios["broker_lost"]
    assert lost.event(mine.clusters[0]).per_year == pytest.approx(30 * 0.0157 / 10)
    for wrong in ("racks", "0", "-1", ""):
        with pytest.raises(ConfigError, match=rf'per_year: / "{wrong}": a number from 1 up, or a key of \[model\]'):
            mine.changed(f'scenarios.broker_lost.per_year="node_losses / {wrong}"')


def test_events_of_single_nodes_are_node_losses_as_well(tmp_path):
    mine = load("kraft", starters.OperatorAnswers("30", "3", "5e4", "7 days", "3/2/all"), tmp_path)
    more = mine.changed('cluster.events.rack_outage.scope="node"', "cluster.events.rack_outage.per_year=0.01")
    more = more.changed("cluster.events.rack_outage.p_lost=0.5")
    before, after = (each.scenarios["broker_lost"].event(each.clusters[0]).per_year for each in (mine, more))
    assert after / before == pytest.approx((0.0157 + 0.005) / 0.0157)


@pytest.mark.parametrize("topics", ["2/2/all; 3/2/all; 4/2/all", "3/2/all; 5/2/1", "4/2/all; 5/2/all", "3/2/all"])
def test_how_many_racks_a_partition_is_in_follows_from_its_own_replicas_alone(topics, tmp_path):
    """All topics had as many as those with the fewest replicas, so that a lost rack took two of three."""
    found = load("kraft", starters.OperatorAnswers("30", "3", "5e4", "7 days", topics), tmp_path)
    asked = {int(topic.strip()[0]) for topic in topics.split(";")}
    assert asked <= {each.point.values["replication_factor"] for each in found.points}
    for each in found.points:
        assert each.point.values["zones"] == min(3, each.point.values["replication_factor"])


@pytest.mark.parametrize(("partitions", "leaders", "led"), [("5", 5, 1), ("600", 30, 20)])
def test_as_many_leaders_are_cut_off_as_there_are(partitions, leaders, led, tmp_path):
    answers = starters.OperatorAnswers("30", "3", "5e4", "7 days", "3/1/1", partitions=partitions)
    found = load("kraft", answers, tmp_path)
    cut_off = found.scenarios["leader_cut_off"].event(found.clusters[0])
    assert (cut_off.per_year, cut_off.hits) == (leaders, led)


def test_replicas_are_in_racks_of_their_own_where_there_are_enough(tmp_path):
    """All were judged by the placement that the largest replication factor has to have."""
    answers = starters.OperatorAnswers("30", "3", "5e4", "7 days", "3/2/all; 4/2/all; 4/3/all")
    found = load("kraft", answers, tmp_path).clusters
    assert {(each.cluster.write_quorum, each.cluster.placement) for each in found} == {
        (3, DISTINCT_RACKS),
        (4, TWO_RACKS),
    }
    assert len(found) == 6


def hazard(experiment, scenario, action, placed=None):
    """Rolls a year of all partitions, times how often a year the action comes: what an event hits, how often it happens
    and the model's rate have to give that."""
    point = next(each.point for each in experiment.points if each.scenario == scenario)
    event = experiment.scenarios[scenario].event(placed or next(iter(experiment.clusters), None))
    return event.objects * point.rates[action] * YEAR_S


YEAR_S = 365.25 * 86_400
RACK_OUTAGES = "cluster.events.rack_outage.per_year"
BY_RACK, BY_BROKER = ("rack_loses_power", "zone_loses_power"), ("broker_lost", "data_loss_shutdown")


@pytest.mark.parametrize(("racks", "quorums"), [("3", "3/2/all"), ("2", "3/2/all"), ("5", "5/3/all")])
def test_faults_in_rolls_come_as_often_in_scenarios_as_on_the_cluster(racks, quorums, tmp_path):
    experiment = load("kraft", MINE._replace(racks=racks, quorums=quorums), tmp_path)
    placed, rolls = experiment.clusters[0], 1000 * experiment.clusters[0].restarts
    assert hazard(experiment, *BY_RACK) == pytest.approx(rolls * placed.figure(RACK_OUTAGES), rel=0.005)
    assert hazard(experiment, *BY_BROKER) == pytest.approx(rolls * placed.cluster.node_loss, rel=0.005)
    assert RACK_OUTAGES in experiment.known
    assert "scenarios.rack_loses_power.per_year" not in experiment.known  # it is the cluster's


@pytest.mark.parametrize(
    ("path", "of_zones", "of_brokers", "partitions", "zone_outages", "losses"),
    [
        ("starters/kraft", "zone_lost_in_roll", "broker_lost_in_roll", 1000, 1 / 15, 0.0157),
        ("kraft_year", "zone_outage", "broker_lost", 1, 1 / 10, 0.01),
    ],
)
def test_so_they_do_in_files_that_are_not_about_a_cluster(path, of_zones, of_brokers, partitions, zone_outages, losses):
    """Taking all outages of a year for outages in rolls made losses thousands of times as many."""
    experiment = config.load(starters.FOLDER.parent / f"{path}.toml")
    rolls = 12 * partitions
    assert hazard(experiment, of_zones, "zone_loses_power") == pytest.approx(rolls * zone_outages, rel=0.02)
    assert hazard(experiment, of_brokers, "data_loss_shutdown") == pytest.approx(rolls * losses, rel=0.02)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes": "2", "racks": "1"}, "quorums E 3: E at most as many as nodes (2)"),
        ({"nodes": "0"}, "nodes 0: an integer from 1 to 100000"),
        ({"nodes": "many"}, "nodes many: an integer from 1 to 100000"),
        ({"racks": "41"}, "racks 41: at most as many as nodes (40)"),
        ({"entries_per_second": "0"}, f"entries_per_second 0: {PER_SECOND}"),
        ({"entries_per_second": "1e13"}, f"entries_per_second 1e13: {PER_SECOND}"),
        *(
            ({"entries_per_second": said}, f"entries_per_second {said}: {PER_SECOND}")
            for said in ("1,6", "0,125", "1,6000", "1.600,5", "16,00", ",1", "1,600,5")
        ),
        ({"entries_per_second": "nan"}, f"entries_per_second nan: {PER_SECOND}"),
        ({"retention": "3"}, 'retention 3: a time such as "5 s" or "7 days"'),
        ({"retention": "0 days"}, 'retention 0 days: a time such as "5 s" or "7 days"'),
        (
            {"entries_per_second": "0.2", "retention": "1 h"},
            "retention 1 h: at least 1,000 entries are kept at a time, and these would be 720",
        ),
        (
            {"entries_per_second": "1e5", "retention": "3 years"},
            'retention 3 years: with these answers: cluster.cluster_repair_bandwidth = "12 MB/s": to detect a loss '
            "and repair a node takes 1.28 years, but may take one at most",
        ),
        ({"quorums": "3/2"}, 'quorums 3/2: three figures from 1 up, such as "E 3, WQ 3, AQ 2"'),
        ({"quorums": "3/0/0"}, 'quorums 3/0/0: three figures from 1 up, such as "E 3, WQ 3, AQ 2"'),
        ({"quorums": "3/2/3"}, "quorums E 3, WQ 2, AQ 3: E >= WQ >= AQ"),
        ({"quorums": "6/3/2"}, "quorums E 6: E at most 5, as large as the model is"),
    ],
)
def test_what_is_wrong_is_refused(changed, said):
    assert refusal(starters.filled_template, "bookkeeper", MINE._replace(**changed)) == said


@pytest.mark.parametrize(("said", "meant"), [("1e-2", "0.01"), ("1E1", "10"), ("2.5e+3", "2500"), ("0.01", "0.01")])
def test_a_figure_may_be_written_with_an_exponent(said, meant):
    text = starters.filled_template("bookkeeper", MINE._replace(node_loss=said))
    assert text == starters.filled_template("bookkeeper", MINE._replace(node_loss=meant))


@pytest.mark.parametrize(
    ("name", "said"), [("outages", "0,5"), ("failovers", "1,5"), ("node_loss", ","), ("entry_bytes", "6,7")]
)
def test_a_decimal_comma_is_refused_where_a_figure_is_asked_for(name, said):
    """It was left out: 0,5 was read as 5."""
    assert refusal(starters.filled_template, "bookkeeper", MINE._replace(**{name: said})).startswith(
        f"{name} {said}: a "
    )


def test_a_decimal_comma_makes_no_number_of_partitions():
    wrong = MINE._replace(quorums="3/2/all", partitions="1,5")
    assert refusal(starters.filled_template, "kraft", wrong) == "partitions 1,5: an integer from 1 to 1,000,000"


def test_topics_of_one_replica_are_refused_unless_there_is_one_broker(tmp_path):
    """Racks and outages were left out for all designs, so that RF 1 seemed to lose nothing to them."""
    why = "what one copy loses to each restart and outage is not counted"
    said = f"quorums RF 1, min ISR 1, acks all: RF at least 2, as {why}"
    assert refusal(starters.filled_template, "kraft", MINE._replace(quorums="3/2/all; 1/1/all")) == said
    alone = load("kraft", MINE._replace(nodes="1", racks="1", quorums="1/1/all"), tmp_path)
    assert [each.varied["model.replication_factor"] for each in alone.clusters] == [1]


def test_more_in_sync_than_there_are_is_refused():
    with pytest.raises(ConfigError, match=r"^quorums RF 2, min ISR 3, acks all: min ISR at most RF$"):
        starters.filled_template("kraft", MINE._replace(quorums="2/3/all"))


def test_of_five_replicas_lag_loses_as_much_as_another_program_says(tmp_path):
    """A model that told the last flush of each of five brokers apart had no room for what is written under lag, and
    lost a fifth of this. docs/kafka.md has 0.0030 for a disk; a power failure takes no more."""
    experiment = load("kraft", MINE._replace(racks="1", quorums="5/1/all"), tmp_path)
    design = ("replication.factor=5", "brokers=5", "min.insync.replicas=1", "run.runs=4000", "run.method=count")
    found = estimate(experiment.changed(*design, "run.scenario=broker_loses_power_under_lag"), threads=2)
    assert found.data_loss.low < 0.0024 < 0.0030 < found.data_loss.high
    assert all(each.point.rates["broker_flushes"] > 0.0 for each in experiment.points)


def test_topics_with_acks_1_have_scenarios_of_their_leaders(tmp_path):
    """A crash hits the partitions of one broker; the newest record of one is as old as the gap between two is long."""
    answers = MINE._replace(entries_per_second="100", quorums="3/2/all; 3/1/1")
    experiment = load("kraft", answers, tmp_path)
    placed = {
        tuple(each.varied[f"model.{key}"] for key in KEYS["kraft"][:2]): each for each in placed_designs(experiment)
    }
    assert set(placed) == {(3, 1), (3, 2)}
    assert {each.values["variant.acks"] for each in placed_designs(experiment)} == {"all", "1"}
    crashes = experiment.scenarios["broker_crashes"].event(placed[3, 1])
    assert crashes.per_year == pytest.approx(40 * 3.16, rel=0.005)
    assert crashes.hits == pytest.approx(1000 * 3 / 40)
    point = next(each.point for each in experiment.points if each.scenario == "broker_crashes")
    assert 3 * point.rates["no_data_loss_unclean_shutdown"] == pytest.approx(100 / 1000)
    [topic] = [each for each in experiment.clusters if each.values["variant.acks"] == "1"]
    points = tuple(each for each in experiment.points if dict(each.design) == topic.varied)
    enough = enough_of(experiment._replace(clusters=(topic,), points=points), {})
    # one in 20 of P(any), which events as rare as that cannot change by more
    assert {each.scenario for each in points if enough[each.point_id] == 1.0} == {
        *("rack_loses_power", "rack_loses_power_under_lag", "broker_lost", "broker_lost_under_lag")
    }
    restarts = experiment.scenarios["broker_restarts"].event(placed[3, 1])
    assert (restarts.per_year, restarts.hits) == (pytest.approx(40 * 12), crashes.hits)
    point = next(each.point for each in experiment.points if each.scenario == "broker_restarts")
    assert 3 * point.rates["no_data_loss_shutdown"] == pytest.approx(100 / 1000)
    with pytest.raises(ConfigError, match="a per_year above 0"):
        placed_designs(experiment.changed("scenarios.broker_crashes.per_year=0"))
    assert "broker_crashes" not in load("kraft", MINE._replace(quorums="3/2/all"), tmp_path).scenarios


@pytest.mark.parametrize("scenario", ["broker_crashes", "broker_restarts", "leader_cut_off"])
def test_what_follows_from_acks_1_is_proved_absent_without_it(scenario, tmp_path):
    experiment = load("kraft", MINE._replace(quorums="2/1/1"), tmp_path)
    p = dict[str, float]()
    for point in experiment.points:
        if point.scenario == scenario and point.point.values["brokers"] == 2:
            found = exact(experiment._replace(points=(point,)), 1 << 27, data_loss_alone=True)
            p.setdefault(point.point.values["acks"], found.data_loss.p)
    assert p["all"] == 0.0 < p["1"]
