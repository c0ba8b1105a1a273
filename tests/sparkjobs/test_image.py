"""The image for executors has the packages that tasks import."""

import re
import subprocess
import sys

from tests.support import ROOT

COME_ALONG = {"llvmlite": "numba", "py4j": "pyspark"}
PROGRAM = """
import sys, quorisk.sparkjobs.run, quorisk.kernels.engines.lanes
import quorisk.analysis.estimate.method, quorisk.analysis.results.heads
from importlib.metadata import packages_distributions
print(*{name.partition(".")[0] for name in sys.modules} & set(packages_distributions()))
"""


def test_executors_find_in_their_image_what_tasks_import():
    [installed] = re.findall(r"pip install --no-cache-dir (.*) -c", (ROOT / "scripts/executor.Dockerfile").read_text())
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {name for name in done.stdout.split() if not name.startswith("_")} - {"quorisk"}
    assert {COME_ALONG.get(name, name) for name in imported} == set(installed.split())
