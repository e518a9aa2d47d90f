"""OffsetFetch in the shard of its group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kraftd.ground.refusal import Refusal
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.offsets.store import TopicPartition
from kraftd.groups.state import ShardState
from kraftd.messages.offset_fetch_request import OffsetFetchRequestGroup
from kraftd.messages.offset_fetch_response import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kraftd.wire.error_code import ErrorCode

NO_OFFSET = -1
ZERO_UUID = bytes(16)


def fetch_offsets(
    state: ShardState, request: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """The offsets of a group, for named partitions or, without topics, all.

    A reader sees what is below the high watermark. With require_stable it sees the latest, once that is
    committed, and UNSTABLE_OFFSET_COMMIT where a transaction is open. Raises Refusal if the group refuses.
    """
    response = OffsetFetchResponseGroup(request.group_id)
    try:
        find = state.group if require_stable else state.committed_group
        group = find(request.group_id)
        group.check_fetch(request.member_id, request.member_epoch, is_latest=require_stable)
    except Refusal as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise  # a group that is missing has no offsets
    if request.topics is None:
        response.topics = all_topics(state, request.group_id, require_stable)
        return response
    offsets = state.offsets.of_group(request.group_id)
    look_up: Callable[[TopicPartition], Committed | None]
    look_up = offsets.get if require_stable else lambda place: state.timeline.committed_value(offsets, place)
    for topic in request.topics:
        rows: list[OffsetFetchResponsePartitions] = []
        response.topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, rows))
        for index in topic.partition_indexes:
            place = (topic.name, index)
            if require_stable and state.offsets.is_open(request.group_id, place):
                rows.append(unstable(index))
            else:
                rows.append(row_of(index, look_up(place), topic.topic_id))
    return response


def all_topics(state: ShardState, group_id: str, require_stable: bool) -> list[OffsetFetchResponseTopics]:
    """All offsets of a group by topic."""
    offsets: Iterable[tuple[TopicPartition, Committed]]
    offsets = (
        state.offsets.of_group(group_id).items() if require_stable else state.offsets.committed(group_id)
    )
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, index), committed in offsets:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = OffsetFetchResponseTopics(name, ZERO_UUID, [])
        if require_stable and state.offsets.is_open(group_id, (name, index)):
            topic.partitions.append(unstable(index))
        else:
            topic.partitions.append(row_of(index, committed, ZERO_UUID))
    return list(topics.values())


def row_of(index: int, committed: Committed | None, topic_id: bytes) -> OffsetFetchResponsePartitions:
    """A partition's offset, unless it belongs to another topic of the same name."""
    if committed is None or ZERO_UUID != committed.topic_id != topic_id != ZERO_UUID:
        return OffsetFetchResponsePartitions(index, NO_OFFSET)
    return OffsetFetchResponsePartitions(index, committed.offset, committed.leader_epoch, committed.metadata)


def unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, NO_OFFSET, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
