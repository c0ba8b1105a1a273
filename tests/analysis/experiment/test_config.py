"""Experiment files: what they may say, and what it becomes."""

import hashlib
import math

import pytest

from quorisk.analysis.experiment.config import Experiment, load
from quorisk.analysis.experiment.identity import canonical_parameters, point_id
from quorisk.kernels.errors import ConfigError
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from tests.analysis.experiment.files import BOOKKEEPER, TOPIC
from tests.support import ROOT, SMALL_FILE

CONFIGS = ROOT / "configs"


def values(experiment: Experiment, *keys: str):
    return [tuple(point.varied[key] for key in keys) for point in experiment.points]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.name)
def test_every_file_in_configs_is_valid(path):
    experiment = load(path)
    assert len({point.point_id for point in experiment.points}) == len(experiment.points)


def test_a_minimal_file_means_the_defaults(read):
    experiment = read(BOOKKEEPER)
    [point] = experiment.points
    assert point.point.values["semantics"] == "intended"
    assert point.point.values["fence_recovery_reads"] is True
    assert set(point.point.rates.values()) == {1.0}
    assert set(point.point.rates) == {action.name for action in experiment.model.actions}
    assert point.point[2:7] == (0.0, 100_000, math.inf, math.inf, None)
    assert set(point.point.other_losses.values()) == {0.0}
    assert experiment.run[:5] == (1_000_000, 0, 0.95, "auto", "auto")
    assert experiment.run[5:] == (math.inf, math.inf, "data loss", False, False, 0, math.inf)
    assert (experiment.path, experiment.protocol, experiment.varied) == ("x.toml", "bookkeeper", ())


def test_a_file_sets_what_it_says(read):
    text = "[variant]\nsemantics = 'literal'\nfence_recovery_reads = false\n[faults]\nmessage_loss = 1e-12\n"
    text += "p_lost_in_outage = 0.25\n"
    text += f"[rates]\nclient_creates_ledger = 2\n[run]\nruns = 7\nseed = {2**63 - 1}\nmax_steps = 9\nhorizon = 3\n"
    text += "lifetime = 5.5\nconfidence = 0.5\nengine = 'numba'"
    experiment = read(BOOKKEEPER + text)
    [(point, _, _)] = experiment.points
    assert (point.values["semantics"], point.values["fence_recovery_reads"]) == ("literal", False)
    assert point.rates["client_creates_ledger"] == 2.0
    assert point[2:7] == (1e-12, 9, 3.0, 5.5, None)
    assert point.other_losses == {"p_lost_in_outage": 0.25, "p_lost_in_rack_outage": 0.0, "p_lost_entry": 0.0}
    assert experiment.run[:4] == (7, 2**63 - 1, 0.5, "numba")


def test_a_grid_is_crossed_in_the_files_order_and_thinned_by_its_conditions(read):
    text = '[grid]\nwrite_quorum = [3, 2]\n"model.ack_quorum" = [1, 2, 3]\nwhere = ["ack_quorum <= write_quorum"]'
    experiment = read(BOOKKEEPER + text)
    assert experiment.varied == ("model.write_quorum", "model.ack_quorum")
    assert values(experiment, *experiment.varied) == [(3, 1), (3, 2), (3, 3), (2, 1), (2, 2)]
    assert [point.point.values["write_quorum"] for point in experiment.points] == [3, 3, 3, 2, 2]


GRID = """
[grid]
ack_quorum = [1, 2, 3]
fence_recovery_reads = [true, false]
semantics = ["intended", "literal"]
message_loss = [0, 0.5]
"""


@pytest.mark.parametrize(
    ("condition", "left_over"),
    [
        ("ack_quorum < 2", 8),
        ("ack_quorum>2", 8),
        ("model.ack_quorum >= 2", 16),
        ("ack_quorum != write_quorum", 16),
        ("fence_recovery_reads == false", 12),
        ("semantics == 'literal'", 12),
        ('semantics != "literal"', 12),
        ("faults.message_loss > 0.25", 12),
        ("message_loss <= 0", 12),
        ("bookies == 3", 24),
    ],
)
def test_conditions_compare_keys_with_keys_and_values(read, condition, left_over):
    assert len(read(BOOKKEEPER + GRID, f"grid.where=['''{condition}''']").points) == left_over


def test_overrides_take_the_place_of_the_file_and_of_its_grid(read):
    text = "[grid]\nack_quorum = [1, 2]\nmessage_loss = [0.0, 0.1]"
    changes = ("faults.message_loss=0.2", "variant.semantics=literal", "runs=5", "rates.client_creates_ledger = 0.5")
    experiment = read(BOOKKEEPER + text, *changes)
    assert experiment.varied == ("model.ack_quorum",)
    assert {point.point.message_loss for point in experiment.points} == {0.2}
    assert {point.point.values["semantics"] for point in experiment.points} == {"literal"}
    assert {point.point.rates["client_creates_ledger"] for point in experiment.points} == {0.5}
    assert experiment.run.runs == 5
    again = read(BOOKKEEPER + text, "grid.ack_quorum=[3]", "grid.rates.client_creates_ledger=[1, 2]")
    assert values(again, "model.ack_quorum") == [(3,)] * 4
    assert again.varied == ("model.ack_quorum", "faults.message_loss", "rates.client_creates_ledger")


def test_a_point_is_identified_by_all_that_a_run_depends_on_besides_seed_and_index(read):
    [topic] = read(TOPIC, "rates.producer=0.1").points
    canonical = (
        '{"faults.message_loss":0.0,"model.compactions":3,"model.keys":1,"model.max_crashes":1,"model.messages":2,'
        '"model.values":1,"rates.broker_crash":1.0,"rates.compactor_phase_one":1.0,'
        '"rates.compactor_phase_two_delete_ledger":1.0,"rates.compactor_phase_two_persist_cusror":1.0,'
        '"rates.compactor_phase_two_update_context":1.0,"rates.compactor_phase_two_update_horizon":1.0,'
        '"rates.compactor_phase_two_write":1.0,"rates.producer":0.1,"run.horizon":null,"run.lifetime":null,'
        '"run.max_steps":100000,'
        '"variant.model_producer":true,"variant.persist_cursor_before_delete":true,'
        '"variant.publish_context_before_horizon":true,"variant.retain_null_key":true}'
    )
    assert canonical_parameters(COMPACTION, topic.point) == canonical
    text = f'{{"model":"compaction","parameters":{canonical},"version":{COMPACTION.version}}}'
    assert topic.point_id == hashlib.sha256(text.encode()).hexdigest()
    newer = COMPACTION._replace(version=COMPACTION.version + 1)
    assert point_id(newer, topic.point) != topic.point_id


def test_equal_points_have_equal_ids_however_they_are_written(read):
    [plain] = read(BOOKKEEPER).points
    text = "[faults]\nmessage_loss = -0.0\n[rates]\nclient_creates_ledger = 1\n[run]\nseed = 3\nruns = 8\nhorizon = inf"
    [spelled] = read(BOOKKEEPER + text).points
    gridded = read(BOOKKEEPER, "grid.ack_quorum=[1, 2]").points
    assert plain.point_id == spelled.point_id == gridded[1].point_id != gridded[0].point_id
    changes = [
        "max_steps=5",
        "horizon=5",
        "lifetime=5",
        "client_creates_ledger=2",
        "message_loss=0.1",
        "semantics=literal",
    ]
    assert len({read(BOOKKEEPER, change).points[0].point_id for change in changes} | {plain.point_id}) == 7


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.exhaustive] * (path.stem == "ten_thousand"))
        for path in sorted(CONFIGS.glob("*.toml"))
    ],
)
def test_ids_of_many_points_are_those_of_each(path):
    experiment = load(path)
    assert [each.point_id for each in experiment.points] == [
        point_id(experiment.model, each.point) for each in experiment.points
    ]


def test_a_condition_may_add_a_number_to_a_key(read):
    text = "[grid]\nwrite_quorum = [2, 3]\nbookies = [2, 3, 4]\nack_quorum = [1, 2, 3]\n"
    conditions = '"bookies == write_quorum + 1", "ack_quorum >= write_quorum - 1", "ack_quorum <= write_quorum"'
    experiment = read(BOOKKEEPER + f"{text}where = [{conditions}]")
    assert values(experiment, "model.bookies", "model.write_quorum", "model.ack_quorum") == [
        (3, 2, 1),
        (3, 2, 2),
        (4, 3, 2),
        (4, 3, 3),
    ]


KAFKA = """
protocol = "kraft"
[model]
brokers = 2
replication.factor = 2
min.insync.replicas = 2
values = 1
[variant]
unclean.leader.election.enable = true
acks = 1
"""


def test_a_file_may_use_kafkas_own_names(read):
    """Written as dotted keys or in quotes, in overrides and in the grid; of a rate, the interval in milliseconds."""
    ours = 'protocol = "kraft"\n[model]\nbrokers = 2\nreplication_factor = 2\nmin_isr = 2\nvalues = 1\n'
    ours += '[variant]\nunclean_leader_election = true\nacks = "1"\n'
    assert read(KAFKA).points[0].point_id == read(ours).points[0].point_id
    assert read(KAFKA, "min.insync.replicas=1").points == read(ours, "min_isr=1").points
    heartbeat = '[rates]\n"broker.heartbeat.interval.ms" = 2000\n'
    rates = '"1 / 2 s"', '"1 / 4 s"'
    rest = "[rates]\nunfence_broker = {}\n"
    timed = "".join(f'{name} = "1 / s"\n' for name in _others(read(ours), "unfence_broker"))
    assert read(KAFKA + heartbeat + timed).points == read(ours + rest.format(rates[0]) + timed).points
    later = read(KAFKA + heartbeat + timed, "broker.heartbeat.interval.ms=4000").points
    assert later == read(ours + rest.format(rates[1]) + timed).points
    swept = read(KAFKA + '[grid]\n"min.insync.replicas" = [1, 2]\n')
    assert values(swept, "model.min_isr") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("acks=-1", "acks=all"),
        ("default.replication.factor=2", "replication_factor=2"),
        ("eligible.leader.replicas.version=0", "version=v3_5"),
        ("eligible.leader.replicas.version=1", "version=kip966"),
        ("log.flush.interval.messages=1", "flush_every_message=true"),
        ("flush.messages=9223372036854775807", "flush_every_message=false"),
    ],
)
def test_kafkas_own_values_are_read_too(read, theirs, ours):
    other = "acks=all", "version=v3_5", "flush_every_message=false", "replication_factor=1", "min_isr=1"
    others = [each for each in other if each.partition("=")[0] != ours.partition("=")[0]]
    assert read(KAFKA, *others, theirs).points == read(KAFKA, *others, ours).points
    key, _, value = theirs.partition("=")
    if key.count("."):
        listed = read(KAFKA, *others, f"grid.{key}=[{value}]")
        assert listed.points[0].point == read(KAFKA, *others, ours).points[0].point


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("acks == 1", {"1"}),
        ("acks == -1", {"all"}),
        ("acks == all", {"all"}),
        ('acks != "all"', {"1"}),
        ("min.insync.replicas < replication.factor", set()),
        ("eligible.leader.replicas.version == 1", {"all", "1"}),
        ("eligible.leader.replicas.version == 0 or acks == 1", {"1"}),
    ],
)
def test_conditions_read_kafkas_names_and_values_as_files_do(read, condition, left):
    text = KAFKA + f"[grid]\nacks = [-1, 1]\nwhere = ['{condition}']\n"
    if not left:
        with pytest.raises(ConfigError, match="no point of the grid"):
            read(text)
        return
    assert {point.point.values["acks"] for point in read(text).points} == left


def _others(experiment, name):
    return [action.name for action in experiment.model.actions if action.name != name and not action.only]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[rates]\nbroker.heartbeat.interval.ms = 0\n", r"rates\.unfence_broker = 0: a number of milliseconds"),
        ('[rates]\nbroker.heartbeat.interval.ms = "2 s"\n', r"unfence_broker = \"2 s\": a number of milliseconds"),
        ("[model.min]\nisr = 2\n", r"there is no key model\.min\.isr"),
        ("[rates]\nbroker.session.timeout.ms = 0\n", r"rates\.session_times_out = 0: a number of milliseconds"),
        (
            "[faults]\nbroker.session.timeout.ms = 9000\n",
            r"faults\.broker\.session\.timeout\.ms: it belongs in \[rates\]",
        ),
        ("[faults]\nreplica.lag.time.max.ms = 9000\n", r"faults\.replica\.lag\.time\.max\.ms: it belongs in \[rates\]"),
        ("[grid]\nbrokers = [7]\n", r"from 1 to 6$"),
        ("[faults]\nretries = 3\n", r"faults\.retries: not modelled: .* producers do not retry"),
        ("[faults]\nunclean.leader.election.enable = true\n", r"faults\.unclean\..*enable: it belongs in \[variant\]"),
        ('[grid]\nwhere = ["broker.heartbeat.interval.ms < 2"]\n', "milliseconds, .*; compare with == or !="),
    ],
)
def test_kafkas_names_are_checked_as_ours_are(read, more, said):
    with pytest.raises(ConfigError, match=said):
        read(KAFKA.replace("min.insync", "min_isr = 2 #") + more)


def test_a_key_may_not_be_given_under_both_names(read):
    with pytest.raises(ConfigError, match=r"min\.insync\.replicas = 2: the same as model\.min_isr"):
        read(KAFKA.replace("brokers = 2", "brokers = 2\nmin_isr = 2"))
    with pytest.raises(ConfigError, match=r"model\.replication\.factor = 2: the same as model\.default\.replic"):
        read(KAFKA.replace("brokers = 2", "brokers = 2\ndefault.replication.factor = 2"))


def test_a_number_too_small_is_not_0_and_a_byte_order_mark_is_no_error(tmp_path):
    path = tmp_path / "topic.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL_FILE.encode())
    assert load(path, ["rates.broker_crash=0e-400"]).points[0].point.rates["broker_crash"] == 0.0
    for text, overrides in ((SMALL_FILE, ["rates.broker_crash=1e-400"]), (SMALL_FILE + "[rates]\nx = 2.5E-999", ())):
        path.write_text(text)
        with pytest.raises(
            ConfigError, match=r"^.*topic\.toml: .*(1e-400|2\.5E-999): too small a number; at least 5e-324"
        ):
            load(path, overrides)


def test_a_large_grid_keeps_what_its_points_have_in_common_only_once(read):
    points = read(f"{BOOKKEEPER}[grid]\nmessage_loss = [0.1, 0.2, 0.3]\n'rates.client_creates_ledger' = [1, 2]").points
    assert len({id(each.point.values) for each in points}) == 1
    assert [len({id(each.point.rates) for each in points[i::2]}) for i in (0, 1)] == [1, 1]
    assert [each.point.rates["client_creates_ledger"] for each in points] == [1.0, 2.0] * 3


def test_a_precision_that_is_asked_for_is_not_stopped_by_runs_that_nobody_asked_for():
    def runs(*overrides):
        return load(CONFIGS / "limbo.toml", overrides).run.runs

    assert runs() == 1_000_000
    assert runs("relative_precision=0.01") == runs("precision=0.01") == 100_000_000
    assert runs("relative_precision=0.01", "runs=5000") == 5000
