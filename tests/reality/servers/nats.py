"""NATS JetStream: a stream of three replicas. Settings: `sync_interval`."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

import nats
import nats.errors
from nats.js.api import StorageType, StreamConfig

from tests.reality.judge import Reading
from tests.reality.lab import program
from tests.reality.machines import Machine
from tests.reality.servers.cluster import PATIENCE_S, Cluster

CONFIGURATION = """
server_name: {name}
listen: {address}:4222
jetstream {{ store_dir: "{disk}/js", sync_interval: "{sync_interval}" }}
cluster {{ name: lab, listen: {peer}:6222, routes: [{routes}] }}
"""
SPREAD_S = 12.0
"""Servers start again up to so long apart, at most."""
ANSWER_S = 5.0
Found = TypeVar("Found")


class Nats(Cluster):
    """Three NATS servers, and one client that talks to any of them."""

    @staticmethod
    def programs(version: str) -> list[str]:
        return ["nats-server"]

    def configure(self, machine: Machine) -> None:
        routes = ", ".join(f'"nats://198.18.0.{index + 1}:6222"' for index in range(self.servers))
        file = machine.log.with_suffix(".conf")
        sync = self.settings["sync_interval"]
        names = {"name": machine.name, "address": machine.address, "peer": machine.peer, "disk": machine.disk}
        file.write_text(CONFIGURATION.format(**names, sync_interval=sync, routes=routes))
        machine.command = [program("nats-server") or "", "-c", str(file)]

    def begin(self, rng: Random) -> None:
        """As all do; then the servers start again one after the other, as a timer's first period is half to a whole one
        long, so that timers of a stream just made are nearly in phase, which those of a cluster in service are not."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client: Any = None
        super().begin(rng)
        for machine in self.machines:
            machine.stop()
        waits = [rng.uniform(0.0, min(self.experiment.period_s, SPREAD_S)) for _ in self.machines]
        start = time.monotonic()
        for wait, machine in sorted(zip(waits, self.machines, strict=True), key=lambda each: each[0]):
            time.sleep(max(0.0, start + wait - time.monotonic()))
            machine.start()
        self.led_by()

    def _run(self, doing: Coroutine[Any, Any, Found]) -> Found:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(2 * PATIENCE_S)

    async def _connected(self) -> Any:
        async def quiet(error: Exception) -> None:
            """Connections break here."""

        addresses = [f"nats://{machine.address}:4222" for machine in self.machines]
        forever: dict[str, Any] = {"max_reconnect_attempts": -1, "reconnect_time_wait": 0.2, "ping_interval": 2}
        return await nats.connect(addresses, error_cb=quiet, connect_timeout=2, **forever)

    def make_log(self) -> bool:
        self._client = self._client or self._run(self._connected())
        made = StreamConfig(name="S", subjects=["s"], storage=StorageType.FILE, num_replicas=self.servers)
        self._run(self._client.jetstream(timeout=ANSWER_S).add_stream(made))
        return self.leader() is not None

    def write(self, number: int, message: bytes) -> None:
        self._run(self._client.jetstream(timeout=ANSWER_S).publish("s", message, timeout=ANSWER_S))

    def leader(self) -> int | None:
        info = self._run(self._client.jetstream(timeout=ANSWER_S).stream_info("S"))
        name = info.cluster.leader if info.cluster else None
        return int(name[1:]) if name else None

    def read_all(self) -> Reading:
        if self.leader() is None:
            return Reading((), False)
        time.sleep(2.0)  # so that whoever leads now has told the others
        return self._run(self._read())

    async def _read(self) -> Reading:
        """What a consumer is given, up to where it waits in vain for more."""
        stream = self._client.jetstream(timeout=ANSWER_S)
        info = await stream.stream_info("S")
        messages: list[bytes] = []
        if info.state.messages:
            taken = await stream.subscribe("s", ordered_consumer=True)
            with suppress(nats.errors.TimeoutError):
                while len(messages) < info.state.messages:
                    messages.append((await taken.next_msg(timeout=ANSWER_S)).data)
            await taken.unsubscribe()
        return Reading(messages, len(messages) >= info.state.messages)
