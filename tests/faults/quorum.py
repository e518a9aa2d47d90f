"""A quorum of kraftd controllers that reach each other through the fault proxy, a writer, and the check.

The writer and the test's own requests use the controllers' own ports, not the proxy: as an operator does,
they see every side of a partition.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.load import BenchBroker
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.describe_quorum_response import PartitionData
from kraftd.metadata.image import Image
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.logs import Broken, ElectionWatch, Ledger, read_log
from testkit.process import HOST, free_port, wait_until
from testkit.quorum import DESCRIBE, Quorum
from tests.faults.proxy import Proxy

VOTERS = (100, 101, 102)
CREATE_VERSION = 7
_WAIT_S = 3
_TOPICS_PER_REQUEST = 1000  # a controller refuses more than 10,000 partitions
# Half of Kafka's timeouts, so that a lost host is noticed sooner. The broker on which topics are placed never
# loses its session, since it sends no heartbeats.
PROPERTIES: dict[str, object] = {
    "controller.quorum.fetch.timeout.ms": 1000,
    "controller.quorum.election.timeout.ms": 500,
    "controller.quorum.election.backoff.max.ms": 500,
    "controller.quorum.request.timeout.ms": 1000,
    "broker.session.timeout.ms": 3_600_000,
    "kraftd.log.format": "json",
}
_PLACED_ON = 9
# Only defects log these: unexpected exceptions.
_BUGS = ("Traceback", '"exception"', '"level":"critical"')
_LINES_OF_A_FAILED_DISK = ("What is on disk is unknown", "Input/output error. Check the disk")


class FaultyQuorum(Quorum):
    """Three voters, each behind a door of the proxy, whose elections are watched from the start."""

    def __init__(
        self,
        home: Path,
        *,
        static: bool = False,
        proxied: bool = True,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self.proxy = Proxy()
        super().__init__(
            home,
            dict.fromkeys(VOTERS, "kraftd"),
            static=static,
            controller_properties={**PROPERTIES, **(properties or {})},
        )
        self.doors: dict[int, int] = {}
        if proxied:
            for node_id, controller in self.controllers.items():
                self.doors[node_id] = self.proxy.door(node_id, controller.port)
            self._write_doors()
        self.ledger = Ledger()
        self.watch = ElectionWatch([one.data for one in self.controllers.values()], self.ledger)
        self.watch.start()

    def _write_doors(self) -> None:
        """Write the addresses of the doors into the nodes' files: they know no others."""
        if self.static:
            voters = ",".join(f"{node_id}@{HOST}:{door}" for node_id, door in self.doors.items())
            self._quorum = {"controller.quorum.voters": voters}
        else:
            servers = ",".join(f"{HOST}:{door}" for door in self.doors.values())
            self._quorum = {"controller.quorum.bootstrap.servers": servers}
        directories = {node_id: random_uuid() for node_id in self.doors}
        self.initial = ",".join(
            f"{node_id}@{HOST}:{door}:{directories[node_id]}" for node_id, door in self.doors.items()
        )
        for node_id, controller in self.controllers.items():
            controller.properties |= self._quorum
            controller.properties["advertised.listeners"] = f"CONTROLLER://{HOST}:{self.doors[node_id]}"
            controller.write_properties()

    def move(self, node_id: int) -> int:
        """Give a stopped controller another port and door in its own file; return the door."""
        controller = self.controllers[node_id]
        controller.move(free_port())
        self.doors[node_id] = self.proxy.door(node_id, controller.port)
        controller.properties["advertised.listeners"] = f"CONTROLLER://{HOST}:{self.doors[node_id]}"
        controller.write_properties()
        return self.doors[node_id]

    def move_all(self) -> None:
        """Give all controllers other ports and other doors, in every node's file."""
        for node_id in self.controllers:
            self.move(node_id)
        self._write_doors()

    def close(self) -> None:
        self.watch.stop()
        super().close()
        self.proxy.close()

    def start(self) -> None:
        """Start all controllers, and register the broker on which topics are placed."""
        leader = self.controllers[self.start_controllers()]
        self.wait_for_voters(*VOTERS)
        broker = BenchBroker(_PLACED_ON, leader.port, self.cluster_id, leader.host)
        broker.unfence()
        broker.client.close()

    def keep_data_in(self, node_id: int, directory: Path) -> None:
        """Put a controller's data elsewhere, before its first start."""
        controller = self.controllers[node_id]
        self.watch.directories.remove(controller.data)
        self.watch.directories.append(directory)
        controller.data = controller.properties["log.dirs"] = directory
        controller.write_properties()

    @contextmanager
    def directory_exchanged(self, node_id: int) -> Iterator[None]:
        """Do not watch a stopped controller during the block, in which the test changes its files."""
        directory = self.controllers[node_id].data
        self.watch.directories.remove(directory)
        yield
        self.watch.forget(directory)
        self.watch.directories.append(directory)

    def voting_directories(self) -> set[tuple[int, bytes]]:
        """(id, directory id) of every voter; OSError while there is no leader."""
        described = self.described()
        if described is None:
            raise OSError("no controller leads")
        return {(one.replica_id, bytes(one.replica_directory_id)) for one in described.current_voters}

    def voter_port(self, node_id: int) -> int:
        """The port of a voter in the voters' record; OSError while there is no leader."""
        with self.connect(self.wait_for_leader()) as client:
            nodes = client.call(DESCRIBE, 2).nodes
        return next((node.listeners[0].port for node in nodes if node.node_id == node_id), -1)

    def others(self, node_id: int) -> list[int]:
        return [one for one in self.controllers if one != node_id]

    def heal(self) -> None:
        self.proxy.heal()
        super().heal()

    # -- invariants

    def check(self, acknowledged: Sequence[str] = ()) -> Image:
        """Heal everything, then check disks, logs, elections and the leader's memory. Returns the image.

        Raises Broken if an acknowledged topic is missing or an invariant does not hold.
        """
        self.heal()
        described = self.settled()
        logs = [read_log(one.data) for one in self.controllers.values()]
        image = self.ledger.check(logs, described.high_watermark)
        missing = [name for name in acknowledged if name not in image.topic_names()]
        if missing:
            raise Broken(
                f"C2: {len(missing)} of {len(acknowledged)} acknowledged topics are lost: {missing[:5]}"
            )
        forgotten = self._unknown_to_leader(acknowledged)
        if forgotten:
            raise Broken(f"C1: the leader does not know {forgotten[:5]}, which its log has")
        self.watch.poll()
        if self.watch.broken:
            raise Broken(self.watch.broken[0])
        self._check_log_lines()
        return image

    def _check_log_lines(self) -> None:
        """Check that no log has a line that only a defect writes."""
        for controller in self.controllers.values():
            lines = [
                line
                for line in controller.log.read_text().splitlines()
                if any(word in line for word in _BUGS)
                and not any(words in line for words in _LINES_OF_A_FAILED_DISK)
            ]
            if lines:
                raise Broken(f"{controller} logged {lines[:3]}")

    def settled(self) -> PartitionData:
        """The leader's description once all voters have every committed record."""
        found: list[PartitionData] = []

        def level() -> bool:
            described = self.described()
            if described is None:
                return False
            found[:] = [described]
            return len(described.current_voters) == len(self.controllers) and all(
                one.log_end_offset >= described.high_watermark for one in described.current_voters
            )

        wait_until(level, "all voters have caught up")
        return found[0]

    def _unknown_to_leader(self, names: Sequence[str]) -> list[str]:
        unknown: list[str] = []
        with self.connect(self.wait_for_leader()) as client:
            for first in range(0, len(names), _TOPICS_PER_REQUEST):
                some = [CreatableTopic(name, 1, 1) for name in names[first : first + _TOPICS_PER_REQUEST]]
                answer = client.call(CreateTopicsRequest(some, 30_000, True), CREATE_VERSION)
                unknown += [
                    one.name for one in answer.topics if one.error_code != ErrorCode.TOPIC_ALREADY_EXISTS
                ]
        return unknown

    def described_by(self, node_id: int) -> PartitionData | None:
        """A controller's description of the quorum; None if it answers that it does not lead."""
        with self.connect(node_id, _WAIT_S) as client:
            partition: PartitionData = client.call(DESCRIBE, 2).topics[0].partitions[0]
        return None if partition.error_code else partition

    def wait_until_led_by_one_of(self, *ids: int) -> int:
        """Wait until a majority among these has a leader; return its id. Other nodes get no requests."""
        found: list[int] = []

        def led() -> bool:
            for node_id in ids:
                described = self.described_by(node_id)
                if described is not None and described.high_watermark > 0:
                    found.append(node_id)
                    return True
            return False

        wait_until(led, f"one of {ids} leads", poll_s=0.01)
        return found[0]

    def connect(self, node_id: int, timeout_s: float = 30) -> Client:
        """A connection to a controller's own port."""
        controller = self.controllers[node_id]
        return Client(controller.host, controller.port, timeout_s=timeout_s)


class Writer(threading.Thread):
    """Creates topics one after another at the leader, and keeps the acknowledged names."""

    def __init__(self, quorum: FaultyQuorum, prefix: str, pause_s: float = 0.003) -> None:
        super().__init__(name=f"writer-{prefix}", daemon=True)
        self.acknowledged: list[str] = []
        self._quorum, self._prefix, self._pause_s = quorum, prefix, pause_s
        self._stopping = threading.Event()
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"<Writer {self._prefix} acknowledged {len(self.acknowledged)}>"

    def run(self) -> None:
        numbers = itertools.count()
        while not self._stopping.wait(self._pause_s):
            self._request_topic(f"{self._prefix}-{next(numbers)}")
        self._hang_up()

    def _request_topic(self, name: str) -> None:
        """Request one topic. After any error, search for the leader again."""
        try:
            if self._client is None:
                self._client = self._dial()
            if self._client is not None and create(self._client, name) == ErrorCode.NONE:
                self.acknowledged.append(name)
                return
        except OSError:
            pass
        self._hang_up()
        self._stopping.wait(0.02)

    def _dial(self) -> Client | None:
        """Connect to the first controller that describes itself as the leader."""
        for node_id, controller in list(self._quorum.controllers.items()):
            if controller.alive and not controller.frozen:
                try:
                    if self._quorum.described_by(node_id) is not None:
                        return self._quorum.connect(node_id, _WAIT_S)
                except OSError:
                    continue
        return None

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def wait_for_more(self, count: int = 15) -> None:
        """Wait until this many more topics are acknowledged."""
        target = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= target, f"{target} topics are acknowledged", poll_s=0.01)

    def stop(self) -> list[str]:
        self._stopping.set()
        self.join(60)
        return self.acknowledged


def create(client: Client, name: str, timeout_ms: int = 2000) -> ErrorCode:
    """Request one topic; return the error code."""
    code: Any = client.call(CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms), CREATE_VERSION)
    return ErrorCode(code.topics[0].error_code)


@contextmanager
def surviving(quorum: FaultyQuorum, prefix: str) -> Iterator[Writer]:
    """Run a writer during the block; afterwards heal and check everything.

    The check also runs before the block, so that no test fails for another's faults.
    """
    quorum.heal()
    writer = Writer(quorum, prefix)
    writer.start()
    try:
        writer.wait_for_more()
        yield writer
        quorum.heal()
        writer.wait_for_more()
    finally:
        names = writer.stop()
    quorum.check(names)
