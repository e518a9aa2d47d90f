"""Random requests about records: mostly what a client would send, and often wrong in one thing."""

from __future__ import annotations

from random import Random
from typing import Any

from kraftd.messages import fetch_request, produce_request
from kraftd.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftd.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from testkit.random_batches import NOW_MS, Parts, random_parts, random_record
from tests.kafka.broker.cluster_state import Drawn, Randomness, World

TIMESTAMPS = (-1, -2, -3, -4, -5, -6, -7, NOW_MS, NOW_MS + 5000, NOW_MS - 5000, 0, 2**62)
ISOLATIONS = (0, 0, 1)


class DataRequests(Randomness):
    """Draws requests of the data path; `world` has the topics there are, and what was answered before."""

    def __init__(self, random: Random, world: World) -> None:
        super().__init__(random, world)
        self.kinds = {
            self.produce: 12,
            self.fetch: 10,
            self.session_fetch: 6,
            self.list_offsets: 6,
            self.epoch_ends: 2,
            self.delete_records: 2,
            self.describe_producers: 2,
            self.describe_log_dirs: 1,
            self.init_producer_id: 2,
        }

    # Produce

    def produce(self) -> Drawn:
        m = produce_request
        version = self.version(0)
        topics = {}
        for _ in range(self.one((0, 1, 1, 1, 1, 1))):
            name = self.topic()
            indexes = {self.index() for _ in range(self.one((1, 1, 2)))}
            # Kafka refuses a whole request for some faults of one batch.
            rows = {index: self.records(may_be_wrong=len(indexes) == 1) for index in indexes}
            data = [m.PartitionProduceData(index, records) for index, records in rows.items()]
            topics[name] = m.TopicProduceData(*self.named(name, version >= 13), data)
        acks = self.one((1, 1, -1, -1, 0))
        if self.rarely(0.03):
            acks = self.one((2, -2))
            for data in (one for topic in topics.values() for one in topic.partition_data):
                data.records = self.batch().encoded()
        request = m.ProduceRequest(None, acks, 10_000, list(topics.values()))
        return request, version

    def records(self, may_be_wrong: bool) -> bytes | None:
        """Records of a partition: nearly always one batch."""
        if not may_be_wrong:
            return self.batch().encoded()
        if self.rarely(0.02):
            return self.one((b"", bytes(61)))
        if self.rarely(0.25):
            return random_parts(self.random, 0.5).encoded()
        parts = self.batch()
        return parts.encoded() * (2 if self.rarely(0.03) else 1)

    def batch(self) -> Parts:
        """A sound batch, often of one of the idempotent producers."""
        count = self.one((1, 1, 2, 5, 30))
        base = NOW_MS + self.one((0, 0, 1000, -1000, 10_000_000))
        deltas = [0, *(self.one((0, 1, 5, 1000)) for _ in range(count - 1))]
        rows = [random_record(self.random, delta, offset, False) for offset, delta in enumerate(deltas)]
        parts = Parts(rows, base_timestamp=base, max_timestamp=base + max(deltas), count=count)
        parts.last_offset_delta = count - 1
        parts.codec = self.one((0, 0, 0, 1, 2, 3, 4))
        producers = self.world.producers
        if producers and self.rarely(0.5):
            id = self.one(tuple(producers))
            sequence = producers[id]
            parts.producer_id, parts.producer_epoch = id, 0
            parts.base_sequence = self.near(sequence)
            producers[id] = sequence + count
            if self.rarely(0.06):
                parts.producer_epoch = self.one((-1, 1, 2))
                producers[id] = 0
        return parts

    # Reading

    def fetch_partition(self, name: str, index: int) -> Any:
        return fetch_request.FetchPartition(
            index,
            0 if self.rarely(0.6) else self.one((-1, -1, 1, 5, -2)),
            self.offset(),
            -1 if self.rarely(0.9) else self.one((0, 1, -2)),
            self.one((-1, 0)),
            1 << 20 if name.startswith("codec") else self.one((1 << 20, 1 << 20, 0, 1, 100, 400, 1000)),
        )

    def fetch_topics(self, version: int, in_session: bool = False) -> list[Any]:
        """Partitions of topics whose records are the same on both sides: not those of groups."""
        topics = []
        for name in {self.topic() for _ in range(self.one((1, 1, 2, 3)))} - {"__consumer_offsets"}:
            rows = [self.fetch_partition(name, index) for index in {self.index() for _ in range(2)}]
            if in_session:
                for row in rows:
                    row.partition_max_bytes = 1 << 20
            topics.append(fetch_request.FetchTopic(*self.named(name, version >= 13), rows))
        return topics

    def fetch(self) -> Drawn:
        version = self.version(1)
        topics = self.fetch_topics(version)
        with_codec = any(self.is_recompressed(topic) for topic in topics)
        request = fetch_request.FetchRequest(
            max_wait_ms=self.one((0, 0, 5)),
            min_bytes=self.one((0, 1, 500)),
            max_bytes=1 << 24 if with_codec else self.one((1 << 24, 1 << 24, 1 << 20, 500, 1, 0)),
            isolation_level=self.one(ISOLATIONS),
            topics=topics,
        )
        if self.rarely(0.02):
            request.session_id, request.session_epoch = self.one(((0, 0), (7, 3), (7, -1), (0, 5)))
        return request, version

    def is_recompressed(self, topic: Any) -> bool:
        name = topic.topic or next((n for n, id in self.world.topic_ids.items() if id == topic.topic_id), "")
        return name.startswith("codec")

    def session_fetch(self) -> Drawn:
        """A fetch of a session: the first, or one that changes it."""
        sessions = self.world.sessions
        if not sessions or self.rarely(0.25):
            version = self.random.randint(7, self.last(1))
            topics = self.fetch_topics(version, True)
            return fetch_request.FetchRequest(
                max_wait_ms=0, max_bytes=1 << 24, session_epoch=0, topics=topics
            ), version
        number = self.one(tuple(sessions))
        session = sessions[number]
        version = session.version
        topics = self.fetch_topics(version, True) if self.rarely(0.4) else []
        forgotten = []
        if self.rarely(0.2):
            name = self.topic()
            forgotten = [fetch_request.ForgottenTopic(*self.named(name, version >= 13), (self.index(),))]
        epoch = self.near(session.epoch, 0.05)
        if self.rarely(0.04):
            epoch = -1
        return fetch_request.FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 24,
            session_id=number,
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        ), version

    def list_offsets(self) -> Drawn:
        version = self.version(2)
        topics = []
        for name in {self.topic() for _ in range(self.one((1, 2)))}:
            indexes = {self.index() for _ in range(2)}
            rows = [
                ListOffsetsPartition(index, self.one((-1, -1, 0, 0, 1, 5)), self.one(TIMESTAMPS))
                for index in indexes
            ]
            if self.rarely(0.03):
                rows.append(rows[0])
            topics.append(ListOffsetsTopic(name, rows))
        replica = -1 if self.rarely(0.9) else self.one((-2, -3, 1, 7))
        return ListOffsetsRequest(replica, self.one(ISOLATIONS), topics, 5000), version

    def epoch_ends(self) -> Drawn:
        topics = [
            OffsetForLeaderTopic(
                self.topic(),
                [
                    OffsetForLeaderPartition(
                        self.index(), self.one((-1, 0, 0, 1)), self.one((0, 0, 1, -1, 9))
                    )
                    for _ in range(self.one((1, 2)))
                ],
            )
            for _ in range(self.one((1, 1, 2)))
        ]
        return OffsetForLeaderEpochRequest(self.one((-1, -2, 7)), topics), self.version(23)

    def delete_records(self) -> Drawn:
        rows = {index: self.one((0, 1, 5, 20, -1, 10**6)) for index in {self.index() for _ in range(2)}}
        data = [DeleteRecordsPartition(index, offset) for index, offset in rows.items()]
        return DeleteRecordsRequest([DeleteRecordsTopic(self.topic(), data)], 5000), self.version(21)

    def describe_producers(self) -> Drawn:
        topics = [TopicRequest(self.topic(), tuple({self.index(), self.index()}))]
        return DescribeProducersRequest(topics), 0

    def describe_log_dirs(self) -> Drawn:
        topics = None
        if self.rarely(0.7):
            topics = [
                DescribableLogDirTopic(name, tuple({self.index(), self.index()}))
                for name in {self.topic() for _ in range(self.one((0, 1, 2)))}
            ]
        return DescribeLogDirsRequest(topics), self.version(35)

    def init_producer_id(self) -> Drawn:
        pair = (-1, -1) if self.rarely(0.8) else self.one(((-1, 0), (0, -1), (0, 0), (10**9, 3)))
        return InitProducerIdRequest(None, 1000, *pair), self.version(22)
