"""Predicts what a fault takes of acknowledged messages, then does it to real servers, and prints both side by side.

    scripts/reality/run.py nats_5s_all --trials 30 --json results/reality/nats_5s_all.json
    scripts/reality/run.py --list

Needs root, loop devices and the servers (scripts/reality/install.sh). Trials run in namespaces of their own, which take
processes, mounts and loop devices with them, however they end.
"""

import argparse
import json
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.reality import lab
from tests.reality.compare import compared, told
from tests.reality.experiments import experiments, predicted

LIMIT_S = 900.0
"""Seconds after which a trial is ended, and counts as broken."""


class Room:
    """A process that makes trials with these seeds, one after the other."""

    def __init__(self, process: subprocess.Popen[str], seeds: list[int]) -> None:
        self.process, self.seeds, self.given = process, seeds, len(seeds)
        self.end = time.monotonic() + LIMIT_S


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", nargs="?", choices=experiments())
    parser.add_argument("--list", action="store_true", help="the experiments, a line each")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--json", type=Path, help="the file for the rows of all trials and what they come to")
    parser.add_argument("--seed", type=int, default=1, help="the first trial's; the next ones have the next seeds")
    parser.add_argument("--at-once", type=int, default=2, help="trials that run side by side")
    given = parser.parse_args()
    if given.list or given.experiment is None:
        for name, experiment in experiments().items():
            print(f"{name:32} {experiment.system} {experiment.version}: {experiment.about}")
        return
    chosen = experiments()[given.experiment]
    lacking = lab.missing() or lab.missing(*chosen.cluster().programs(chosen.version))
    if lacking:
        sys.exit(lacking)
    prediction = predicted(given.experiment)
    rows: list[dict[str, Any]] = []
    _write(given, compared(given.experiment, prediction, rows), rows)  # before any server starts
    for row in trials(given.experiment, range(given.seed, given.seed + given.trials), given.at_once):
        rows.append(row)
        print(json.dumps(row), flush=True)
        _write(given, compared(given.experiment, prediction, rows), rows)
    print(told(compared(given.experiment, prediction, rows)))


def trials(experiment: str, seeds: range, at_once: int) -> Iterator[dict[str, Any]]:
    """Yields the row of each trial as it ends. Trials that are under way when this ends are ended with it."""
    waiting, rooms, in_a_room = list(seeds), selectors.DefaultSelector(), experiments()[experiment].cluster().in_a_room
    try:
        while waiting or rooms.get_map():
            while waiting and len(rooms.get_map()) < at_once:
                mine, waiting = waiting[:in_a_room], waiting[in_a_room:]
                process = lab.in_room("tests.reality.trial", [experiment, *map(str, mine)])
                assert process.stdout is not None
                rooms.register(process.stdout, selectors.EVENT_READ, Room(process, mine))
            ready = {key.fileobj for key, _ in rooms.select(1.0)}
            for key in list(rooms.get_map().values()):
                room, late = key.data, time.monotonic() > key.data.end
                line = room.process.stdout.readline() if key.fileobj in ready and not late else ""
                if line:
                    room.end = time.monotonic() + LIMIT_S
                    yield json.loads(line) | {"at": round(time.time())}
                    room.seeds.pop(0)
                elif key.fileobj in ready or late:
                    rooms.unregister(key.fileobj)
                    room.process.kill()
                    room.process.wait()
                    if len(room.seeds) == room.given:
                        yield {
                            "experiment": experiment,
                            "seed": room.seeds.pop(0),
                            "outcome": "broken",
                            "why": "killed",
                        }
                    waiting = room.seeds + waiting
    finally:
        for key in list(rooms.get_map().values()):
            key.data.process.kill()


def _write(given: argparse.Namespace, summary: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Replaces the file by one with all rows so far, at once or not at all."""
    if given.json is None:
        return
    given.json.parent.mkdir(parents=True, exist_ok=True)
    new = given.json.with_suffix(".new")
    new.write_text(json.dumps({**summary, "rows": rows}, indent=1) + "\n")
    new.replace(given.json)
