"""Markov chains as files that other tools read: UMB, the unified Markov binary format (pmc-tools.github.io/umb).

A UMB file is a tar archive of an index (JSON) and plain little-endian arrays, so that a chain is written as it lies in
memory, and read back by Storm without a look at each transition.
"""

import io
import json
import tarfile
from pathlib import Path
from typing import Any, Literal

import numpy as np

from quorisk.analysis.exact.answers import ENDS, breaks
from quorisk.kernels.model import OUTCOMES, UNFINISHED, Model
from quorisk.kernels.states.chain import Chain, p_step

Time = Literal["discrete", "stochastic"]


def write_umb(chain: Chain, model: Model, path: Path, time: Time) -> None:
    """Writes a chain: `discrete` counts steps, `stochastic` adds the rates at which states are left.

    Labels: how a run ends (`lost`, `completed`, `stuck`, `horizon`), and by an invariant's name the states that break
    it. Rewards: `steps` and `time`, of a whole run. Ends lead to themselves, and with several initial states a run
    starts in each of them with the same probability (the format holds no other distribution).
    """
    goes_on = chain.ends == UNFINISHED
    mean_time = np.divide(1.0, chain.total_rate, out=np.zeros(len(goes_on)), where=goes_on)
    by_jump = time == "discrete"  # else a state's reward is by unit of time
    rewards = {
        "steps": p_step(chain) if by_jump else p_step(chain) * chain.total_rate,
        "time": mean_time if by_jump else goes_on.astype(float),
    }
    labels = {OUTCOMES[i]: chain.ends == i for i in ENDS} | breaks(chain, model)
    files = {"state-is-initial.bin": _bits(chain.initial > 0.0), **_transitions(chain, goes_on)}
    if time == "stochastic":
        files["state-to-exit-rate.bin"] = np.where(goes_on, chain.total_rate, 1.0)
    files |= {f"annotations/rewards/{name}/states/values.bin": values for name, values in rewards.items()}
    files |= {f"annotations/aps/{name.lower()}/states/values.bin": _bits(where) for name, where in labels.items()}
    index = {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": _sizes(files, chain, time),
        "annotations": {
            "aps": {name.lower(): _annotation(name, "bool", 1) for name in labels},
            "rewards": {name: _annotation(name, "double", 64) for name in rewards},
        },
    }
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "index.json", json.dumps(index, indent=2).encode())
        for name, values in files.items():
            _add(archive, name, np.ascontiguousarray(values).data.cast("B"))


def _transitions(chain: Chain, goes_on: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of transitions, with one from every end to itself."""
    loops = np.flatnonzero(~goes_on)
    return {
        "choice-to-branches.bin": (chain.first + np.append(0, np.cumsum(~goes_on))).astype("<u8"),
        "branch-to-target.bin": np.insert(chain.target, chain.first[loops], loops).astype("<u8"),
        "branch-to-probability.bin": np.insert(chain.p, chain.first[loops], 1.0).astype("<f8"),
    }


def _sizes(files: dict[str, np.ndarray], chain: Chain, time: Time) -> dict[str, Any]:
    double = {"type": "double", "size": 64}
    return {
        "time": time,
        "#players": 0,
        "#states": len(chain.ends),
        "#initial-states": int((chain.initial > 0.0).sum()),
        "#choices": len(chain.ends),
        "#choice-actions": 0,
        "#branches": len(files["branch-to-target.bin"]),
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": double,
    } | ({"exit-rate-type": double} if time == "stochastic" else {})


def _annotation(name: str, kind: str, size: int) -> dict[str, Any]:
    return {"alias": name, "applies-to": ["states"], "type": {"type": kind, "size": size}}


def _bits(where: np.ndarray) -> np.ndarray:
    """Booleans as bits, from the lowest, in whole words of 64."""
    packed = np.packbits(where, bitorder="little")
    return np.pad(packed, (0, -len(packed) % 8))


def _add(archive: tarfile.TarFile, name: str, content: bytes | memoryview) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
