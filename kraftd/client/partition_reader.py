"""Reads the batches of one partition from its leader, which it follows; reports a truncation."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from kraftd.client.cluster import Cluster, Pause
from kraftd.client.failures import OutOfRange, Refused, Unreachable
from kraftd.client.fetch_session import SESSION_ERRORS, FetchSession, Key
from kraftd.client.metadata_cache import Leader
from kraftd.client.position import Position, State
from kraftd.messages.fetch_request import FetchPartition
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.offset_for_leader_epoch_response import EpochEndOffset, OffsetForLeaderEpochResponse
from kraftd.types import ZERO_UUID
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches
from kraftd.wire.error_code import ErrorCode, error_name

EARLIEST, LATEST = -2, -1
MAX_FETCH_BYTES = 8 << 20
WAIT_MS = 500
CONSUMER = -1  # the replica id of a consumer

# After these errors the leader has changed or the metadata is old, so it is requested anew.
LEADER_ERRORS = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    )
)


class PartitionReader:
    """Reads a partition from a position on. Raises what Cluster raises, Truncated, OutOfRange."""

    def __init__(self, cluster: Cluster, topic: str, index: int, offset: int = 0, epoch: int = -1) -> None:
        self.topic, self.index = topic, index
        self.position = Position(f"{topic}-{index}", offset, epoch)
        self.log_start = -1
        self.high_watermark = -1
        self._cluster = cluster
        self.session = FetchSession()
        self._session_node = -1  # the id of the leader

    def __repr__(self) -> str:
        return f"<PartitionReader of {self.position!r}, high watermark {self.high_watermark}>"

    async def list_offset(self, timestamp: int) -> ListOffsetsPartitionResponse:
        """The offset of EARLIEST, LATEST or a time in ms, with its leader epoch. Raises the last failure if
        no leader tells it in time.
        """
        pause, wait = Pause(time.monotonic() + self._cluster.timeout_s), None
        try:
            while True:
                leader = await self._ready_leader()
                found = await self._ask_offset(leader, timestamp)
                if isinstance(found, ListOffsetsPartitionResponse):
                    return found
                wait = wait or self._cluster.wait()
                wait.failure = found
                if not await pause.wait():
                    raise found
                await self._another_leader(leader)
        finally:
            if wait is not None:
                wait.end()

    async def _ask_offset(
        self, leader: Leader, timestamp: int
    ) -> ListOffsetsPartitionResponse | Unreachable | Refused:
        """The answer of a leader, or the failure after which there may be another one."""
        partition = ListOffsetsPartition(self.index, leader.epoch, timestamp)
        request = ListOffsetsRequest(CONSUMER, 0, [ListOffsetsTopic(self.topic, [partition])])
        try:
            connection = await self._cluster.node(leader.id)
            answer = await connection.ask(request, ListOffsetsResponse)
        except Unreachable as error:
            return error
        found: ListOffsetsPartitionResponse = answer.topics[0].partitions[0]
        if found.error_code in LEADER_ERRORS:
            return not_served(self.position.partition, leader, found.error_code)
        self._check(found.error_code)
        return found

    async def batches(self, *, follow: bool = False) -> AsyncIterator[Batch]:
        """The batches from the position on up to the high watermark, then, with follow, those to come."""
        while True:
            data = await self._fetch(WAIT_MS if follow else 0)
            if data is None:
                continue
            for batch in whole_batches(data.records or b""):
                header = batch.header
                if header.next_offset <= self.position.offset:
                    continue
                self.position.read(header.next_offset, header.leader_epoch)
                yield batch
            if not follow and self.position.offset >= self.high_watermark:
                return

    async def _fetch(self, wait_ms: int) -> PartitionData | None:
        """The leader's records from the position on; None if the fetch must be repeated."""
        leader = await self._ready_leader()
        if self.position.state is State.VALIDATING:
            await self._validate(leader)
            return None
        topic = self._cluster.cache.topics[self.topic]
        partition = FetchPartition(
            self.index,
            leader.epoch,
            self.position.offset,
            self.position.epoch,
            partition_max_bytes=MAX_FETCH_BYTES,
        )
        key = Key(self.topic, topic.id, self.index)
        if leader.id != self._session_node:
            self.session, self._session_node = FetchSession(), leader.id
        request = self.session.request({key: partition}, wait_ms, MAX_FETCH_BYTES)
        try:
            connection = await self._cluster.node(leader.id)
            most = 12 if topic.id == ZERO_UUID else 17
            answer = await connection.ask(request, FetchResponse, max_version=most)
        except Unreachable:
            self.session.failed()
            await self._another_leader(leader)
            return None
        news = self.session.answered(answer)
        if news is None:
            if answer.error_code not in SESSION_ERRORS:
                self._check(answer.error_code)
            return None
        data = news.get(key)
        if data is None:  # no news since an error: the next request is a full one
            self.session.failed()
            return None
        if data.error_code in LEADER_ERRORS:
            await self._another_leader(leader)
            return None
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OutOfRange(f"{self.position.partition}: offset {self.position.offset} is not in the log")
        self._check(data.error_code)
        if data.diverging_epoch.end_offset >= 0:
            self.position.diverged(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        self.log_start, self.high_watermark = data.log_start_offset, data.high_watermark
        return data

    async def _ready_leader(self) -> Leader:
        """The leader, from metadata that is at least as new as the position."""
        while True:
            leader = await self._cluster.leader(self.topic, self.index, at_least_epoch=self.position.epoch)
            if self.position.metadata_changed(leader) is not State.WAITING:
                return leader

    async def _another_leader(self, leader: Leader) -> None:
        self.position.leader_unsure()
        found = await self._cluster.new_leader(self.topic, self.index, leader, self.position.epoch)
        self.position.metadata_changed(found)

    async def _validate(self, leader: Leader) -> None:
        """Validate the position: ask the leader for the end of its epoch. Raises Truncated."""
        partition = OffsetForLeaderPartition(self.index, leader.epoch, self.position.epoch)
        request = OffsetForLeaderEpochRequest(CONSUMER, [OffsetForLeaderTopic(self.topic, [partition])])
        try:
            connection = await self._cluster.node(leader.id)
            answer = await connection.ask(request, OffsetForLeaderEpochResponse)
        except Unreachable:
            await self._another_leader(leader)
            return
        end: EpochEndOffset = answer.topics[0].partitions[0]
        if end.error_code in LEADER_ERRORS:
            await self._another_leader(leader)
            return
        self._check(end.error_code)
        self.position.validated(leader, end.leader_epoch, end.end_offset)

    def _check(self, error_code: int) -> None:
        if error_code:
            raise Refused(f"{self.position.partition}: {error_name(error_code)}", error_code)


def not_served(partition: str, leader: Leader, error_code: int) -> Refused:
    """A leader has refused a partition by an error after which there may be another one."""
    why = ", its log is not open" if error_code == ErrorCode.KAFKA_STORAGE_ERROR else ""
    text = f"{partition}: its leader, broker {leader.id}, answers {error_name(error_code)}{why}"
    return Refused(f"{text}; kraftd doctor says why", error_code)


def whole_batches(records: bytes | memoryview) -> list[Batch]:
    """The whole batches of a fetch, which may end within one. Raises CorruptBatch."""
    found = []
    try:
        for batch in iter_batches(records):
            found.append(batch)  # noqa: PERF402
    except CorruptBatch as error:
        if not error.truncated or not found:
            raise
    return found
