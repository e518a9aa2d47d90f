"""Reads the metadata log of a running quorum from its leader, as an anonymous observer (replica id -1).

Works with kraftd's controllers and Apache Kafka's: Fetch and FetchSnapshot of the controller listener. It
returns committed records only, and follows the leader.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from kraftd.client.cluster import Pause
from kraftd.client.connection import Connection, Setup
from kraftd.client.failures import ClientFailure, NoLeader, Refused, Truncated, Unreachable
from kraftd.client.metadata_cache import Address
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.messages.fetch_snapshot_request import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraftd.messages.fetch_snapshot_response import PartitionSnapshot as Piece
from kraftd.named_tuple import NamedTuple
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.batch import Batch, CorruptBatch, iter_batches
from kraftd.wire.error_code import ErrorCode, error_name
from kraftd.wire.message import Message

MAX_FETCH_BYTES = 8 << 20
WAIT_MS = 500
ANONYMOUS_REPLICA = -1  # the replica id of an anonymous observer
MAX_EPOCHS_TRIED = 10_000
# A controller names the leader; if the epoch has changed meanwhile, that node names another one.
MAX_REDIRECTS = 4
UNCOMMITTED_PAUSE_S = 0.02  # before the next fetch of records that are not yet committed

NO_EPOCH = -1  # a reader names no epoch to a replica without a leader
ELECTION_WAIT_S = 5.0  # an election is over by then, if a majority runs
SEEK_EVERY_S = 5.0  # a leader, while a replica without one is read

# Errors about the wanted offset or snapshot, not about the replica.
_GONE = frozenset(
    (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE)
)
_ELSEWHERE = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
    )
)


Answer = TypeVar("Answer", bound=Message)
Value = TypeVar("Value")


class Part(NamedTuple, Generic[Value]):
    """The only partition of an answer: its error, the leader known to the answering node, its data."""

    error_code: int
    leader_id: int
    leader_epoch: int
    endpoints: dict[int, Address]
    value: Value


class LogBounds(NamedTuple):
    """The extent of the leader's log: it begins at log_start; latest is its newest snapshot, if it needs one.

    high_watermark is the end of what is committed.
    """

    log_start: int
    high_watermark: int
    latest: OffsetAndEpoch | None


class NotCovered(ClientFailure):
    """The log begins behind the wanted offset: the snapshot `latest` replaces the records before."""

    def __init__(self, latest: OffsetAndEpoch, log_start: int) -> None:
        super().__init__(f"the log begins at offset {log_start}; snapshot {latest} holds what was before")
        self.latest = latest
        self.log_start = log_start


class QuorumLog:
    """A reader of the metadata log.

    Raises NoLeader, Unreachable or Refused if no leader answered within `timeout_s`. Raises Truncated if
    committed records are gone, which happens only in a quorum that lost data.

    With `without_leader` it reads what a kraftd node without a leader knows is committed, after
    `leader_wait_s`. `replica` is that node then. A leader that is found later is read instead. Apache
    Kafka's controllers refuse such readers. A `replica` that is given, at its client listener, is read
    whether there is a leader.
    """

    def __init__(
        self,
        controllers: Sequence[Address],
        timeout_s: float = 15.0,
        setup: Setup | None = None,
        *,
        without_leader: bool = False,
        replica: Address | None = None,
    ) -> None:
        self.controllers = list(controllers)
        self.leader: Address | None = None
        self.replica = replica
        self.leader_wait_s = min(ELECTION_WAIT_S, timeout_s / 3)
        self._without_leader = without_leader
        # When a leader was sought last, while a replica is read.
        self._sought_s = 0.0 if replica is None else math.inf
        self.epoch = 0
        self._timeout_s = timeout_s
        self._setup = setup
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        at = f"at {self.replica} without a leader" if self.replica else f"led by {self.leader}"
        return f"<QuorumLog {at} in epoch {self.epoch}>"

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def bounds(self) -> LogBounds:
        """The current extent of the leader's log."""
        data = await self._fetch(0, 0, 0)
        latest = _snapshot_of(data)
        pause = Pause(time.monotonic() + self._timeout_s)
        while data.high_watermark < 0:  # a new leader does not know it yet
            if not await pause.wait():
                raise NoLeader(f"{self._name()}: nothing is committed in epoch {self.epoch} yet")
            data = await self._fetch(0, 0, 0)
            latest = _snapshot_of(data)
        return LogBounds(max(data.log_start_offset, 0), data.high_watermark, latest)

    async def batches(self, start: int, epoch: int, *, follow: bool = False) -> AsyncIterator[Batch]:
        """The committed batches from an offset on; epoch is that of the record before it (0 at the start).

        Without follow up to the current high watermark, else forever. Also raises NotCovered.

        A leader with a snapshot offers it to a fetch at offset 0, and to one whose last epoch is older than
        its oldest snapshot's. What its log still has, it returns to a fetch from offset 1 on that claims the
        snapshot's epoch. A batch of offset 0 alone is not returned then: a leader's control record.
        """
        position = OffsetAndEpoch(start, epoch)
        claimed_epoch = end = -1
        while True:
            offset = position.offset if claimed_epoch < 0 else max(1, position.offset)
            wait_ms = WAIT_MS if follow or end < 0 else 0
            data = await self._fetch(offset, max(position.epoch, claimed_epoch), wait_ms)
            snapshot = _snapshot_of(data)
            if snapshot is not None:
                if data.log_start_offset > position.offset or claimed_epoch >= snapshot.epoch:
                    raise NotCovered(snapshot, data.log_start_offset)
                claimed_epoch = snapshot.epoch
                continue
            if data.diverging_epoch.end_offset >= 0:
                diverging = data.diverging_epoch
                raise Truncated(
                    METADATA_TOPIC,
                    position.offset,
                    min(diverging.end_offset, position.offset),
                    diverging.epoch,
                )
            end = max(end, data.high_watermark)
            committed = _committed(data)
            if data.records and not committed:
                await asyncio.sleep(UNCOMMITTED_PAUSE_S)
            for batch in committed:
                header = batch.header
                if header.next_offset > position.offset:
                    position = OffsetAndEpoch(header.next_offset, header.leader_epoch)
                    yield batch
            if not follow and 0 <= end <= max(offset, position.offset):
                return

    async def snapshot(self, snapshot_id: OffsetAndEpoch) -> AsyncIterator[tuple[bytes, int]]:
        """The bytes of a snapshot in pieces, each with the whole's size. Raises Refused if it is gone."""
        position, size = 0, 1
        while position < size:
            piece = await self._at_leader(
                partial(self._piece_request, snapshot_id, position), FetchSnapshotResponse, _piece_of
            )
            data = bytes(piece.unaligned_records or b"")
            if piece.position != position or not data:
                raise Refused(
                    f"{self._name()}: no piece of snapshot {snapshot_id} from byte {position} on", 0
                )
            size = piece.size
            position += len(data)
            yield data, size

    def _piece_request(self, snapshot_id: OffsetAndEpoch, position: int) -> FetchSnapshotRequest:
        epoch = NO_EPOCH if self.replica else self.epoch
        partition = PartitionSnapshot(METADATA_PARTITION, epoch, SnapshotId(*snapshot_id), position)
        topic = TopicSnapshot(METADATA_TOPIC, [partition])
        return FetchSnapshotRequest(replica_id=ANONYMOUS_REPLICA, max_bytes=MAX_FETCH_BYTES, topics=[topic])

    async def earliest_snapshot(self, bounds: LogBounds) -> OffsetAndEpoch:
        """The snapshot that the log begins with; bounds.latest must not be None.

        Its epoch is found by trial: only with the right one the leader returns records from there on.
        """
        assert bounds.latest is not None
        start, newest = bounds.log_start, bounds.latest
        if start == newest.offset:
            return newest
        for epoch in range(newest.epoch, max(-1, newest.epoch - MAX_EPOCHS_TRIED), -1):
            if _snapshot_of(await self._fetch(start, epoch, 0)) is None:
                return OffsetAndEpoch(start, epoch)
        return newest

    async def _fetch(self, offset: int, epoch: int, wait_ms: int) -> PartitionData:
        self.epoch = max(self.epoch, epoch)  # an observer's epoch is never below that of its last record

        def request() -> FetchRequest:
            return _fetch_request(NO_EPOCH if self.replica else self.epoch, offset, epoch, wait_ms)

        data = await self._at_leader(request, FetchResponse, _data_of, wait_ms / 1000)
        if self.replica and wait_ms and not data.records:
            await asyncio.sleep(wait_ms / 1000)  # a node without a leader answers at once
        return data

    async def _at_leader(
        self,
        request: Callable[[], Message],
        answer: type[Answer],
        part: Callable[[Answer], Part[Value]],
        wait_s: float = 0.0,
    ) -> Value:
        """The leader's answer, or that of a replica without one.

        The controllers are asked one after another until one knows the leader.
        """
        began_s = time.monotonic()
        pause = Pause(began_s + self._timeout_s)
        failure: ClientFailure = NoLeader("no controller is known")
        while True:
            was_without = self.replica is not None
            if self.replica is not None and time.monotonic() - self._sought_s < SEEK_EVERY_S:
                value = await self._at_replica(self.replica, request, answer, part)
                if value is not None:
                    return value
            self.replica = None
            for first in dict.fromkeys([*([self.leader] if self.leader else []), *self.controllers]):
                address = first
                for _ in range(MAX_REDIRECTS):
                    try:
                        connection = await self._connect(address)
                        limit_s = wait_s + self._step_s
                        found = part(await connection.ask(request(), answer, timeout_s=limit_s))
                    except Unreachable as error:
                        failure = error
                        break
                    if found.error_code == ErrorCode.NONE:
                        self.leader = address
                        return found.value
                    text = f"{connection.address}: {error_name(found.error_code)}"
                    if found.error_code not in _ELSEWHERE:
                        raise Refused(text, found.error_code)
                    failure = NoLeader(f"{text}; the quorum has no leader now, try again in a moment")
                    reported = (found.endpoints.get(found.leader_id, address), found.leader_epoch)
                    if found.leader_epoch < 0 or reported == (address, self.epoch):
                        break
                    address, self.epoch = reported
            self.leader = None
            is_late = self._without_leader and time.monotonic() - began_s >= self.leader_wait_s
            if (was_without or is_late) and await self._find_replica():
                continue
            if not await pause.wait():
                raise failure

    async def _at_replica(
        self,
        address: Address,
        request: Callable[[], Message],
        answer: type[Answer],
        part: Callable[[Answer], Part[Value]],
    ) -> Value | None:
        """The answer of the replica that is read; None if it follows a leader by now, or does not answer."""
        try:
            connection = await self._connect(address)
            found = part(await connection.ask(request(), answer, timeout_s=self._step_s))
        except Unreachable:
            return None
        if found.error_code in _GONE:
            raise Refused(f"{connection.address}: {error_name(found.error_code)}", found.error_code)
        return found.value if found.error_code == ErrorCode.NONE else None

    async def _find_replica(self) -> bool:
        """Choose the node that has committed most, of those without a leader; return whether one answers."""
        best = -1
        for address in dict.fromkeys(self.controllers):
            try:
                connection = await self._connect(address)
                probe = _fetch_request(NO_EPOCH, 0, 0, 0)
                found = _data_of(await connection.ask(probe, FetchResponse, timeout_s=self._step_s))
            except Unreachable:
                continue
            if found.error_code == ErrorCode.NONE and found.value.high_watermark > best:
                best, self.replica = found.value.high_watermark, address
        self._sought_s = time.monotonic()
        return best >= 0

    @property
    def _step_s(self) -> float:
        """How long one node may take to answer."""
        return max(1.0, self._timeout_s / 4)

    async def _connect(self, address: Address) -> Connection:
        connection = self._connection
        if connection is None or not connection.is_open or (connection.host, connection.port) != address:
            await self.close()
            self._connection = connection = await Connection.open(
                *address, self._step_s, self._setup, "kraftd-cli"
            )
        return connection

    def _name(self) -> str:
        return "no leader" if self.leader is None else f"{self.leader[0]}:{self.leader[1]}"


def _fetch_request(leader_epoch: int, offset: int, epoch: int, wait_ms: int) -> FetchRequest:
    if leader_epoch == NO_EPOCH and offset == 0:
        epoch = NO_EPOCH  # there is no record before
    partition = FetchPartition(
        METADATA_PARTITION, leader_epoch, offset, epoch, partition_max_bytes=MAX_FETCH_BYTES
    )
    return FetchRequest(
        replica_state=ReplicaState(ANONYMOUS_REPLICA),
        max_wait_ms=wait_ms,
        max_bytes=MAX_FETCH_BYTES,
        topics=[FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def _data_of(answer: FetchResponse) -> Part[PartitionData]:
    endpoints = {one.node_id: (one.host, one.port) for one in answer.node_endpoints}
    if answer.error_code or not answer.responses or not answer.responses[0].partitions:
        return Part(answer.error_code or ErrorCode.INVALID_REQUEST, -1, -1, endpoints, PartitionData())
    data = answer.responses[0].partitions[0]
    leader = data.current_leader
    return Part(data.error_code, leader.leader_id, leader.leader_epoch, endpoints, data)


def _piece_of(answer: FetchSnapshotResponse) -> Part[Piece]:
    endpoints = {one.node_id: (one.host, one.port) for one in answer.node_endpoints}
    if answer.error_code or not answer.topics or not answer.topics[0].partitions:
        return Part(answer.error_code or ErrorCode.INVALID_REQUEST, -1, -1, endpoints, Piece())
    piece = answer.topics[0].partitions[0]
    leader = piece.current_leader
    return Part(piece.error_code, leader.leader_id, leader.leader_epoch, endpoints, piece)


def _snapshot_of(data: PartitionData) -> OffsetAndEpoch | None:
    """The snapshot that an answer says must be fetched first; None if there is none."""
    found = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    return found if found.epoch >= 0 and found.offset >= 0 else None


def _committed(data: PartitionData) -> list[Batch]:
    """The whole batches below the high watermark."""
    found = []
    try:
        for batch in iter_batches(data.records or b""):
            if batch.header.next_offset > data.high_watermark:
                break
            found.append(batch)
    except CorruptBatch as error:
        if not error.truncated or not found:
            raise
    return found
