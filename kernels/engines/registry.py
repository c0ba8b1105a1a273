"""The engines by name. All of them give the same results bit for bit; they differ in speed and in what they need."""

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from quorisk.kernels.engines import ENGINES
from quorisk.kernels.engines.job import Job
from quorisk.kernels.engines.points import Points
from quorisk.kernels.errors import EngineError
from quorisk.kernels.model import Model
from quorisk.kernels.progress import Progress

_CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class Engine(Protocol):
    """Interface of a module of ENGINES."""

    NAME: str

    def simulate(
        self,
        model: Model,
        points: Points,
        jobs: Sequence[Job],
        seed: int,
        threads: int = 1,
        progress: Progress | None = None,
        later: int = 0,
    ) -> np.ndarray:
        """Runs the jobs; returns int64 tallies of shape (jobs, num_columns(model)).

        `progress` is called in this thread with the number of runs that have ended since its last call. `later` says
        about how many runs of each point, or of points that are kin to it (`points.kin`), further calls will ask this
        process for. The result does not depend on `threads`.
        """

    def record(self, model: Model, points: Points, job: Job, seed: int) -> np.ndarray:
        """One row of RECORD a run, int64 of shape (runs, len(RECORD))."""


def engine_of(name: str) -> Engine:
    """The engine of a name; `auto` is lanes, as GPUs are faster for small protocols only (docs/gpus.md).

    Raises EngineError for jax if this machine has a GPU, or JAX for CUDA, and yet JAX cannot use a GPU: to be run on
    the CPU then would be a surprise; and if JAX cannot start on the platform that JAX_PLATFORMS asks for.
    """
    name = "lanes" if name == "auto" else name
    if name == "jax" and os.environ.get("JAX_PLATFORMS", "").lower() != "cpu":
        gpu_wanted = _has_gpu() or _has_cuda()
        if why := _why_no_gpu() if gpu_wanted else _start()[1] if os.environ.get("JAX_PLATFORMS") else "":
            raise EngineError(f"{why}; set JAX_PLATFORMS=cpu for JAX on the CPU, or run.engine = numba")
    engine: Engine = import_module(ENGINES[name])
    return engine


def _why_no_gpu() -> str:
    """Why JAX cannot use a GPU here; empty if it can."""
    if not _has_gpu():
        return "this machine shows no NVIDIA GPU"
    if not _has_cuda():
        return "this machine has a GPU, but JAX is installed for CPUs only: pip install 'quorisk[cuda]'"
    platform, why = _start()
    return why or ("" if platform == "gpu" else "JAX sees no GPU: what does nvidia-smi say?")


def _start() -> tuple[str, str]:
    """The platform that JAX starts on, or why it cannot start."""
    from quorisk.kernels.engines import jax_engine

    try:
        return jax_engine.device().platform, ""
    except (RuntimeError, AssertionError) as error:  # the latter where JAX knows a platform, but has no plugin for it
        wanted = os.environ.get("JAX_PLATFORMS")
        said = str(error).splitlines()[:1] or ["not installed"]
        return "", f"JAX cannot start{f' with JAX_PLATFORMS={wanted}' if wanted else ''}: {said[0]}"


def _has_gpu() -> bool:
    """Whether there is an NVIDIA GPU, by its device file."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def _has_cuda() -> bool:
    """Whether JAX is installed for CUDA."""
    return any(find_spec(plugin) for plugin in _CUDA_PLUGINS)
