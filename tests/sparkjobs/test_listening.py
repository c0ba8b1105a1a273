"""What a sweep can be reached by, and that `spark-submit` runs one."""

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from quorisk.sparkjobs.spark_conf import SETTINGS
from tests.sparkjobs.listening import addresses, beyond
from tests.support import ROOT, SMALL_FILE


def test_open_sockets_are_seen_by_their_addresses():
    with closing(socket.socket()) as here, closing(socket.socket(socket.AF_INET6)) as everywhere:
        here.bind(("127.0.0.2", 0))
        here.listen()
        assert addresses([0]) == set()
        assert addresses([os.getpid()]) >= {"127.0.0.2"}
        assert "127.0.0.2" not in beyond(addresses([os.getpid()]))
        everywhere.bind(("::", 0))
        everywhere.listen()
        assert beyond(addresses([os.getpid()])) == ["::"]


@pytest.mark.exhaustive
def test_spark_submit_runs_a_sweep_that_only_this_machine_reaches(tmp_path):
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(f"{SMALL_FILE}[run]\nruns = 1000\n")
    submit = [str(Path(_find_spark_home(), "bin", "spark-submit")), "--master", "local[1]"]
    submit += ["--driver-java-options", SETTINGS["spark.driver.extraJavaOptions"]]  # with which Java starts sooner
    sweep = ["scripts/submit.py", "run", str(file), "--out", str(out)]
    watch = [sys.executable, "tests/sparkjobs/listening.py"]
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*watch, *submit, *sweep],
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1 grid point, 1,000 runs in total" in done.stdout
    assert done.stdout.splitlines()[-1] == "listened on 127.0.0.1; reached from other machines: none"
    assert (out / "results.parquet").exists()
