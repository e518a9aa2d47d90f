"""DeleteShareGroupOffsets, and share groups in DeleteGroups: share coordinators forget partitions (KIP-932).

What is to be forgotten is noted as deleting before they are asked, so a request after a failure asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from msgspec.structs import replace

from kraftd.acl import AclOperation
from kraftd.ground.refusal import Refusal
from kraftd.groups import topics as known
from kraftd.groups.call import Call
from kraftd.groups.errors import answer_to_failed_append
from kraftd.groups.gathered import Gathered
from kraftd.groups.group_shard import GroupShard
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.outcome import Outcome
from kraftd.groups.share.asking import Asking
from kraftd.groups.share.group import ShareGroup, share_group
from kraftd.groups.share.records import state_record
from kraftd.groups.share.state_partitions import StatePartitions, combined
from kraftd.groups.state import ShardState
from kraftd.messages.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
from kraftd.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kraftd.messages.delete_share_group_state_request import (
    DeleteShareGroupStateRequest,
    DeleteStateData,
    PartitionData,
)
from kraftd.messages.delete_share_group_state_response import DeleteShareGroupStateResponse
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode, error_of

Rows = list[DeleteShareGroupOffsetsResponseTopic]
NOTHING_THERE = "There is no offset information to delete."


def deletion(group_id: str, partitions: Mapping[bytes, Iterable[int]]) -> DeleteShareGroupStateRequest:
    """The request that has the share coordinators forget partitions."""
    topics = [
        DeleteStateData(topic_id, [PartitionData(index) for index in sorted(indexes)])
        for topic_id, indexes in partitions.items()
    ]
    return DeleteShareGroupStateRequest(group_id, topics)


def errors_by_topic(answer: DeleteShareGroupStateResponse) -> dict[bytes, ErrorCode]:
    """The first error of each topic, or NONE."""
    return {
        topic.topic_id: next(
            (error_of(row.error_code) for row in topic.partitions if row.error_code), ErrorCode.NONE
        )
        for topic in answer.results
    }


# DeleteShareGroupOffsets


class Begun(NamedTuple):
    """A deletion of offsets that is noted; rows: of topics without anything to delete."""

    rows: Rows
    partitions: dict[bytes, AbstractSet[int]]


class OffsetDeletion:
    """One DeleteShareGroupOffsets."""

    def __init__(
        self, shards: GroupShards, asking: Asking, call: Call, request: DeleteShareGroupOffsetsRequest
    ) -> None:
        self.shards = shards
        self.asking = asking
        self.call = call
        self.group_id = request.group_id
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        self.refused: Rows = []
        self.names: list[str] = []
        for topic in request.topics:
            if known.may(call, AclOperation.READ, topic.topic_name):
                self.names.append(topic.topic_name)
            else:
                row = DeleteShareGroupOffsetsResponseTopic(topic.topic_name)
                self.refused.append(replace(row, error_code=error, error_message=error.message))

    def run(self, now_ms: int) -> None:
        self.shards.write(
            self.call, self.group_id, now_ms, self._begin, refused_deletion, answer=self._written
        )

    def _begin(self, state: ShardState) -> Outcome:
        """Note the topics as deleting."""
        try:
            group = share_group(state.groups, self.group_id)
            group.check_delete()
        except Refusal as error:
            return Outcome(response=refused_deletion(error.code, error.message))
        if group.state is None:
            return Outcome(response=Begun([], {}))
        begun = Begun([], {})
        initialized, deleting = dict(group.state.initialized), set(group.state.deleting)
        for name in self.names:
            topic_id = state.metadata.topic_id(name)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            row = DeleteShareGroupOffsetsResponseTopic(name, error_code=unknown)
            if topic_id is None:
                begun.rows.append(replace(row, error_message=unknown.message))
            elif topic_id in initialized:
                begun.partitions[topic_id] = initialized.pop(topic_id).indexes
                deleting.add(topic_id)
            elif topic_id in deleting:
                count = state.metadata.partition_count(topic_id)
                begun.partitions.setdefault(topic_id, frozenset(range(count)))
            else:
                begun.rows.append(replace(row, error_message=NOTHING_THERE))
        changed = StatePartitions(group.state.initializing, initialized, frozenset(deleting))
        return Outcome([state_record(self.group_id, changed, state.metadata)], begun)

    def _written(self, begun: Begun | DeleteShareGroupOffsetsResponse) -> None:
        if isinstance(begun, DeleteShareGroupOffsetsResponse):
            self.shards.respond(self.call, begun)
        elif not begun.partitions:
            self._respond(begun.rows)
        else:
            request = deletion(self.group_id, begun.partitions)
            self.asking.ask(request, partial(self._forgotten, begun))

    def _forgotten(self, begun: Begun, answer: DeleteShareGroupStateResponse, now_ms: int) -> None:
        """The share coordinators have forgotten the partitions of some topics."""
        name_of = self.shards.topics.topic_name
        done: dict[bytes, str] = {}
        for topic_id, error in errors_by_topic(answer).items():
            name = name_of(topic_id) or ""
            if error is ErrorCode.NONE:
                done[topic_id] = name
            else:
                row = DeleteShareGroupOffsetsResponseTopic(name, topic_id, error, error.message)
                begun.rows.append(row)
        if not done:
            self._respond(begun.rows)
            return
        rows = [DeleteShareGroupOffsetsResponseTopic(name, topic_id) for topic_id, name in done.items()]

        def finish(response: DeleteShareGroupOffsetsResponse | None) -> None:
            if response is not None and response.error_code:
                self.shards.respond(self.call, response)
            else:
                self._respond([*rows, *begun.rows])

        operation = partial(self._complete, frozenset(done))
        self.shards.write(self.call, self.group_id, now_ms, operation, refused_deletion, answer=finish)

    def _complete(self, topic_ids: frozenset[bytes], state: ShardState) -> Outcome:
        """Note that the topics are forgotten."""
        group = state.groups.get(self.group_id)
        response = DeleteShareGroupOffsetsResponse()
        if not isinstance(group, ShareGroup) or group.state is None:
            return Outcome(response=response)
        changed = replace(group.state, deleting=group.state.deleting - topic_ids)
        return Outcome([state_record(self.group_id, changed, state.metadata)], response)

    def _respond(self, rows: Rows) -> None:
        response = DeleteShareGroupOffsetsResponse(responses=[*self.refused, *rows])
        self.shards.respond(self.call, response)


def refused_deletion(error: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=message or error.message)


# DeleteGroups

Errors = dict[str, ErrorCode]  # of groups that may not be deleted now, by id


def has_share_groups(state: ShardState, group_ids: Iterable[str]) -> bool:
    """Return whether a share group is among these."""
    return any(isinstance(state.groups.get(group_id), ShareGroup) for group_id in group_ids)


def forget_groups(
    asking: Asking, shard: GroupShard, group_ids: list[str], then: Callable[[Errors, int], None]
) -> None:
    """Have the share coordinators forget all of the share groups among these; then they may be deleted."""
    state = shard.state

    def refuse(error: ErrorCode) -> Errors:
        return dict.fromkeys(group_ids, answer_to_failed_append(error))

    def written(begun: Errors | tuple[Errors, list[DeleteShareGroupStateRequest]]) -> None:
        if isinstance(begun, dict):
            then(begun, state.now_ms)
            return
        errors, requests = begun
        if not requests:
            then(errors, state.now_ms)
            return
        gathered: Gathered[DeleteShareGroupStateRequest] = Gathered(
            len(requests), lambda _: then(errors, state.now_ms)
        )
        for number, request in enumerate(requests):
            asking.ask(request, partial(answered, errors, number, request, gathered))

    def answered(
        errors: Errors,
        number: int,
        request: DeleteShareGroupStateRequest,
        gathered: Gathered[DeleteShareGroupStateRequest],
        answer: DeleteShareGroupStateResponse,
        now_ms: int,
    ) -> None:
        state.now_ms = now_ms
        failed = [error for error in errors_by_topic(answer).values() if error is not ErrorCode.NONE]
        if failed:
            errors[request.group_id] = failed[-1]
        gathered.put(number, request)

    shard.write(partial(begin_deletions, state, group_ids), written, refuse)


def begin_deletions(state: ShardState, group_ids: Iterable[str]) -> Outcome:
    """Note that all of some share groups is to be forgotten; the response has errors and requests."""
    records, errors, requests = [], Errors(), []
    for group_id in group_ids:
        group = state.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            continue
        if group.members:
            errors[group_id] = ErrorCode.NON_EMPTY_GROUP
        elif group.state is not None:
            partitions = all_partitions(group.state, state)
            changed = StatePartitions(deleting=frozenset(partitions))
            records.append(state_record(group_id, changed, state.metadata))
            if partitions:
                requests.append(deletion(group_id, partitions))
    return Outcome(records, (errors, requests))


def all_partitions(noted: StatePartitions, state: ShardState) -> dict[bytes, AbstractSet[int]]:
    """All that the share coordinators may know of a group."""
    both = combined(noted.initialized, noted.initializing)
    found: dict[bytes, AbstractSet[int]] = {topic_id: one.indexes for topic_id, one in both.items()}
    for topic_id in noted.deleting:
        count = state.metadata.partition_count(topic_id)
        if count:
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(range(count))
    return found
