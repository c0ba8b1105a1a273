"""Flips bits of a sweep's tables, one at a time, and counts those that reading does not notice. None may pass."""

import os
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from quorisk.kernels.errors import ConfigError, ResultError, RunError
from quorisk.sparkjobs import folder
from tests.support import SMALL_FILE
from tests.validation.page import ROOT, Check

SMALL = f"""{SMALL_FILE}
[run]
runs = 20000
[grid]
"rates.broker_crash" = [0.1, 0.5, 1.0]
"variant.persist_cursor_before_delete" = [true, false]
"""


def small_sweep(out: Path) -> Path:
    """The folder of a sweep whose results are there to be damaged."""
    file = out.parent / "small.toml"
    file.write_text(SMALL)
    command = [sys.executable, "-m", "quorisk", "run", str(file), "--out", str(out), "--master", "local[2,4]"]
    environment, silent = os.environ | {"PYTHONPATH": str(ROOT)}, subprocess.DEVNULL
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=silent, stderr=silent)
    return out


def said(results: Path) -> str:
    """How reading a folder's tables fails, in a line; empty if it does not."""
    try:
        folder.result_rows(results)
    except (ConfigError, ResultError, RunError) as error:
        return str(error)
    except Exception as error:
        return f"traceback: {error!r:.300}"
    return ""


def flips(count: int, seed: int) -> Check:
    """Bits of result tables."""
    chance, passed = random.Random(seed), 0
    with TemporaryDirectory() as temporary:
        results = small_sweep(Path(temporary, "out"))
        files = [results / folder.RESULTS, *sorted((results / folder.TASKS).glob("*.parquet"))]
        assert not said(results), said(results)
        for _ in range(count):
            file = chance.choice(files)
            whole = file.read_bytes()
            at = chance.randrange(8 * len(whole))
            file.write_bytes(whole[: at // 8] + bytes([whole[at // 8] ^ 1 << at % 8]) + whole[at // 8 + 1 :])
            wrong = said(results)
            if not wrong.startswith(f"{file}: ") or "\n" in wrong:
                passed += 1
                print(f"unnoticed: bit {at} of {file.relative_to(results)}: {wrong or 'read'}", flush=True)
            file.write_bytes(whole)
    return Check(
        "Damage: flipped bits",
        "Each time, one bit of a sweep's tables is flipped, and the tables are read. That has to fail, in one line "
        "that begins with the file's name.",
        ("bits flipped", "noticed", "read as if nothing were wrong"),
        [(f"{count:,}", f"{count - passed:,}", passed)],
        f"{count:,} bits flipped in {len(files)} files, seed {seed}: {passed} unnoticed.",
        passed == 0,
    )
