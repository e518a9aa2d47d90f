"""Produce (0), v3-13: refused, for the metadata log is written by the quorum alone (KIP-630).

Authorization: WRITE on each topic. Sent by: producers. Answered at once. Errors, per partition:
TOPIC_AUTHORIZATION_FAILED; POLICY_VIOLATION for the metadata topic; NOT_LEADER_OR_FOLLOWER for any other that
exists, so that the producer asks for its leader again; UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID.
A request without an answer (acks=0) closes its connection, as an error does on a broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.current_leaders import CurrentLeaders
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

TOPIC_US, PARTITION_US = 3, 1  # microseconds, for the pace


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    request = call.message
    if request.acks == 0:
        raise Refusal(ErrorCode.POLICY_VIOLATION, "this node takes no records")
    writing = Permission(node.boundary, call, AclOperation.WRITE, AclResourceType.TOPIC)
    leaders = CurrentLeaders(node.view, node.settings, call)
    response, pace = ProduceResponse(), Pace()
    for topic in request.topic_data:
        error_of = _judge(node, writing, topic.name, topic.topic_id)
        if pace.spent(TOPIC_US + writing.cost_us):
            yield
        partitions = []
        for one in topic.partition_data:
            partitions.append(PartitionProduceResponse(one.index, error_of(one.index), -1))
            if pace.spent(PARTITION_US):
                yield
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, partitions))
    writing.end()
    yield from leaders.add_to_produce(response, pace)
    yield from node.boundary.answer_in_slices(call, response)


def _judge(
    node: MetadataTopicNode, writing: Permission, name: str, topic_id: bytes
) -> Callable[[int], ErrorCode]:
    """The error for each partition of a topic, by its index."""
    image = node.view.image
    if topic_id == ZERO_UUID:
        topic_id = image.topic_id(name)
    else:
        known = node.source.topic_name(topic_id)
        if known is None:
            return lambda _: ErrorCode.UNKNOWN_TOPIC_ID
        name = known
    if not writing.allows(name):
        return lambda _: ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if name == METADATA_TOPIC:
        return lambda _: ErrorCode.POLICY_VIOLATION

    def of_broker(index: int) -> ErrorCode:
        exists = node.view.image.partition(topic_id, index) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return of_broker
