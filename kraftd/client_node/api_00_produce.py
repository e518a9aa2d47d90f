"""Produce (0), v3-13: refused, for the metadata log is written by the quorum alone (KIP-630).

Authorization: WRITE on each topic. Sent by: producers. Answered at once. Errors, per partition:
TOPIC_AUTHORIZATION_FAILED; POLICY_VIOLATION for the metadata topic; NOT_LEADER_OR_FOLLOWER for any other, so
that the producer asks for its leader again.
A request that wants no answer (acks=0) costs its sender the connection, as an error does on a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.client_node.current_leaders import CurrentLeaders
from kraftd.messages.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kraftd.requests.effects import CloseConnection
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.requests.call import Call


def handle(node: ClientNode, call: Call) -> None:
    request = call.message
    if request.acks == 0:
        node.outbox.emit(CloseConnection(call.connection_id, "this node takes no records"))
        return
    topics = []
    for topic in request.topic_data:
        name = topic.name or node.source.topic_name(topic.topic_id) or ""
        error = ErrorCode.POLICY_VIOLATION if name == METADATA_TOPIC else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not node.boundary.allows(call, AclOperation.WRITE, AclResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = [PartitionProduceResponse(one.index, error, -1) for one in topic.partition_data]
        topics.append(TopicProduceResponse(topic.name, topic.topic_id, partitions))
    response = ProduceResponse(topics)
    CurrentLeaders(node.view, node.settings, call).add_to_produce(response)
    node.boundary.answer(call, response)
