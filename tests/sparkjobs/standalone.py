"""A Spark standalone cluster on this machine alone: a master and workers from the installed PySpark.

Nothing of it can be reached from other machines.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pyspark.find_spark_home import _find_spark_home

from quorisk.sparkjobs.spark_conf import SETTINGS

LOOPBACK = "127.0.0.1"
START_S = 300.0
"""Seconds in which a master or a worker has to have started."""


class Part(NamedTuple):
    """A master or a worker that has started."""

    process: "subprocess.Popen[bytes]"
    url: str
    """The master's."""


@contextmanager
def master(folder: Path) -> Iterator[Part]:
    """A master that logs in `folder`, until the end of the body. Raises RuntimeError."""
    with _started(["master.Master", "--port", "0"], folder / "master.log", r"Starting Spark master at (\S+)") as part:
        yield part


@contextmanager
def worker(folder: Path, number: int, url: str, cores: int, memory: str = "1g") -> Iterator[Part]:
    """A worker of the master at `url`, in the same manner.

    Each has an address of its own: Spark starts no copy of a slow task on the host that is slow.
    """
    place, host = folder / f"worker-{number}", f"127.0.0.{number + 1}"
    command = ["worker.Worker", "--cores", str(cores), "--memory", memory, "--work-dir", str(place), url]
    with _started(command, place.with_suffix(".log"), r"Successfully registered with master (\S+)", host) as part:
        yield part


@contextmanager
def _started(command: Sequence[str], log: Path, pattern: str, host: str = LOOPBACK) -> Iterator[Part]:
    """Runs a part of Spark that has started when its log says so; `pattern` catches the master's URL there."""
    spark = Path(_find_spark_home(), "bin", "spark-class")
    place = ["--host", host, "--webui-port", "0"]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # as on other machines
    environment = inherited | {"SPARK_LOCAL_IP": host, "SPARK_NO_DAEMONIZE": "1"}
    environment["SPARK_DAEMON_JAVA_OPTS"] = SETTINGS["spark.driver.extraJavaOptions"]  # it has as little to do
    environment["SPARK_MASTER_OPTS"] = "-Dspark.master.rest.enabled=false"  # a second port for jobs, unauthenticated
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(spark), f"org.apache.spark.deploy.{command[0]}", *place, *command[1:]],
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,  # its executors are in its process group, and end with it
        )
    try:
        yield Part(process, _wait_for(process, log, pattern))
    finally:
        end(process, signal.SIGTERM)


def _wait_for(process: "subprocess.Popen[bytes]", log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"a part of Spark did not start: {log}")


def end(process: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
    """Ends a master, or a worker and its executors, by a signal."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)
    process.wait()
