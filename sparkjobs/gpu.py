"""The GPUs that Spark assigned to a task, for the engine that can use them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark import TaskContext

from quorisk.kernels.errors import EngineError


@contextmanager
def assigned(engine: str) -> Iterator[None]:
    """Within it the jax engine takes the GPUs that Spark assigned to this task, if it assigned any.

    Raises EngineError if JAX does not see them.
    """
    task = TaskContext.get()
    resources = task.resources() if task and engine == "jax" else {}
    if "gpu" not in resources:
        yield
        return
    from quorisk.kernels.engines import jax_engine

    addresses = resources["gpu"].addresses
    ids = ordinals(addresses, os.environ.get("CUDA_VISIBLE_DEVICES"))
    seen = {device.local_hardware_id: device for device in jax_engine.devices() if device.platform == "gpu"}
    if not seen.keys() >= set(ids):
        raise EngineError(f"Spark assigned GPU {', '.join(addresses)} to a task, but JAX sees {len(seen)} GPUs there")
    with jax_engine.on([seen[i] for i in ids]):
        yield


def ordinals(addresses: Sequence[str], visible: str | None) -> list[int]:
    """CUDA's numbers for the GPUs with these addresses: where CUDA_VISIBLE_DEVICES is set (to `visible`), their places
    in it, else the addresses themselves. Raises EngineError.
    """
    named = visible.split(",") if visible else None
    try:
        return [named.index(address) if named else int(address) for address in addresses]
    except ValueError:
        where = f"CUDA_VISIBLE_DEVICES = {visible} does not name it" if named else "that address is not a number"
        raise EngineError(f"Spark assigned GPU {', '.join(addresses)} to a task: {where}") from None
