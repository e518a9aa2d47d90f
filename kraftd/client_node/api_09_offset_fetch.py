"""OffsetFetch (9), v1-10: the metadata topic has no committed offsets; the consumer then resets its position.

Authorization: DESCRIBE on the group, then on the topic. Sent by: consumers of the metadata log alone, whose
coordinator is this node. Answered at once. Errors: GROUP_AUTHORIZATION_FAILED, per group;
TOPIC_AUTHORIZATION_FAILED, per partition; NOT_COORDINATOR if other topics or all are requested, whose offsets
a broker keeps. Differs from Apache Kafka: its controllers do not serve this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.client_node.not_coordinator import handle as refuse
from kraftd.client_node.not_coordinator import is_of_log, note_groups_of_brokers
from kraftd.controller.decision import Refusal
from kraftd.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kraftd.types import METADATA_TOPIC, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.messages.offset_fetch_request import OffsetFetchRequestGroup
    from kraftd.requests.call import Call

FIRST_VERSION_OF_MANY = 8
NONE = -1  # the offset of a partition without one


def handle(node: ClientNode, call: Call) -> None:
    request = call.message
    if call.version >= FIRST_VERSION_OF_MANY:
        serves = all(_asks_for_log(one.topics) for one in request.groups)
        if not serves:
            note_groups_of_brokers(node, call)
        groups = [
            of_group(node, call, one)
            if serves
            else OffsetFetchResponseGroup(one.group_id, [], ErrorCode.NOT_COORDINATOR)
            for one in request.groups
        ]
        node.boundary.answer(call, OffsetFetchResponse(groups=groups))
        return
    if not _asks_for_log(request.topics):
        refuse(node, call)
    if not may_describe(node, call, request.group_id):
        raise Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = topic_error(node, call)
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(index, NONE, error_code=error)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics
    ]
    node.boundary.answer(call, OffsetFetchResponse(topics=topics))


def _asks_for_log(topics: Sequence[Any] | None) -> bool:
    """Return whether the metadata topic is the only one; None stands for all topics."""
    return bool(topics) and all(
        is_of_log(one.name, getattr(one, "topic_id", ZERO_UUID)) for one in topics or ()
    )


def of_group(node: ClientNode, call: Call, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    if not may_describe(node, call, group.group_id):
        return OffsetFetchResponseGroup(group.group_id, [], ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = topic_error(node, call)
    topics = [
        OffsetFetchResponseTopics(
            topic.name,
            topic.topic_id,
            [
                OffsetFetchResponsePartitions(index, NONE, error_code=error)
                for index in topic.partition_indexes
            ],
        )
        for topic in group.topics or ()
    ]
    return OffsetFetchResponseGroup(group.group_id, topics)


def may_describe(node: ClientNode, call: Call, group: str) -> bool:
    return node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.GROUP, group)


def topic_error(node: ClientNode, call: Call) -> int:
    if node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, METADATA_TOPIC):
        return 0
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED
