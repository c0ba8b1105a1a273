"""Spark, started to keep to itself: its chatter goes to a file, and on one machine its ports are that machine's."""

import logging
import os
import re
import signal
import socket
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from quorisk.kernels.errors import ConfigError, RunError
from quorisk.sparkjobs.files import appending, logging_to
from quorisk.sparkjobs.spark_conf import is_loopback, spark_configuration

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # it is not used

_ENDS_WITHIN_S, _ANSWERS_WITHIN_S = 60.0, 5.0
_PYTHON_ERROR = re.compile(
    r"^(?!java|org|\s)(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$", re.MULTILINE
)
_OUR_ERROR = "ResultError: "


@contextmanager
def spark(
    master: str | None, settings: Mapping[str, str], log: Path, ending: Executor | None = None, name: str = "quorisk"
) -> Iterator[SparkContext]:
    """Yields Spark, configured as `settings.configuration` says; its messages go to `log`.

    Spark takes a second to end: it does so in `ending`, if given. Spark that is already active is used as it is, and
    left running. Raises ConfigError if it does not start, or if a job in the body fails because rows do not belong
    together, and RunError if one fails otherwise; each in a line.
    """
    active = SparkContext._active_spark_context
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="quorisk-")))
        stack.enter_context(logging_to(log, logging.getLogger()))  # py4j tells of every connection that ends
        if active:
            context = active
        else:
            context, java = _start(spark_configuration(master, settings, folder, name), log)
            stack.callback(_end, java, context)
        try:
            yield context
        except (Py4JError, PySparkException, ConnectionError) as error:
            raise _failure(context, error, log) from None
        finally:
            if ending:
                ending.submit(stack.pop_all().close)


def _end(java: JavaGateway, context: SparkContext | None = None) -> None:
    """Ends Spark and the Java that it runs in, so that who starts it again has one of its own."""
    if context:
        with suppress(Py4JError, ConnectionError):
            context.stop()
    if java.proc is None:  # it belongs to `spark-submit`
        return
    SparkContext._gateway = SparkContext._jvm = None
    java.shutdown()
    java.proc.stdin.close()
    try:
        java.proc.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        java.proc.kill()
        java.proc.wait()


def _failure(context: SparkContext, error: Exception, log: Path) -> ConfigError | RunError:
    said = cause_of_failure(error)
    if said.startswith(_OUR_ERROR):
        return ConfigError(said.removeprefix(_OUR_ERROR))
    try:
        if context._jsc.sc().isStopped():
            said = f"the cluster ended the application, or no master answers at {context.master}: {said}"
    except (Py4JError, ConnectionError):
        said = "the driver's Java process has ended"
    return RunError(f"Spark: {said} (see {log})")


def _start(conf: SparkConf, log: Path) -> tuple[SparkContext, JavaGateway]:
    interrupt, java = signal.getsignal(signal.SIGINT), None
    _check(conf)
    try:
        java = _launched(conf, log)
        context = SparkContext(conf=conf, gateway=java)
    except (Py4JError, PySparkException) as error:
        said = f"{cause_of_failure(error)} (see {log})"
        if java:
            _end(java)
        raise ConfigError(f"Spark did not start with master {conf.get('spark.master')}: {said}") from None
    except KeyboardInterrupt:
        if java:
            _end(java)
        raise
    if current_thread() is main_thread():
        # PySpark's own handler calls Java, which in the middle of another call makes an error of Ctrl-C.
        signal.signal(signal.SIGINT, interrupt)
    # Losses of the connection to Java are reported in a line where they matter, not by each end of it.
    context._accumulatorServer.handle_error = lambda *request: None  # type: ignore[method-assign]
    return context, java


def _check(conf: SparkConf) -> None:
    """Raises ConfigError for errors that Spark takes a minute to find, or reports in words that nobody understands.
    Java of `spark-submit` listens where it likes, so its web page is left out if the driver's host is this machine."""
    home = os.environ.get("SPARK_HOME")
    if home and not Path(home, "bin", "spark-submit").is_file():
        raise ConfigError(
            f"SPARK_HOME = {home}: has no bin/spark-submit; unset it to use the Spark that is installed here"
        )
    of_submit = "PYSPARK_GATEWAY_PORT" in os.environ and "SPARK_LOCAL_IP" not in os.environ
    if of_submit and is_loopback(conf.get("spark.driver.host") or ""):
        conf.setIfMissing("spark.ui.enabled", "false")
    master = conf.get("spark.master") or ""
    places = master.removeprefix("spark://").split(",") if master.startswith("spark://") else []
    if places and not any(map(_answers, places)):
        raise ConfigError(f"Spark did not start with master {master}: nobody answers there")


def _answers(place: str) -> bool:
    """Whether anybody takes a connection at HOST:PORT."""
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWERS_WITHIN_S).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _launched(conf: SparkConf, log: Path) -> JavaGateway:
    """Java, started in a thread, which Ctrl-C does not stop: left halfway, Java would wait for ever."""
    with appending(log) as file, _kept_to(conf.get("spark.driver.host") or ""), ThreadPoolExecutor(1) as pool:
        launching = pool.submit(launch_gateway, conf, {"stdout": file, "stderr": file})
        try:
            return launching.result()
        except KeyboardInterrupt:
            _end(launching.result())
            raise


@contextmanager
def _kept_to(host: str) -> Iterator[None]:
    """Has Java listen on the driver's host alone if that is this machine's loopback: its web pages ask nobody else."""
    before = os.environ.get("SPARK_LOCAL_IP")
    if is_loopback(host) and before is None:
        os.environ["SPARK_LOCAL_IP"] = host
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("SPARK_LOCAL_IP", None)


def cause_of_failure(error: Exception) -> str:
    """Returns the cause of Spark's failure in a line: a task's last Python error, else the start of Java's message."""
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage() if java else error).strip()
    python = _PYTHON_ERROR.findall(said)
    return str(python[-1]) if python else (said.splitlines() or [type(error).__name__])[0]
