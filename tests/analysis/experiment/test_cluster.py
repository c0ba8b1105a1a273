"""The table [cluster]: what it says, crossed with designs; what is refused; and that nothing else feels it."""

import pytest

from quorisk.analysis.experiment.cluster import cluster_keys, place_design
from quorisk.analysis.experiment.config import ConfigError, build_experiment, load
from quorisk.analysis.experiment.follows import followed
from quorisk.kernels.cluster.setting import Event
from quorisk.say.quantities import YEAR_S
from tests.analysis.cluster.clusters import KNOWN, cluster_of
from tests.analysis.experiment.files import BOOKKEEPER, TOPIC

CLUSTER = """
[cluster]
nodes = 20
ledgers = 1e6
entries_per_ledger = 1000
node_loss = "2 % / year"
detection_delay = "1 h"
node_bytes = "24 TB"
repair_bandwidth = "125 MB/s"
[cluster.events.power_outage]
per_year = "1 / year"
p_lost = 0.0075
"""
KAFKA = """
protocol = "kafka"
[model]
replicas = 3
log_size = 2
max_records = 2
max_leader_epoch = 2
"""


@pytest.fixture
def placed(tmp_path):
    """Reads a file of BookKeeper on a cluster, under overrides: its designs on their clusters."""

    def read(*overrides: str, text: str = BOOKKEEPER + CLUSTER):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return load(path, overrides).clusters

    return read


def test_a_cluster_is_read(placed):
    [design] = placed()
    cluster = design.cluster
    assert (cluster.nodes, cluster.write_quorum, cluster.ensemble_size) == (20, 3, 3)
    assert (cluster.ledgers, cluster.entries_per_ledger) == (1e6, 1000.0)
    assert cluster.node_loss == pytest.approx(0.02)
    assert cluster.detection_delay * YEAR_S == pytest.approx(3600.0)
    assert cluster.repair_time * YEAR_S == pytest.approx(24e12 / (20 * 125e6))
    assert cluster.events == (Event("power_outage", "cluster", 1.0, 0.0075, takes_unflushed=True),)
    assert (cluster.outages, cluster.racks) == (1.0, 1)
    assert design.ack_quorum == 2
    assert design.entry_bytes == pytest.approx(20 * 24e12 / 3 / 1e9)


def test_disks_of_a_node(placed):
    [design] = placed("cluster.disks_per_node=4", "cluster.disk_loss=1 % / year")
    assert (design.cluster.disks_per_node, design.cluster.disk_loss) == (4, pytest.approx(0.01))
    assert design.cluster.hits == pytest.approx(0.02 + 4 * 0.01 + 0.0075)
    assert design.cluster.lost_alone == pytest.approx(0.02 + 0.01)  # of each copy
    assert followed("bookkeeper", design.values, True)["rates.bookie_is_lost"] == pytest.approx(0.03 / YEAR_S)
    assert design.with_figures({"cluster.disk_loss": 0.02}).cluster.disk_loss == 0.02
    assert "cluster.disk_loss" in design.figures(["cluster.disk_loss", "cluster.disks_per_node"])
    with pytest.raises(ConfigError, match=r"cluster\.disks_per_node = 4: must be 1 with kafka; only "):
        placed("cluster.disks_per_node=4", text=KAFKA + CLUSTER)
    [alone] = placed("cluster.disk_loss=1 % / year", "cluster.node_loss=0")
    assert alone.cluster.repair_time == design.cluster.repair_time


def test_other_ways_to_say_what_is_stored(placed):
    without = BOOKKEEPER + CLUSTER.replace("ledgers = 1e6\n", "").replace('node_bytes = "24 TB"\n', "")
    stored = ('cluster.stored_bytes="1 TB"', 'cluster.entry_bytes="1 kB"')
    [by_bytes] = placed(*stored, text=without)
    assert by_bytes.cluster.entries == 1e9
    assert by_bytes.cluster.repair_time * YEAR_S == pytest.approx(3 * 1e12 / 20 / (20 * 125e6))
    [by_rate] = placed(
        "cluster.entries_per_second=1000", 'cluster.retention="7 days"', 'node_bytes="1 TB"', text=without
    )
    assert by_rate.cluster.entries == 1000 * 7 * 86_400
    assert by_rate.cluster.ledgers == pytest.approx(1000 * 7 * 86.4)


@pytest.mark.parametrize(
    ("overrides", "bandwidth"),
    [
        (["repair_bandwidth=1 Gbit/s"], 20 * 125e6),
        (["cluster_repair_bandwidth=500 MB/s"], 500e6),
        (["cluster_repair_bandwidth=1 TB/s"], 20 * 125e6),
        (["worker_repair_bandwidth=10 MB/s"], 200e6),
        (["worker_repair_bandwidth=10 MB/s", "repair_workers=4"], 40e6),
    ],
)
def test_the_least_bandwidth_counts(placed, overrides, bandwidth):
    [design] = placed(*overrides)
    assert design.cluster.repair_time * YEAR_S == pytest.approx(24e12 / bandwidth)


def test_a_bare_rate_is_a_year_s(placed):
    assert placed("node_loss=0.02")[0].cluster == placed()[0].cluster


def test_the_ensemble_is_the_design_s(placed):
    """Where the model has E above the write quorum, a ledger has as many write sets."""
    values = {key.name: key.default for key in cluster_keys().values()} | {
        **{"model.write_quorum": 3, "model.ack_quorum": 2, "model.ensemble_size": 5},
        **{"cluster.nodes": 9, "cluster.ledgers": 10.0, "cluster.entries_per_ledger": 10.0},
    }
    cluster = place_design("bookkeeper", values, {}).cluster
    assert (cluster.write_quorum, cluster.ensemble_size, cluster.windows) == (3, 5, 5)
    with pytest.raises(ConfigError, match=r"cluster\.nodes = 4: at least model\.ensemble_size \(5\)"):
        place_design("bookkeeper", values | {"cluster.nodes": 4}, {})
    with pytest.raises(ConfigError, match=r"cluster\.scatter_width = 3: at least model\.ensemble_size - 1 \(4\)"):
        place_design("bookkeeper", values | {"cluster.placement": "copysets", "cluster.scatter_width": 3}, {})
    alternating = {"model.write_quorum": 2, "cluster.placement": "two_racks", "cluster.racks": 2}
    with pytest.raises(ConfigError, match="cannot alternate"):
        place_design("bookkeeper", values | alternating, {})


def test_kafka_s_replicas_are_copies(placed):
    [design] = placed(text=KAFKA + CLUSTER)
    assert (design.cluster.write_quorum, design.cluster.ensemble_size, design.ack_quorum) == (3, 3, None)


def test_designs_and_clusters_are_crossed(placed, tmp_path):
    grid = ["grid.cluster.nodes=[20, 100]", "grid.write_quorum=[2, 3]", "grid.placement=['random', 'copysets']"]
    designs = placed(*grid, "scatter_width=2")
    assert [tuple(design.varied.values()) for design in designs[:3]] == [
        (20, 2, "random"),
        (20, 2, "copysets"),
        (20, 3, "random"),
    ]
    assert [design.cluster.nodes for design in designs] == [20] * 4 + [100] * 4
    # the write quorum and the placement make a design: other verbs see four points, and each on the worst cluster
    experiment = load(tmp_path / "mine.toml", [*grid, "scatter_width=2"])
    assert [tuple(point.varied.values()) for point in experiment.points] == [
        (2, "random"),
        (2, "copysets"),
        (3, "random"),
        (3, "copysets"),
    ]
    assert experiment.varied == ("model.write_quorum", "cluster.placement")
    where = load(tmp_path / "mine.toml", [*grid, "scatter_width=2", "grid.where=['nodes == 20']"])
    assert len(where.clusters) == 4
    one = load(tmp_path / "mine.toml", ["grid.cluster.nodes=[20, 100]"], one=True)
    assert (len(one.points), len(one.clusters)) == (1, 2)


def test_runs_take_from_the_cluster_what_it_says_of_nodes_and_nothing_else(placed, tmp_path):
    physical = BOOKKEEPER + '[rates]\nclient_creates_ledger = "1 / 1 ms"\n' + CLUSTER
    [design] = placed(text=physical)
    given, (point, *_) = load(tmp_path / "mine.toml"), load(tmp_path / "mine.toml").points
    assert point.point.rates["bookie_is_lost"] == pytest.approx(0.02 / YEAR_S)
    mean_s = YEAR_S * (design.cluster.detection_delay + design.cluster.repair_time / 2)
    assert 1 / point.point.rates["auditor_replicates_fragment"] == pytest.approx(mean_s)
    assert point.point.p_lost("p_lost_in_outage") == 0.0075
    assert given.changed("cluster.restarts=3").points[0].point_id == point.point_id
    worse = [f"cluster.events.worse.{each}" for each in ("scope=node", "nodes=5", "per_year=0.2", "p_lost=0.5")]
    assert given.changed(*worse).points[0].point.rates["bookie_is_lost"] == pytest.approx((0.02 + 0.1 / 4) / YEAR_S)
    assert given.changed("cluster.node_loss=0.05").points[0].point.rates["bookie_is_lost"] == pytest.approx(
        0.05 / YEAR_S
    )
    for other in ("rates.bookie_is_lost=5 % / year", "faults.p_lost_in_outage=0.5"):
        with pytest.raises(ConfigError, match=rf"{other.partition('=')[0]} = .*: \[cluster\] gives "):
            given.changed(other)
    assert given.changed("rates.bookie_is_lost=2 % / year").points[0].point_id == point.point_id
    of_its_own = '[scenarios.soon]\nper_year = 1\nrates.bookie_is_lost = "1 / 1 h"\n'
    placed(text=physical + of_its_own)
    assert load(tmp_path / "mine.toml").points[0].point.rates["bookie_is_lost"] == 1 / 3600


@pytest.mark.parametrize("name", ["g1 random 3", "g4 distinct racks 3", "g5 two racks 3"])
def test_outages_of_clusters_and_racks_are_events(name):
    """The settings of clusters.json, whose figures other tests hold the answers against, by the table."""
    theirs = KNOWN[name]["cluster"]
    times = {key: f"{theirs[f'{key}_h']} h" for key in ("detection_delay", "repair_time")}
    events = {
        "outages": {"scope": "cluster", "per_year": theirs["outages"], "p_lost": theirs["p_lost_in_outage"]},
        "rack_outages": {
            "scope": "rack", "per_year": theirs["rack_outages"], "p_lost": theirs["p_lost_in_rack_outage"]
        },
    }  # fmt: skip
    same = {key: theirs[key] for key in ("nodes", "racks", "placement", "ledgers", "entries_per_ledger", "node_loss")}
    repair = {"node_bytes": theirs["repair_time_h"] * 3600 * theirs["nodes"], "repair_bandwidth": 1}
    table = {**same, **repair, "detection_delay": times["detection_delay"], "events": events}
    model = {"bookies": 4, "clients": 1, "write_quorum": 3, "ack_quorum": 3, "entries": 1, "inflight": 1}
    [found] = build_experiment({"protocol": "bookkeeper", "model": model, "cluster": table}, "x.toml").clusters
    expected = cluster_of(name)
    assert found.cluster.events == expected.events
    assert found.cluster.repair_time == pytest.approx(expected.repair_time)
    assert found.cluster._replace(repair_time=expected.repair_time) == expected


def test_events_of_batches_and_nodes_are_read(placed):
    batch = '[cluster.events.firmware]\nscope = "batch"\nnodes = 5\nper_year = 0.1\np_lost = 1\n'
    node = '[cluster.events.wiped]\nscope = "node"\nper_year = "1 % / year"\np_lost = 0.5\n'
    some = node.replace("wiped", "old") + "nodes = 4\nfirst_node = 17\n"
    [design] = placed(text=BOOKKEEPER + CLUSTER + batch + some)
    assert design.cluster.events[2] == Event("old", "node", 0.01, 0.5, 4, first=16)
    assert [name for name in design.figures(design.values) if ".old." in name] == [
        "cluster.events.old.p_lost",
        "cluster.events.old.per_year",
    ]
    [design] = placed(text=BOOKKEEPER + CLUSTER + batch + node)
    _, firmware, wiped = design.cluster.events
    assert firmware == Event("firmware", "batch", 0.1, 1.0, 5)
    assert wiped == Event("wiped", "node", 0.01, 0.5)
    assert design.cluster.hits == pytest.approx(0.02 + 0.0075 + 0.1 * 5 / 20 + 0.01 * 0.5)
    causes = ("single_losses", "power_outage", "firmware", "wiped", "single_losses_after_event", "thin_entries")
    assert tuple(design.cluster.causes) == causes
    other = design.with_figures({"cluster.events.firmware.per_year": 0.2})
    assert other.figure("cluster.events.firmware.per_year") == 0.2
    assert other.cluster.events[::2] == design.cluster.events[::2]
    with pytest.raises(ConfigError, match=r'takes_unflushed = true: for scope = "cluster" or "rack" only'):
        placed("events.firmware.takes_unflushed=true", text=BOOKKEEPER + CLUSTER + batch)


@pytest.mark.parametrize(
    ("nodes", "first", "refused"),
    [(21, 1, "nodes = 21: first_node"), (4, 18, r"first_node = 18: .* must be at most .* \(20\)"), (4, 17, "")],
)
def test_nodes_that_are_not_alike_are_nodes_of_the_cluster(placed, nodes, first, refused):
    event = '[cluster.events.old]\nscope = "node"\nper_year = 0.1\np_lost = 1\n'
    text = f"{BOOKKEEPER}{CLUSTER}{event}nodes = {nodes}\nfirst_node = {first}\n"
    if not refused:
        assert placed(text=text)
        return
    with pytest.raises(ConfigError, match=refused):
        placed(text=text)


def test_scenarios_share_a_cluster(placed):
    text = BOOKKEEPER + CLUSTER + "[scenarios.a]\nper_year = 1\n[scenarios.b]\nper_year = 2\nclients = 1\n"
    assert len(placed(text=text)) == 1
    with pytest.raises(ConfigError, match=r"cannot differ between scenarios; set it in \[cluster\]"):
        placed(text=text + "nodes = 30\n")


SCENARIOS = """
[scenarios.bad_network]
per_year = 1
message_loss = 0.1
bookie_sends_add_confirmed_response = "1 / 1 s"
[scenarios.entry]
per_year = 1
run.lifetime = "7 days"
"""


@pytest.mark.parametrize("order", ['"bad_network", "entry"', '"entry", "bad_network"'])
def test_entries_with_few_copies_are_those_at_the_file_s_values_whichever_scenario_is_first(placed, order):
    text = 'profile = "bookkeeper_ssd"' + BOOKKEEPER + CLUSTER.replace("node_loss", 'retention = "1 day"\nnode_loss', 1)
    [alone], [found] = placed(text=text), placed(f"grid.scenario=[{order}]", text=text + SCENARIOS)
    assert found.thin == alone.thin
    assert [each.heals for each in found.thin] == [True, False]


@pytest.mark.parametrize("key", ["write_quorum", "model.ensemble_size", "ack_quorum"])
def test_a_scenario_that_is_a_design_of_its_own_is_refused_on_a_cluster(placed, key):
    override, allowed = f"scenarios.entry.{key}=3", r"with \[cluster\], which stores one design; set it in \[model\]$"
    with pytest.raises(ConfigError, match=rf"mine.toml: scenarios\.entry\.{key} = 3: cannot differ .* {allowed}"):
        placed(override, text='profile = "bookkeeper_ssd"' + BOOKKEEPER + CLUSTER + SCENARIOS)
    assert placed(override, text='profile = "bookkeeper_ssd"' + BOOKKEEPER + SCENARIOS) == ()


REFUSED = {
    "nodes=2": r"cluster\.nodes = 2: at least model\.write_quorum \(3\)",
    "cluster.racks=21": r"cluster\.racks = 21: at most cluster\.nodes \(20\)",
    "placement=distinct_racks": r"cluster\.racks = 1: at least model\.write_quorum \(3\) with placement distinct_racks",
    "placement=two_racks": r"cluster\.racks = 1: at least 2 with placement two_racks",
    "placement=copysets": r"cluster\.scatter_width = 0: at least model\.write_quorum - 1 \(2\)",
    "placement=any": r'cluster\.placement = "any": one of "random", "two_racks", "distinct_racks", "copysets"',
    "repair_bandwidth=0": r"cluster\.repair_bandwidth = 0: a number above 0, of bytes a second, or a bandwidth such as",
    "repair_bandwidth=0 MB/s": r'cluster\.repair_bandwidth = "0 MB/s": a number above 0',
    "repair_bandwidth=125 MB": r'cluster\.repair_bandwidth = "125 MB": a bandwidth such as "125 MB/s" or "1 Gbit/s"',
    "repair_bandwidth=1 kB/s": r'cluster\.repair_bandwidth = "0\.001 MB/s": to detect a loss and repair .* years',
    "detection_delay=800 days": r'cluster\.detection_delay = "2\.19 years": to detect a loss and repair .* years',
    "node_bytes=24 Tbit": r'cluster\.node_bytes = "24 Tbit": a size such as "24 TB" or "512 GiB"',
    "node_bytes=24 h": r'cluster\.node_bytes = "24 h": a size such as',
    "detection_delay=3600": r"cluster\.detection_delay = 3600: 0, or a time such as",
    "detection_delay=1 / h": r'cluster\.detection_delay = "1 / h": a time .*this is a rate',
    "node_loss=1 h": r'cluster\.node_loss = "1 h": a rate .*this is a time',
    "node_loss=-1": r"cluster\.node_loss = -1: a number of times a year",
    "events.power_outage.p_lost=1.5": r"cluster\.events\.power_outage\.p_lost = 1\.5: a probability, from 0 to 1",
    "cluster.events.fire.per_year=1 / year": r"missing: cluster\.events\.fire\.p_lost \(a probability",
    "events.power_outage.nodes=5": r"events\.power_outage\.nodes = 5: for scope = \"batch\" or \"node\" only",
    "cluster.events.power_outage.first_node=2": r"first_node = 2: for scope = \"node\" with `nodes` only",
    "events.power_outage.scope=batch": r"power_outage\.nodes = 0: the nodes of a batch, from 1 to .* \(20\)",
    "events.power_outage.scope=disk": r'scope = "disk": one of "cluster", "rack", "batch", "node"',
    "cluster.events.thin_entries.per_year=1": r'events\."thin_entries": a name of letters, .*none of single_losses',
    "cluster.events.power_outage.p_gone=1": r"there is no key cluster\.events\.power_outage\.p_gone; .*power_outage\.",
    "cluster.outages=1 / year": r"there is no key cluster\.outages",
    "ledgers=0": r"cluster\.ledgers = 0: a number from 1 to 1e15",
    "cluster.entries_per_second=1": r"",
    "disks_per_node=0": r"cluster\.disks_per_node = 0: an integer from 1 to 64",
    "disk_loss=1 h": r'cluster\.disk_loss = "1 h": a rate .*this is a time',
    "batches=21": r"cluster\.batches = 21: at most cluster\.nodes \(20\)",
    "service_life=0": r'cluster\.service_life = 0: a time such as "5 s" or "7 days", above 0',
    "retention=0 s": r'cluster\.retention = "0 s": a time such as "5 s" or "7 days", above 0',
    "cluster.retention=1000000": r'cluster\.retention = 1000000: a time such as "5 s" or "7 days", above 0',
    "cluster.nodez=3": r"cluster\.nodez = 3: there is no key cluster\.nodez; did you mean cluster\.nodes\?",
}


@pytest.mark.parametrize("override", REFUSED)
def test_what_does_not_go_is_refused_in_one_line(placed, override):
    if not REFUSED[override]:
        assert placed(override)  # without a retention it says nothing
        return
    with pytest.raises(ConfigError, match=REFUSED[override]) as caught:
        placed(override)
    assert str(caught.value).startswith(str(caught.value).partition("mine.toml: ")[0] + "mine.toml: ")
    assert "\n" not in str(caught.value)


def test_less_than_a_ledger_or_than_an_entry_in_each_write_set_is_refused(placed):
    with pytest.raises(
        ConfigError, match=r"cluster\.entries_per_ledger = 4\.0: at least model\.ensemble_size \(5\), as"
    ):
        placed("ensemble_size=5", "bookies=5", "entries_per_ledger=4")
    assert placed("ensemble_size=5", "bookies=5", "entries_per_ledger=5")
    assert placed("entries_per_ledger=1")
    few = BOOKKEEPER + CLUSTER.replace("ledgers = 1e6", 'stored_bytes = "1 MB"\nentry_bytes = "1 kB"')
    with pytest.raises(ConfigError, match=r"entries_per_ledger = 1001\.0: at most all that are stored \(1e\+03\)"):
        placed("entries_per_ledger=1001", text=few)


def test_more_that_is_refused(placed):
    with pytest.raises(ConfigError, match=r"nodes are lost .* times as fast as repaired"):
        placed("repair_queue=true", "node_loss=2000")
    with pytest.raises(ConfigError, match=r"cluster\.ledgers: only one of ledgers; stored_bytes and entry_bytes"):
        placed("stored_bytes=1 TB", "entry_bytes=1 kB")
    with pytest.raises(ConfigError, match=r"compaction keeps no copies of entries"):
        placed(text=TOPIC + CLUSTER)
    for key in ("nodes = 20", "ledgers = 1e6", "entries_per_ledger = 1000", 'node_bytes = "24 TB"', "p_lost ="):
        name = key.partition(" ")[0]
        lines = [line for line in CLUSTER.splitlines() if not line.startswith(name)]
        with pytest.raises(
            ConfigError, match=rf"cluster\.{name}.*missing|missing: cluster\.(events\.power_outage\.)?{name}"
        ):
            placed(text=BOOKKEEPER + "\n".join(lines))
    with pytest.raises(ConfigError, match=r"at the grid point cluster\.nodes = 2; grid\.where can exclude it"):
        placed("grid.cluster.nodes=[2, 20]")
