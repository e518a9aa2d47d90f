"""Random requests of transactional producers, operators and readers, most of which fit together."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from kraftd.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kraftd.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraftd.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.end_txn_request import EndTxnRequest
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.init_producer_id_request import InitProducerIdRequest
from kraftd.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraftd.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kraftd.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.wire.crc32c import crc32c
from kraftd.wire.message import Message
from testkit.keyed_batches import keyed_batch
from testkit.random_batches import HEADER

PARTITIONS = 2  # of the topic of a run
IDS = ("a", "b", "c")
GROUPS = ("g", "h")
RECORD_MS = int(time.time() * 1000)
STATES = ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "CompleteAbort", "Dead", "Open")

_PRODUCER_ID = 9  # its place in the header of a batch

Drawn = tuple[Message, int]


class Producer:
    """What a producer of a transactional id believes."""

    def __init__(self) -> None:
        self.id, self.epoch = -1, -1
        self.before = (-1, -1)
        self.sequences: dict[int, int] = {}  # next ones by partition

    def become(self, id: int, epoch: int) -> None:
        if (id, epoch) != (self.id, self.epoch):
            self.before = self.id, self.epoch
            self.id, self.epoch = id, epoch
            self.sequences = {}


class TransactionRequests:
    """Draws requests; `answered` tells what became of the last one.

    version: transaction.version. At level 0 no request is of the second protocol, which clients do not use
    then: Kafka fails at writing its state.
    """

    def __init__(self, random: Random, prefix: str, version: int) -> None:
        self.random = random
        self.topic = f"{prefix}topic"
        self.ids = tuple(prefix + one for one in IDS)
        self.version = version
        self.producers = {id: Producer() for id in self.ids}
        self.written = "", 0, 0  # id, partition, and the sequence after the last batch that was drawn
        self.kinds: dict[Callable[[], Drawn], int] = {
            self.init: 8,
            self.add_partitions: 8,
            self.add_batched: 4,
            self.add_offsets: 5,
            self.commit_offsets: 6,
            self.produce: 16,
            self.end: 12,
            self.write_markers: 1,
            self.describe: 3,
            self.list_all: 2,
            self.producers_of: 3,
            self.list_offsets: 3,
            self.fetch: 3,
            self.fetch_offsets: 3,
        }

    def draw(self) -> Drawn:
        return self.random.choices(list(self.kinds), list(self.kinds.values()))[0]()

    def rarely(self, share: float) -> bool:
        return self.random.random() < share

    def id(self) -> str:
        return self.random.choice(("", "never")) if self.rarely(0.03) else self.random.choice(self.ids)

    def who(self, id: str) -> tuple[int, int]:
        """A producer's id and epoch, mostly the present ones."""
        known = self.producers.get(id, Producer())
        if self.rarely(0.85):
            return known.id, known.epoch
        return self.random.choice(
            (known.before, (known.id, known.epoch + 1), (known.id, max(known.epoch - 1, -1)), (77_777, 0))
        )

    def topics(self) -> list[AddPartitionsToTxnTopic]:
        name = "no-such" if self.rarely(0.05) else self.topic
        partitions = self.random.choice(((0,), (1,), (0, 1), (0, 9) if self.rarely(0.2) else (0,)))
        return [AddPartitionsToTxnTopic(name, partitions)]

    # Producers

    def init(self) -> Drawn:
        version = self.random.choice((0, 1, 2, 3, 4, 5, 6, 6))
        id: str | None = None if self.rarely(0.03) else self.id()
        producer = (-1, -1)
        if version >= 3 and self.rarely(0.4):
            producer = self.who(id or "")
            if self.rarely(0.05):
                producer = producer[0], -1
        timeout_ms = self.random.choice((60_000,) * 8 + (0, -1, 900_000, 900_001))
        flags = (self.rarely(0.1), self.rarely(0.1)) if version >= 6 else (False, False)
        return InitProducerIdRequest(id, timeout_ms, *producer, *flags), version

    def add_partitions(self) -> Drawn:
        id = self.id()
        return AddPartitionsToTxnRequest([], id, *self.who(id), self.topics()), self.random.choice((0, 2, 3))

    def add_batched(self) -> Drawn:
        transactions = []
        for id in {self.id() for _ in range(self.random.choice((1, 1, 2)))}:
            producer = self.who(id)
            verifies = self.rarely(0.6) or not self.version
            transactions.append(AddPartitionsToTxnTransaction(id, *producer, verifies, self.topics()))
        return AddPartitionsToTxnRequest(transactions), self.random.choice((4, 5))

    def add_offsets(self) -> Drawn:
        id = self.id()
        group = "" if self.rarely(0.03) else self.random.choice(GROUPS)
        return AddOffsetsToTxnRequest(id, *self.who(id), group), self.random.choice((0, 2, 3, 4))

    def commit_offsets(self) -> Drawn:
        id = self.id()
        version = self.random.choice((0, 2, 3, 4, 5, 5) if self.version else (0, 2, 3, 4))
        group = "" if self.rarely(0.03) else self.random.choice(GROUPS)
        member = (5, "m") if version >= 3 and self.rarely(0.1) else (-1, "")
        offset = TxnOffsetCommitRequestPartition(self.random.choice((0, 1)), self.random.randrange(100))
        topics = [TxnOffsetCommitRequestTopic("no-such" if self.rarely(0.05) else self.topic, [offset])]
        return TxnOffsetCommitRequest(id, group, *self.who(id), *member, None, topics), version

    def produce(self) -> Drawn:
        id = self.id()
        producer_id, epoch = self.who(id)
        known = self.producers.get(id, Producer())
        index = self.random.randrange(PARTITIONS)
        sequence = known.sequences.get(index, 0) + (self.random.choice((1, -1)) if self.rarely(0.06) else 0)
        records = [(b"key", id.encode())] * self.random.choice((1, 1, 2))
        batch = keyed_batch(records, 0, -1, RECORD_MS, producer_id, epoch, base_sequence=max(sequence, 0))
        if producer_id < 0:
            batch = keyed_batch(records, 0, -1, RECORD_MS)
        self.written = id, index, max(sequence, 0) + len(records)
        data = [TopicProduceData(self.topic, partition_data=[PartitionProduceData(index, batch)])]
        return ProduceRequest(id, -1, 10_000, data), self.random.choice(
            (9, 10, 11, 12, 12, 12) if self.version else (9, 10, 11)
        )

    def end(self) -> Drawn:
        id = self.id()
        is_newest = self.version == 2 and self.rarely(0.7)
        version = 5 if is_newest else self.random.choice((0, 2, 3, 4, 5) if self.version else (0, 2, 3, 4))
        return EndTxnRequest(id, *self.who(id), self.rarely(0.6)), version

    def write_markers(self) -> Drawn:
        producer_id, epoch = self.who(self.id())
        topics = [WritableTxnMarkerTopic(self.topic, (self.random.choice((0, 1, 9)),))]
        coordinator_epoch = self.random.choice((0, 0, -1))
        marker = WritableTxnMarker(producer_id, epoch, self.rarely(0.5), topics, coordinator_epoch)
        return WriteTxnMarkersRequest([marker]), self.random.choice((1, 2))

    # Operators and readers

    def describe(self) -> Drawn:
        return DescribeTransactionsRequest(tuple({self.id(), self.id()})), 0

    def list_all(self) -> Drawn:
        version = self.random.choice((0, 1, 2))
        states = tuple({self.random.choice(STATES) for _ in range(self.random.choice((0, 1, 2)))})
        duration_ms = 3_600_000 if version >= 1 and self.rarely(0.2) else -1
        patterns = (f"{self.ids[0]}", f"{self.ids[0][:-1]}.*", "no-.*", "[")
        pattern = self.random.choice(patterns) if version >= 2 and self.rarely(0.5) else None
        return ListTransactionsRequest(states, (), duration_ms, pattern), version

    def producers_of(self) -> Drawn:
        return DescribeProducersRequest([TopicRequest(self.topic, (0, 1))]), 0

    def list_offsets(self) -> Drawn:
        rows = [
            ListOffsetsPartition(index, -1, self.random.choice((-1, -2, -3, RECORD_MS))) for index in (0, 1)
        ]
        isolation = int(self.rarely(0.7))
        return ListOffsetsRequest(-1, isolation, [ListOffsetsTopic(self.topic, rows)]), self.random.choice(
            (2, 6, 9)
        )

    def fetch(self) -> Drawn:
        rows = [FetchPartition(index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (0, 1)]
        isolation = int(self.rarely(0.8))
        topics = [FetchTopic(self.topic, partitions=rows)]
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 22,
            isolation_level=isolation,
            session_epoch=-1,
            topics=topics,
        ), self.random.choice((4, 11, 12))

    def fetch_offsets(self) -> Drawn:
        wanted = [OffsetFetchRequestTopics(self.topic, partition_indexes=(0, 1))]
        groups = [OffsetFetchRequestGroup(name, topics=wanted) for name in GROUPS]
        return OffsetFetchRequest(groups=groups, require_stable=self.rarely(0.6)), 9

    def answered(self, request: Any, answer: Any) -> None:
        """Believe what the stock node has answered."""
        if isinstance(answer, str):
            return
        if isinstance(request, InitProducerIdRequest) and not answer["errorCode"]:
            producer = self.producers.get(request.transactional_id or "")
            if producer is not None:
                producer.become(answer["producerId"], answer["producerEpoch"])
        elif isinstance(request, EndTxnRequest) and not answer["errorCode"]:
            producer = self.producers.get(request.transactional_id)
            if producer is not None and answer.get("producerId", -1) >= 0:
                producer.become(answer["producerId"], answer["producerEpoch"])
        elif isinstance(request, ProduceRequest):
            id, index, sequence = self.written
            error = answer["responses"][0]["partitionResponses"][0]["errorCode"]
            if not error and id in self.producers:
                self.producers[id].sequences[index] = sequence


def with_producer_ids(request: Message, ids: dict[int, int]) -> Message:
    """A copy of a request with the producer ids that stand for others."""
    copy: Message = _replaced(request, ids)
    return copy


def _replaced(value: Any, ids: dict[int, int]) -> Any:
    if isinstance(value, Message):
        fields = {name: _replaced(getattr(value, name), ids) for name in value.__struct_fields__}
        if "producer_id" in fields:
            fields["producer_id"] = ids.get(fields["producer_id"], fields["producer_id"])
        name = "v3_and_below_producer_id"
        if name in fields:
            fields[name] = ids.get(fields[name], fields[name])
        return type(value)(**fields)
    if isinstance(value, list):
        return [_replaced(one, ids) for one in value]
    if isinstance(value, bytes) and len(value) > HEADER.size:
        return _of_producer(value, ids)
    return value


def _of_producer(batch: bytes, ids: dict[int, int]) -> bytes:
    """A batch of the producer that stands for another."""
    fields = list(HEADER.unpack_from(batch))
    fields[_PRODUCER_ID] = ids.get(fields[_PRODUCER_ID], fields[_PRODUCER_ID])
    data = bytearray(HEADER.pack(*fields) + batch[HEADER.size :])
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    return bytes(data)
