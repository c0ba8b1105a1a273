"""Rows of clusters' years merge by addition, and by nothing else."""

import pyarrow as pa
import pytest

from quorisk.analysis.cluster import rows
from quorisk.analysis.cluster.rows import SCHEMA, cluster_of_row, merge_years, row_of_years, tally_of_row
from quorisk.kernels.cluster.setting import VERSION, Cluster, Thin
from quorisk.kernels.cluster.years import draw_years
from quorisk.kernels.errors import ResultError

CLUSTER = Cluster(6, 2, 2, 5, 10, node_loss=2.0, repair_time=0.01, thin=(Thin(1, 2.0, False),), sets=((0, 1), (2, 3)))


def of_years(first: int, num: int, seed: int = 1) -> dict:
    """The row of some years, read back from a table."""
    table = pa.Table.from_pylist([row_of_years(CLUSTER, seed, first, draw_years(CLUSTER, first, num, seed))], SCHEMA)
    [read] = table.to_pylist()
    return read


def test_parts_are_the_whole():
    whole, parts = of_years(10, 300), [of_years(210, 100), of_years(10, 50), of_years(60, 150)]
    [merged] = merge_years(parts)
    assert merged == whole | {"sizes": merged["sizes"]}
    assert {tuple(each.values()) for each in merged["sizes"]} == {tuple(each.values()) for each in whole["sizes"]}
    assert cluster_of_row(merged) == CLUSTER
    assert tally_of_row(merged).sums == draw_years(CLUSTER, 10, 300, 1).sums


def test_a_cluster_without_disks_is_the_one_that_it_was_before_there_were_any():
    assert "disk" not in rows.canonical_cluster(CLUSTER)
    of_disks = CLUSTER._replace(disks_per_node=2, disk_loss=0.5)
    assert cluster_of_row(row_of_years(of_disks, 1, 0, draw_years(of_disks, 0, 10, 1))) == of_disks


def test_seeds_and_clusters_stay_apart():
    other = row_of_years(CLUSTER._replace(nodes=7), 1, 0, draw_years(CLUSTER._replace(nodes=7), 0, 10, 1))
    assert len(merge_years([of_years(0, 10), of_years(10, 10, seed=2), other])) == 3


@pytest.mark.parametrize("second", [(9, 10), (11, 10)])
def test_years_that_overlap_or_miss_some_are_refused(second):
    with pytest.raises(ResultError, match="do not lie end to end"):
        merge_years([of_years(0, 10), of_years(*second)])


@pytest.mark.parametrize("change", [{"cluster_id": "0" * 64}, {"num_years": 0}, {"sums": []}])
def test_rows_that_contradict_themselves_are_refused(change):
    with pytest.raises(ResultError):
        tally_of_row(of_years(0, 10) | change)


def test_another_version_is_another_cluster(monkeypatch):
    before = of_years(0, 10)
    other = VERSION + 1
    monkeypatch.setattr(rows, "VERSION", other)
    after = of_years(10, 10) | {"version": other, "cluster_id": rows.cluster_id(before["parameters"], other)}
    assert len(merge_years([before, after])) == 2
