"""A whole Kafka whose coordinators keep something in each partition of their topics, and damage to that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from kraftd.ground.java_hashes import partition_for
from kraftd.groups.share_state.key import SharePartitionKey
from kraftd.messages import (
    initialize_share_group_state_request,
    read_share_group_state_request,
    write_share_group_state_request,
)
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.metadata_request import MetadataRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from testkit.client import Client
from testkit.cluster import random_uuid
from testkit.node import CombinedNode, Kind
from testkit.process import HOST, wait_until

GROUPS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
TOPICS = (GROUPS, TRANSACTIONS, SHARES)
PARTITIONS = 3
STEPS = 20  # records of each key
PROPERTIES = {
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": PARTITIONS,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": PARTITIONS,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    "num.network.threads": 1,
    "num.io.threads": 2,
}
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class CoordinatorRequests:
    """Reads and writes a key in each partition of each coordinator's topic, at the broker on `port`."""

    def __init__(self, port: int, partitions: int) -> None:
        self.port, self._partitions = port, partitions
        self.topic_id = bytes(16)

    def make_topic(self, admin: AdminClient, replicas: int) -> None:
        """Make the topic "t" of the offsets and shares that are written."""
        admin.create_topics([NewTopic("t", 1, replicas)])["t"].result(30)
        found: dict[str, bytes] = {}

        def is_known() -> bool:
            topics = self._ask(MetadataRequest(topics=None), 12).topics
            found.update((topic.name, topic.topic_id) for topic in topics)
            return "t" in found

        wait_until(is_known, "the topic is known", 30)
        self.topic_id = found["t"]

    def fill(self, topic: str, index: int) -> None:
        """Write `STEPS` records of a partition's key."""
        key = self.key_of(topic, index)
        wait_until(lambda: self.write(topic, key, 1) == 0, f"{topic}-{index} serves", 30)
        for step in range(2, STEPS + 1):
            assert self.write(topic, key, step) == 0, (topic, key, step)

    def key_of(self, topic: str, index: int) -> str:
        """A group or a transactional id that a partition of the topic holds."""
        keys = (f"key-{number}" for number in range(1000))
        return next(key for key in keys if partition_for(self._hashed(topic, key), self._partitions) == index)

    def _hashed(self, topic: str, key: str) -> str:
        return SharePartitionKey(key, self.topic_id, 0).text if topic == SHARES else key

    def is_found(self, topic: str) -> bool:
        """Return whether a coordinator of each partition is found."""
        keys = tuple(self._hashed(topic, self.key_of(topic, index)) for index in range(self._partitions))
        answer = self._ask(FindCoordinatorRequest(key_type=TOPICS.index(topic), coordinator_keys=keys), 6)
        return not any(row.error_code for row in answer.coordinators)

    def _ask(self, request: Message, version: int) -> Any:
        with Client(HOST, self.port) as client:
            return client.call(request, version)

    def write(self, topic: str, key: str, step: int) -> int:
        """Write a record of a key; the error code."""
        if topic == GROUPS:
            part = OffsetCommitRequestPartition(0, step, committed_metadata="")
            rows = [OffsetCommitRequestTopic("t", partitions=[part])]
            answer = self._ask(OffsetCommitRequest(key, -1, "", topics=rows), 2)
            return int(answer.topics[0].partitions[0].error_code)
        if topic == TRANSACTIONS:
            return int(self._ask(InitProducerIdRequest(key, 60_000), 4).error_code)
        if step == 1:
            of = initialize_share_group_state_request
            first = [of.InitializeStateData(self.topic_id, [of.PartitionData(0, 0, 0)])]
            self._ask(of.InitializeShareGroupStateRequest(key, first), 0)
        writing = write_share_group_state_request
        row = writing.PartitionData(0, 0, 0, step, 0, [])
        request = writing.WriteShareGroupStateRequest(key, [writing.WriteStateData(self.topic_id, [row])])
        return int(self._ask(request, 1).results[0].partitions[0].error_code)

    def read(self, topic: str, key: str) -> tuple[int, int]:
        """The error code, and what is kept of a key: its last step, of a transactional id its next epoch."""
        if topic == GROUPS:
            request = OffsetFetchRequest(key, [OffsetFetchRequestTopic("t", (0,))])
            answer = self._ask(request, 7)
            part = answer.topics[0].partitions[0] if answer.topics else None
            return int(answer.error_code), -1 if part is None else int(part.committed_offset)
        if topic == TRANSACTIONS:
            answer = self._ask(InitProducerIdRequest(key, 60_000), 4)
            return int(answer.error_code), int(answer.producer_epoch)
        of = read_share_group_state_request
        asked = [of.ReadStateData(self.topic_id, [of.PartitionData(0, 0)])]
        row = self._ask(of.ReadShareGroupStateRequest(key, asked), 0).results[0].partitions[0]
        return int(row.error_code), int(row.start_offset)

    def settled(self, topic: str, index: int, *, serves: bool = True) -> tuple[int, int]:
        """What `read` gives once the partition is loaded; unless it `serves`, once it could not be."""
        key, last = self.key_of(topic, index), (-1, -1)

        def is_settled() -> bool:
            nonlocal last
            last = self.read(topic, key)
            return last[0] not in (_NOT_YET if serves else _NOT_YET[:-1])

        wait_until(is_settled, f"{topic} answers for {key}", 30, poll_s=0.1)
        return last


class CoordinatorsOnDisk(CoordinatorRequests):
    """A node that runs, with `STEPS` records of a key in each partition of each coordinator's topic."""

    def __init__(self, home: Path, kind: Kind) -> None:
        self.node = node = CombinedNode(kind, home, PROPERTIES)
        super().__init__(node.client_port, PARTITIONS)
        node.format(random_uuid(), "--standalone")
        node.start()
        node.wait_ready()
        self.make_topic(AdminClient({"bootstrap.servers": node.bootstrap}), 1)
        for topic in TOPICS:
            wait_until(lambda topic=topic: self.is_found(topic), f"{topic} is made", 30)  # type: ignore[misc]
            for index in range(PARTITIONS):
                self.fill(topic, index)

    def __repr__(self) -> str:
        return f"<CoordinatorsOnDisk {self.node!r}>"

    def segment(self, topic: str, index: int) -> Path:
        return self.node.data / f"{topic}-{index}" / f"{0:020}.log"


def flip(path: Path) -> tuple[int, int]:
    """Flip a bit in the records of the batch in the middle.

    Return where that batch begins in the file, and its offset.
    """
    data = bytearray(path.read_bytes())
    batches = list(iter_batches(bytes(data)))
    chosen = batches[len(batches) // 2]
    data[chosen.position + chosen.header.size_bytes - 6] ^= 1
    path.write_bytes(data)
    return chosen.position, chosen.header.base_offset
