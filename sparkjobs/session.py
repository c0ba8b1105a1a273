"""Spark, started to keep to itself: its chatter goes to a file, and on one machine its ports are that machine's."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

import quorisk
from quorisk.analysis.experiment.keys import show
from quorisk.kernels.errors import ConfigError, RunError
from quorisk.kernels.protocols import registry
from quorisk.sparkjobs.files import LogHandler, appending
from quorisk.sparkjobs.private import private_folder

warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # it is not used

OLDEST_JAVA = 17
_ENDS_WITHIN_S = 60.0
_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[[\d,]+\]|(spark|k8s)://\S+|yarn")
LOCAL_MASTER = "local[*,4]"
"""All cores of this machine; a task is tried four times, as on a cluster."""
CLASSES = Path(sys.prefix) / "spark.jsa"
"""What Java made of Spark's classes once, if somebody had it do so. It leaves alone what another Java made."""


def classes(option: str, path: Path) -> str:
    """Java's option about such an archive, ignored by a Java that knows none."""
    return f'-XX:+IgnoreUnrecognizedVMOptions -XX:{option}="{path}"'


# All that Java does is hand out tasks: optimising that would cost seconds and save none.
_JAVA_OPTIONS = f"-XX:TieredStopAtLevel=1 {classes('SharedArchiveFile', CLASSES)}"
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
CLUSTER_SETTINGS = {
    "spark.executor.extraJavaOptions": _JAVA_OPTIONS,
    "spark.speculation": "true",
}
PACKAGES = ("kernels", "analysis", "sparkjobs", "plots")
_UNPACKED = "quorisk"
_FOREIGN = "quorisk_protocols-0.dist-info"
"""Where Python looks for entry points, in the archive."""
_PYTHON_ERROR = re.compile(
    r"^(?!java|org|\s)(?:[\w.]+\.)?(\w+(?:Error|Exception|Exit|Interrupt)(?:: .*)?)$", re.MULTILINE
)
_OUR_ERROR = "ResultError: "


def check(master: str | None, conf: Sequence[str]) -> dict[str, str]:
    """Spark's settings from KEY=VALUE each. Raises ConfigError unless they read so, `master` reads like a Spark master,
    and there is a Java that Spark runs on.
    """
    settings: dict[str, str] = {}
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not equals or not re.fullmatch(r"spark\.[^\s=]+", key) or key in settings:
            raise ConfigError(f"--conf {show(setting)}: written as spark.KEY=VALUE, each key once")
        settings[key] = value
    if master is not None and not _MASTER.fullmatch(master):
        raise ConfigError(f"--master {show(master)}: local[CORES], spark://HOST:PORT, k8s://HOST:PORT or yarn")
    _check_java()
    return settings


def _check_java() -> None:
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
def spark(
    master: str | None, settings: Mapping[str, str], log: Path, ending: Executor | None = None
) -> Iterator[SparkContext]:
    """Yields Spark on `master` (all cores here if None), which writes what it has to say to `log`.

    Spark takes a second to end: it does so in `ending`, if given. Spark that is already active is used as it is, and
    left running. Raises ConfigError if it does not start, or if a job in the body fails because rows do not belong
    together, and RunError if one fails otherwise; each in a line.
    """
    active = SparkContext._active_spark_context
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        stack.enter_context(_logging_to(log))
        if active:
            context = active
        else:
            context, java = _start(_configuration(master or LOCAL_MASTER, settings, folder), log)
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
    SparkContext._gateway = SparkContext._jvm = None
    java.shutdown()
    java.proc.stdin.close()
    try:
        java.proc.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        java.proc.kill()
        java.proc.wait()


@contextmanager
def _logging_to(log: Path) -> Iterator[None]:
    """Has Python's side of Spark log to a file: py4j tells of every connection that ends, with a traceback."""
    handler = LogHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _failure(context: SparkContext, error: Exception, log: Path) -> ConfigError | RunError:
    said = cause(error)
    if said.startswith(_OUR_ERROR):
        return ConfigError(said.removeprefix(_OUR_ERROR))
    try:
        if context._jsc.sc().isStopped():
            said = f"the cluster ended the application, or no master answers at {context.master}: {said}"
    except (Py4JError, ConnectionError):
        said = "the driver's Java process has ended"
    return RunError(f"Spark: {said} (more in {log})")


def _configuration(master: str, settings: Mapping[str, str], folder: Path) -> SparkConf:
    is_local = master.startswith("local")
    conf = SparkConf().setMaster(master).setAppName("quorisk")
    for key, value in (SETTINGS | (LOCAL_SETTINGS if is_local else CLUSTER_SETTINGS) | dict(settings)).items():
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
        archive = f"{packed(folder)}#{_UNPACKED}"
        conf.set("spark.archives", ",".join(filter(None, [settings.get("spark.archives"), archive])))
        conf.set("spark.executorEnv.PYTHONPATH", f"./{_UNPACKED}")
    return conf


def packed(folder: Path) -> Path:
    """An archive of this package in `folder`, for executors that lack it: Spark unpacks it beside them.

    Other distributions' packages that have protocols come along, with the entry points by which they are found. Not a
    .zip or .egg on Python's path: what is compiled is kept by the source files' content, which has to be there.
    """
    root = Path(quorisk.__file__).parent
    folders = [(root / name, root.parent) for name in PACKAGES]
    folders += [(other, other.parent) for other in registry.foreign_roots()]
    entry_points = "".join(f"{name} = {package}\n" for name, package in registry.foreign().items())
    path = folder / f"{_UNPACKED}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(root / "__init__.py", f"{root.name}/__init__.py")
        for sources, place in folders:
            for file in sorted(sources.rglob("*.py")):
                archive.write(file, file.relative_to(place))
        archive.writestr(f"{_FOREIGN}/METADATA", "Metadata-Version: 2.1\nName: quorisk-protocols\nVersion: 0\n")
        archive.writestr(f"{_FOREIGN}/entry_points.txt", f"[{registry.GROUP}]\n{entry_points}")
    return path


def _start(conf: SparkConf, log: Path) -> tuple[SparkContext, JavaGateway]:
    interrupt, java = signal.getsignal(signal.SIGINT), None
    try:
        java = _launched(conf, log)
        context = SparkContext(conf=conf, gateway=java)
    except (Py4JError, PySparkException) as error:
        said = f"{cause(error)} (more in {log})"
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
    # What is lost with the connection to Java is told in a line where it matters, not by each end of it.
    context._accumulatorServer.handle_error = lambda *request: None  # type: ignore[method-assign]
    return context, java


def _launched(conf: SparkConf, log: Path) -> JavaGateway:
    """Java, started in a thread, which Ctrl-C does not stop: left halfway, Java would wait for ever."""
    with appending(log) as file, ThreadPoolExecutor(1) as pool:
        launching = pool.submit(launch_gateway, conf, {"stdout": file, "stderr": file})
        try:
            return launching.result()
        except KeyboardInterrupt:
            _end(launching.result())
            raise


def cause(error: Exception) -> str:
    """What made Spark fail, in a line: of a task what Python said at last, else how Java's message begins."""
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage() if java else error).strip()
    python = _PYTHON_ERROR.findall(said)
    return str(python[-1]) if python else (said.splitlines() or [type(error).__name__])[0]
