"""A cluster of stock and kraftd brokers under Apache Kafka's controller, for benchmarks of replication."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponsePartition
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import parse_response
from testkit.client import Client
from testkit.cluster import Cluster
from testkit.java import AS_KAFKA_STARTS
from testkit.keyed_batches import keyed_batch
from testkit.node import Controller, Kind, Node
from testkit.process import HOST, free_port, wait_until

CREATE_VERSION, METADATA_VERSION, PRODUCE_VERSION, LIST_VERSION = 7, 12, 11, 6
LATEST = -1
RECORD = b"x" * 100
PARTITIONS_A_TOPIC = 1_000
GIVE_UP_S = 600
PRODUCE_TIMEOUT_MS = 120_000


class ReplicaCluster(Cluster):
    """Brokers by id and kind. The controller is Apache Kafka's, so that only brokers differ."""

    def __init__(
        self,
        home: Path,
        kinds: Mapping[int, Kind],
        controller_properties: Mapping[str, object] | None = None,
        broker_properties: Mapping[str, object] | None = None,
    ) -> None:
        settings = {"offsets.topic.replication.factor": 1, **(broker_properties or {})}
        super().__init__(
            home, "apache", controller_properties=controller_properties, broker_properties=settings
        )
        self.controller.jvm = AS_KAFKA_STARTS
        self.start_controller()
        self.ours: dict[int, Controller] = {}
        for broker_id in [one for one, kind in kinds.items() if kind == "kraftd"]:
            port = free_port()
            listener = {"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:{port}"}
            properties = {**self._quorum, **settings, **listener}
            node = Controller("kraftd", broker_id, home / f"kraftd-{broker_id}", port, properties)
            node.format(self.cluster_id, "--no-initial-controllers")
            node.start()
            self.ours[broker_id] = node
        stock = [one for one, kind in kinds.items() if kind == "apache"]
        if stock:
            self.start_brokers(*stock, jvm=AS_KAFKA_STARTS)
        self.ids = sorted(kinds)
        wait_until(self._is_complete, "all brokers are live")

    def _is_complete(self) -> bool:
        with self.client_of(self.ids[0]) as client:
            return len(client.call(MetadataRequest([]), METADATA_VERSION).brokers) == len(self.ids)

    @property
    def nodes(self) -> list[Node]:
        return [*super().nodes, *self.ours.values()]

    def broker(self, broker_id: int) -> Node:
        return self.ours.get(broker_id) or self.brokers[broker_id]

    def client_of(self, broker_id: int) -> Client:
        return Client(HOST, self.broker(broker_id).port, client_id="bench", timeout_s=GIVE_UP_S)

    def create(
        self, name: str, replicas: Sequence[Sequence[int]], configs: Sequence[CreatableTopicConfig] = ()
    ) -> None:
        """Create a topic with these replicas of each partition, and wait until all are in sync."""
        rows = [CreatableReplicaAssignment(index, tuple(ids)) for index, ids in enumerate(replicas)]
        topic = CreatableTopic(name, -1, -1, assignments=rows, configs=list(configs))
        request = CreateTopicsRequest([topic], 60_000)
        with Client(HOST, self.controller.port, client_id="bench", timeout_s=GIVE_UP_S) as client:
            (answer,) = client.call(request, CREATE_VERSION).topics
        if answer.error_code:
            raise RuntimeError(f"{name} was refused: {answer!r}")
        leader = replicas[0][0]
        wait_until(lambda: self.is_in_sync(leader, name, len(replicas)), f"{name} is in sync", GIVE_UP_S, 0.1)

    def is_in_sync(self, by: int, name: str, count: int) -> bool:
        """Return whether a broker knows that many partitions, each led and with all replicas in its ISR."""
        led = [one for one in self._partitions(by, name) if one.leader_id >= 0]
        return len(led) == count and all(len(one.isr_nodes) == len(one.replica_nodes) for one in led)

    def partition_state(self, by: int, name: str, index: int) -> MetadataResponsePartition:
        """Leader, ISR and replicas of a partition, as a broker knows them."""
        return next(one for one in self._partitions(by, name) if one.partition_index == index)

    def _partitions(self, by: int, name: str) -> Sequence[MetadataResponsePartition]:
        request = MetadataRequest([MetadataRequestTopic(name=name)])
        with self.client_of(by) as client:
            (topic,) = client.call(request, METADATA_VERSION).topics
        partitions: Sequence[MetadataResponsePartition] = topic.partitions
        return partitions


@contextmanager
def replica_cluster(
    kinds: Mapping[int, Kind],
    controller_properties: Mapping[str, object] | None = None,
    broker_properties: Mapping[str, object] | None = None,
) -> Iterator[ReplicaCluster]:
    """A new cluster whose brokers are live."""
    with (
        tempfile.TemporaryDirectory(prefix="kraftd-bench-") as home,
        ReplicaCluster(Path(home), kinds, controller_properties, broker_properties) as made,
    ):
        yield made


def produce_request(topic: str, partitions: Sequence[int], records: int) -> ProduceRequest:
    """acks=all, the same records of 100 bytes for each partition."""
    batch = keyed_batch([(None, RECORD)] * records, 0, -1, int(time.time() * 1000))
    rows = [PartitionProduceData(index, batch) for index in partitions]
    return ProduceRequest(None, -1, PRODUCE_TIMEOUT_MS, [TopicProduceData(topic, partition_data=rows)])


def check_produced(answer: bytes) -> None:
    """Raise RuntimeError if any partition refused its records."""
    _, response = parse_response(ApiKey.PRODUCE, PRODUCE_VERSION, answer)
    for topic in response.responses:  # type: ignore[attr-defined]
        for partition in topic.partition_responses:
            if partition.error_code:
                raise RuntimeError(f"records were refused: {partition!r}")


def is_open(client: Client, topics: Sequence[str]) -> bool:
    """Return whether the last partition of each topic answers where its log ends."""
    rows = [
        ListOffsetsTopic(name, [ListOffsetsPartition(PARTITIONS_A_TOPIC - 1, timestamp=LATEST)])
        for name in topics
    ]
    answer = client.call(ListOffsetsRequest(-1, 0, rows), LIST_VERSION)
    return not any(one.error_code for topic in answer.topics for one in topic.partitions)
