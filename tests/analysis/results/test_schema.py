"""Result rows: built from tallies, merged by exact sums, kept in Parquet, read back as a frame."""

import json
import math
import random
from contextlib import suppress
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorisk.analysis.experiment.identity import canonical_parameters, point_id
from quorisk.analysis.results import schema, sealed
from quorisk.analysis.results.frame import frame as frame_of
from quorisk.analysis.results.schema import Identity
from quorisk.analysis.statistics import intervals, sequential
from quorisk.analysis.statistics.intervals import clopper_pearson
from quorisk.kernels.engines.tally import first_exposed, first_met, named_tally, num_columns
from quorisk.kernels.errors import ResultError
from quorisk.kernels.model import LOST, fault_kinds
from quorisk.kernels.protocols.bookkeeper import MODEL as BOOKKEEPER
from quorisk.kernels.protocols.compaction import MODEL
from tests.plots.tables import table as made_up
from tests.plots.tables import write
from tests.support import point_of

POINT = point_of(MODEL, horizon=50.0, lifetime=7.5)
IDENTITY = Identity(point_id(MODEL, POINT), MODEL.name, MODEL.version, canonical_parameters(MODEL, POINT), 7)


def row(first_run=0, num_runs=10, wall_s=0.5, **identity):
    """A row whose columns all differ: num_runs completed runs, and numbers made up for the rest."""
    sums = [100 * first_run + 3 * column for column in range(num_columns(MODEL))]
    sums[:5] = [num_runs, 0, 0, 0, 0]
    return schema.row(IDENTITY._replace(**identity), MODEL, first_run, named_tally(MODEL, sums), "numba", wall_s)


def table(*rows):
    return pa.Table.from_pylist(list(rows), schema=schema.SCHEMA)


def merged_table(*rows):
    """A row for each point, in the order of their first rows."""
    given = table(*rows).to_pylist()
    by_point = [
        [each for each in given if each["point_id"] == one] for one in dict.fromkeys(r["point_id"] for r in given)
    ]
    return table(*map(schema.merge_rows, by_point))


def merged(*rows):
    return merged_table(*rows).to_pylist()


def test_every_column_of_a_row_is_in_the_schema_and_documented():
    assert list(row()) == schema.SCHEMA.names
    assert all(field.metadata[b"doc"] for field in schema.SCHEMA)


def test_merging_adds_up_whatever_the_order():
    parts = [row(0, 10), row(10, 5), row(15, 1)]
    [one] = merged(*parts)
    assert merged(*reversed(parts)) == [one]
    assert (one["first_run"], one["num_runs"], one["completed"]) == (0, 16, 16)
    for name in ("steps", "steps_squared", "messages", "loss_steps", "loss_time_ticks", "wall_s"):
        assert one[name] == sum(part[name] for part in parts), name
    for name in ("step_histogram", "loss_time_histogram"):
        assert one[name] == [sum(bins) for bins in zip(*(part[name] for part in parts), strict=True)], name
    for index, invariant in enumerate(MODEL.invariants):
        same = [part["invariants"][index] for part in parts]
        sums = {name: sum(each[name] for each in same) for name in ("broken", "first_steps")}
        told = {"name": invariant.name, "data_loss": invariant.data_loss, "about": "", "exposed_ticks": None}
        assert one["invariants"][index] == told | sums


def test_what_losses_met_and_how_long_exposures_lasted_add_up():
    """Two rows of BookKeeper: the first two exposures are the third and the seventh of its invariants."""

    def row_of(first_run, met, exposed):
        sums = [0] * num_columns(BOOKKEEPER)
        sums[0], sums[LOST] = 10 - sum(met.values()), sum(met.values())
        for mask, losses in met.items():
            sums[first_met(BOOKKEEPER) + mask] = losses
        for place, value in enumerate(exposed):
            sums[first_exposed(BOOKKEEPER) + place] = value
        identity = IDENTITY._replace(protocol="bookkeeper")
        return schema.row(identity, BOOKKEEPER, first_run, named_tally(BOOKKEEPER, sums), "numba", 0.5)

    kinds = fault_kinds(BOOKKEEPER)
    lost = 1 << kinds.index("lost bookie")
    [one] = merged(row_of(0, {0: 1, lost: 2}, (1, 5, 0, 7)), row_of(10, {lost | 1: 3, lost: 1}, (2, 2**38 - 1, 0, 1)))
    assert one["losses_by_faults"] == [
        {"faults": [], "losses": 1},
        {"faults": ["lost bookie"], "losses": 3},
        {"faults": ["lost bookie", "lost message"], "losses": 3},
    ]
    assert schema.by_faults(one) == [
        (frozenset({"lost bookie"}), 3),
        (frozenset({"lost bookie", "lost message"}), 3),
        (frozenset(), 1),
    ]
    ticks = {each["name"]: each["exposed_ticks"] for each in one["invariants"] if each["exposed_ticks"] is not None}
    assert ticks == {
        "AllCommittedEntriesReachAckQuorum": 3 * 2**38 + 2**38 + 4,
        "AllCommittedEntriesReachWriteQuorum": 8,
        "AckedEntriesAreOnDisk": 0,
    }


def test_merging_in_stages_is_merging_at_once():
    first, second, third = row(0, 10), row(10, 5), row(15, 1)
    assert merged(*merged(first, second), third) == merged(first, *merged(third, second))


def test_rows_of_different_points_stay_apart():
    assert [each["point_id"] for each in merged(row(point_id="b"), row(point_id="a"), row(10, 5, point_id="b"))] == [
        "b",
        "a",
    ]


def test_engines_and_versions_merge_to_those_that_took_part():
    older = row(0, 10) | {"versions": ["numba 0.1"], "engines": ["another"]}
    [one] = merged(older, row(10, 10))
    assert one["versions"] == sorted(["numba 0.1", *schema.versions("numba")])
    assert one["engines"] == ["another", "numba"]


def test_an_overlap_names_where_its_rows_are_from():
    first, second = row(0, 10) | {"source": "a"}, row(7, 9) | {"source": "b"}
    with pytest.raises(ResultError, match="runs 7 to 9 are both in a and in b"):
        schema.merge_rows([second, first])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (row(0, 10), row(9, 10), "runs 9 to 9 are in two rows"),
        (row(0, 10), row(0, 10), "runs 0 to 9 are in two rows"),
        (row(0, 10), row(2, 3), "runs 2 to 4 are in two rows"),
        (row(0, 10), row(12, 3), "runs 10 to 11 are missing"),
        (row(0, 10), row(10, 10, seed=8), "differ in seed: 7, 8"),
        (row(0, 10), row(10, 10, model_version=0), "differ in model_version"),
        (row(0, 10), row(10, 10) | {"invariants": row()["invariants"][::-1]}, "differ in their invariants"),
    ],
)
def test_rows_that_do_not_belong_together_are_refused(first, second, message):
    with pytest.raises(ResultError, match=message):
        merged(first, second)


def test_sums_of_more_digits_than_64_bits_or_python_decimals_have_are_exact():
    huge = [3**70 + 1, 3**70 + 2]  # 34 digits each
    [one] = merged(*(row(10 * i, 10) | {"steps_squared": value, "loss_steps": 2**62} for i, value in enumerate(huge)))
    assert (int(one["steps_squared"]), int(one["loss_steps"])) == (2 * 3**70 + 3, 2**63)
    with pytest.raises(pa.ArrowInvalid):
        merged(row(0, 10) | {"steps": 9 * 10**37}, row(10, 10) | {"steps": 9 * 10**37})


def test_parquet_keeps_everything(tmp_path):
    path = tmp_path / "results.parquet"
    write(made_up([3, 0], model__keys=[1, 2]), path)
    given = schema.read_rows(path)
    schema.write_reproducible(given, path)
    again = schema.read_rows(path)
    assert again.schema.equals(schema.SCHEMA, check_metadata=True)
    assert again.select(schema.REPRODUCIBLE).equals(given.select(schema.REPRODUCIBLE))
    assert again["wall_s"].to_pylist() == [None, None]  # no part of a table that is to be the same everywhere


def exposed(ticks):
    """An invariant of rows that one run broke, for so long."""
    counted = {"broken": 1, "first_steps": 0, "exposed_ticks": ticks}
    return {"name": "x", "data_loss": False, "about": "exposure", **counted}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"completed": 998}, "outcomes add up to 1001 of 1000 runs"),
        ({"lost": -1, "completed": 1001}, "counts below zero"),
        ({"seed": None, "point_id": "0" * 64}, "point_id is not that of the parameters"),
        ({"step_histogram": [1] * 32}, "histograms do not add up"),
        ({"invariants": [{"name": "x", "data_loss": True, "broken": 1001, "first_steps": 0}]}, "in more runs than"),
        ({"losses_by_faults": [{"faults": [], "losses": 2}]}, "losses by faults do not add up"),
        (
            {"losses_by_faults": [{"faults": [], "losses": 4}, {"faults": ["a"], "losses": -1}]},
            "losses by faults do not add up",
        ),
        (
            {"losses_by_faults": [{"faults": ["b", "a"], "losses": 1}, {"faults": [], "losses": 2}]},
            "losses by faults are not sorted",
        ),
        ({"invariants": [exposed(None)]}, "x cannot have been broken for so long"),
        ({"invariants": [exposed(2**76 + 1)]}, "x cannot have been broken for so long"),
        ({"invariants": [exposed(0) | {"about": ""}]}, "x cannot have been broken for so long"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(tmp_path, changed, said):
    path = tmp_path / "results.parquet"
    write(made_up([3]), path)
    [row] = schema.read_rows(path).to_pylist()
    schema.write_reproducible(pa.Table.from_pylist([row | changed], schema=schema.SCHEMA), path)
    with pytest.raises(ResultError, match=rf"results\.parquet: not what a sweep writes: row 1: .*{said}"):
        schema.read_rows(path)


def test_no_bit_of_a_file_flips_unnoticed(tmp_path):
    path = tmp_path / "results.parquet"
    write(made_up([3, 0], model__keys=[1, 2]), path)
    whole = path.read_bytes()
    chance = random.Random(1)
    for _ in range(300):
        at = chance.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        with pytest.raises(ResultError, match=r"results\.parquet: "):
            schema.read_rows(path)


def test_a_sealed_file_that_parquet_cannot_decode_is_refused(tmp_path):
    path, buffer, chance = tmp_path / "results.parquet", BytesIO(), random.Random(1)
    pq.write_table(made_up([3, 0], model__keys=[1, 2]).select(schema.REPRODUCIBLE), buffer)
    whole, refused = buffer.getvalue(), 0
    described = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[chance.randrange(described, len(whole) - 8)] ^= 1 << chance.randrange(8)
        path.write_bytes(sealed.sealed(bytes(flipped)))
        with suppress(ResultError):  # and nothing else
            schema.read_rows(path)  # as some bits mean nothing
            continue
        refused += 1
    assert refused > 100


def test_other_files_are_no_results(written):
    path = written("results.parquet", "not Parquet")
    with pytest.raises(ResultError, match="damaged, or not written by"):
        schema.read_rows(path)
    sealed.write_sealed(pa.table({"point_id": ["x"]}), path)
    with pytest.raises(ResultError, match="not a table of Quorisk results"):
        schema.read_rows(path)


def test_a_frame_has_a_row_for_each_invariant_and_for_any_loss():
    counts = {"completed": 80, "lost": 15, "unfinished": 5, "num_runs": 100}
    broken = [{"name": i.name, "data_loss": i.data_loss, "broken": 9 - k} for k, i in enumerate(MODEL.invariants)]
    frame = frame_of(table(row() | counts | {"invariants": broken}), 0.9)
    assert list(frame["invariant"]) == ["data loss", *(invariant.name for invariant in MODEL.invariants)]
    assert list(frame["losses"]) == [15, 9, 8, 7]
    assert list(frame["data_loss"]) == [True, *(invariant.data_loss for invariant in MODEL.invariants)]
    assert list(frame["p"]) == [0.15, 0.09, 0.08, 0.07]
    assert (frame["low"][0], frame["high"][0]) == clopper_pearson(15, 100, 0.9, hidden=5)
    assert frame["high"][0] > clopper_pearson(15, 100, 0.9)[1]


def test_a_frame_has_every_parameter_under_its_dotted_key():
    endless = json.dumps(json.loads(IDENTITY.parameters) | {"run.horizon": None, "run.lifetime": None})
    frame = frame_of(table(row(), row(point_id="other", parameters=endless)), 0.95)
    given = {key: frame[key].iloc[0] for key in frame.columns if "." in key}
    assert given == json.loads(IDENTITY.parameters)
    assert list(frame["run.horizon"].unique()) == [50.0, math.inf]
    assert list(frame["run.lifetime"].unique()) == [7.5, math.inf]


def test_simultaneous_intervals_are_wider_and_horizon_runs_hide_losses_on_request():
    """Three points together at 95%: each interval as if at 1 - 0.05 / 3."""
    cut = table(*(row(point_id=str(i)) | {"completed": 7, "horizon": 3} for i in range(3)))
    alone, together = frame_of(cut, 0.95), frame_of(cut, 0.95, simultaneous=True)
    strict = frame_of(cut, 1 - 0.05 / 3)
    assert together["high"].tolist() == pytest.approx(strict["high"].tolist())
    assert together["high"].iloc[0] > alone["high"].iloc[0]
    assert together["method"].iloc[0] == "simultaneous Clopper-Pearson"
    any_time = frame_of(cut, 0.95, at_any_time=True)
    assert any_time["high"].iloc[0] == clopper_pearson(0, 10, 0.95, 3)[1]


@pytest.mark.parametrize("why", ["precision", "budget", "time"])
def test_where_the_number_of_runs_was_not_fixed_the_interval_holds_at_any(why):
    broken = [{"name": i.name, "data_loss": i.data_loss, "broken": 15} for i in MODEL.invariants]
    counts = {"completed": 85, "lost": 15, "num_runs": 100, "invariants": broken}
    fixed, free = (frame_of(table(row() | counts | {"stopped": [each]}), 0.9) for each in ("runs", why))
    assert (fixed["method"][0], free["method"][0]) == (intervals.METHOD, sequential.METHOD)
    assert (free["low"][0], free["high"][0]) == sequential.confidence_sequence(15, 100, 0.9)
    assert list(free["stopped"].unique()) == [why]
    both = table(row() | counts | {"stopped": ["runs"]}, row(point_id="other") | counts | {"stopped": [why]})
    assert list(frame_of(both, 0.9)["method"].unique()) == [sequential.METHOD]
