"""Spark for the tests of a file: sweeps use what is active, and starting it takes longer than most of them."""

import io
from contextlib import contextmanager

import pytest
from pyspark import SparkContext
from rich.console import Console

from quorisk.analysis.experiment import config
from quorisk.sparkjobs import folder, session
from tests.sparkjobs.small import FILE


@pytest.fixture(scope="module")
def spark(kept_spark, tmp_path_factory):
    if not SparkContext._active_spark_context:
        kept_spark.enter_context(started(tmp_path_factory.mktemp("spark") / folder.SPARK_LOG))
    return SparkContext._active_spark_context


@contextmanager
def started(log):
    with session.spark("local[2]", {}, log):
        yield
    assert log.stat().st_size > 0


@pytest.fixture
def no_figures(monkeypatch):
    """Sweeps here draw no figures: a test that does not look at them need not wait for them."""
    monkeypatch.setattr("quorisk.sparkjobs.draw.figures", lambda *_, **__: ())


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=200)


@pytest.fixture
def load(written):
    """Loads the small grid, with overrides."""
    path = written("small.toml", FILE)
    return lambda *overrides: config.load(path, overrides)
