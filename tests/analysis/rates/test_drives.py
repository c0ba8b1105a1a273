"""Drive statistics: what is counted, and that whatever is odd is oddities."""

import random
from collections import defaultdict
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorisk.analysis.rates import drives, fleet
from quorisk.analysis.rates.oddities import Oddities, Sightings, merge_oddities
from tests.analysis.rates.stats import HEADER, TB, days, row, write

LAST_DAY = (date(2026, 1, 1) - date(1970, 1, 1)).days


def read(*paths, each_alone=False):
    """The fleet of files that are read together, or each by another task."""
    oddities: Oddities = {}
    tasks = [[path] for path in paths] if each_alone else [paths]
    tables = (table for task in tasks for table in drives.tables_of_runs(task, LAST_DAY, oddities))
    runs = pa.concat_tables([drives.RUNS.empty_table(), *tables])
    found = fleet.merge_fleets([fleet.fleet_of(runs)])
    return found._replace(oddities=merge_oddities([oddities, found.oddities]))


def counts(found):
    return {
        (each.model, each.capacity): (each.series.events.sum(), each.series.exposure.sum()) for each in found.groups
    }


def oddities(found):
    return {odd: seen.times for odd, seen in found.oddities.items()}


def test_days_and_failures_are_counted_by_model_and_capacity(tmp_path):
    paths = [
        write(tmp_path / "2025-01-01.csv", [row("2025-01-01", "a"), row("2025-01-01", "b", 0, "M2", 2 * TB)]),
        write(tmp_path / "2025-01-02.csv", [row("2025-01-02", "a", 1), row("2025-01-02", "b", 0, "M2", 2 * TB)]),
        write(tmp_path / "2025-01-03.csv", [row("2025-01-03", "b", 0, "M2", 2 * TB)]),
    ]
    found = read(*paths)
    assert counts(found) == {("M1", TB): (1, 2), ("M2", 2 * TB): (0, 3)}
    assert (found.num_drives, found.oddities) == (2, {})
    assert found.groups[0].series.events.tolist() == [0, 1, 0]


@pytest.mark.parametrize("each_alone", [False, True])
def test_random_fleets_are_counted_as_a_program_without_runs_counts_them(tmp_path, each_alone):
    """Days that are missing, rows that come again, and drives that come back: each row counts once."""
    rng = random.Random(7)
    seen, failed, lines = set(), set(), defaultdict(list)
    for drive in range(40):
        for day in range(30):
            name = (date(2025, 1, 1) + timedelta(days=day)).isoformat()
            fails = rng.random() < 0.04
            for _ in range(rng.choice([0, 1, 1, 1, 2, 2])):
                failure = int(fails and rng.random() < 0.8)
                lines[rng.choice([day, day, rng.randrange(30)])].append(
                    row(name, f"s{drive}", failure, f"M{drive % 3}")
                )
                seen.add((drive, day))
                if failure:
                    failed.add((drive, day))
    paths = [write(tmp_path / f"part{number}.csv", rows) for number, rows in lines.items()]
    found = read(*paths, each_alone=each_alone)
    for model in range(3):
        events, exposure = counts(found)[f"M{model}", TB]
        assert events == sum(drive % 3 == model for drive, _ in failed)
        assert exposure == sum(drive % 3 == model for drive, _ in seen)
    first: dict[int, int] = defaultdict(lambda: 99)
    last: dict[int, int] = defaultdict(int)
    for drive, day in seen:
        first[drive], last[drive] = min(first[drive], day), max(last[drive], day)
    num_rows = sum(map(len, lines.values()))
    first_failure = {drive: min(day for other, day in failed if other == drive) for drive, _ in failed}
    assert oddities(found) == {
        drives.REPEATED: num_rows - len(seen),
        fleet.GAPS: sum(last[drive] - first[drive] + 1 for drive in first) - len(seen),
        fleet.CAME_BACK: sum(last[drive] > day for drive, day in first_failure.items()),
        fleet.AGAIN: len(failed) - len(first_failure),
    }


def test_parts_of_a_fleet_add_up_to_the_whole(tmp_path):
    paths = days(tmp_path, "abc", 3) + days(tmp_path / "other", "xy", 5, "M2")
    table = pa.concat_tables(drives.tables_of_runs(paths, LAST_DAY, {}))
    parts = [table.filter(pa.array(part)) for part in _by_serial(table)]
    whole, together = fleet.merge_fleets([fleet.fleet_of(table)]), fleet.merge_fleets(map(fleet.fleet_of, parts))
    assert counts(whole) == counts(together) == {("M1", TB): (0, 9), ("M2", TB): (0, 10)}
    assert [each.series.first_day for each in whole.groups] == [each.series.first_day for each in together.groups]


def _by_serial(table):
    serials = np.array(table["serial"].to_pylist())
    return [serials == serial for serial in sorted(set(serials))]


def test_parquet_files_say_the_same_in_other_types(tmp_path):
    table = pa.table(
        {
            "smart_1_raw": [1, 2],
            "date": pa.array([date(2025, 1, 1), date(2025, 1, 2)]),
            "Serial_Number": ["a", "a"],
            "model": ["M1", "M1"],
            "capacity_bytes": [TB, TB],
            "failure": [False, True],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert counts(read(tmp_path / "x.parquet")) == {("M1", TB): (1, 2)}


def test_columns_are_found_by_the_header(tmp_path):
    path = write(
        tmp_path / "x.csv", ["0,M1,x,2025-01-01,1000000000000,a"], "failure,model,z,date,capacity_bytes,serial_number"
    )
    assert counts(read(path)) == {("M1", TB): (0, 1)}


@pytest.mark.parametrize(
    ("rows", "odd", "times", "found"),
    [
        (["2025-01-01,a,M1"], drives.UNREADABLE, 1, (0, 1)),
        ([row("2025-13-01", "a")], drives.UNREADABLE, 1, (0, 1)),
        ([row("2025-01-01", "a", 2), row("2025-01-01", "")], drives.UNREADABLE, 2, (0, 1)),
        ([row("2030-01-01", "a"), row("1970-01-01", "a")], drives.FUTURE, 2, (0, 1)),
        ([row("2025-01-01", "z"), row("2025-01-01", "z", 1)], drives.REPEATED, 2, (1, 1)),
        ([row("2025-01-02", "z")], drives.ELSEWHERE, 1, (0, 2)),
        ([row("2025-01-02", "z", capacity=-1)], drives.NO_CAPACITY, 1, (0, 2)),
        ([row("2025-01-04", "z")], fleet.GAPS, 2, (0, 2)),
        ([row("2025-01-02", "z", 1), row("2025-01-03", "z")], fleet.CAME_BACK, 1, (1, 3)),
        ([row("2025-01-02", "z", 1), row("2025-01-03", "z", 1)], fleet.AGAIN, 1, (2, 3)),
        ([row("2025-01-02", "z", capacity=TB - 1)], fleet.CAPACITIES, 1, (0, 2)),
        ([row("2025-01-02", "z", model="M2")], fleet.MODELS, 1, (0, 1)),
    ],
)
def test_what_is_odd_is_counted_and_told(tmp_path, rows, odd, times, found):
    path = write(tmp_path / "2025-01-01.csv", [row("2025-01-01", "z"), *rows])
    whole = read(path)
    assert oddities(whole)[odd] == times
    assert counts(whole)["M1", TB] == found


def test_half_a_file_is_told(tmp_path):
    paths = days(tmp_path, "abcdefgh", 7)
    whole = paths[3].read_text()
    paths[3].write_text(whole[: len(whole) // 3])
    found = read(*paths)
    assert oddities(found) == {drives.CUT: 1, drives.UNREADABLE: 1, fleet.HALF: 1, fleet.GAPS: 7}
    assert found.oddities[fleet.HALF] == Sightings(1, "2025-01-04: 1 of 8")
    assert counts(found) == {("M1", TB): (0, 49)}


def test_a_file_of_another_kind_is_told_and_the_others_count(tmp_path, written):
    good = write(tmp_path / "good.csv", [row("2025-01-01", "a")])
    bad = write(tmp_path / "bad.csv", ["x"], "date,serial_number,model,capacity")
    not_parquet = written("x.parquet", "PAR")
    found = read(good, bad, not_parquet, tmp_path / "none.csv")
    assert oddities(found) == {drives.NOT_STATISTICS: 3}
    assert found.oddities[drives.NOT_STATISTICS].where == f"{bad}: has no column capacity_bytes, failure"
    assert counts(found) == {("M1", TB): (0, 1)}


def test_texts_that_are_not_utf_8_are_read(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(f"{HEADER}\n2025-01-01,".encode() + b"\xff\xfe" + f",M\xe9,{TB},0,1\n".encode("latin-1"))
    assert counts(read(path)) == {("M�", TB): (0, 1)}


def test_names_do_nothing_to_a_terminal(tmp_path):
    path = write(tmp_path / "x.csv", [row("2025-01-01", "a\x1b[2J", model="M\x1b[31m"), "2025-01-01,\x07,"])
    found = read(path)
    assert [group.model for group in found.groups] == ["M\\x1b[31m"]
    assert found.oddities[drives.UNREADABLE].where.endswith(": 2025-01-01,\\x07,")


def test_rows_are_counted_in_batches_as_in_one(tmp_path, monkeypatch):
    paths = days(tmp_path, "abcde", 6)
    whole = counts(read(*paths))
    monkeypatch.setattr(drives, "_MOST_ROWS", 7)
    monkeypatch.setattr(drives, "_BLOCK_BYTES", 120)
    assert counts(read(*paths)) == whole == {("M1", TB): (0, 30)}


def test_rows_that_are_no_text_print_no_traceback(tmp_path, capfd):
    path = write(tmp_path / "x.csv", [row("2025-01-01", "a")])
    path.write_bytes(path.read_bytes() + b"\x8d,\xff\n")
    oddities: Oddities = {}
    list(drives.tables_of_runs([path], 20_500, oddities))
    assert oddities[drives.NOT_STATISTICS].times == 1
    assert capfd.readouterr() == ("", "")
