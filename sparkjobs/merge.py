"""Merging result rows on Spark: exact integer sums by point, whatever the tasks were."""

from pyspark.sql import DataFrame

from analysis import results
from sparkjobs.run import SPARK_SCHEMA


def merge(rows: DataFrame) -> DataFrame:
    """One row a point. Rows that do not belong together fail the job with a ResultError."""
    return rows.groupBy("point_id").applyInArrow(results.merge, SPARK_SCHEMA)
