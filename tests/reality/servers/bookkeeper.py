"""BookKeeper: three bookies and ZooKeeper, a machine each, and a ledger on all three bookies.

Settings: `ack_quorum`, `bookie`, BookKeeper's own settings of a bookie, and `spare`: one more bookie, the last machine,
which a fault may start. A ledger is written by BookKeeper's own client, Ledger.java, and is read by another one, which
recovers it first.
"""

import queue
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.reality.judge import Reading
from tests.reality.lab import JAVA, SERVERS
from tests.reality.machines import Machine
from tests.reality.servers.cluster import PATIENCE_S, Cluster, within

if TYPE_CHECKING:
    from tests.reality.experiments import Experiment

BOOKIES = 3
ZOOKEEPER = BOOKIES
"""The index of ZooKeeper's machine."""
METADATA = f"zk+hierarchical://198.18.1.{ZOOKEEPER + 1}:2181/ledgers"
LIBRARIES = f"{SERVERS}/bookkeeper/*:{SERVERS}/bookkeeper"
PROGRAM = (*JAVA, "-cp", LIBRARIES)
ANSWER_S = 10.0
COMMON = {
    "metadataServiceUri": METADATA,
    "bookiePort": 3181,
    "journalPreAllocSizeMB": 4,
    "logSizeLimit": 64 << 20,
    "skipListSizeLimit": 8 << 20,
    "httpServerEnabled": "false",
    "enableStatistics": "false",
}


class BookKeeper(Cluster):
    """Three bookies, ZooKeeper, and a ledger whose entries all three have."""

    in_a_room = 5

    def __init__(self, root: Path, experiment: "Experiment") -> None:
        self.servers = BOOKIES + 1 + experiment.settings.get("spare", 0)
        super().__init__(root, experiment)
        self._adds: dict[int, Future[None]] = {}
        self._answers: queue.Queue[list[str]] = queue.Queue()
        self._reading = threading.Lock()

    @staticmethod
    def programs(version: str) -> list[str]:
        return ["java"]

    def configure(self, machine: Machine) -> None:
        """ZooKeeper's or a bookie's configuration."""
        file = machine.log.with_suffix(".properties")
        if machine.index == ZOOKEEPER:
            mine: dict[str, Any] = {"dataDir": machine.disk / "zookeeper", "clientPort": 2181}
            properties = {**mine, "tickTime": 1000, "admin.enableServer": "false"}
            machine.command = [*PROGRAM, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(file)]
        else:
            mine = {"journalDirectories": machine.disk / "journal", "ledgerDirectories": machine.disk / "ledgers"}
            mine["advertisedAddress"] = machine.address
            properties = {**COMMON, **mine, **self.settings.get("bookie", {})}
            machine.command = [*PROGRAM, "org.apache.bookkeeper.server.Main", "-c", str(file)]
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    def begin(self, rng: Random) -> None:
        """ZooKeeper starts and is told of a new cluster; then three bookies and the client that writes do."""
        self.machines[ZOOKEEPER].start()
        if not within(PATIENCE_S, self._format):
            raise RuntimeError("ZooKeeper does not come up")
        for bookie in self.machines[:BOOKIES]:
            bookie.start()
        self._start_client()
        if not within(3 * PATIENCE_S, self.make_log):
            raise RuntimeError("the cluster does not come up")
        for machine in self.machines:  # a bookie writes its cookie without fsync, and does not start without it
            machine.settle()

    def _format(self) -> bool:
        file = str(self.machines[0].log.with_suffix(".properties"))
        shell = [
            *PROGRAM,
            "org.apache.bookkeeper.bookie.BookieShell",
            "-conf",
            file,
            "metaformat",
            "-nonInteractive",
            "-force",
        ]
        return subprocess.run(shell, capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0

    def _start_client(self) -> None:
        command = [*PROGRAM, "Ledger", METADATA, str(self.settings["ack_quorum"])]
        self._client = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
        )
        threading.Thread(target=self._listens, daemon=True).start()

    def writer_dies(self) -> None:
        """The client that writes is gone, with all that it had not sent; reading starts another one."""
        self._client.kill()
        self._client.wait()

    def _listens(self) -> None:
        assert self._client.stdout is not None
        for line in self._client.stdout:
            words = line.rstrip("\n").split(" ", 1)
            if words[0] == "added":
                self._adds.pop(int(words[1])).set_result(None)
            elif words[0] == "failed":
                self._adds.pop(int(words[1])).set_exception(RuntimeError("not added"))
            elif words[0] in ("create", "entry", "read"):
                self._answers.put(words)

    def _says(self, line: str) -> None:
        assert self._client.stdin is not None
        self._client.stdin.write(line + "\n")

    def make_log(self) -> bool:
        self._says("create")
        self._ledger = self._answers.get(timeout=PATIENCE_S)[1]
        return self._ledger.isdigit()

    def renew(self) -> bool:
        return within(PATIENCE_S, self.make_log)

    def leader(self) -> int | None:
        """No bookie leads; the first one stands for all."""
        return 0

    def write(self, number: int, message: bytes) -> None:
        told = self._adds[number] = Future()
        self._says(f"add {number} {message.decode()}")
        told.result(ANSWER_S)

    def read_all(self) -> Reading:
        """A client recovers the ledger, which fences its writer, and reads it to its end."""
        with self._reading:
            if self._client.poll() is not None:
                self._start_client()
            self._says(f"read {self._ledger}")
            messages: list[bytes] = []
            while (answer := self._answers.get(timeout=PATIENCE_S))[0] == "entry":
                messages.append(answer[1].encode())
            return Reading(messages, answer[1] == str(len(messages)))
