"""Fetches the partitions of one leader over one connection, with one request at a time (Kafka's
ReplicaFetcherThread).

The rules for what is fetched are in `kraftd.partition.replication`. A partition that fails waits alone; after
a request that fails, all of them wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol

from kraftd.broker_node.fetching.fetch_times import FetchTimes
from kraftd.broker_node.fetching.followed import FETCHING, FetchSettings, Followed, State
from kraftd.broker_node.fetching.leader_session import Key, LeaderSession
from kraftd.broker_node.fetching.steady_rounds import SteadyPorts, SteadyRounds
from kraftd.broker_node.partitions.replicas import Hosted
from kraftd.broker_node.replication_quotas import RECHECK_MS
from kraftd.ground.effect import Effect
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, ReplicaState
from kraftd.messages.fetch_response import FetchResponse, PartitionData
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.messages.list_offsets_response import ListOffsetsResponse
from kraftd.partition.effects import AppendBatches, TruncateLog
from kraftd.partition.partition import FOLLOWER, Partition
from kraftd.partition.reading import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kraftd.partition.replication import (
    MAX_OFFSET,
    diverged,
    fetched_from_leader,
    is_torn,
    out_of_range,
    replicated_up_to,
    without_epochs,
)
from kraftd.types import OffsetAndEpoch
from kraftd.wire.error_code import ErrorCode, error_name, known_error
from kraftd.wire.message import Message
from kraftd.wire.python_batches import Buffer

FIRST_VERSION_WITH_BROKER_EPOCH = 15
SLICE_BYTES = 1 << 20  # of records that are written in one event loop callback
SLICE_PARTITIONS = 100  # without records
SLICE_APPENDS = 10  # each may open three files
NEWLY_NAMED = 2_000  # partitions that a request names first, at most: an event loop callback builds it
BACKOFFS_OF_FAILED = 10  # that a failed partition waits

# The leader or this broker has not seen the newest metadata: Kafka does not call that an error.
_TRANSIENT = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "warning",
    ErrorCode.UNKNOWN_TOPIC_ID: "warning",
    ErrorCode.INCONSISTENT_TOPIC_ID: "warning",
}
# Damage on the way: another answer may be whole.
_OF_RECORDS = {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}


class FetcherPorts(SteadyPorts, Protocol):
    """What a fetcher needs of its node. `ask` sends to a leader; None is no answer."""

    @property
    def now_ms(self) -> int: ...

    def identity(self) -> tuple[int, int]:
        """This broker's id and epoch."""

    def fetch_version(self) -> int:
        """The version of Fetch of the metadata version."""

    def ask(
        self,
        leader_id: int,
        fetcher: int,
        message: Message,
        version: int | None,
        then: Callable[[Message | None], None],
        rounds: SteadyRounds | None = None,
    ) -> None: ...

    def is_held_back(self, hosted: Hosted) -> bool:
        """Return whether a partition that is not in sync has to wait, by a throttle of replication."""

    def fetched(self, hosted: Hosted, size_bytes: int) -> None:
        """Count records that were fetched."""

    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None: ...

    def go_on(self, slices: Iterator[None]) -> None: ...

    def log(self, level: str, text: str, **fields: object) -> None: ...


class Fetcher:
    """One connection to one leader, and the partitions that it fetches."""

    def __init__(self, leader_id: int, number: int, settings: FetchSettings, node: FetcherPorts) -> None:
        self.leader_id = leader_id
        self.number = number
        self.followed: dict[Key, Followed] = {}
        self.session = LeaderSession()
        self.times = FetchTimes()
        self.steady = SteadyRounds(self, node)
        self._settings = settings
        self._node = node
        self._changed: dict[Key, None] = {}  # since the last request, of those that the session names
        self._unnamed: dict[Key, None] = {}  # those that it does not name yet
        self._delayed: dict[Key, int] = {}  # until when a partition waits
        self._not_before_ms = 0
        self._under_way = 0  # requests, and an answer that is processed
        self._unwritten = 0  # appends

    def __repr__(self) -> str:
        return f"<Fetcher {self.number} of leader {self.leader_id}, {len(self.followed)} partitions>"

    # -- partitions

    def add(self, key: Key, followed: Followed) -> None:
        """Fetch a partition from now on, or with a newer leader epoch."""
        self.followed[key] = followed
        self._delayed.pop(key, None)
        self._note(key)
        if followed.state is State.FETCHING and (effects := without_epochs(followed.partition)):
            self._truncate(key, followed, effects)

    def remove(self, key: Key) -> None:
        """Fetch a partition no more."""
        if self.followed.pop(key, None) is not None:
            self._delayed.pop(key, None)
            self._note(key)

    def truncated(self, key: Key) -> None:
        """The log of a partition was truncated: it is fetched again."""
        followed = self.followed.get(key)
        if followed is not None and followed.state is State.TRUNCATING:
            followed.state = State.FETCHING
            self._note(key)

    # -- requests

    def deadline_ms(self) -> int | None:
        """When `send` has work; None for never."""
        if self._under_way or self._unwritten:
            return None
        due = min(self._delayed.values(), default=None)
        if self._changed or self._unnamed or self.session.named:
            return max(self._not_before_ms, 0)
        return None if due is None else max(due, self._not_before_ms)

    def send(self) -> None:
        """Send the next request, unless one is under way, or nothing is fetched."""
        if self._under_way or self._unwritten:
            return
        node, now_ms = self._node, self._node.now_ms
        if now_ms < self._not_before_ms:
            return
        if self._delayed:
            self._end_delays(now_ms)
        request = self._request(now_ms)
        if request is not None:
            rounds = None if self._unnamed else self.steady.follow(request)
            version = node.fetch_version()
            node.ask(self.leader_id, self.number, request, version, self._answered, rounds)

    def _request(self, now_ms: int) -> FetchRequest | None:
        """The next request, which is sent now; None if nothing is fetched."""
        node, settings = self._node, self._settings
        wanted = {key: self._wanted(key, now_ms) for key in self._take_changed()}
        topics, forgotten = self.session.request(wanted)
        if not self.session.named and not forgotten:
            return None
        replica_id, broker_epoch = node.identity()
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms(),
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self.session.id,
            session_epoch=self.session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        if node.fetch_version() >= FIRST_VERSION_WITH_BROKER_EPOCH:
            request.replica_state = ReplicaState(replica_id, broker_epoch)
        else:
            request.replica_id = replica_id
        self._under_way += 1
        self.times.sent(now_ms)
        return request

    def _end_delays(self, now_ms: int) -> None:
        for key in [key for key, due_ms in self._delayed.items() if due_ms <= now_ms]:
            del self._delayed[key]
            followed = self.followed[key]
            if followed.state is State.FAILED:
                followed.state, followed.doubts_gaps = State.FETCHING, False
            self._note(key)

    def _take_changed(self) -> Iterable[Key]:
        """The partitions of the next request. All that changed, for the leader would give records again, but
        of many that it does not know yet some: the rest follows. Without a session it knows none.
        """
        if self.session.is_new:
            if len(self.followed) <= NEWLY_NAMED:
                self._unnamed = dict.fromkeys(self.followed)
            else:
                self._unnamed.update(self._changed)
            self._changed = {}
        changed, self._changed = self._changed, {}
        if not self._unnamed:
            return changed
        first = list(islice(self._unnamed, NEWLY_NAMED))
        for key in first:
            del self._unnamed[key]
        return [*changed, *first]

    def _max_wait_ms(self) -> int:
        """How long the leader may wait for records; while it does not know all partitions, not long."""
        wait_ms = self._settings.replica_fetch_wait_max_ms
        return wait_ms * NEWLY_NAMED // len(self.followed) if self._unnamed else wait_ms

    def _note(self, key: Key) -> None:
        """Let the next request say how far a partition is, or that it is fetched no more."""
        (self._changed if key in self.session.named else self._unnamed)[key] = None

    def _wanted(self, key: Key, now_ms: int) -> FetchPartition | None:
        followed = self.followed.get(key)
        if followed is None:
            return None
        if followed.lag and self._node.is_held_back(followed.hosted):
            self._delayed[key] = now_ms + RECHECK_MS
        if followed.state is not FETCHING or key in self._delayed:
            return None
        partition = followed.partition
        epoch = partition.epochs.latest
        return FetchPartition(
            key[1],
            followed.leader_epoch,
            partition.log_end_offset,
            -1 if epoch is None else epoch,
            partition.log_start_offset,
            self._settings.replica_fetch_max_bytes,
        )

    def _delay(self, key: Key, backoffs: int = 1) -> None:
        if key in self.followed:
            self._delayed[key] = self._node.now_ms + backoffs * self._settings.replica_fetch_backoff_ms
            self._note(key)

    def _fail(self, key: Key, followed: Followed) -> None:
        """Fetch a partition no more, until it has a new leader epoch, or for long."""
        followed.state = State.FAILED
        self._delay(key, BACKOFFS_OF_FAILED)

    def _log(self, level: str, text: str, followed: Followed, **fields: object) -> None:
        self._node.log(level, text, partition=followed.partition.name, leader=self.leader_id, **fields)

    # -- answers

    def _answered(self, answer: Message | None) -> None:
        error = answer.error_code if isinstance(answer, FetchResponse) else None
        if not isinstance(answer, FetchResponse) or error:
            self._under_way -= 1
            self.times.failed(is_answered=error is not None)
            self.session.failed(is_unknown=error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            self._not_before_ms = self._node.now_ms + self._settings.replica_fetch_backoff_ms
            self._unnamed, self._changed = dict.fromkeys(self.followed), {}
            if self.followed:
                why = "no answer" if error is None else error_name(error)
                self._node.log(
                    "warning", "a leader could not be fetched from", node=self.leader_id, error=why
                )
            return
        self.session.answered(answer.session_id)
        self.times.answered(self._node.now_ms)
        self._node.go_on(self._process(answer))

    # -- answers that `SteadyRounds` has judged

    def waits_for_answer_alone(self) -> bool:
        """Return whether it has nothing to do but with the answer to its fetch."""
        busy = self._unwritten or self._changed or self._unnamed or self._delayed
        return self._under_way == 1 and not busy

    def answered_steadily(self, now_ms: int) -> None:
        """Its answer is there, of the same session."""
        self._under_way -= 1
        self.session.answered(self.session.id)
        self.times.answered(now_ms)

    def replicated(self, key: Key, followed: Followed, partition: Partition, end_offset: int) -> None:
        """A partition has all records of the answer."""
        if effects := self._replicated(key, followed, partition, end_offset):
            self._node.follow_up(followed.hosted, effects)

    def sent_steadily(self, now_ms: int) -> int:
        """The next fetch is sent, in the epoch of the session that is returned."""
        self._under_way += 1
        self.times.sent(now_ms)
        return self.session.epoch

    def left_steadiness(self, unwritten: int) -> None:
        """Not all records of an answer could be written: the ends of that many appends follow."""
        self._unwritten += unwritten

    def _process(self, answer: FetchResponse) -> Iterator[None]:
        size_bytes = count = unasked = 0
        session = self.session
        try:
            for topic in answer.responses:
                topic_id = topic.topic_id
                for data in topic.partitions:
                    if size_bytes >= SLICE_BYTES or count >= SLICE_PARTITIONS:
                        size_bytes = count = 0
                        yield
                    if data.records:
                        size_bytes += len(data.records)
                        count += SLICE_PARTITIONS // SLICE_APPENDS
                    else:
                        count += 1
                    key = topic_id, data.partition_index
                    requested = session.named.get(key)
                    if requested is None:
                        unasked += 1
                    else:
                        self._process_partition(key, requested, data)
        finally:
            self._under_way -= 1
        if unasked:
            self._not_before_ms = self._node.now_ms + self._settings.replica_fetch_backoff_ms
            text = "a leader answered for partitions that were not requested"
            self._node.log("warning", text, node=self.leader_id, count=unasked)

    def _process_partition(self, key: Key, requested: FetchPartition, data: PartitionData) -> None:
        followed = self.followed.get(key)
        if followed is None or followed.state is not FETCHING:
            return
        partition = followed.hosted.partition
        if (
            partition is None
            or partition.role is not FOLLOWER
            or key in self._delayed
            or requested.current_leader_epoch != followed.leader_epoch
            or requested.fetch_offset != partition.next_offset  # which differs if an answer names it twice
        ):
            return  # of what was requested before a change
        if data.error_code:
            self._partition_failed(key, followed, known_error(data.error_code))
            return
        diverging = data.diverging_epoch
        if diverging.epoch >= 0 or diverging.end_offset >= 0:
            end = OffsetAndEpoch(diverging.end_offset, diverging.epoch)
            self._truncate(key, followed, diverged(partition, end))
            return
        followed.high_watermark, followed.log_start = data.high_watermark, data.log_start_offset
        if data.records:
            self._append(key, followed, partition, data.records)
        else:
            self.replicated(key, followed, partition, partition.log_end_offset)

    def _append(self, key: Key, followed: Followed, partition: Partition, records: Buffer) -> None:
        hosted = followed.hosted
        self._node.fetched(hosted, len(records))
        self.times.took(len(records), is_in_sync=partition.local_id in hosted.state.isr)
        gaps_end = followed.high_watermark if followed.doubts_gaps else MAX_OFFSET
        effects = fetched_from_leader(partition, records, followed.leader_epoch, gaps_end)
        if not effects and is_torn(records):
            effects = ErrorCode.CORRUPT_MESSAGE  # the next answer would be the same at once
        if isinstance(effects, ErrorCode):
            self._log(
                "error",
                "fetched records are not valid",
                followed,
                error=effects.name,
                log_end=partition.log_end_offset,
            )
            if effects in _OF_RECORDS:
                self._delay(key)
            else:
                self._fail(key, followed)
            return
        self._unwritten += sum([isinstance(effect, AppendBatches) for effect in effects])
        self._node.follow_up(
            hosted, effects or self._replicated(key, followed, partition, partition.log_end_offset)
        )

    def wrote(self, took_ms: int) -> None:
        """Appends ended, of which some may be this fetcher's."""
        if self._unwritten:
            self.times.wrote(took_ms)

    def append_ended(self, key: Key, end_offset: int, error: ErrorCode | None) -> list[Effect]:
        """What follows from an append that ended; an error lets the partition wait."""
        self._unwritten -= 1
        followed = self.followed.get(key)
        if followed is None:
            return []
        if error is not None:
            self._delay(key)
            return []
        return self._replicated(key, followed, followed.partition, end_offset)

    def _replicated(
        self, key: Key, followed: Followed, partition: Partition, end_offset: int
    ) -> list[Effect]:
        self._note(key)
        marks = followed.high_watermark, followed.log_start
        return replicated_up_to(partition, end_offset, *marks, self._node.now_ms)

    def _truncate(self, key: Key, followed: Followed, effects: list[Effect]) -> None:
        partition = followed.partition
        truncation = next((one for one in effects if isinstance(one, TruncateLog)), None)
        if truncation is not None:
            followed.state = State.TRUNCATING
            self._log(
                "warning" if truncation.end_offset < partition.high_watermark else "info",
                "the log is truncated to its leader's",
                followed,
                log_end=partition.log_end_offset,
                truncated_to=truncation.end_offset,
                high_watermark=partition.high_watermark,
            )
        elif not effects:
            self._delay(key)  # nothing to truncate: it would be the same again
        self._note(key)
        self._node.follow_up(followed.hosted, effects)

    def _partition_failed(self, key: Key, followed: Followed, error: ErrorCode) -> None:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._ask_bounds(key, followed)
        elif error is ErrorCode.FENCED_LEADER_EPOCH:
            self._log("info", "the leader has a newer epoch", followed, epoch=followed.leader_epoch)
            self._fail(key, followed)  # newer metadata will come
        else:
            level = _TRANSIENT.get(error, "error")
            if level:
                self._log(level, "a partition could not be fetched", followed, error=error.name)
            self._delay(key)

    # -- a log that its leader does not have

    def _ask_bounds(self, key: Key, followed: Followed) -> None:
        """Ask where the leader's log ends and begins, and follow it from there."""
        epoch, bounds = followed.leader_epoch, list[int]()

        def ask(timestamp: int) -> None:
            part = ListOffsetsPartition(key[1], epoch, timestamp)
            topic = ListOffsetsTopic(followed.hosted.topic, [part])
            request = ListOffsetsRequest(self._node.identity()[0], 0, [topic])
            self._under_way += 1
            self._node.ask(self.leader_id, self.number, request, None, answered)

        def answered(answer: Message | None) -> None:
            self._under_way -= 1
            if self.followed.get(key) is not followed or followed.leader_epoch != epoch:
                return
            offset = _answered_offset(answer, followed.hosted)
            if offset is None:
                self._delay(key)
                return
            bounds.append(offset)
            if len(bounds) == 1:
                ask(EARLIEST_TIMESTAMP)
            else:
                self._reset(key, followed, *bounds)

        ask(LATEST_TIMESTAMP)

    def _reset(self, key: Key, followed: Followed, leader_end: int, leader_start: int) -> None:
        partition = followed.partition
        self._log(
            "warning",
            "the leader does not have this log's end",
            followed,
            log_end=partition.log_end_offset,
            leader_start=leader_start,
            leader_end=leader_end,
        )
        self._truncate(key, followed, out_of_range(partition, leader_start, leader_end))


def _answered_offset(answer: Message | None, hosted: Hosted) -> int | None:
    """The offset that an answer to ListOffsets has for a partition, if any."""
    if isinstance(answer, ListOffsetsResponse):
        for topic in answer.topics:
            for found in topic.partitions:
                if (topic.name, found.partition_index) == (hosted.topic, hosted.index):
                    return None if found.error_code or found.offset < 0 else found.offset
    return None
