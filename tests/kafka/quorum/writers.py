"""A load on a quorum's leader: topics are created, changed and deleted in a loop."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.client import Client
from testkit.process import HOST, wait_until
from testkit.quorum import Quorum

TOPIC = 2  # a resource type of configs
WAIT_S = 5


class Writer(threading.Thread):
    """Creates topics one after another at the leader, and keeps the acknowledged names."""

    def __init__(self, quorum: Quorum, prefix: str, pause_s: float = 0.05) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[str] = []
        self.deleted: set[str] = set()
        self._quorum, self._prefix, self._pause_s = quorum, prefix, pause_s
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._client: Client | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._prefix} acknowledged {len(self.acknowledged)}>"

    def run(self) -> None:
        for number in itertools.count():
            if self._stopping.is_set():
                return
            with self._lock:
                try:
                    self._work(number)
                except OSError:
                    self._hang_up()
            self._stopping.wait(self._pause_s)  # gives each broker time to create the topic's directory

    def _work(self, number: int) -> None:
        """Send one round of requests; OSError if no controller answers, or another one leads."""
        self._create(f"{self._prefix}-{number}")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the writer during the block, with no request unanswered."""
        with self._lock:
            yield

    def _create(self, name: str) -> None:
        request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms=5000)
        code = self._ask(request, 7).topics[0].error_code
        if code == ErrorCode.NOT_CONTROLLER:
            raise ConnectionError("another leads")
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self.acknowledged.append(name)

    def _ask(self, request: Message, version: int) -> Any:
        """Return the leader's answer. OSError if there is none."""
        if self._client is None:
            leader = self._quorum.leader()
            controller = self._quorum.controllers.get(-1 if leader is None else leader)
            if controller is None:
                raise ConnectionError("no controller leads, or one that was removed")
            self._client = Client(HOST, controller.port, timeout_s=WAIT_S)
        return self._client.call(request, version)

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def wait_for_more(self, count: int = 20) -> None:
        """Wait until this many more topics are acknowledged."""
        target = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= target, f"{target} topics are acknowledged", poll_s=0.01)

    def stop(self) -> list[str]:
        self._stopping.set()
        self.join(60)
        self._hang_up()
        return self.acknowledged


class Administrator(Writer):
    """Configures every other topic that it creates, adds partitions to some and deletes some."""

    def _work(self, number: int) -> None:
        name = f"{self._prefix}-{number}"
        self._create(name)
        if number % 2 == 0:
            configs = [AlterableConfig("retention.ms", 0, str(1_000_000 + number))]
            resources = [AlterConfigsResource(TOPIC, name, configs)]
            self._ask(IncrementalAlterConfigsRequest(resources), 1)
        if number % 3 == 0:
            self._ask(CreatePartitionsRequest([CreatePartitionsTopic(name, 3, None)], 5000), 3)
        if number % 5 == 0 and name in self.acknowledged:
            self.acknowledged.remove(name)  # whether it exists is unknown until the answer
            answer = self._ask(DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=5000), 6)
            if answer.responses[0].error_code == ErrorCode.NONE:
                self.deleted.add(name)


@contextmanager
def writing(
    quorum: Quorum, prefix: str, kind: type[Writer] = Writer, pause_s: float = 0.05
) -> Iterator[Writer]:
    """Run a writer during the block; afterwards every broker knows all topics acknowledged to it."""
    writer = kind(quorum, prefix, pause_s)
    writer.start()
    try:
        yield writer
    finally:
        names = set(writer.stop())

    def known_by(node_id: int) -> bool:
        known = {topic.name for topic in quorum.metadata_by(node_id).topics}
        return names <= known and not writer.deleted & known

    for node_id, broker in quorum.brokers.items():
        if broker.alive:
            wait_until(
                lambda node_id=node_id: known_by(node_id),
                f"broker {node_id} knows all {len(names)} acknowledged topics and none of those deleted",
            )
