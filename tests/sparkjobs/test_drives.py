"""Drive statistics on Spark: the same fleet as one process finds."""

import numpy as np
import pytest

from quorisk.analysis.rates import drives as statistics
from quorisk.sparkjobs import drives
from tests.analysis.rates.stats import row, write

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.usefixtures("spark"),
]


def test_a_fleet_is_the_same_on_spark_and_in_one_process(tmp_path):
    rng = np.random.default_rng(3)
    paths = []
    for number in range(60):
        day = str(np.datetime64("2025-01-01") + number)
        reported = np.flatnonzero(rng.random(50) < 0.97)
        rows = [row(day, f"s{drive}", int(rng.random() < 0.01), f"M{drive % 4}") for drive in reported]
        paths.append(write(tmp_path / f"{day}.csv", [*rows, *rows[:1], "half a li"]))
    paths.append(write(tmp_path / "bad.csv", [], "x,y"))
    seen: list[int] = []
    here = drives.here(paths, statistics.today())
    there = drives.on_spark(paths, statistics.today(), "local[2]", {}, seen.append)
    assert here.num_drives == there.num_drives == 50
    times, others = ({odd: seen.times for odd, seen in fleet.oddities.items()} for fleet in (here, there))
    assert times == others
    assert here.oddities[statistics.NOT_STATISTICS].times == 1
    for one, other in zip(here.groups, there.groups, strict=True):
        assert one[:2] == other[:2]
        assert one.series.first_day == other.series.first_day
        assert (one.series.events == other.series.events).all()
        assert (one.series.exposure == other.series.exposure).all()
    assert sum(seen) == sum(path.stat().st_size for path in paths)


def test_tasks_have_files_of_days_in_a_row(tmp_path):
    paths = [write(tmp_path / f"{number:03}.csv", []) for number in range(100)]
    tasks = drives._tasks(paths[::-1], cores=2)
    assert [path for task in tasks for path in task] == paths
    assert len(tasks) == 8
    assert len(drives._tasks(paths[:3], cores=2)) == 3
