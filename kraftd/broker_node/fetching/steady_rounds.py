"""The rounds of a follower that keeps up: plain records of partitions in sync, and the next fetch at once.

A busy follower makes thousands of them a second, so they take few steps: an answer is judged as it came, its
records are written, and the next fetch follows. The outcome is the fetcher's. It has to handle any other
answer itself, and one after a change: nothing is changed then.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from kraftd.broker_node.fetching.fetch_times import FetchTimes
from kraftd.broker_node.fetching.followed import FETCHING, Followed
from kraftd.broker_node.fetching.leader_session import LAST_EPOCH, Key, LeaderSession
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.ground.effect import Effect
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.metadata.state import PartitionState
from kraftd.partition.effects import AppendBatches
from kraftd.partition.partition import FOLLOWER, Partition
from kraftd.partition.replication import append_judged, continues, replicated_up_to
from kraftd.wire.batch import BatchHeader
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import ENGINE

FIRST_VERSION = 13  # of Fetch: topics have ids
MOST_BYTES = 4 << 20  # of an answer, some ms of work: more are written in several event loop callbacks
MOST_PARTITIONS = 10


class SteadyPorts(Protocol):
    """What these rounds need of their node."""

    @property
    def now_ms(self) -> int: ...

    def state(self) -> tuple[int, int]:
        """Where the metadata ends that the node has applied, and its broker epoch."""

    def may_hold_back(self) -> bool:
        """Return whether followers of this broker are throttled at all."""

    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None: ...

    def is_plain(self, hosted: Hosted) -> bool:
        """Return whether a replica is in sync and neither throttled nor being added, with its present
        configs."""


class Following(Protocol):
    """The fetcher of these rounds."""

    followed: dict[Key, Followed]
    session: LeaderSession
    times: FetchTimes

    def waits_for_answer_alone(self) -> bool: ...

    def answered_steadily(self, now_ms: int) -> None: ...

    def replicated(self, key: Key, followed: Followed, partition: Partition, end_offset: int) -> None: ...

    def sent_steadily(self, now_ms: int) -> int: ...

    def left_steadiness(self, unwritten: int) -> None: ...


class SteadyRow(Struct):
    """A partition of an answer. `append`: what is to be written, once `begin` has noted it."""

    key: Key
    followed: Followed
    partition: Partition
    high_watermark: int
    log_start: int
    records: memoryview | None
    headers: list[BatchHeader] | None
    append: AppendBatches | None = None
    error: ErrorCode | None = None  # of its write


class SteadyRounds:
    """Those of one fetcher. `judge` comes first; `begin` and `end` follow if it finds nothing unusual."""

    def __init__(self, fetcher: Following, node: SteadyPorts) -> None:
        self._fetcher = fetcher
        self._node = node
        self._state = (-1, -1)  # of the node, when the last request was sent
        self._request = FetchRequest()  # the last one, which each round changes
        self._plain: dict[Key, PartitionState] = {}  # as they were when the partition was looked at

    def __repr__(self) -> str:
        return f"<SteadyRounds of {self._fetcher!r}>"

    def follow(self, request: FetchRequest) -> SteadyRounds | None:
        """These, if the answer to the request that is sent now may be such a round."""
        fetcher, node = self._fetcher, self._node
        if not fetcher.session.epoch or fetcher.times.is_behind or node.may_hold_back():
            return None
        state = node.state()
        if state != self._state:
            self._state = state
            self._plain.clear()
        self._request = request
        return self

    def judge(self, version: int, frame: memoryview) -> list[SteadyRow] | None:
        """The partitions of an answer, or None if the fetcher has to handle it."""
        fetcher = self._fetcher
        session = fetcher.session
        if (
            version < FIRST_VERSION
            or len(frame) > MOST_BYTES
            or self._node.state() != self._state
            or not fetcher.waits_for_answer_alone()
            or session.epoch == LAST_EPOCH
        ):
            return None
        found = ENGINE.plain_answer(frame, session.id)
        if found is None or len(found) > MOST_PARTITIONS:
            return None
        rows = []
        seen: set[Key] = set()
        for key, high_watermark, log_start, records, headers in found:
            followed, requested = fetcher.followed.get(key), session.named.get(key)
            if followed is None or requested is None or key in seen:
                return None
            seen.add(key)
            partition = followed.hosted.partition
            epoch = followed.leader_epoch
            if (
                followed.state is not FETCHING
                or partition is None
                or partition.role is not FOLLOWER
                or partition.leader_epoch != epoch
                or requested.current_leader_epoch != epoch
                or requested.fetch_offset != partition.next_offset
                or log_start > partition.log_start_offset
                or (self._plain.get(key) is not followed.hosted.state and not self._is_plain(key, followed))
                or not (headers is None or records is None or continues(partition, headers, len(records)))
            ):
                return None
            rows.append(SteadyRow(key, followed, partition, high_watermark, log_start, records, headers))
        return rows

    def _is_plain(self, key: Key, followed: Followed) -> bool:
        if not self._node.is_plain(followed.hosted):
            return False
        self._plain[key] = followed.hosted.state
        return True

    def begin(self, rows: list[SteadyRow], now_ms: int) -> None:
        """Note what is to be written now."""
        for row in rows:
            followed = row.followed
            followed.high_watermark, followed.log_start = row.high_watermark, row.log_start
            if row.headers is not None and row.records is not None:
                followed.hosted.traffic.replication_bytes_in += len(row.records)
                row.append = append_judged(row.partition, row.headers, row.records)
        self._fetcher.answered_steadily(now_ms)

    def end(self, rows: list[SteadyRow], now_ms: int) -> FetchRequest:
        """All of it is written: take the leader's marks; returns the next fetch."""
        fetcher, follow_up = self._fetcher, self._node.follow_up
        session = fetcher.session
        topics: dict[bytes, FetchTopic] = {}
        for row in rows:
            append, partition, key = row.append, row.partition, row.key
            end = partition.log_end_offset if append is None else append.end_offset
            if effects := replicated_up_to(partition, end, row.high_watermark, row.log_start, now_ms):
                follow_up(row.followed.hosted, effects)
            if append is not None:
                epoch, start = row.followed.leader_epoch, partition.log_start_offset
                most = session.named[key].partition_max_bytes
                session.name(key, FetchPartition(key[1], epoch, end, epoch, start, most), topics)
        request = self._request
        request.session_epoch = fetcher.sent_steadily(now_ms)
        request.topics, request.forgotten_topics_data = list(topics.values()), []
        return request

    def fail(self, rows: list[SteadyRow]) -> None:
        """Some of it could not be written: the fetcher goes on, with the outcome of each."""
        for row in rows:
            if row.append is None:
                self._fetcher.replicated(row.key, row.followed, row.partition, row.partition.log_end_offset)
        self._fetcher.left_steadiness(sum([row.append is not None for row in rows]))
