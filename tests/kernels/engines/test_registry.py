"""The choice of an engine."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import pytest

from quorisk.kernels.engines import registry
from quorisk.kernels.errors import EngineError
from tests.support import SMALL_FILE

FILE = f"{SMALL_FILE}[run]\nruns = 300\nseed = 5\n"


@pytest.fixture
def machine(monkeypatch):
    """Makes this machine look as if it had a GPU or not, and JAX for CUDA or not, that finds the GPU or not."""

    def pretend(has_gpu, has_cuda, platform="cpu"):
        monkeypatch.delenv("JAX_PLATFORMS", raising=False)
        monkeypatch.setattr(registry, "_has_gpu", lambda: has_gpu)
        monkeypatch.setattr(registry, "_has_cuda", lambda: has_cuda)
        if platform == "gpu":
            monkeypatch.setattr(jax, "local_devices", lambda: [SimpleNamespace(platform="gpu")])

    return pretend


def test_auto_is_lanes_whatever_gpus_there_are(machine):
    for platform in ("cpu", "gpu"):
        machine(has_gpu=True, has_cuda=True, platform=platform)
        assert registry.engine_of("auto").NAME == "lanes"
    assert registry.engine_of("jax").NAME == "jax"
    assert registry.engine_of("numba").NAME == "numba"


@pytest.mark.parametrize(
    ("has_gpu", "has_cuda", "why"),
    [
        (True, False, r"this machine has a GPU, but JAX is installed for CPUs only: pip install 'quorisk\[cuda\]'; "),
        (False, True, "this machine shows no NVIDIA GPU; "),
        (True, True, r"JAX sees no GPU: what does nvidia-smi say\?; "),
    ],
)
def test_jax_does_not_fall_back_to_the_cpu_in_silence(machine, monkeypatch, has_gpu, has_cuda, why):
    machine(has_gpu, has_cuda)
    with pytest.raises(EngineError, match=f"^{why}set JAX_PLATFORMS=cpu for JAX on the CPU, or run.engine = numba"):
        registry.engine_of("jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert registry.engine_of("jax").NAME == "jax"


def test_jax_runs_on_the_cpu_where_there_is_nothing_else(machine):
    machine(has_gpu=False, has_cuda=False)
    assert registry.engine_of("jax").NAME == "jax"


def test_a_platform_that_jax_cannot_start_is_told_in_a_line(machine, monkeypatch):
    def fails():
        raise RuntimeError("Unable to initialize backend 'cuda': no driver\nmore")

    machine(has_gpu=True, has_cuda=True)
    monkeypatch.setattr(jax, "local_devices", fails)
    with pytest.raises(
        EngineError, match=r"^JAX cannot start: Unable to initialize backend 'cuda': no driver; set JAX"
    ):
        registry.engine_of("jax")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("platform", ["nonsense", "cuda"])
def test_a_platform_that_jax_does_not_have_is_told_in_a_line(written, platform):
    """In a process of its own: JAX starts once."""
    file = written("topic.toml", FILE)
    environment = os.environ | {"JAX_PLATFORMS": platform, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = (
        "from quorisk.kernels.engines import registry; registry._has_gpu = registry._has_cuda = lambda: False; "
        f"from quorisk.command.main import main; main(['estimate', {str(file)!r}, '--set', 'engine=jax'])"
    )
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert told.stderr.startswith(f"error: JAX cannot start with JAX_PLATFORMS={platform}: ")
    assert told.stderr.endswith("; set JAX_PLATFORMS=cpu for JAX on the CPU, or run.engine = numba\n")


def test_jax_is_not_imported_unless_it_is_asked_for():
    """In a process of its own; importing JAX takes as long as a small estimate."""
    code = (
        "import sys; from quorisk.kernels.engines import registry; "
        "print(registry.engine_of('auto').NAME, 'jax' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "lanes False\n"


def test_the_command_runs_the_engine_asked_for_and_says_in_a_line_why_it_cannot(quorisk, machine, written):
    file = written("topic.toml", FILE)
    machine(has_gpu=False, has_cuda=False)
    code, by_jax, _ = quorisk("estimate", str(file), "--set", "run.engine=jax", "--json")
    assert (code, '"engine": "jax"' in by_jax) == (0, True)
    code, by_numba, _ = quorisk("estimate", str(file), "--json")
    reproducible = ("runs", "steps", "outcomes", "invariants", "mean_time_to_loss", "point_id")
    assert all(json.loads(by_jax)[k] == json.loads(by_numba)[k] for k in reproducible)
    machine(has_gpu=True, has_cuda=False)
    code, out, err = quorisk("estimate", str(file), "--set", "run.engine=jax")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: this machine has a GPU, but JAX is installed for CPUs only")
