#!/usr/bin/env python3
"""Everything that takes a machine with a GPU: step by step, and what came of it as a section of docs/gpus.md.

    python3 scripts/gpu.py                      the steps not done yet, then the section
    python3 scripts/gpu.py --minutes 9          as many of them as fit; call it again until none is left
    python3 scripts/gpu.py equal-kafka section  these, done or not
    python3 scripts/gpu.py --list               what there is
    python3 scripts/gpu.py --rehearse           all of it on a CPU: small, the kernel interpreted; no page is written

A step is a process of its own that has to end within its minutes. It leaves a file in `--out` when it is done, or one
that says why it failed; one that was killed leaves nothing, and is begun again. This file needs Python 3.11 and nothing
else, not even git or a network: `install` finds out what the other steps can run with.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from quorisk.analysis import files  # noqa: E402
from scripts import gpu_page  # noqa: E402

PAGE = ROOT / "docs" / "gpus.md"
PROTOCOLS = sorted(path.parent.name for path in (ROOT / "kernels" / "protocols").glob("*/cases.py"))
LEAST_S = 60.0
"""Seconds that have to be left for a step to be begun."""
PACKAGES = ("jax", "numba", "numpy", "scipy", "pyarrow", "pandas", "pyspark", "typer", "rich", "jinja2", "matplotlib")
NEEDED = ("jax", "numba", "numpy", "scipy")
"""What all steps need but `spark`, which needs the others as well."""
INSTALL = "install"


class Failed(Exception):
    """A step cannot be done; its text is a line that says why."""


class Step(NamedTuple):
    """Something to be done in one go."""

    name: str
    """What it does and, after a dash, the protocol that it does it with."""
    does: str
    minutes: float
    """At most."""


STEPS = (
    Step(INSTALL, "installs Quorisk for CUDA, or finds what there is", 9),
    *(Step(f"equal-{name}", "the XLA engine and the kernel make the generic engine's runs", 9) for name in PROTOCOLS),
    *(Step(f"speed-{name}", "XLA, the kernel and two CPU cores, by turns", 9) for name in PROTOCOLS),
    *(Step(f"profile-{name}", "what the GPU's time goes to", 6) for name in PROTOCOLS),
    Step("count", "the instructions of the kernels, for their bounds", 6),
    Step("spark", "a sweep on Spark, which assigns a GPU to its tasks, and one on the CPU", 9),
)


def left(out: Path, steps: Sequence[Step] = STEPS) -> list[Step]:
    """The steps that are not done; those that failed come last."""
    found = {step: gpu_page.read(out, step.name) for step in steps}
    again = [step for step, its in found.items() if "failed" in its]
    return [step for step, its in found.items() if not its] + again


def do(
    steps: Sequence[Step], out: Path, rehearse: bool, until: float, work: Callable[[Step, float], dict[str, Any]]
) -> list[str]:
    """Does the steps one after another until `time.monotonic()` is `until`; returns a line for each that failed.

    `work(step, seconds)` is what it comes to, in so many seconds at most, and raises Failed.
    """
    failed = []
    for step in steps:
        seconds = min(60 * step.minutes, until - time.monotonic())
        if seconds < LEAST_S:
            break
        print(f"{step.name}: {step.does}; {seconds:.0f} s at most", flush=True)
        start = time.monotonic()
        try:
            found = work(step, seconds)
        except Failed as error:
            found = {"failed": str(error)}
            failed.append(f"{step.name}: {error}")
        about = {"step": step.name, "rehearsed": rehearse, "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        about |= {"commit": commit(), "seconds": round(time.monotonic() - start)}
        files.write(out / f"{step.name}.json", json.dumps(about | found, indent=1).encode(), "out")
        print(f"{step.name}: {found.get('failed', 'done')} ({about['seconds']} s)", flush=True)
    return failed


def child(command: Sequence[str], seconds: float, **environment: str) -> dict[str, Any]:
    """What a process prints last, JSON; all else that it says is passed on. Raises Failed if it takes longer, and
    leaves no process of its behind."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | environment, process_group=0
    ) as running:
        try:
            said, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"it took longer than {seconds:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    *_, last = said.strip().splitlines() or [""]
    try:
        found: dict[str, Any] = json.loads(last)
    except ValueError:
        raise Failed(f"it ended with code {running.returncode} and said nothing") from None
    if "failed" in found:
        raise Failed(found["failed"])
    return found


def commit() -> str:
    """What the figures are of; nothing where git does not know."""
    return _said(["git", "-C", str(ROOT), "describe", "--always", "--dirty"])


def install(rehearse: bool, seconds: float) -> dict[str, Any]:
    """Installs into .venv where that is possible; else goes on with what is there. Raises Failed if nothing is."""
    own, why = ROOT / ".venv" / "bin" / "python", ""
    try:
        if not own.exists():
            _run([sys.executable, "-m", "venv", str(own.parents[1])], seconds / 4)
        pip = [str(own), "-m", "pip", "install", "--disable-pip-version-check", "--retries", "1", "--quiet"]
        what = ["--dry-run", "-e", f"{ROOT}[dev]"] if rehearse else ["-e", f"{ROOT}[cuda,dev]", "nvidia-cuda-nvdisasm"]
        _run([*pip, *what, "-c", str(ROOT / "constraints.txt")], 0.7 * seconds)
    except subprocess.TimeoutExpired:
        why = "pip took too long"
    except subprocess.CalledProcessError as error:
        why = ((error.stderr or error.stdout).strip().splitlines() or ["pip failed"])[-1]
    for python in (str(own), sys.executable):
        found = json.loads(_said([python, "-c", _PROBE, *PACKAGES]) or "{}")
        missing = found.get("missing", PACKAGES)
        lacking = [each for each in NEEDED if each in missing]
        if found.get("platform") == ("cpu" if rehearse else "gpu") and not lacking:
            driver = _said(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]).split("\n")[0]
            told = f"; {', '.join(missing)} missing, which spark needs" if missing else ""
            return found | {"python": python, "driver": driver, "pip": f"{why or 'installed'}{told}"}
        why = f"{why or 'installed'}; {python} has no {', '.join(lacking) or found['sees']}"
    raise Failed(why)


_PROBE = """
import importlib.util, json, platform, sys
found = {"missing": [each for each in sys.argv[1:] if not importlib.util.find_spec(each)]}
cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
found |= {"processor": cpu[0] if cpu else platform.machine(), "cores": len(cpu)}
try:
    import jax
    devices = jax.devices()
    found |= {"platform": devices[0].platform, "device": devices[0].device_kind, "devices": len(devices)}
    found |= {"versions": f"JAX {jax.__version__}, Python {platform.python_version()}"}
    found["sees"] = f"GPU that JAX sees, but {devices[0].device_kind}"
except Exception as error:
    found["sees"] = f"JAX that starts: {' '.join(str(error).split())[:200]}"
print(json.dumps(found))
"""
"""What an interpreter has, as JSON."""


def _run(command: Sequence[str], seconds: float) -> str:
    """What a command prints. Raises CalledProcessError and TimeoutExpired."""
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds).stdout.strip()


def _said(command: Sequence[str]) -> str:
    """The same, or nothing if it cannot be run."""
    with suppress(OSError, subprocess.SubprocessError):
        return _run(command, 120.0)
    return ""


def worked(name: str, out: Path, rehearse: bool, seconds: float) -> dict[str, Any]:
    """What a step comes to, in this process."""
    try:
        if name == INSTALL:
            return install(rehearse, seconds)
        from scripts import gpu_steps

        return gpu_steps.do(name, out, rehearse, seconds)
    except Exception as error:
        traceback.print_exc()
        said = str(error).splitlines()[:1] or [""]
        return {"failed": said[0] if isinstance(error, Failed) else f"{type(error).__name__}: {said[0]}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [step.name for step in STEPS]
    parser.add_argument("steps", nargs="*", metavar="STEP", help="these, done or not; `section` writes the page alone")
    parser.add_argument("--out", type=Path, help="where results are (results/gpu; results/gpu-rehearsal)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no step, and end all, by then")
    parser.add_argument("--rehearse", action="store_true", help="small, on the CPU")
    parser.add_argument("--list", action="store_true", help="say what is done, and what is left")
    parser.add_argument("--work", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := sorted({*given.steps} - {*names, "section"}):
        parser.error(f"{unknown[0]}: one of {', '.join(names)}, section")
    out: Path = given.out or ROOT / "results" / ("gpu-rehearsal" if given.rehearse else "gpu")
    out.mkdir(parents=True, exist_ok=True)
    if given.work:
        with redirect_stdout(sys.stderr):
            found = worked(given.steps[0], out, given.rehearse, given.work)
        print(json.dumps(found), flush=True)
        return
    if given.list:
        waiting = left(out)
        for step in STEPS:
            print(f"{step.name:20} {'left' if step in waiting else 'done'}  {step.does}")
        return

    def work(step: Step, seconds: float) -> dict[str, Any]:
        python = sys.executable if step.name == INSTALL else gpu_page.read(out, INSTALL).get("python", sys.executable)
        command = [python, str(Path(__file__)), step.name, "--work", str(0.9 * seconds), "--out", str(out)]
        kept = {"JAX_PLATFORMS": "cpu"} if given.rehearse or step.name == "count" else {}
        return child([*command, *(["--rehearse"] if given.rehearse else [])], seconds, **kept)

    chosen = [step for step in STEPS if step.name in given.steps] if given.steps else left(out)
    failed = do(chosen, out, given.rehearse, time.monotonic() + 60 * given.minutes, work)
    results = {step.name: gpu_page.read(out, step.name) for step in STEPS}
    section = gpu_page.section(results)
    if any(its.get("rehearsed") for its in results.values()):
        (out / "section.md").write_text(section, "utf-8")
        print(f"The section: {out / 'section.md'}")
    elif any(results.values()):
        files.write(PAGE, gpu_page.placed(PAGE.read_text("utf-8"), section).encode(), "docs")
    waiting = [step.name for step in left(out)]
    print(f"Left: {', '.join(waiting)}" if waiting else "All steps are done.", *failed, sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
