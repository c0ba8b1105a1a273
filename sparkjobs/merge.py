"""Merging result rows on Spark: exact integer sums by point, whatever the tasks were."""

import pyarrow as pa
from pyspark import SparkContext

from quorisk.analysis.results import schema

ROWS_A_BATCH = 2048


def merge(context: SparkContext, rows: pa.Table) -> pa.Table:
    """Returns one row a point from rows of `schema.SCHEMA` (with `source`, if errors should name that, too).

    Rows that do not belong together fail the job with a ResultError.
    """
    batches = [as_bytes(rows.slice(start, ROWS_A_BATCH)) for start in range(0, rows.num_rows, ROWS_A_BATCH)]
    num_tasks = max(1, min(len(batches), 4 * context.defaultParallelism))
    tables = context.parallelize(batches, num_tasks).map(lambda batch: pa.ipc.open_stream(batch).read_all())
    by_point = tables.flatMap(lambda table: table.to_pylist()).groupBy(lambda row: row["point_id"], num_tasks)
    return pa.Table.from_pylist(by_point.mapValues(schema.merge_rows).values().collect(), schema=schema.SCHEMA)


def as_bytes(table: pa.Table) -> bytes:
    """Returns a table as Arrow's stream of bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
