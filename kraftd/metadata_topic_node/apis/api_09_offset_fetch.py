"""OffsetFetch (9), v1-10: the metadata topic has no committed offsets; the consumer then resets its position.

Authorization: DESCRIBE on the group, then on the topic. Sent by: consumers of the metadata log alone, whose
coordinator is this node. Answered at once. Errors: GROUP_AUTHORIZATION_FAILED, per group;
TOPIC_AUTHORIZATION_FAILED, per partition; NOT_COORDINATOR if other topics or all are requested, whose offsets
a broker keeps. Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.ground.pace import ROW_US, Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kraftd.metadata_topic_node.not_coordinator import asks_for_log, note_groups_of_brokers
from kraftd.metadata_topic_node.not_coordinator import handle as refuse
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

FIRST_VERSION_OF_MANY = 8
NONE = -1  # the offset of a partition without one


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    request, pace = call.message, Pace()
    if call.version >= FIRST_VERSION_OF_MANY:
        yield from node.boundary.answer_in_slices(call, (yield from of_groups(node, call, pace)))
        return
    if not (yield from asks_for_log(request.topics, pace)):
        yield from refuse(node, call)
    if not may_describe(node, call, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = topic_error(node, call)
    response = OffsetFetchResponse()
    for topic in request.topics:
        partitions = []
        for index in topic.partition_indexes:
            partitions.append(OffsetFetchResponsePartition(index, NONE, error_code=error))
            if pace.spent(ROW_US):
                yield
        response.topics.append(OffsetFetchResponseTopic(topic.name, partitions))
        if pace.spent(ROW_US):
            yield
    yield from node.boundary.answer_in_slices(call, response)


def of_groups(node: MetadataTopicNode, call: Call, pace: Pace) -> Slices[OffsetFetchResponse]:
    """The answer for many groups: none of them has offsets here."""
    serves = True
    for one in call.message.groups:
        serves = serves and (yield from asks_for_log(one.topics, pace))
        if pace.spent(1):
            yield
    if not serves:
        yield from note_groups_of_brokers(node, call)
    response = OffsetFetchResponse()
    describing = Permission(node.boundary, call, AclOperation.DESCRIBE, AclResourceType.GROUP)
    topic_code: int | None = None
    for one in call.message.groups:
        if not serves:
            answered = OffsetFetchResponseGroup(one.group_id, [], ErrorCode.NOT_COORDINATOR)
        elif not describing.allows(one.group_id):
            answered = OffsetFetchResponseGroup(one.group_id, [], ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            if topic_code is None:
                topic_code = topic_error(node, call)
            answered = yield from of_group(one, topic_code, pace)
        response.groups.append(answered)
        if pace.spent(ROW_US + describing.cost_us):
            yield
    describing.end()
    return response


def of_group(group: OffsetFetchRequestGroup, error: int, pace: Pace) -> Slices[OffsetFetchResponseGroup]:
    """The answer for one group."""
    answered = OffsetFetchResponseGroup(group.group_id, [])
    for topic in group.topics or ():
        partitions = []
        for index in topic.partition_indexes:
            partitions.append(OffsetFetchResponsePartitions(index, NONE, error_code=error))
            if pace.spent(ROW_US):
                yield
        answered.topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
        if pace.spent(ROW_US):
            yield
    return answered


def may_describe(node: MetadataTopicNode, call: Call, group: str) -> bool:
    return node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.GROUP, group)


def topic_error(node: MetadataTopicNode, call: Call) -> int:
    if node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, METADATA_TOPIC):
        return 0
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED
