"""Spark's start and end, and those of the Java that it runs in."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs import folder, session


@pytest.fixture
def log(tmp_path):
    return tmp_path / folder.SPARK_LOG


def java_of(context: SparkContext) -> Any:
    assert context._gateway is not None
    return context._gateway.proc


@pytest.mark.exhaustive
def test_spark_ends_while_the_caller_goes_on_and_starts_again(log):
    with ThreadPoolExecutor(1) as pool:
        busy = Event()
        pool.submit(busy.wait)
        try:
            with session.spark("local[1]", {}, log, pool) as context:
                java = java_of(context)
            assert context.parallelize([1], 1).count() == 1
        finally:
            busy.set()
    assert java.poll() == 0
    with session.spark("local[1]", {}, log) as context:
        assert java_of(context).poll() is None
        assert context.parallelize([1, 2], 1).count() == 2
    assert SparkContext._active_spark_context is None


def test_spark_that_does_not_start_leaves_no_java(log, monkeypatch):
    started = []

    def launch(*given):
        started.append(launch_gateway(*given))
        return started[-1]

    monkeypatch.setattr(session, "launch_gateway", launch)
    with (
        pytest.raises(ConfigError, match=r"Spark did not start with master local\[1\]: .*startPort"),
        session.spark("local[1]", {"spark.driver.port": "99999999"}, log),
    ):
        pass
    assert started[0].proc.poll() == 0
    assert SparkContext._gateway is None


@pytest.mark.parametrize(
    ("master", "home", "said"),
    [
        ("spark://127.0.0.1:9", None, r"did not start with master spark://127\.0\.0\.1:9: nobody answers there"),
        ("local[1]", "/nonexistent", r"SPARK_HOME = /nonexistent: has no bin/spark-submit; unset it"),
    ],
)
def test_what_spark_would_not_find_is_said_at_once(log, monkeypatch, master, home, said):
    monkeypatch.setattr(session, "launch_gateway", None)
    if home:
        monkeypatch.setenv("SPARK_HOME", home)
    with pytest.raises(ConfigError, match=said), session.spark(master, {}, log):
        pass


def test_the_page_of_spark_submit_asks_nobody_else(monkeypatch):
    conf = SparkConf(loadDefaults=False).setMaster("local[1]").set("spark.driver.host", "127.0.0.1")
    session._check(conf)
    assert conf.get("spark.ui.enabled") is None
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session._check(conf)
    assert conf.get("spark.ui.enabled") == "false"


def test_an_interrupt_while_java_starts_leaves_none(log, monkeypatch):
    started = []

    def start(*given, **options):
        started.append(subprocess.Popen(*given, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr("pyspark.java_gateway.Popen", start)
    with pytest.raises(KeyboardInterrupt), session.spark("local[1]", {}, log):
        pass
    try:
        assert started[0].wait(30) == 0
    finally:
        started[0].kill()
    assert SparkContext._active_spark_context is None
