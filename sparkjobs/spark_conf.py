"""Spark's settings: those that were asked for, then those of its own files, then those that suit Quorisk."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from pyspark import SparkConf
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from quorisk.analysis.experiment.keys import as_toml
from quorisk.kernels.errors import ConfigError
from quorisk.sparkjobs.archive import UNPACKED, package_archive

OLDEST_JAVA = 17
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[[\d,]+\]|(spark|k8s)://\S+|yarn")
LOCAL_MASTER = "local[*,4]"
"""All cores of this machine; a task is tried four times, as on a cluster."""
# All that Java does is hand out tasks: optimising that would cost seconds and save none.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.driver.extraJavaOptions": _JAVA_OPTIONS,
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "false",
}
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Over TCP each answer of a Python worker waits 40 ms for an acknowledgement. Whoever may write to these sockets may
    # run code, so they lie in a folder that is this user's alone.
    "spark.python.unix.domain.socket.enabled": "true",
}
CLUSTER_SETTINGS = {"spark.executor.extraJavaOptions": _JAVA_OPTIONS, "spark.speculation": "true"}
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable of processes that `spark-submit` started: the port of its Java, which runs already."""


def checked_settings(master: str | None, conf: Sequence[str]) -> dict[str, str]:
    """Returns Spark's settings from KEY=VALUE each. Raises ConfigError unless they read so, `master` reads like a Spark
    master, and there is a Java that Spark runs on.
    """
    settings: dict[str, str] = {}
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"spark\.[^\s=]+", key) or key in settings:
            raise ConfigError(f" {as_toml(setting)}: written as spark.KEY=VALUE, each key once", "conf")
        settings[key] = value
    master = master or settings.get("spark.master")
    if master is not None and not _MASTER.fullmatch(master):
        raise ConfigError(f" {as_toml(master)}: local[CORES], spark://HOST:PORT, k8s://HOST:PORT or yarn", "master")
    if (given() | settings).get("spark.submit.deployMode") == "cluster":
        raise ConfigError("spark.submit.deployMode = cluster: results would stay where the driver runs; use client")
    _check_java()
    return settings


def given() -> dict[str, str]:
    """Returns the settings of `spark-submit`, if that started this process, else those in spark-defaults.conf."""
    if SUBMITTED in os.environ:
        java: JavaGateway = launch_gateway()
        return {each._1(): each._2() for each in java.jvm.org.apache.spark.SparkConf().getAll()}
    folder = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME") or _find_spark_home(), "conf")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text("utf-8", "replace").splitlines()
    except OSError:
        return {}
    found = (re.match(r"\s*(spark\.[^\s=:]+)\s*[\s=:]\s*(.*?)\s*$", line) for line in lines)
    return {line[1]: line[2] for line in found if line}


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, out of reach of others."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java") or "java"
    needs = f"Spark needs Java {OLDEST_JAVA} or newer"
    try:
        # JAVA_TOOL_OPTIONS makes Java print a line before its own, so all of stderr is searched.
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        where = f"JAVA_HOME is {home}" if home else "there is no java on PATH"
        raise ConfigError(f"{needs}; {where}. `make setup` installs it.") from None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if not found or int(found[1]) < OLDEST_JAVA:
        raise ConfigError(f"{needs}; {java} is Java {found[1] if found else 'of unknown version'}")


def spark_configuration(master: str | None, settings: Mapping[str, str], folder: Path, name: str) -> SparkConf:
    """Returns the configuration: `master`, else that of `settings`, else Spark's own, else all cores of this machine.

    `folder` is for files that only this user may touch; `name` is the application's, in Spark. Raises ConfigError.
    """
    known = given()
    asked = known | dict(settings)
    master = master or asked.get("spark.master") or LOCAL_MASTER
    is_local = master.startswith("local")
    conf = SparkConf(loadDefaults=False).setMaster(master).setAppName(name)
    for key, value in (SETTINGS | (LOCAL_SETTINGS if is_local else CLUSTER_SETTINGS) | asked).items():
        if key not in ("spark.master", "spark.app.name"):
            conf.set(key, value)
    if is_local:
        for key in ("spark.python.unix.domain.socket.dir", "spark.local.dir"):
            conf.setIfMissing(key, str(folder))
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Workers import what this process imports, whatever lies in the current folder.
        conf.set("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        conf.set("spark.executorEnv.PYTHONSAFEPATH", "1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        archive = f"{package_archive(folder)}#{UNPACKED}"
        conf.set("spark.archives", ",".join(filter(None, [asked.get("spark.archives"), archive])))
        conf.set("spark.executorEnv.PYTHONPATH", f"./{UNPACKED}")
    return conf
