"""Trials in a room of their own: servers start, messages are written, a fault happens, and all that is left is read.

Prints a row of JSON for each seed that it got to. run.py starts it: python -m tests.reality.trial EXPERIMENT SEED...
"""

import json
import os
import re
import sys
import time
from random import Random

from tests.reality import faults, lab
from tests.reality.experiments import Experiment, experiments
from tests.reality.judge import READ, judge
from tests.reality.load import Load
from tests.reality.servers.cluster import Cluster

BROKEN = "broken"
"""The outcome of a trial whose servers did not get as far as the fault."""


def last_words(log: str) -> list[str]:
    """The last complaints of a server, cut to what a row can hold."""
    complaints = [line[:400] for line in log.splitlines() if re.search("warn|err|fatal|panic|wrn", line, re.IGNORECASE)]
    return complaints[-4:]


def trial(cluster: Cluster, experiment: Experiment, name: str, seed: int) -> dict[str, object]:
    """The row of one trial: what was done, and what became of the acknowledged messages."""
    rng, start = Random(f"{name} {seed}"), time.monotonic()
    row: dict[str, object] = {"experiment": name, "seed": seed}
    arguments = dict(experiment.fault)
    fault: faults.Fault = getattr(faults, arguments.pop("name"))
    try:
        if not cluster.machines[0].runs():
            cluster.begin(rng)
        load = Load(cluster.write, seed, experiment.pause_s)
        time.sleep(experiment.load_s + rng.uniform(0.0, experiment.period_s))
        instant = fault(cluster, load, rng, **arguments)
        row |= judge(seed, load.end(), cluster.read(), instant, cluster.on_disk)
    except Exception as error:  # whatever it was, it is this trial's outcome, and the others go on
        row |= {"outcome": BROKEN, "why": f"{type(error).__name__}: {error}"}
    row["stopped"] = [machine.name for machine in cluster.machines if not machine.runs()]
    if row["stopped"] or row["outcome"] != READ:
        row["last_words"] = {each.name: last_words(each.log.read_text(errors="replace")) for each in cluster.machines}
    return row | {"seconds": round(time.monotonic() - start, 1)}


def main(name: str, seeds: list[int]) -> None:
    """Prints the row of each trial, until servers are no longer fit for another one."""
    experiment = experiments()[name]
    cluster = experiment.cluster()(lab.furnish(), experiment)
    for seed in seeds:
        row = trial(cluster, experiment, name, seed)
        print(json.dumps(row), flush=True)
        if row["outcome"] != READ or row["stopped"] or not cluster.renew():
            break


if __name__ == "__main__":
    main(sys.argv[1], [int(seed) for seed in sys.argv[2:]])
    os._exit(0)  # the room goes with its first process; clients' threads would keep it waiting
