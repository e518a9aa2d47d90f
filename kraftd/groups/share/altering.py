"""AlterShareGroupOffsets: a group without members begins partitions anew, at given offsets (KIP-932)."""

from __future__ import annotations

from functools import partial

from kraftd.acl import AclOperation
from kraftd.ground.refusal import Refusal
from kraftd.groups import topics as known
from kraftd.groups.call import Call
from kraftd.groups.group_shards import GroupShards
from kraftd.groups.outcome import Outcome
from kraftd.groups.share.asking import Asking
from kraftd.groups.share.group import found_group
from kraftd.groups.share.initializing import initialization, note_answer
from kraftd.groups.share.records import state_record
from kraftd.groups.share.state_partitions import Named, initializing
from kraftd.groups.state import ShardState
from kraftd.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from kraftd.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kraftd.messages.initialize_share_group_state_response import InitializeShareGroupStateResponse
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode, error_of

Topics = list[AlterShareGroupOffsetsResponseTopic]


class Alteration:
    """One request."""

    def __init__(
        self, shards: GroupShards, asking: Asking, call: Call, request: AlterShareGroupOffsetsRequest
    ) -> None:
        self.shards = shards
        self.asking = asking
        self.call = call
        self.group_id = request.group_id
        self.epoch = 0
        self.offsets: dict[bytes, dict[int, int]] = {}  # of the partitions that exist
        self.refused: Topics = []
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = []
        for topic in {topic.topic_name: topic for topic in reversed(request.topics)}.values():
            self._sort(topic)
        self.refused.reverse()
        self.topics.reverse()

    def _sort(self, topic: AlterShareGroupOffsetsRequestTopic) -> None:
        """Refuse the partitions of a topic that may not be read, or that does not exist."""
        metadata, name = self.shards.topics, topic.topic_name
        topic_id = metadata.topic_id(name)
        if not known.may(self.call, AclOperation.READ, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic_id is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            self.topics.append(topic)
            return
        if topic.partitions:
            self.refused.append(refused_topic(topic, topic_id, error))

    def run(self, now_ms: int) -> None:
        self.shards.write(
            self.call, self.group_id, now_ms, self._write, refused_alteration, answer=self._written
        )

    def _write(self, state: ShardState) -> Outcome:
        """Note the partitions as initializing."""
        try:
            group = found_group(state.groups, state.timeline, self.group_id, may_make=True)
            group.check_delete()
        except Refusal as error:
            return Outcome(response=refused_alteration(error.code, error.message))
        self.epoch = group.facts.epoch
        metadata = state.metadata
        begun, rows = {}, []
        for topic in self.topics:
            topic_id = metadata.topic_id(topic.topic_name)
            assert topic_id is not None
            count = metadata.partition_count(topic_id)
            valid = {
                one.partition_index: one.start_offset
                for one in topic.partitions
                if one.partition_index < count
            }
            if valid:
                self.offsets[topic_id] = valid
            begun[topic_id] = Named(topic.topic_name, frozenset(valid))
            results = [_result(one.partition_index, one.partition_index < count) for one in topic.partitions]
            rows.append(AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, results))
        changed = initializing(group.known(), begun)
        records = [state_record(self.group_id, changed, metadata)] if begun else []
        return Outcome(records, AlterShareGroupOffsetsResponse(responses=rows))

    def _written(self, response: AlterShareGroupOffsetsResponse) -> None:
        """The share coordinators are asked to begin the partitions anew."""
        if response.error_code or not self.offsets:
            self._respond(response)
            return
        if any(index < 0 for offsets in self.offsets.values() for index in offsets):
            # As from Kafka, which finds it on its way to the share coordinators.
            self._respond(refused_alteration(ErrorCode.UNKNOWN_SERVER_ERROR, "A partition is negative."))
            return
        request = initialization(self.group_id, self.epoch, self.offsets)
        self.asking.ask(request, partial(self._begun, response))

    def _begun(
        self, response: AlterShareGroupOffsetsResponse, answer: InitializeShareGroupStateResponse, now_ms: int
    ) -> None:
        refused = {
            (topic.topic_id, row.partition): row
            for topic in answer.results
            for row in topic.partitions
            if row.error_code
        }
        if not refused:
            note_answer(self.shards, self.group_id, answer, now_ms)
        for topic in response.responses:
            for result in topic.partitions:
                row = refused.get((topic.topic_id, result.partition_index))
                if row is not None and not result.error_code:
                    result.error_code, result.error_message = row.error_code, row.error_message
        self._respond(response)

    def _respond(self, response: AlterShareGroupOffsetsResponse) -> None:
        if not response.error_code:
            response.responses = [*self.refused, *response.responses]
        self.shards.respond(self.call, response)


def refused_alteration(error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=message or error.message)


def refused_topic(
    topic: AlterShareGroupOffsetsRequestTopic, topic_id: bytes | None, error: ErrorCode
) -> AlterShareGroupOffsetsResponseTopic:
    """The error for every partition of a topic."""
    rows = [
        AlterShareGroupOffsetsResponsePartition(one.partition_index, error, error.message)
        for one in topic.partitions
    ]
    return AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id or ZERO_UUID, rows)


def _result(index: int, exists: bool) -> AlterShareGroupOffsetsResponsePartition:
    if exists:
        return AlterShareGroupOffsetsResponsePartition(index)
    error = error_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return AlterShareGroupOffsetsResponsePartition(index, error, error.message)
