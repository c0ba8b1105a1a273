"""Experiment files that are refused: one clear line for each, whatever a file holds."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorisk.analysis.experiment import grid
from quorisk.analysis.experiment.config import ConfigError, build_experiment, load
from quorisk.analysis.experiment.file_values import TABLES
from quorisk.analysis.experiment.keys import find_key, keys_of
from quorisk.kernels.protocols.compaction import MODEL as COMPACTION
from tests.analysis.experiment.files import BOOKKEEPER, TOPIC
from tests.support import refusal

A_RATE = '0, or a number from 1e-100 to 1e100, or a rate such as "1 / 2 ms" or "1 % / year"'
A_TIME = ', or a time such as "5 s" or "7 days"'
NO_TOML = "not a TOML value (numbers, true, false, [lists] and quoted strings are)"
OVERRIDES = {
    "ack_quorum=4": "model.ack_quorum = 4: at most write_quorum (3)",
    "ack_quorum=0": "model.ack_quorum = 0: an integer from 1 to 6",
    "ack_quorum=true": "model.ack_quorum = true: an integer from 1 to 6",
    "ack_quorum=2.0": "model.ack_quorum = 2.0: an integer from 1 to 6",
    "ack_quorum='2'": 'model.ack_quorum = "2": an integer from 1 to 6',
    "ack_quorum=[2]": "model.ack_quorum = [2]: an integer from 1 to 6",
    "message_loss=1.1": "faults.message_loss = 1.1: 0, or a number from 1e-15 to 1",
    "message_loss=true": "faults.message_loss = true: 0, or a number from 1e-15 to 1",
    f"message_loss='{'x' * 99}'": f'faults.message_loss = "{"x" * 56}...: 0, or a number from 1e-15 to 1',
    "message_loss=nan": "faults.message_loss = NaN: 0, or a number from 1e-15 to 1",
    "message_loss=9e-16": "faults.message_loss = 9e-16: 0, or a number from 1e-15 to 1",
    "fence_recovery_reads=1": "variant.fence_recovery_reads = 1: true or false",
    "semantics=spec": 'variant.semantics = "spec": one of "intended", "literal"',
    "client_creates_ledger=-1": f"rates.client_creates_ledger = -1: {A_RATE}",
    "client_creates_ledger=inf": f"rates.client_creates_ledger = Infinity: {A_RATE}",
    "client_creates_ledger=1e-101": f"rates.client_creates_ledger = 1e-101: {A_RATE}",
    "client_creates_ledger=1e101": f"rates.client_creates_ledger = 1e+101: {A_RATE}",
    "runs=0": "run.runs = 0: an integer from 1 to 1000000000000",
    "seed=-1": f"run.seed = -1: an integer from 0 to {2**63 - 1}",
    "horizon=0": f"run.horizon = 0: a number from 1e-100 to 1e100 (inf: none){A_TIME}",
    "horizon=1e101": f"run.horizon = 1e+101: a number from 1e-100 to 1e100 (inf: none){A_TIME}",
    "confidence=1": "run.confidence = 1: a number between 0 and 1",
    "engine=cuda": 'run.engine = "cuda": one of "auto", "numba", "lanes", "jax"',
    "ack_quorum": '`overrides` "ack_quorum": written as section.key=value',
    "ack_quorum=1 2": f'"1 2": {NO_TOML}',
    "ack_quorum=1\nb=2": rf'"1\nb=2": {NO_TOML}',
    "model.ack_quorom=2": "model.ack_quorom = 2: there is no key model.ack_quorom; did you mean model.ack_quorum?",
}
THEIRS = "replica.lag.time.max.ms"
FILES = {
    "ack_quorom = 2": "model.ack_quorom = 2: there is no key model.ack_quorom; did you mean model.ack_quorum?",
    "message_loss = 0.1": "model.message_loss = 0.1: there is no key model.message_loss; "
    "did you mean faults.message_loss?",
    "zzz = 1": "model.zzz = 1: there is no key model.zzz; "
    "[model] has bookies, clients, ensemble_size, write_quorum, ack_quorum, entries, inflight, racks, "
    "min_racks_per_write_quorum, ledger",
    "[faults]\nmax_stalls = 1": "faults.max_stalls = 1: there is no key faults.max_stalls; "
    'it is a key of protocol = "kraft"',
    f'[rates]\n"{THEIRS}" = 1': f"rates.{THEIRS} = 1: there is no key rates.{THEIRS}; "
    'it is a key of protocol = "kraft"',
    "[fault]\nmessage_loss = 0.1": "fault: no such table; did you mean faults?",
    "[folts]\nmessage_loss = 0.1": f"folts: no such table; there are {', '.join(TABLES)}",
    "[[rates]]\nclient_creates_ledger = 1": 'rates = [{"client_creates_ledger": 1}]: a table, [rates]',
    "[grid]\nack_quorum = 2": "grid.ack_quorum = 2: a list, such as [2]",
    "[grid]\nack_quorum = []": "grid.ack_quorum = []: a list, such as [2, 3]",
    "[grid]\nack_quorum = [1, 2, 1]": "grid.model.ack_quorum = [1, 2, 1]: 1 is listed twice",
    "[grid]\nack_quorum = [1, 9]": "value 2 of grid.model.ack_quorum = 9: an integer from 1 to 6",
    "[grid]\nseed = [1, 2]": "grid.run.seed = [1, 2]: cannot vary; set it in [run]",
    "[grid]\nack_quorum = [1]\nmodel.ack_quorum = [2]": "grid.model.ack_quorum = [2]: "
    "[grid] lists model.ack_quorum already",
    "[grid]\nzzz = [1]": "grid.zzz = [1]: there is no key zzz; use table.key, such as run.runs",
    "[grid]\nwrite_quorum = [3, 1]": "model.ack_quorum = 2: at most write_quorum (1) "
    "(at the grid point model.write_quorum = 1; grid.where can exclude it)",
    "[grid]\nwhere = 'ack_quorum < 3'": 'grid.where = "ack_quorum < 3": a list, such as ["ack_quorum < 3"]',
    "[grid]\nwhere = ['ack_quorum < ack_quorum']": "grid.where: no point of the grid meets all the conditions",
    "[grid]\nwhere = [2]": 'grid.where = 2: conditions look like "ack_quorum <= write_quorum"',
}
CONDITIONS = {
    "ack_quorum = 2": 'conditions look like "ack_quorum <= write_quorum"',
    'ack_quorum < __import__("os")': rf'"__import__(\"os\")": {NO_TOML}',
    "ack_quorum < write_quorom": "there is no key write_quorom; did you mean model.write_quorum?",
    "ack_quorum == true": "model.ack_quorum is an integer from 1 to 6; true is not",
    "semantics == semantics + 1": 'variant.semantics is one of "intended", "literal"; semantics + 1 is not',
    'semantics == "spec"': 'variant.semantics is one of "intended", "literal"; "spec" is not',
    "fence_recovery_reads < true": "variant.fence_recovery_reads is true or false; compare with == or !=",
    "ack_quorum == semantics": "model.ack_quorum is an integer from 1 to 6; semantics is not",
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_an_override_that_cannot_be_used_is_named_with_its_value_and_what_is_allowed(read, override):
    assert refusal(read, BOOKKEEPER, override) == f"x.toml: {OVERRIDES[override]}"


@pytest.mark.parametrize("more", FILES)
def test_so_is_what_a_file_adds(read, more):
    assert refusal(read, BOOKKEEPER + more) == f"x.toml: {FILES[more]}"


@pytest.mark.parametrize("condition", CONDITIONS)
def test_so_is_a_condition_of_a_grid(read, condition):
    said = f"x.toml: grid.where = {json.dumps(condition)}: {CONDITIONS[condition]}"
    assert refusal(read, f"{BOOKKEEPER}[grid]\nwhere = ['{condition}']") == said


def test_a_bare_name_has_to_be_unambiguous():
    key = keys_of(COMPACTION)["run.runs"]
    with pytest.raises(ConfigError, match=r"^runs may be run.runs or model.runs; write the dotted name$"):
        find_key("runs", {"run.runs": key, "model.runs": key})


@pytest.mark.parametrize("key", ["rates.client_creates_ledger = 1e-25", "run.lifetime = 1e+25"])
def test_rates_that_lie_too_far_apart_are_refused(read, key):
    assert refusal(read, BOOKKEEPER, key) == f"x.toml: {key}: less than one part in 2e+21 of all rates together"
    for other in ("rates.client_creates_ledger = 1e+25", "run.lifetime = 1e-90"):
        with pytest.raises(
            ConfigError, match=rf"^x.toml: {re.escape(other)}: beside it, rates\.\w+ = 1.0 is less than"
        ):
            read(BOOKKEEPER, other)
    assert read(BOOKKEEPER, "client_creates_ledger=1e-18", "run.lifetime=1e17").points[0].point.lifetime == 1e17


def test_messages_that_are_never_sent_cannot_be_lost(read):
    assert read(TOPIC, "message_loss=0").points[0].point.message_loss == 0.0
    said = "x.toml: faults.message_loss = 0.1: 0, as compaction sends no messages that could be lost"
    assert refusal(read, TOPIC, "message_loss=0.1") == said


_QUOTES = '; a key with dots in it takes quotes beside replica: "replica.lag.time.max.ms" = ...'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "protocol: missing; one of bookkeeper, compaction, kafka"),
        ("protocol = 'zab'", "protocol = 'zab': one of bookkeeper, compaction, kafka"),
        (f"protocol = '{'y' * 99999}'", f"protocol = '{'y' * 12}...{'y' * 13}': one of bookkeeper"),
        ("protocol = 3", "protocol = 3: one of bookkeeper, compaction, kafka"),
        (
            TOPIC.replace("keys = 1\nvalues = 1\n", ""),
            "missing: model.keys (an integer from 1 to 6); model.values (an integer from 1 to 6)",
        ),
        (f"{TOPIC}keys = ?", "not valid TOML: Invalid value (at line 9, column 8)"),
        (f"{TOPIC}x = {'[' * 100_000}", "not valid TOML: maximum recursion depth exceeded"),
        (f"{TOPIC}a = 1\na{'.a' * 2000} = 1\n", "not valid TOML: Cannot overwrite a value (at line 10, column"),
        (f"{TOPIC}a = {{}}\na{'.a' * 999} = 1", "not valid TOML: Cannot mutate immutable namespace"),
        (f"{TOPIC}keys = 1\n", "not valid TOML: Cannot overwrite a value (at line 9, column 9); keys is set twice"),
        *(
            (f"{TOPIC}[latency]\n{first}\n{second}\n", f"not valid TOML: Cannot {end}{_QUOTES}")
            for first, second, end in (
                ('replica = "YMMR"', "replica.lag.time.max.ms = 1", "overwrite a value (at line 11, column 28)"),
                ("replica.lag.time.max.ms = 1", 'replica = "YMMR"', "overwrite a value (at line 11, column 17)"),
                (
                    "replica = { csv = 'a.csv' }",
                    "replica.lag.time.max.ms = 1",
                    "mutate immutable namespace ('latency', 'replica', 'lag', 'time', 'max') (at line 11, column 28)",
                ),
            )
        ),
        (  # a key of another table is beside no other
            f'{TOPIC}[run]\nreplica.lag = 1\n[latency]\nreplica = "YMMR"\nreplica.lag.time.max.ms = 1\n',
            f"not valid TOML: Cannot overwrite a value (at line 13, column 28){_QUOTES}",
        ),
    ],
)
def test_files_that_are_no_experiments(read, text, said):
    with pytest.raises(ConfigError) as error:
        read(text)
    assert str(error.value).startswith(f"x.toml: {said}")
    assert len(str(error.value)) < 400


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"absent.toml: cannot be read: No such file or directory$"):
        load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(ConfigError, match=r"latin.toml: not UTF-8 text \(byte 5\)$"):
        load(tmp_path / "latin.toml")


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)  # hypothesis takes seconds to list a codec's
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["messages", "keys", "producer", "message_loss", "runs", "horizon", "where"]) | words
tables = st.sampled_from(["model", "variant", "faults", "rates", "run", "grid"]) | words


@given(st.dictionaries(tables, st.dictionaries(names, anything, max_size=4) | anything, max_size=4))
@settings(max_examples=100, deadline=None)
def test_nothing_that_a_file_holds_ends_in_anything_but_one_line(tables):
    said = ""
    try:
        build_experiment({"protocol": "compaction", **tables}, "x.toml")
    except ConfigError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def test_a_grid_beyond_measure_is_refused_before_it_is_built():
    many = list(range(1, 401))
    axes = {f"rates.{action.name}": many for action in COMPACTION.actions[:3]}
    document = {"protocol": "compaction", "model": {}, "grid": axes}
    said = r"x: grid.rates.\w+ lists 400 values, and the grid has 64,000,000 combinations: at most 100,000; "
    with pytest.raises(ConfigError, match=said):
        build_experiment(document, "x", [f"{p.name}=1" for p in COMPACTION.parameters if p.table == "model"])


def test_what_conditions_leave_out_of_a_grid_does_not_make_it_too_large(monkeypatch):
    monkeypatch.setattr(grid, "MOST_POINTS", 10)
    monkeypatch.setattr(grid, "MOST_COMBINATIONS", 130)
    sizes = {p.name: 1 for p in COMPACTION.parameters if p.table == "model"}

    def points(num, *conditions):
        axes = {f"rates.{action.name}": list(range(1, num + 1)) for action in COMPACTION.actions[:2]}
        where = {"where": list(conditions)} if conditions else {}
        return len(build_experiment({"protocol": "compaction", "model": sizes, "grid": axes | where}, "x").points)

    first, second = (f"rates.{action.name}" for action in COMPACTION.actions[:2])
    assert points(3) == 9
    assert points(10, f"{first} == {second}") == 10
    for num, conditions, said in (
        (4, (), "16 combinations: at most 10; "),
        (11, (f"{first} == {second}",), r"grid\.where leaves more than 10 combinations; "),
        (12, (f"{first} == {second}",), "144 combinations: at most 130; "),
    ):
        with pytest.raises(ConfigError, match=said):
            points(num, *conditions)


def test_values_twice_are_found_in_a_long_list_at_once():
    document = {"protocol": "compaction", "grid": {"rates.broker_crash": [*range(1, 50_000), 7]}}
    with pytest.raises(ConfigError, match=r" 7\.0 is listed twice"):
        build_experiment(document, "x")
