"""Reads many partitions, each from its leader: one fetch at a time to each broker, in a session of its own.

    consumer.assign({("orders", 0): Committed(17, 3)})
    while True:
        for partition, batch in await consumer.poll(1.0): ...

`Position` has the rules for leaders and epochs; a truncation is raised as Truncated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from kraftd.client.cluster import Cluster
from kraftd.client.failures import ClientFailure, NoLeader, OutOfRange, Refused, Unreachable
from kraftd.client.fetch_session import SESSION_ERRORS, FetchSession, Key
from kraftd.client.group_offsets import Committed
from kraftd.client.metadata_cache import Leader
from kraftd.client.partition_reader import (
    CONSUMER,
    LEADER_ERRORS,
    MAX_FETCH_BYTES,
    WAIT_MS,
    PartitionReader,
    not_served,
    whole_batches,
)
from kraftd.client.position import Position, State
from kraftd.client.waits import Wait
from kraftd.messages.fetch_request import FetchPartition
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftd.messages.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kraftd.types import ZERO_UUID
from kraftd.wire.batch import Batch
from kraftd.wire.error_code import ErrorCode, error_name

TopicPartition = tuple[str, int]
Fetched = list[tuple[TopicPartition, Batch]]

_PAUSE_S = 0.1  # before a partition without a leader is tried again


class Consumer:
    """See the module. Raises what Cluster raises, Truncated, OutOfRange."""

    def __init__(self, cluster: Cluster, *, read_committed: bool = False) -> None:
        self.positions: dict[TopicPartition, Position] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._cluster = cluster
        self._isolation_level = int(read_committed)
        self._sessions: dict[int, FetchSession] = {}
        self._fetching: dict[int, asyncio.Task[Fetched]] = {}
        self._served: set[TopicPartition] = set()  # a leader has answered for them once
        self._waits: dict[TopicPartition, Wait] = {}  # for the leaders of others

    def __repr__(self) -> str:
        return f"<Consumer of {len(self.positions)} partitions at {len(self._sessions)} brokers>"

    async def offset_of(self, partition: TopicPartition, timestamp: int) -> int:
        """The offset of EARLIEST, LATEST, or of the first record at or after a time in ms."""
        return (await PartitionReader(self._cluster, *partition).list_offset(timestamp)).offset

    def assign(self, positions: Mapping[TopicPartition, Committed]) -> None:
        """Read these partitions from these positions on, and no others."""
        for node_id, task in self._fetching.items():  # what they fetch is not for the new positions
            task.cancel()
            self._sessions[node_id].failed()
        self._fetching.clear()
        self._end_waits(self._waits.keys() - positions.keys())
        self.positions = {
            (topic, index): Position(f"{topic}-{index}", offset, epoch)
            for (topic, index), (offset, epoch) in positions.items()
        }
        self.high_watermarks = {}

    async def close(self) -> None:
        """End the fetches under way."""
        self._end_waits(list(self._waits))
        tasks = list(self._fetching.values())
        self._fetching.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def poll(self, timeout_s: float) -> Fetched:
        """The batches that arrive within a time, by partition; none if there are none.

        Raises the failure for which no leader has served a partition yet, once that has lasted.
        """
        for partition, wait in self._waits.items():
            if partition not in self._served and wait.lasts(self._cluster.timeout_s):
                raise wait.failure
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.positions:
            leader = await self._ready_leader(partition)
            if leader is not None:
                by_leader.setdefault(leader.id, []).append(partition)
        for node_id, partitions in by_leader.items():
            if node_id not in self._fetching:
                self._fetching[node_id] = asyncio.create_task(self._fetch(node_id, partitions))
        if not self._fetching:
            await asyncio.sleep(min(_PAUSE_S, timeout_s))
            return []
        done, _ = await asyncio.wait(
            self._fetching.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        found: Fetched = []
        for node_id, task in list(self._fetching.items()):
            if task in done:
                del self._fetching[node_id]
                found += self._read(task.result())
        return found

    def _read(self, fetched: Fetched) -> Fetched:
        """Move the positions behind what was fetched; what is before a position is left out."""
        found: Fetched = []
        for partition, batch in fetched:
            position, header = self.positions[partition], batch.header
            if header.next_offset > position.offset:  # further on, where compaction has left a gap
                position.read(header.next_offset, header.leader_epoch)
                found.append((partition, batch))
        return found

    async def _ready_leader(self, partition: TopicPartition) -> Leader | None:
        """The leader from which the partition can be fetched now; None while there is none."""
        position, cluster = self.positions[partition], self._cluster
        if position.is_ready:
            return position.leader
        try:
            leader = await cluster.leader(*partition, at_least_epoch=position.epoch)
        except NoLeader as failure:
            self._wait_for(partition, failure)
            return None
        if position.metadata_changed(leader) is State.VALIDATING:
            await self._validate(partition, leader)
        return position.leader if position.is_ready else None

    async def _validate(self, partition: TopicPartition, leader: Leader) -> None:
        """Ask a new leader for the end of the position's epoch. Raises Truncated."""
        position, (topic, index) = self.positions[partition], partition
        asked = OffsetForLeaderPartition(index, leader.epoch, position.epoch)
        request = OffsetForLeaderEpochRequest(CONSUMER, [OffsetForLeaderTopic(topic, [asked])])
        try:
            connection = await self._cluster.node(leader.id)
            end = (await connection.ask(request, OffsetForLeaderEpochResponse)).topics[0].partitions[0]
        except Unreachable:
            await self._look_again([partition])
            return
        if end.error_code in LEADER_ERRORS:
            await self._look_again([partition])
        elif end.error_code:
            raise Refused(f"{position.partition}: {error_name(end.error_code)}", end.error_code)
        else:
            position.validated(leader, end.leader_epoch, end.end_offset)

    async def _fetch(self, node_id: int, partitions: Iterable[TopicPartition]) -> Fetched:
        """One fetch from a broker; its partitions get new leaders if it does not answer."""
        wanted: dict[Key, FetchPartition] = {}
        for topic, index in partitions:
            position = self.positions[topic, index]
            assert position.leader is not None
            key = Key(topic, self._cluster.cache.topics[topic].id, index)
            wanted[key] = FetchPartition(
                index,
                position.leader.epoch,
                position.offset,
                position.epoch,
                partition_max_bytes=MAX_FETCH_BYTES,
            )
        session = self._sessions.setdefault(node_id, FetchSession())
        request = session.request(wanted, WAIT_MS, MAX_FETCH_BYTES)
        request.isolation_level = self._isolation_level
        most = 12 if any(key.topic_id == ZERO_UUID for key in wanted) else 17
        try:
            connection = await self._cluster.node(node_id)
            answer = await connection.ask(request, FetchResponse, max_version=most)
        except Unreachable:
            session.failed()
            await self._look_again(partitions)
            return []
        news = session.answered(answer)
        if news is None:
            if answer.error_code and answer.error_code not in SESSION_ERRORS:
                raise Refused(f"broker {node_id}: {error_name(answer.error_code)}", answer.error_code)
            return []
        found: Fetched = []
        unsure: list[TopicPartition] = []
        for key, data in news.items():
            partition = key.topic, key.partition
            if data.error_code not in LEADER_ERRORS:
                self._served.add(partition)
                self._end_waits([partition])
                found += self._batches(partition, data)
                continue
            unsure.append(partition)
            if (of := self.positions.get(partition)) is not None and of.leader is not None:
                self._wait_for(partition, not_served(of.partition, of.leader, data.error_code))
        await self._look_again(unsure)
        if unsure and not found:
            await asyncio.sleep(_PAUSE_S)  # the metadata may name the same leader
        return found

    def _wait_for(self, partition: TopicPartition, failure: ClientFailure) -> None:
        if partition not in self._waits:
            self._waits[partition] = self._cluster.wait()
        self._waits[partition].failure = failure

    def _end_waits(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if (wait := self._waits.pop(partition, None)) is not None:
                wait.end()

    def _batches(self, partition: TopicPartition, data: PartitionData) -> Fetched:
        position = self.positions.get(partition)
        if position is None:
            return []
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise OutOfRange(f"{position.partition}: offset {position.offset} is not in the log")
        if data.error_code:
            raise Refused(f"{position.partition}: {error_name(data.error_code)}", data.error_code)
        if data.diverging_epoch.end_offset >= 0:
            position.diverged(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        self.high_watermarks[partition] = data.high_watermark
        batches = whole_batches(data.records or b"")
        return [(partition, one) for one in batches if one.header.next_offset > position.offset]

    async def _look_again(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the partitions' leaders looked up anew."""
        topics = []
        for partition in partitions:
            position = self.positions.get(partition)
            if position is not None:
                position.leader_unsure()
                topics.append(partition[0])
        if topics:
            try:
                await self._cluster.refresh(sorted(set(topics)))
            except NoLeader:
                await asyncio.sleep(_PAUSE_S)
