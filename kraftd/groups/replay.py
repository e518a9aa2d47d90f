"""What each record of ``__consumer_offsets`` does to a shard's state, be it loaded or just written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.groups.classic.group import ClassicGroup, group_of
from kraftd.groups.consumer.replay import CONSUMER_REPLAYED
from kraftd.groups.group import GroupType
from kraftd.groups.offsets.committed import Committed, committed_of
from kraftd.groups.other_group import OtherGroup
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.replay import SHARE_REPLAYED
from kraftd.groups.state import ShardState
from kraftd.messages.group_metadata_key import GroupMetadataKey
from kraftd.messages.group_metadata_value import GroupMetadataValue
from kraftd.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kraftd.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kraftd.wire.message import Message

Replay = Callable[[ShardState, Any, Any, int, int], None]


def replay(state: ShardState, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
    """Apply a record at an offset, of a transaction if its producer id is not -1.

    A record of a kind that this coordinator does not serve yet changes nothing.
    """
    function = REPLAYED.get(type(record.key))
    if function is not None:
        state.timeline.offset = offset
        said = record.value if record.content is None else record.content
        function(state, record.key, said, offset, producer_id)


def replay_offset(
    state: ShardState, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
) -> None:
    committed = None if value is None else committed_of(value, offset)
    put_offset(state, key.group, (key.topic, key.partition), committed, producer_id)


def replay_legacy_offset(
    state: ShardState,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    committed = None
    if value is not None:
        committed = Committed(value.offset, -1, value.metadata, value.commit_timestamp, -1, bytes(16), offset)
    put_offset(state, key.group, (key.topic, key.partition), committed, producer_id)


def put_offset(
    state: ShardState, group_id: str, place: tuple[str, int], committed: Committed | None, producer_id: int
) -> None:
    """Set or remove an offset; the first one of a simple consumer makes its group."""
    if committed is None:
        state.offsets.remove(group_id, place)
        return
    if group_id not in state.groups:
        state.new_classic_group(group_id)
    state.offsets.put(group_id, place, committed, producer_id)


def replay_group(
    state: ShardState, key: GroupMetadataKey, value: GroupMetadataValue | None, offset: int, producer_id: int
) -> None:
    if value is None:
        old = state.timeline.remove(state.groups, key.group)
    else:
        old = state.timeline.put(state.groups, key.group, group_of(key.group, value, state.memory))
    if isinstance(old, ClassicGroup):
        old.release()


def replay_other(kind: GroupType) -> Replay:
    """Replay the metadata of a group of a protocol that is not served here."""

    def function(state: ShardState, key: Any, value: Message | None, offset: int, producer_id: int) -> None:
        if value is None:
            state.timeline.remove(state.groups, key.group_id)
        else:
            state.timeline.put(state.groups, key.group_id, OtherGroup(key.group_id, kind))

    return function


REPLAYED: dict[type[Message], Replay] = {
    OffsetCommitKey: replay_offset,
    LegacyOffsetCommitKey: replay_legacy_offset,
    GroupMetadataKey: replay_group,
    **CONSUMER_REPLAYED,
    **SHARE_REPLAYED,
    StreamsGroupMetadataKey: replay_other(GroupType.STREAMS),
}
