"""Commits of a member that differ from its last one in their offsets and leader epochs alone.

A consumer commits the same partitions again and again. Such a request is not decoded. What its records have
in common with those of the one before is kept, and the answer is the kept one. The group, the member and the
topics are looked up for every commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any

from kraftd.ground.refusal import Refusal
from kraftd.groups.answers import refused_commit
from kraftd.groups.batches import BATCH_BYTES, size_of
from kraftd.groups.effects import Respond, RespondAgain
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.offsets.commit import NO_TIME, hear
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.offsets.store import TopicPartition
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import OFFSET_COMMIT_VERSION, KeyAndValue, encode_record, offset_record
from kraftd.groups.repeating import Repetition, repetition_of_commit
from kraftd.groups.shard import ShardStatus
from kraftd.messages.offset_commit_request import OffsetCommitRequest, OffsetCommitRequestPartition
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.named_tuple import NamedTuple
from kraftd.types import ZERO_UUID
from kraftd.wire.codec import encode_bytes
from kraftd.wire.error_code import ErrorCode

EPOCH_VERSION = 6  # of OffsetCommit: a leader epoch follows the offset
NUMBERS_BYTES = 12  # an offset and a leader epoch
MOST_PARTITIONS = 32

_AGAIN = object()  # in the place of a response: the answer is the kept one
_SAME = Outcome(response=_AGAIN)


class _Row(NamedTuple):
    """What the records of a partition have in common; `pack` takes offset, leader epoch and time."""

    place: TopicPartition
    metadata: str
    topic_id: bytes
    key: bytes
    pack: Callable[..., bytes]
    head: bytes
    text: bytes
    tail: bytes


class RepeatedCommit:
    """A way to take an OffsetCommit again with other offsets; the request is of topics that are known."""

    __slots__ = (
        "_is_heard",
        "_levels",
        "_metadata_version",
        "_needed",
        "_partition",
        "_request",
        "_rows",
        "_shard",
        "_shards",
        "_version",
    )

    def __init__(self, shards: GroupShards, request: OffsetCommitRequest, version: int) -> None:
        self._shards = shards
        self._request = request
        self._version = version
        self._levels = shards.partition_count, shards.group_version
        self._partition = shards.partition_for(request.group_id)
        self._rows: list[_Row] = []  # made with the second commit: many members send no second
        self._needed = 0
        self._metadata_version: int | None = None  # in which the topics were known last
        self._shard: GroupShard | None = None  # in which the member was looked at in full
        self._is_heard: Repetition | None = None  # whether it is as it was then, and so may commit

    def __repr__(self) -> str:
        return f"<RepeatedCommit of {self._request.group_id}>"

    def places(self, frame: bytes) -> list[int]:
        """Where offsets and leader epochs are in the frame of the request, from its end; none if it has bytes
        of another meaning.
        """
        if not frame.endswith(encode_bytes(self._request, self._version)):
            return []
        return places_of_numbers(self._request, self._version)

    def take(self, token: Any, offsets: Sequence[int], leader_epochs: Sequence[int], now_ms: int) -> bool:
        """Commit these offsets, in the order of the request; the token is answered once that is final.

        Returns False, and does nothing, if the commit may be refused, or is to be looked at in full.
        """
        shards = self._shards
        shard = shards.shards.get(self._partition)
        if shard is None or shard.status is not ShardStatus.ACTIVE:
            return False
        rows, batches, state = self._rows or self._prepare(), shard.batches, shard.state
        if (shards.partition_count, shards.group_version) != self._levels:
            return False
        if self._needed + BATCH_BYTES > batches.max_bytes:
            return False
        if shards.topics.hashes_version() != self._metadata_version and not self._knows_topics():
            return False
        state.now_ms = now_ms
        is_heard = self._is_heard if shard is self._shard else None
        if (is_heard is None or not is_heard(now_ms)) and not self._may_commit(shard):
            return False
        timeline, committed = state.timeline, state.offsets.begin_group(self._request.group_id)
        record_offset = batches.next_offset
        encoded: list[KeyAndValue] = []
        for row, offset, leader_epoch in zip(rows, offsets, leader_epochs, strict=True):
            place, metadata, topic_id, key, pack, head, text, tail = row
            encoded.append((key, pack(head, offset, leader_epoch, text, now_ms, tail)))
            timeline.offset = record_offset
            noted = Committed(offset, leader_epoch, metadata, now_ms, NO_TIME, topic_id, record_offset)
            timeline.put(committed, place, noted)
            record_offset += 1
        shard.add_encoded(encoded, self._needed)
        state.counts.offset_commits += len(encoded)
        shard.answer_later(_SAME, partial(self._answer, token), self._refuse)
        return True

    def _may_commit(self, shard: GroupShard) -> bool:
        """Return whether the group takes a commit of the member, whose session begins anew then."""
        request, state = self._request, shard.state
        group_id, member_id, instance_id = request.group_id, request.member_id, request.group_instance_id
        generation, group = request.generation_id_or_member_epoch, state.groups.get(group_id)
        if group is None:
            return False
        try:
            check = group.check_commit(member_id, instance_id, generation, False, self._version)
        except Refusal:
            return False
        if check is not None:
            return False
        hear(state, group, member_id)
        self._shard, self._is_heard = shard, repetition_of_commit(state, group_id, member_id, instance_id)
        return True

    def _knows_topics(self) -> bool:
        topics = self._shards.topics
        are_known = all(
            topics.topic_id(topic.name) == topic.topic_id
            and all(topics.has_partition(topic.name, row.partition_index) for row in topic.partitions)
            for topic in self._request.topics
        )
        if are_known:
            self._metadata_version = topics.hashes_version()
        return are_known

    def _prepare(self) -> list[_Row]:
        group_id = self._request.group_id
        for topic in self._request.topics:
            for asked in topic.partitions:
                row, size_bytes = _row(group_id, topic.name, topic.topic_id, asked)
                self._rows.append(row)
                self._needed += size_bytes
        return self._rows

    def _answer(self, token: Any, response: Any) -> None:
        effect = RespondAgain(token) if response is _AGAIN else Respond(token, response)
        self._shards.effects.append(effect)

    def _refuse(self, error: ErrorCode) -> Any:
        return refused_commit(self._request, answer_to_failed_append(error))


def may_repeat(request: OffsetCommitRequest, version: int, record_count: int) -> bool:
    """Return whether a member may send a request again that has led to these records, with other offsets."""
    return (
        version >= EPOCH_VERSION
        and request.member_id != ""
        and request.generation_id_or_member_epoch >= 0
        and request.retention_time_ms == NO_TIME
        and sum(len(topic.partitions) for topic in request.topics) == record_count <= MOST_PARTITIONS
    )


def places_of_numbers(request: OffsetCommitRequest, version: int) -> list[int]:
    """Where the offsets and leader epochs of a request are in its bytes, from their end: where two requests
    differ that differ in these alone.
    """
    low, high = (encode_bytes(_with_numbers(request, number), version) for number in (0, -1))
    size, places, at = len(low), [], 0
    while at < size:
        if low[at] == high[at]:
            at += 1
        else:
            places.append(size - at)
            at += NUMBERS_BYTES
    return places


def _with_numbers(request: OffsetCommitRequest, number: int) -> OffsetCommitRequest:
    topics = [
        type(topic)(
            topic.name,
            topic.topic_id,
            [
                OffsetCommitRequestPartition(
                    row.partition_index, number, number, committed_metadata=row.committed_metadata
                )
                for row in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetCommitRequest(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        topics,
    )


def _row(group_id: str, topic: str, topic_id: bytes, asked: OffsetCommitRequestPartition) -> tuple[_Row, int]:
    """What the records of a partition have in common, and the most that one takes in a batch, in bytes."""
    metadata = asked.committed_metadata or ""
    value = OffsetCommitValue(metadata=metadata, topic_id=topic_id or ZERO_UUID)
    key, whole = encode_record(offset_record(group_id, topic, asked.partition_index, value))
    assert whole is not None
    # Version, offset, leader epoch, metadata, time, topic id: only the last two follow the metadata's bytes.
    text = encode_bytes(OffsetCommitValue(metadata=metadata), OFFSET_COMMIT_VERSION)
    length = len(text) - NUMBERS_BYTES - 8 - 1  # without the time and the count of tagged fields
    at = 2 + NUMBERS_BYTES + length
    layout = Struct(f">2sqi{length}sq{len(whole) - at - 8}s")
    row = _Row(
        (topic, asked.partition_index),
        metadata,
        topic_id or ZERO_UUID,
        key,
        layout.pack,
        whole[:2],
        whole[2 + NUMBERS_BYTES : at],
        whole[at + 8 :],
    )
    return row, size_of((key, whole))
