"""Prints a digest of what each verb answers about each protocol, to hold two versions of Quorisk against each other.

    python tests/validation/digests.py TREE [PROTOCOL ...] > FILE

TREE is a checkout of either version; the command there runs on this Python. A line of the output is for a key of an
answer, or for a column of a sweep's results, so that `diff` names those that differ. Times and versions are left out,
and of a report all but its numbers. Some of these are seconds, so that two runs of one version differ there.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

MODELS = {
    "compaction": "model = { messages = 2, compactions = 3, keys = 1, values = 1, max_crashes = 1 }",
    "kafka": """
        model = { replicas = 2, log_size = 2, max_records = 2, max_leader_epoch = 2 }
        variant = { truncation = "kip101" }""",
    "raft": """
        model = { servers = 2, values = 1 }
        variant = { rejoin_as_new = false }
        faults = { max_elections = 2, max_disk_losses = 1 }""",
    "bookkeeper": """
        model = { bookies = 2, clients = 2, write_quorum = 2, ack_quorum = 1, entries = 1, inflight = 1 }
        variant = { fence_recovery_reads = false }""",
    "kraft": """
        model = { brokers = 2, replication_factor = 2, min_isr = 1, init_isr = 2, values = 1 }
        faults = { max_lossy_shutdowns = 1 }""",
}
UNSTEADY = {
    *("versions", "host", "attempt", "engine", "runs_per_s", "steps_per_s", "states_per_s"),
    *("seconds", "wall_s", "compile_s", "build_s", "solve_s"),
}
"""Names of values that differ from run to run."""


def steady(value: object) -> object:
    """Returns an answer without what differs from run to run."""
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in UNSTEADY}
    return [steady(each) for each in value] if isinstance(value, list) else value


def digest(value: object) -> str:
    """Returns the first digits of a hash of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def answers(tree: Path, protocol: str, folder: Path) -> dict[str, object]:
    """Returns the answers of all verbs by verb and key; of a verb that fails, its error."""
    path = folder / f"{protocol}.toml"
    path.write_text(f'protocol = "{protocol}"\nrun = {{ runs = 20000, max_steps = 1000 }}\n{MODELS[protocol]}\n')
    environment = os.environ | {"PYTHONPATH": str(tree)}

    def said(*arguments: str) -> str:
        given = [sys.executable, "-m", "quorisk", *arguments]
        done = subprocess.run(given, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        return done.stdout or done.stderr

    def answer(*arguments: str) -> object:
        printed = said(*arguments, "--json")
        return steady(json.loads(printed)) if printed.startswith("{") else printed

    out = folder / "out"
    found: dict[str, object] = {}
    for verb in ("explore", "exact", "estimate"):
        told = answer(verb, str(path))
        found |= {f"{verb} {key}": each for key, each in told.items()} if isinstance(told, dict) else {verb: told}
    said("run", str(path), "--out", str(out))
    if (out / "report.html").exists():
        table = pq.read_table(out / "results.parquet")
        found |= {
            f"sweep {name}": steady(table[name].to_pylist()) for name in table.column_names if name not in UNSTEADY
        }
        text = re.sub(
            r"(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>", " ", (out / "report.html").read_text("utf-8")
        )
        found["report"] = sorted(set(re.findall(r"\d[\d.,]*", text)))
    return found


def main() -> None:
    tree, *protocols = sys.argv[1:]
    for protocol in protocols or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            for verb, found in answers(Path(tree).absolute(), protocol, Path(folder)).items():
                print(protocol, verb, digest(found), flush=True)


if __name__ == "__main__":
    main()
