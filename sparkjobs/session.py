"""A Spark session that keeps to itself: its chatter goes to a file, its ports to this machine."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from analysis.errors import ConfigError
from analysis.keys import show

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # Arrow is all we use

OLDEST_JAVA = 17
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[[\d,]+\]|(spark|k8s)://\S+|yarn")
SETTINGS = {
    # All that Java does is hand out tasks: compiling and optimising that would cost seconds and save none.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def check(master: str | None) -> None:
    """Raises ConfigError unless `master` reads like a Spark master and there is a Java that Spark runs on."""
    if master is not None and not _MASTER.fullmatch(master):
        raise ConfigError(f"--master {show(master)}: local[CORES], spark://HOST:PORT, k8s://HOST:PORT or yarn")
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    needs = f"Spark needs Java {OLDEST_JAVA} or newer"
    try:
        # JAVA_TOOL_OPTIONS makes Java print a line before its own, so all of stderr is searched.
        said = subprocess.run(
            [java or "java", "-version"], capture_output=True, text=True, check=True, timeout=60
        ).stderr
    except (OSError, subprocess.SubprocessError):
        where = f"JAVA_HOME is {home}" if home else "there is no java on PATH"
        raise ConfigError(f"{needs}; {where}. `make setup` sees to it.") from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if not found or int(found[1]) < OLDEST_JAVA:
        raise ConfigError(f"{needs}; {java} is Java {found[1] if found else 'of unknown version'}")


@contextmanager
def session(master: str | None, log: Path) -> Iterator[SparkSession]:
    """Yields a session on `master` (all cores here if None) that writes what it has to say to `log`.

    A session that is already active is used as it is, and left running. Raises ConfigError if none can be started.
    """
    active = SparkSession.getActiveSession()
    if active:
        yield active
        return
    started = _start(master or "local[*]", log)
    try:
        yield started
    finally:
        started.stop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises KeyboardInterrupt where Spark, its jobs cancelled by Ctrl-C, hides it behind an exception of Java's."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


def _start(master: str, log: Path) -> SparkSession:
    conf = SparkConf().setMaster(master).setAppName("quorisk")
    for key, value in SETTINGS.items():
        conf.set(key, value)
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Workers import what this process imports, whatever lies in the current folder.
        conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        conf.set("spark.executorEnv.PYTHONSAFEPATH", "1")
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with log.open("ab") as file:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})
        started = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException) as error:
        raise ConfigError(f"Spark did not start with master {master}: {_reason(error)} (more in {log})") from None
    started.conf.set("spark.sql.shuffle.partitions", started.sparkContext.defaultParallelism)
    return started


def _reason(error: Exception) -> str:
    """What a Java exception says, without its stack."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() if java else error)
    return text.strip().splitlines()[0]
