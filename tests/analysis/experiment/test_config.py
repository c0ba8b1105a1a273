"""Experiment files: what they may say, what it becomes, and one clear line for everything else."""

import hashlib
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorisk.analysis.experiment.config import ConfigError, Experiment, build, load
from quorisk.analysis.experiment.identity import canonical_parameters, point_id
from quorisk.analysis.experiment.keys import find, keys_of
from quorisk.analysis.experiment.settings import TABLES
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from tests.support import ROOT

CONFIGS = ROOT / "configs"
BOOKKEEPER = """
protocol = "bookkeeper"
[model]
bookies = 3
clients = 2
write_quorum = 3
ack_quorum = 2
entries = 1
inflight = 1
"""
TOPIC = """
protocol = "compaction"
[model]
messages = 2
compactions = 3
keys = 1
values = 1
max_crashes = 1
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Loads a file with this text, called x.toml."""
    monkeypatch.chdir(tmp_path)

    def read(text: str, *overrides: str) -> Experiment:
        Path("x.toml").write_text(text)
        return load(Path("x.toml"), overrides)

    return read


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
    assert point.point[2:] == (0.0, 100_000, math.inf, math.inf, None)
    assert experiment.run[:5] == (1_000_000, 0, 0.95, "auto", "auto")
    assert experiment.run[5:] == (math.inf, math.inf, "data loss", False, False, 0, math.inf)
    assert (experiment.path, experiment.protocol, experiment.varied) == ("x.toml", "bookkeeper", ())


def test_a_file_sets_what_it_says(read):
    text = "[variant]\nsemantics = 'literal'\nfence_recovery_reads = false\n[faults]\nmessage_loss = 1e-12\n"
    text += f"[rates]\nclient_creates_ledger = 2\n[run]\nruns = 7\nseed = {2**63 - 1}\nmax_steps = 9\nhorizon = 3\n"
    text += "lifetime = 5.5\nconfidence = 0.5\nengine = 'numba'"
    experiment = read(BOOKKEEPER + text)
    [(point, _, _)] = experiment.points
    assert (point.values["semantics"], point.values["fence_recovery_reads"]) == ("literal", False)
    assert point.rates["client_creates_ledger"] == 2.0
    assert point[2:] == (1e-12, 9, 3.0, 5.5, None)
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


A_RATE = ', or a rate such as "1 / 2 ms" or "1 % / year"'
A_TIME = ', or a time such as "5 s" or "7 days"'


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


ERRORS = [
    # what the file adds, overrides, what is said
    ("", ["ack_quorum=4"], "model.ack_quorum = 4: at most write_quorum (3)"),
    ("", ["ack_quorum=0"], "model.ack_quorum = 0: an integer from 1 to 6"),
    ("", ["ack_quorum=true"], "model.ack_quorum = true: an integer from 1 to 6"),
    ("", ["ack_quorum=2.0"], "model.ack_quorum = 2.0: an integer from 1 to 6"),
    ("", ["ack_quorum='2'"], 'model.ack_quorum = "2": an integer from 1 to 6'),
    ("", ["ack_quorum=[2]"], "model.ack_quorum = [2]: an integer from 1 to 6"),
    ("", ["message_loss=1.1"], "faults.message_loss = 1.1: 0, or a number from 1e-15 to 1"),
    ("", ["message_loss=true"], "faults.message_loss = true: 0, or a number from 1e-15 to 1"),
    (
        "",
        ["message_loss='" + "x" * 99 + "'"],
        'faults.message_loss = "' + "x" * 56 + "...: 0, or a number from 1e-15 to 1",
    ),
    ("", ["message_loss=nan"], "faults.message_loss = NaN: 0, or a number from 1e-15 to 1"),
    ("", ["fence_recovery_reads=1"], "variant.fence_recovery_reads = 1: true or false"),
    ("", ["semantics=spec"], 'variant.semantics = "spec": one of "intended", "literal"'),
    (
        "",
        ["client_creates_ledger=-1"],
        f"rates.client_creates_ledger = -1: 0, or a number from 1e-100 to 1e100{A_RATE}",
    ),
    (
        "",
        ["client_creates_ledger=inf"],
        f"rates.client_creates_ledger = Infinity: 0, or a number from 1e-100 to 1e100{A_RATE}",
    ),
    (
        "",
        ["client_creates_ledger=1e-101"],
        f"rates.client_creates_ledger = 1e-101: 0, or a number from 1e-100 to 1e100{A_RATE}",
    ),
    (
        "",
        ["client_creates_ledger=1e101"],
        f"rates.client_creates_ledger = 1e+101: 0, or a number from 1e-100 to 1e100{A_RATE}",
    ),
    ("", ["message_loss=9e-16"], "faults.message_loss = 9e-16: 0, or a number from 1e-15 to 1"),
    ("", ["runs=0"], "run.runs = 0: an integer from 1 to 1000000000000"),
    ("", ["seed=-1"], f"run.seed = -1: an integer from 0 to {2**63 - 1}"),
    ("", ["horizon=0"], f"run.horizon = 0: a number from 1e-100 to 1e100 (inf: none){A_TIME}"),
    ("", ["horizon=1e101"], f"run.horizon = 1e+101: a number from 1e-100 to 1e100 (inf: none){A_TIME}"),
    ("", ["confidence=1"], "run.confidence = 1: a number between 0 and 1"),
    ("", ["engine=cuda"], 'run.engine = "cuda": one of "auto", "numba", "lanes", "jax"'),
    ("", ["ack_quorum"], '`overrides` "ack_quorum": written as section.key=value'),
    ("", ["ack_quorum=1 2"], '"1 2": not a TOML value (numbers, true, false, [lists] and quoted strings are)'),
    ("", ["ack_quorum=1\nb=2"], r'"1\nb=2": not a TOML value (numbers, true, false, [lists] and quoted strings are)'),
    (
        "",
        ["model.ack_quorom=2"],
        "model.ack_quorom = 2: there is no key model.ack_quorom; did you mean model.ack_quorum?",
    ),
    ("ack_quorom = 2", [], "model.ack_quorom = 2: there is no key model.ack_quorom; did you mean model.ack_quorum?"),
    (
        "message_loss = 0.1",
        [],
        "model.message_loss = 0.1: there is no key model.message_loss; did you mean faults.message_loss?",
    ),
    (
        "zzz = 1",
        [],
        "model.zzz = 1: there is no key model.zzz; "
        "[model] has bookies, clients, write_quorum, ack_quorum, entries, inflight, racks",
    ),
    ("[fault]\nmessage_loss = 0.1", [], f"fault: no such table; there are {', '.join(TABLES)}"),
    ("[[rates]]\nclient_creates_ledger = 1", [], 'rates = [{"client_creates_ledger": 1}]: a table, [rates]'),
    ("[grid]\nack_quorum = 2", [], "grid.ack_quorum = 2: a list that is not empty"),
    ("[grid]\nack_quorum = []", [], "grid.ack_quorum = []: a list that is not empty"),
    ("[grid]\nack_quorum = [1, 2, 1]", [], "grid.model.ack_quorum = [1, 2, 1]: 1 is listed twice"),
    ("[grid]\nack_quorum = [1, 9]", [], "model.ack_quorum = 9: an integer from 1 to 6"),
    ("[grid]\nseed = [1, 2]", [], "grid.run.seed = [1, 2]: cannot vary; set it in [run]"),
    (
        "[grid]\nack_quorum = [1]\nmodel.ack_quorum = [2]",
        [],
        "grid.model.ack_quorum = [2]: [grid] lists model.ack_quorum already",
    ),
    ("[grid]\nzzz = [1]", [], "grid.zzz = [1]: there is no key zzz; use table.key, such as run.runs"),
    (
        "[grid]\nwrite_quorum = [3, 1]",
        [],
        "model.ack_quorum = 2: at most write_quorum (1) "
        "(at the grid point model.write_quorum = 1; grid.where can exclude it)",
    ),
    ("[grid]\nwhere = 'ack_quorum < 3'", [], 'grid.where = "ack_quorum < 3": a list that is not empty'),
    ("[grid]\nwhere = ['ack_quorum < ack_quorum']", [], "grid.where: no point of the grid meets all the conditions"),
    (
        "[grid]\nwhere = ['ack_quorum = 2']",
        [],
        'grid.where = "ack_quorum = 2": conditions look like "ack_quorum <= write_quorum"',
    ),
    ("[grid]\nwhere = [2]", [], 'grid.where = 2: conditions look like "ack_quorum <= write_quorum"'),
    (
        "[grid]\nwhere = ['ack_quorum < __import__(\"os\")']",
        [],
        r'grid.where = "ack_quorum < __import__(\"os\")": "__import__(\"os\")": '
        "not a TOML value (numbers, true, false, [lists] and quoted strings are)",
    ),
    (
        "[grid]\nwhere = ['ack_quorum < write_quorom']",
        [],
        'grid.where = "ack_quorum < write_quorom": there is no key write_quorom; did you mean model.write_quorum?',
    ),
    (
        "[grid]\nwhere = ['ack_quorum == true']",
        [],
        'grid.where = "ack_quorum == true": model.ack_quorum is an integer from 1 to 6; true is not',
    ),
    (
        "[grid]\nwhere = ['semantics == semantics + 1']",
        [],
        'grid.where = "semantics == semantics + 1": variant.semantics is one of "intended", "literal"; '
        "semantics + 1 is not",
    ),
    (
        "[grid]\nwhere = ['semantics == \"spec\"']",
        [],
        r'grid.where = "semantics == \"spec\"": variant.semantics is one of "intended", "literal"; "spec" is not',
    ),
    (
        "[grid]\nwhere = ['fence_recovery_reads < true']",
        [],
        'grid.where = "fence_recovery_reads < true": variant.fence_recovery_reads is true or false; '
        "compare with == or !=",
    ),
    (
        "[grid]\nwhere = ['ack_quorum == semantics']",
        [],
        'grid.where = "ack_quorum == semantics": model.ack_quorum is an integer from 1 to 6; semantics is not',
    ),
]


@pytest.mark.parametrize(("more", "overrides", "said"), ERRORS, ids=[said[:40] for _, _, said in ERRORS])
def test_what_cannot_be_used_is_named_with_its_value_and_what_is_allowed(read, more, overrides, said):
    with pytest.raises(ConfigError) as error:
        read(BOOKKEEPER + more, *overrides)
    assert str(error.value) == f"x.toml: {said}"


def test_a_bare_name_has_to_be_unambiguous():
    key = keys_of(COMPACTION)["run.runs"]
    with pytest.raises(ConfigError, match=r"^runs may be run.runs or model.runs; write the dotted name$"):
        find("runs", {"run.runs": key, "model.runs": key})


@pytest.mark.parametrize("key", ["rates.client_creates_ledger = 1e-25", "run.lifetime = 1e+25"])
def test_rates_that_lie_too_far_apart_are_refused(read, key):
    with pytest.raises(ConfigError) as error:
        read(BOOKKEEPER, key)
    assert str(error.value) == f"x.toml: {key}: less than one part in 2e+21 of all rates together"
    assert read(BOOKKEEPER, "client_creates_ledger=1e-18", "run.lifetime=1e17").points[0].point.lifetime == 1e17


def test_messages_that_are_never_sent_cannot_be_lost(read):
    assert read(TOPIC, "message_loss=0").points[0].point.message_loss == 0.0
    said = "x.toml: faults.message_loss = 0.1: 0, as compaction sends no messages that could be lost"
    with pytest.raises(ConfigError) as error:
        read(TOPIC, "message_loss=0.1")
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "protocol: missing; one of bookkeeper, compaction, kafka"),
        ("protocol = 'raft'", "protocol = 'raft': one of bookkeeper, compaction, kafka"),
        (f"protocol = '{'y' * 99999}'", f"protocol = '{'y' * 12}...{'y' * 13}': one of bookkeeper"),
        ("protocol = 3", "protocol = 3: one of bookkeeper, compaction, kafka"),
        (
            TOPIC.replace("keys = 1\nvalues = 1\n", ""),
            "missing: model.keys (an integer from 1 to 6); model.values (an integer from 1 to 6)",
        ),
        (f"{TOPIC}keys = ?", "not valid TOML: Invalid value (at line 9, column 8)"),
        (f"{TOPIC}x = {'[' * 100_000}", "not valid TOML: maximum recursion depth exceeded"),
    ],
)
def test_files_that_are_no_experiments(read, text, said):
    with pytest.raises(ConfigError) as error:
        read(text)
    assert str(error.value).startswith(f"x.toml: {said}")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"absent.toml: cannot be read: No such file or directory$"):
        load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(ConfigError, match=r"latin.toml: not UTF-8 text \(byte 5\)$"):
        load(tmp_path / "latin.toml")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["messages", "keys", "producer", "message_loss", "runs", "horizon", "where"]) | st.text(
    max_size=9
)
tables = st.sampled_from(["model", "variant", "faults", "rates", "run", "grid"]) | st.text(max_size=9)


@given(st.dictionaries(tables, st.dictionaries(names, anything, max_size=4) | anything, max_size=4))
@settings(max_examples=300, deadline=None)
def test_nothing_that_a_file_holds_ends_in_anything_but_one_line(tables):
    said = ""
    try:
        build({"protocol": "compaction", **tables}, "x.toml")
    except ConfigError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def test_a_grid_beyond_measure_is_refused_before_it_is_built():
    many = list(range(1, 401))
    axes = {f"rates.{action.name}": many for action in COMPACTION.actions[:3]}
    document = {"protocol": "compaction", "model": {}, "grid": axes}
    said = r"x: grid.rates.\w+ lists 400 values, and the grid has 64,000,000 combinations: at most 100,000; "
    with pytest.raises(ConfigError, match=said):
        build(document, "x", [f"{p.name}=1" for p in COMPACTION.parameters if p.table == "model"])


def test_values_twice_are_found_in_a_long_list_at_once():
    document = {"protocol": "compaction", "grid": {"rates.broker_crash": [*range(1, 50_000), 7]}}
    with pytest.raises(ConfigError, match=r" 7\.0 is listed twice"):
        build(document, "x")
