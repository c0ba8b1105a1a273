"""Data from outside, made hostile: every reader ends in a right answer or in one clear line, in time.

As many files each as Hypothesis' profile says: 50 (few), 200 (usual), or 10,000:
`pytest tests/test_outside_data.py --hypothesis-profile many`.
"""

import io
import json
import math
import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from quorisk.analysis.experiment import profiles
from quorisk.analysis.experiment.characters import one_line
from quorisk.analysis.rates import answer, profile
from quorisk.analysis.rates.drives import NEEDED
from quorisk.analysis.rates.incidents import COLUMNS
from quorisk.analysis.rates.metrics import METRICS
from quorisk.analysis.results import schema, sealed
from quorisk.command import show_rates
from quorisk.kernels import keeping
from quorisk.kernels.errors import ConfigError, QuoriskError
from quorisk.sparkjobs import rates as from_data
from quorisk.sparkjobs.rates import Asked, rates_from_data
from tests.analysis.rates import stats
from tests.validation import damaged_files

ROOT = Path(__file__).parents[1]
START = 1_735_689_600
WATCHED = {"nodes": 10, "since": "2025-01-01", "until": "2026-01-01"}

hostile = settings(
    deadline=30_000, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], database=None
)
words = st.text(max_size=12)
numbers = st.sampled_from([0, 1, -1, 0.5, 1e15, 1e16, 1e308, -1e308, 10**400, 2**63, math.nan, math.inf, 5e-324])
scalars = st.none() | st.booleans() | numbers | words | st.integers() | st.floats()
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """Profiles that are built in are read once, which would take most of the time."""
    find, there = profiles.find_profile, {}

    def find_once(name, folder, within=()):
        if name == "made" or not isinstance(name, str):
            return find(name, folder, within)
        if name not in there:
            there[name] = find(name, folder, within)
        return there[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "find_profile", find_once)
        defaults = from_data._defaults(find("kafka_kraft", Path()))
        patch.setattr(from_data, "_defaults", lambda base: defaults)
        yield


def is_one_line(text: str) -> bool:
    return one_line(text) == text.strip() and len(text) < 3000


def check(path: Path, **asked: object) -> None:
    """Reads a file; whatever is found has to be sound, and to make a profile that is read again."""
    refused, found = "", None
    try:
        found = rates_from_data(Asked([path], profile="kafka_kraft", **asked))  # type: ignore[arg-type]
    except ConfigError as error:
        refused = str(error)
    assert is_one_line(refused)
    if found is None:
        return
    json.dumps(answer.as_json(found), allow_nan=False)
    for each in found.findings:
        assert each.observed.events >= 0
        assert 0.0 < each.observed.exposure < math.inf
        assert (
            0.0 <= float(each.known.quantile(0.05)) <= each.known.median <= float(each.known.quantile(0.95)) < math.inf
        )
        assert not each.observed.kind.in_trials or each.observed.events <= each.observed.exposure
    assert all(0 <= row["p5"] <= row["median"] <= row["p95"] for row in answer.rows(found))
    show_rates.print_rates(found, Console(file=io.StringIO(), width=100))
    made = path.parent / "profiles" / "made.toml"
    made.parent.mkdir(exist_ok=True)
    made.write_text(profile.profile_text(found, f"quorisk rates {path.name}", date(2026, 1, 1)), "utf-8")
    assert profiles.find_profile("made", path.parent).figures.keys() >= {
        each.key for each in found.findings if each.key
    }


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file with a few of its bytes changed, gone or come twice."""
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(whole) - 1, 0)))
        to = at + draw(st.sampled_from([0, 1, 1, 7, 100, 10**6]))
        whole = whole[:at] + draw(st.sampled_from([b"", whole[at:to] * 2]) | st.binary(max_size=4)) + whole[to:]
    return whole


known_names = st.sampled_from([name for each in METRICS for name in (each.name, each.beside) if name])
labels = st.dictionaries(
    st.sampled_from(["instance", "job", "success", "condition", "status", "reason", "name", "bookie", "rack"]),
    st.sampled_from(["true", "false", "Ready", "Evicted", "a", "b"]) | scalars,
    max_size=4,
)
times = st.integers(0, 200).map(lambda i: START + 60 * i) | st.sampled_from([START + 1e-6, START * 1000, 0]) | scalars
values = st.integers(0, 5).map(str) | st.sampled_from(["0", "1", "NaN", "+Inf", "1e308", "-3"]) | scalars
metrics = st.builds(lambda name, more: {"__name__": name, **more}, known_names, labels)
series = st.fixed_dictionaries(
    {"metric": metrics | labels | anything, "values": st.lists(st.tuples(times, values) | anything, max_size=30)}
)
queries = st.lists(series | anything, max_size=6).map(
    lambda result: {"status": "success", "data": {"resultType": "matrix", "result": result}}
)


def written(document: object) -> bytes:
    """As JSON; 10^400 has no other way into a file."""
    return json.dumps(document).encode("utf-8", "surrogatepass")


@given(st.data())
@hostile
def test_answers_of_prometheus(tmp_path, data):
    whole = data.draw(queries.map(written) | queries.map(written).flatmap(damaged) | anything.map(written))
    path = tmp_path / "up.json"
    path.write_bytes(whole)
    check(path)


kinds = st.sampled_from(["node", "drive", "repair", "outage", "flood", ""]) | words
dates = st.sampled_from(
    ["2025-01-01", "2025-05-01T10:00", "2025-05-01T10:00:30Z", "2025-12-31T23:59:59.999999", "2026-01-01", ""]
) | st.datetimes().map(str)
lost = st.sampled_from(["true", "false", "yes", "no", "1", "0", "", "maybe"])
lines = st.lists(st.tuples(kinds, st.sampled_from("abc") | words, dates, dates, lost) | st.lists(words, max_size=7))


@given(st.data())
@hostile
def test_lists_of_incidents(tmp_path, data):
    rows = [COLUMNS, *data.draw(lines)]
    whole = "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
    path = tmp_path / "list.csv"
    path.write_bytes(
        data.draw(st.just(whole) | damaged(whole) | st.just(whole.decode("utf-8", "replace").encode("utf-16")))
    )
    check(path, complete=data.draw(st.booleans()), **WATCHED)


cells = st.tuples(
    st.sampled_from(["2025-01-01", "2025-01-02", "1999-01-01", "9999-12-31", "0000-00-00", "x"]) | words,
    st.sampled_from("abc") | words,
    st.sampled_from(["M1", "M2"]) | words,
    st.sampled_from(["1000", "-1", "1e400", "9" * 30, "inf", "nan", ""]),
    st.sampled_from(["0", "1", "2", "true", ""]),
)


@given(st.data())
@hostile
def test_drive_statistics(tmp_path, data):
    rows = [NEEDED, *data.draw(st.lists(cells | st.lists(words, max_size=6), max_size=12))]
    whole = "\n".join(",".join(row) for row in rows).encode("utf-8", "surrogatepass")
    path = tmp_path / data.draw(st.sampled_from(["2025-01-01.csv", "x.csv"]))
    path.write_bytes(data.draw(st.just(whole) | damaged(whole)))
    check(path, of=data.draw(st.sampled_from(["any", "fleet", "M1"])))
    path.unlink()


columns = st.one_of(
    st.lists(st.dates(), min_size=3, max_size=3).map(pa.array),
    st.lists(st.datetimes(), min_size=3, max_size=3).map(lambda each: pa.array(each, pa.timestamp("us", "UTC"))),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=3, max_size=3).map(
        lambda each: pa.array(each, pa.int64())
    ),
    st.lists(st.floats() | st.none(), min_size=3, max_size=3).map(lambda each: pa.array(each, pa.float64())),
    st.lists(st.booleans() | st.none(), min_size=3, max_size=3).map(lambda each: pa.array(each, pa.bool_())),
    st.lists(st.binary(max_size=9), min_size=3, max_size=3).map(lambda each: pa.array(each, pa.binary())),
    st.lists(st.sampled_from(["a", "b", "2025-01-01", "1", ""]) | st.none(), min_size=3, max_size=3).map(
        lambda each: pa.array(each, pa.string())
    ),
    st.just(pa.array([[1], [], None])),
    st.just(pa.array([{"x": 1}, None, {"x": 2}])),
    st.just(pa.nulls(3)),
)
usual = (
    pa.array([date(2025, 1, day) for day in (1, 2, 3)]),
    pa.array(["a", "b", "a"]),
    pa.array(["M1", "M2", "M1"]),
    pa.array([1000, 1000, 1000]),
    pa.array([0, 1, 0]),
)


@given(st.data())
@hostile
def test_drive_statistics_in_parquet(tmp_path, data):
    table = pa.table([data.draw(st.just(each) | columns) for each in usual], names=list(NEEDED))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression=data.draw(st.sampled_from(["none", "zstd"])))
    path = tmp_path / "it.parquet"
    path.write_bytes(data.draw(st.just(buffer.getvalue()) | damaged(buffer.getvalue())))
    check(path, of="fleet")


files = [path.read_text("utf-8") for path in sorted((ROOT / "configs").rglob("*.toml"))]


@given(st.sampled_from([text for text in [*files, damaged_files.TABLES] if len(text) < 20_000]), st.integers(0, 2**64))
@hostile
def test_experiment_files(tmp_path, text, seed):
    path = tmp_path / "x.toml"
    path.write_bytes(damaged_files.damaged(text, random.Random(seed)))
    said, _ = damaged_files.outcome(path)
    assert said in ("read", "refused")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A table of results without a row: what a seal guards is the whole file."""
    path = tmp_path_factory.mktemp("results") / "results.parquet"
    sealed.write_sealed(schema.SCHEMA.empty_table(), path)
    return path.read_bytes()


@given(st.data())
@hostile
def test_results(tmp_path, results, data):
    """Of a sealed file nothing but itself is read."""
    path = tmp_path / "results.parquet"
    path.write_bytes(whole := data.draw(damaged(results)))
    refused = ""
    try:
        sealed.read_sealed(path, schema.SCHEMA)
    except QuoriskError as error:
        refused = str(error)
    assert bool(refused) == (whole != results)
    assert is_one_line(refused)


@given(st.data(), st.binary(max_size=99))
@hostile
def test_caches(tmp_path, data, content):
    """Of what is kept nothing but itself is read."""
    path = tmp_path / "code"
    keeping.write(path, content)
    whole = path.read_bytes()
    path.write_bytes(changed := data.draw(damaged(whole) | st.binary(max_size=200)))
    assert keeping.read(path) == (content if changed == whole else None)


def test_statistics_that_are_whole_are_read(tmp_path):
    """What the other tests damage counts if it is not."""
    path = stats.write(tmp_path / "x.csv", [stats.row("2025-01-01", "a")])
    assert rates_from_data(Asked([path], "kafka_kraft")).findings
