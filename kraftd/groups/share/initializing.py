"""Share coordinators begin the partitions that a group has not read before (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.outcome import Outcome
from kraftd.groups.share.asking import Asking
from kraftd.groups.share.group import ShareGroup
from kraftd.groups.share.records import state_record
from kraftd.groups.share.state_partitions import initialized, not_initialized
from kraftd.groups.state import ShardState
from kraftd.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from kraftd.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse

NO_OFFSET = -1  # the leader of a partition decides where to begin

Offsets = Mapping[bytes, Mapping[int, int]]  # where to begin, by topic id and partition


def initialization(group_id: str, epoch: int, offsets: Offsets) -> InitializeShareGroupStateRequest:
    """The request that begins partitions in an epoch of the group."""
    return InitializeShareGroupStateRequest(
        group_id,
        [
            InitializeStateData(
                topic_id, [PartitionData(index, epoch, offset) for index, offset in rows.items()]
            )
            for topic_id, rows in offsets.items()
        ],
    )


def begin(shards: GroupShards, asking: Asking, group: ShareGroup, epoch: int, partitions: Partitions) -> None:
    """Have partitions begun, and note the outcome in the group.

    One that is asked for already is left out: of two requests on their way, the later would undo what members
    have acknowledged since the earlier.
    """
    offsets: dict[bytes, dict[int, int]] = {}
    for topic_id, indexes in partitions.items():
        new = [index for index in sorted(indexes) if (topic_id, index) not in group.asked]
        if new:
            offsets[topic_id] = dict.fromkeys(new, NO_OFFSET)
    if not offsets:
        return
    places = {(topic_id, index) for topic_id, rows in offsets.items() for index in rows}
    group.asked |= places

    def answered(answer: InitializeShareGroupStateResponse, now_ms: int) -> None:
        group.asked -= places
        note_answer(shards, group.group_id, answer, now_ms)

    asking.ask(initialization(group.group_id, epoch, offsets), answered)


def note_answer(
    shards: GroupShards, group_id: str, answer: InitializeShareGroupStateResponse, now_ms: int
) -> None:
    """Note the partitions as initialized; if one was refused, none of the request is."""
    results = [row for topic in answer.results for row in topic.partitions]
    partitions = {
        topic.topic_id: frozenset(row.partition for row in topic.partitions) for topic in answer.results
    }
    has_failed = any(row.error_code for row in results)
    try:
        shard = shards.shard_of(group_id, now_ms)
    except Refusal:
        return  # another broker coordinates the group now, and will ask again
    shard.write(partial(note, shard.state, group_id, partitions, has_failed))


def note(state: ShardState, group_id: str, partitions: Partitions, has_failed: bool) -> Outcome:
    group = state.groups.get(group_id)
    if not isinstance(group, ShareGroup) or not partitions:
        return Outcome()
    known = group.known()
    if not has_failed:
        return Outcome(
            [state_record(group_id, initialized(known, state.metadata, partitions), state.metadata)]
        )
    if not known.initializing:
        return Outcome()
    return Outcome([state_record(group_id, not_initialized(known, partitions), state.metadata)])
