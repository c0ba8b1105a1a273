"""etcd: keys, by its JSON gateway. Settings: `flags` of its command line."""

import base64
import json
import urllib.request
from typing import Any

from tests.reality.judge import Reading
from tests.reality.lab import program
from tests.reality.machines import Machine
from tests.reality.servers.cluster import Cluster

PACKAGED = "3.5.1"
"""The version of the program `etcd`; others are programs with their version in the name."""
PAGE = 2000
"""Keys that are read at once."""


class Etcd(Cluster):
    """Three etcd members. A message is the value of a key of its own."""

    @staticmethod
    def programs(version: str) -> list[str]:
        return ["etcd" if version == PACKAGED else f"etcd-{version}"]

    def configure(self, machine: Machine) -> None:
        self.set_command(machine, "new")

    def set_command(self, machine: Machine, state: str) -> None:
        """How the member is started: `new`, or `existing` if it is told to join a cluster that is there."""
        members = ",".join(f"m{index}=http://198.18.0.{index + 1}:2380" for index in range(self.servers))
        client, peer = f"http://{machine.address}:2379", f"http://{machine.peer}:2380"
        machine.command = [
            program(self.programs(self.experiment.version)[0]) or "",
            *("--name", machine.name, "--data-dir", str(machine.disk / "data")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", members, "--initial-cluster-state", state),
            *self.settings.get("flags", ()),
        ]

    def _ask(self, path: str, body: dict[str, Any], index: int, patience_s: float = 2.0) -> Any:
        url = f"http://{self.machines[index].address}:2379/v3/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=patience_s) as answer:
            return json.load(answer)

    def make_log(self) -> bool:
        return self.leader() is not None

    def leader(self) -> int | None:
        """Who leads as whoever leads says; the others may not have heard of its end."""
        for index in range(self.servers):
            try:
                answer = self._ask("maintenance/status", {}, index)
            except OSError:
                continue
            if answer.get("leader") == answer["header"]["member_id"]:
                return index
        return None

    def write(self, number: int, message: bytes) -> None:
        put = {"key": _packed(b"%08d" % number), "value": _packed(message)}
        self._ask("kv/put", put, number % self.servers)

    def read_all(self) -> Reading:
        leader = self.leader()
        if leader is None:
            return Reading((), False)
        messages: list[bytes] = []
        first = b"0"
        while True:
            asked = {"key": _packed(first), "range_end": _packed(b"a"), "limit": PAGE}
            found = self._ask("kv/range", asked, leader, 10.0).get("kvs", [])
            messages += [base64.b64decode(each["value"]) for each in found]
            if len(found) < PAGE:
                return Reading(messages, True)
            first = base64.b64decode(found[-1]["key"]) + b"\0"


def _packed(text: bytes) -> str:
    return base64.b64encode(text).decode()
