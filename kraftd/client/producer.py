"""Writes records to the leaders of a topic's partitions, acknowledged by all in-sync replicas.

A record with a key goes to the partition that Java's producer takes: murmur2 of the key. Records without a
key go to one partition a batch, and the next batch to another.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from kraftd.client.cluster import Cluster, Pause, brokers_text
from kraftd.client.failures import ClientFailure, NoAnswer, Refused, Unreachable
from kraftd.client.metadata_cache import Leader
from kraftd.client.partition_reader import LEADER_ERRORS, not_served
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.metadata_response import MetadataResponse
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kraftd.named_tuple import NamedTuple
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode, error_name
from kraftd.wire.keyed_records import KeyedRecord, build_keyed_batch

ALL_IN_SYNC = -1
BY_NAME = 12  # the last version of Produce with topic names instead of ids
_NOT_IN_SYNC = {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
}
_AGAIN = LEADER_ERRORS | _NOT_IN_SYNC
_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_UINT32 = 0xFFFFFFFF


class Written(NamedTuple):
    """Where a batch is: the offset of its first record, and the number of its records."""

    topic: str
    partition: int
    base_offset: int
    record_count: int


class Producer:
    """Raises Refused, Unreachable, NoLeader.

    After a lost answer a batch is sent again, and may then be there twice.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.topic = topic
        self._cluster = cluster
        self._turn = 0

    def __repr__(self) -> str:
        return f"<Producer of {self.topic} at {self._cluster!r}>"

    async def partition_count(self) -> int:
        """The partitions of the topic. Where the cluster makes topics by itself, this makes it."""
        cluster = self._cluster
        pause = Pause(time.monotonic() + cluster.timeout_s)
        request = MetadataRequest([MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=True)
        with cluster.wait() as wait:
            while self.topic not in cluster.cache.topics:
                answer = await (await cluster.any_node()).ask(request, MetadataResponse)
                found = answer.topics[0]
                if found.error_code == ErrorCode.NONE:
                    await cluster.refresh([self.topic])
                    break
                wait.failure = failure = Refused(
                    f"{self.topic}: {error_name(found.error_code)}", found.error_code
                )
                is_new = found.error_code in (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    ErrorCode.LEADER_NOT_AVAILABLE,
                )
                if not is_new or not await pause.wait():
                    raise failure
        return len(cluster.cache.topics[self.topic].partitions)

    async def send(self, records: Sequence[KeyedRecord], partition: int | None = None) -> list[Written]:
        """Write records, each to its partition, or all to the one named; returns where they are."""
        count = await self.partition_count()
        if partition is not None and partition not in self._cluster.cache.topics[self.topic].partitions:
            raise Refused(
                f"{self.topic} has no partition {partition}, but {count} of them",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        by_partition: dict[int, list[KeyedRecord]] = {}
        self._turn += 1
        for record in records:
            if partition is not None:
                index = partition
            elif record.key is None:
                index = self._turn % count
            else:
                index = partition_of(record.key, count)
            by_partition.setdefault(index, []).append(record)
        return [await self._write(index, some) for index, some in by_partition.items()]

    async def _write(self, index: int, records: list[KeyedRecord]) -> Written:
        batch = build_keyed_batch(records, time.time_ns() // 1_000_000)
        cluster = self._cluster
        pause = Pause(time.monotonic() + cluster.timeout_s)
        leader = await cluster.leader(self.topic, index)
        with cluster.wait() as wait:
            unanswered = (
                f"{self.topic}-{index}: its leader, broker {leader.id}, has not acknowledged records yet"
            )
            wait.failure = NoAnswer(f"{unanswered}; {self._in_sync_text(index)}")
            while True:
                failure: ClientFailure
                try:
                    answer = await self._ask(leader.id, index, batch)
                    if not answer.error_code:
                        return Written(self.topic, index, answer.base_offset, len(records))
                    failure = self._refused(index, leader, answer)
                    if answer.error_code not in _AGAIN:
                        raise failure
                except Unreachable as error:
                    failure = error
                wait.failure = failure
                if not await pause.wait():
                    raise failure
                leader = await cluster.new_leader(self.topic, index, leader, -1)

    def _refused(self, index: int, leader: Leader, answer: PartitionProduceResponse) -> Refused:
        """A refusal in words: of a log that is not open, of too few in sync, or of a record."""
        code = answer.error_code
        if code in LEADER_ERRORS:
            return not_served(f"{self.topic}-{index}", leader, code)
        if code in _NOT_IN_SYNC:
            text = f"{self.topic}-{index}: its leader, broker {leader.id}, answers {error_name(code)}"
            return Refused(f"{text}; {self._in_sync_text(index)}; kraftd doctor says why", code)
        return Refused(_explained(self.topic, index, answer), code)

    def _in_sync_text(self, index: int) -> str:
        """The replicas that have to acknowledge records, by the last metadata."""
        known = self._cluster.cache.partition(self.topic, index)
        if known is None:
            return "its replicas are not known"
        return (
            f"its replicas are on {brokers_text(known.replicas)}, those in sync on {brokers_text(known.isr)}"
        )

    async def _ask(self, node_id: int, index: int, batch: bytes) -> PartitionProduceResponse:
        cluster = self._cluster
        topic_id = cluster.cache.topics[self.topic].id
        data = TopicProduceData(self.topic, topic_id, [PartitionProduceData(index, batch)])
        request = ProduceRequest(
            acks=ALL_IN_SYNC, timeout_ms=int(cluster.timeout_s * 1000), topic_data=[data]
        )
        most = BY_NAME if topic_id == ZERO_UUID else BY_NAME + 1
        answer = await (await cluster.node(node_id)).ask(request, ProduceResponse, max_version=most)
        found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return found


def partition_of(key: bytes, count: int) -> int:
    """The partition of a key among `count`."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """MurmurHash2 of 32 bits with the seed of Kafka's clients, as an unsigned number."""
    size = len(data)
    found = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _UINT32
        word = (word ^ word >> 24) * _MULTIPLIER & _UINT32
        found = (found * _MULTIPLIER & _UINT32) ^ word
    if size > whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _UINT32
    found = (found ^ found >> 13) * _MULTIPLIER & _UINT32
    return found ^ found >> 15


def _explained(topic: str, index: int, answer: PartitionProduceResponse) -> str:
    """A refusal in words, with the node's own text about a record."""
    texts = [error_name(answer.error_code)]
    if answer.error_message:
        texts.append(answer.error_message)
    texts += [
        f"record {one.batch_index}: {one.batch_index_error_message}"
        for one in answer.record_errors
        if one.batch_index_error_message
    ]
    return f"{topic}-{index}: {'; '.join(texts)}"
