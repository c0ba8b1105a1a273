"""Kafka in KRaft mode: three brokers and a controller, a machine each.

Settings: `acks`, `elr` (eligible leader replicas), and `topic` and `broker`, Kafka's own settings of these.
"""

import shutil
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.reality.judge import Reading
from tests.reality.lab import JAVA, SERVERS
from tests.reality.machines import Machine
from tests.reality.servers.cluster import PATIENCE_S, Cluster, within

if TYPE_CHECKING:
    from tests.reality.experiments import Experiment

BROKERS = 3
CONTROLLER = BROKERS
"""The index of the controller's machine."""
ARCHIVE = f"-XX:SharedArchiveFile={SERVERS}/kafka.jsa"
"""An archive of classes (-XX:ArchiveClassesAtExit), if somebody made one: Java does without."""
ANSWER_S = 5.0
COMMON = {
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": f"{CONTROLLER}@198.18.0.{CONTROLLER + 1}:9093",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PEERS:PLAINTEXT,CLIENTS:PLAINTEXT",
    "num.network.threads": 2,
    "num.io.threads": 2,
}


class Kafka(Cluster):
    """Three brokers, a controller, and a topic of one partition that all brokers have."""

    servers = BROKERS + 1
    in_a_room = 5

    def __init__(self, root: Path, experiment: "Experiment") -> None:
        super().__init__(root, experiment)
        self._topic = "t0"
        brokers = ",".join(f"{broker.address}:9092" for broker in self.machines[:BROKERS])
        self._addresses: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0}

    @staticmethod
    def programs(version: str) -> list[str]:
        return ["java"]

    def configure(self, machine: Machine) -> None:
        """A broker's properties, and its folder as `kafka-storage format` makes it: install.sh kept a copy."""
        file, logs = machine.log.with_suffix(".properties"), machine.disk / "logs"
        mine: dict[str, Any] = {"node.id": machine.index, "log.dirs": logs, "process.roles": "broker"}
        if machine.index == CONTROLLER:
            mine |= {"process.roles": "controller", "listeners": f"CONTROLLER://{machine.peer}:9093"}
        else:
            mine["listeners"] = f"PEERS://{machine.peer}:9091,CLIENTS://{machine.address}:9092"
            mine["inter.broker.listener.name"] = "PEERS"
        properties = {**COMMON, **mine, **self.settings.get("broker", {})}
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        shutil.copytree(SERVERS / ("kafka-format-elr" if self.settings["elr"] else "kafka-format"), logs)
        formatted = (logs / "meta.properties").read_text().splitlines()
        kept = [line for line in formatted if not line.startswith(("node.id", "directory.id"))]
        (logs / "meta.properties").write_text("\n".join([*kept, f"node.id={machine.index}", ""]))
        machine.command = [*JAVA, ARCHIVE, "-cp", f"{SERVERS}/kafka/*", "kafka.Kafka", str(file)]

    def begin(self, rng: Random) -> None:
        """As all do, with a producer that sends each record once."""
        acks = {"acks": self.settings["acks"], "linger.ms": 0, "retries": 0, "message.timeout.ms": ANSWER_S * 1000}
        self._producer = Producer({**self._addresses, **acks})
        self._admin = AdminClient({**self._addresses})
        super().begin(rng)

    def make_log(self) -> bool:
        if self._brokers_up() == BROKERS and self._topic not in self._topics():
            topic = NewTopic(self._topic, 1, BROKERS, config=self.settings.get("topic", {}))
            self._admin.create_topics([topic])[self._topic].result(ANSWER_S)
        return self.whole()

    def renew(self) -> bool:
        self._topic = f"t{int(self._topic[1:]) + 1}"
        return within(PATIENCE_S, self.make_log)

    def _topics(self) -> Any:
        return self._admin.list_topics(timeout=ANSWER_S).topics

    def _brokers_up(self) -> int:
        return len(self._admin.list_topics(timeout=ANSWER_S).brokers)

    def _partition(self) -> Any:
        return self._topics()[self._topic].partitions[0]

    def isr(self) -> list[int]:
        """The brokers in sync."""
        return list(self._partition().isrs)

    def whole(self) -> bool:
        return self.leader() is not None and len(self.isr()) == BROKERS

    def leader(self) -> int | None:
        leader = self._partition().leader
        return leader if leader >= 0 else None

    def write(self, number: int, message: bytes) -> None:
        told: Future[None] = Future()

        def answered(error: Any, _: Any) -> None:
            if error is None:
                told.set_result(None)
            else:
                told.set_exception(RuntimeError(str(error)))

        self._producer.produce(self._topic, message, partition=0, on_delivery=answered)
        while not told.done():
            self._producer.poll(0.05)
        told.result()

    def read_all(self) -> Reading:
        if self.leader() is None:
            return Reading((), False)
        reader = Consumer({**self._addresses, "group.id": "reader", "enable.auto.commit": False})
        try:
            _, end = reader.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=ANSWER_S)
            reader.assign([TopicPartition(self._topic, 0, 0)])
            messages: list[bytes] = []
            while len(messages) < end:
                records = [record for record in reader.consume(1000, timeout=ANSWER_S) if not record.error()]
                if not records:
                    break
                messages += [record.value() or b"" for record in records]
            return Reading(messages, len(messages) >= end)
        finally:
            reader.close()
