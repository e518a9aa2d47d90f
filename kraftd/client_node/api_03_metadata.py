"""Metadata (3), v0-13: the brokers, and topics with the leaders, replicas and epochs of their partitions.

Authorization: DESCRIBE on each topic. Sent by: every client. Answered from committed metadata, in turns of
the loop where it is long; the node keeps answers for equal requests. A kraftd node is among the nodes only in
an answer with the metadata topic, or where no broker can be told. An answer with the metadata topic alone
tells no brokers: they know no such topic, and the client would ask one of them for the next leader.
Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION,
TOPIC_AUTHORIZATION_FAILED, INVALID_REQUEST (the whole request: a topic without name or id before v10 or v12);
per partition: LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND.
Differs from a broker: no topic is created because it is asked for; the metadata topic exists.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.client_node import metadata_topic
from kraftd.client_node.nodes import (
    MetadataPartition,
    broker_listener,
    controller_id,
    log_nodes,
    metadata_partition,
    told_nodes,
)
from kraftd.client_node.operations import allowed_operations
from kraftd.client_node.topics import TopicReader, name_error
from kraftd.controller.decision import Refusal
from kraftd.messages.metadata_response import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from kraftd.requests.answer_memo import SPREAD
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.messages.metadata_request import MetadataRequest
    from kraftd.requests.call import Call

PARTITIONS_A_TURN = 2_000  # about 3 ms
CLUSTER_OPERATIONS_VERSIONS = range(8, 11)


def handle(node: ClientNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_in_turns(call, describe(node, call))


def describe(node: ClientNode, call: Call) -> Generator[None, None, MetadataResponse]:
    """The answer, made some topics a turn."""
    request: MetadataRequest = call.message
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    listener = broker_listener(node.settings, call.listener)
    if wants_all:
        topics = yield from all_topics(node, call, listener)
    else:
        topics = yield from named_topics(node, call, listener)
    response = MetadataResponse(topics=topics, cluster_id=node.view.cluster_id)
    of_log = [one.name == METADATA_TOPIC and bool(one.partitions) for one in topics]
    if of_log and all(of_log) and not wants_all:
        told = log_nodes(node.view, node.settings, call.listener)
    else:
        told = told_nodes(node.view, node.settings, call.listener, any(of_log))
    response.brokers = [
        MetadataResponseBroker(node_id, endpoint.host, endpoint.port, rack)
        for node_id, (endpoint, rack) in told.nodes.items()
    ]
    response.controller_id = controller_id(told.controller_ids, call.connection_id % SPREAD)
    if request.include_cluster_authorized_operations and call.version in CLUSTER_OPERATIONS_VERSIONS:
        response.cluster_authorized_operations = allowed_operations(node, call, AclResourceType.CLUSTER)
    return response


def of_call(node: ClientNode, call: Call) -> MetadataPartition:
    return metadata_partition(node.view, node.settings, call.listener)


def all_topics(
    node: ClientNode, call: Call, listener: str
) -> Generator[None, None, list[MetadataResponseTopic]]:
    """Every topic that the client may describe; the metadata topic comes first."""
    reader = TopicReader(node.view.image, listener, call.version)
    found = []
    if may_see(node, call, METADATA_TOPIC):
        found.append(metadata_topic.describe(of_call(node, call), is_internal=True))
    left = PARTITIONS_A_TURN
    for topic_id in list(node.view.image.topics):
        topic = node.view.image.topic(topic_id)
        if topic is None or not may_see(node, call, topic.name):
            continue
        found.append(reader.topic(topic))
        left -= len(topic.partitions) + 1
        if left <= 0:
            yield
            left = PARTITIONS_A_TURN
            reader = TopicReader(node.view.image, listener, call.version)
    add_operations(node, call, found)
    return found


def named_topics(
    node: ClientNode, call: Call, listener: str
) -> Generator[None, None, list[MetadataResponseTopic]]:
    """The topics that the request names, by name or by id; raises Refusal(INVALID_REQUEST)."""
    reader = TopicReader(node.view.image, listener, call.version)
    found = []
    known: set[tuple[str | None, bytes]] = set()
    left = PARTITIONS_A_TURN
    for asked in call.message.topics:
        if asked.topic_id != ZERO_UUID and call.version < 12:
            raise Refusal(ErrorCode.INVALID_REQUEST)
        if asked.name is None and asked.topic_id == ZERO_UUID:
            raise Refusal(ErrorCode.INVALID_REQUEST)
        if (asked.name, asked.topic_id) in known:
            continue  # told once, however often it is asked for
        known.add((asked.name, asked.topic_id))
        found.append(named_topic(node, call, reader, asked.name, asked.topic_id))
        left -= len(found[-1].partitions) + 1
        if left <= 0:
            yield
            left = PARTITIONS_A_TURN
            reader = TopicReader(node.view.image, listener, call.version)
    add_operations(node, call, found)
    return found


def named_topic(
    node: ClientNode, call: Call, reader: TopicReader, name: str | None, topic_id: bytes
) -> MetadataResponseTopic:
    """One topic by its id, or by its name where it has none; or the error for it."""
    image = node.view.image
    if topic_id == METADATA_TOPIC_ID:
        name = METADATA_TOPIC
    elif topic_id != ZERO_UUID:
        topic = image.topic(topic_id)
        if topic is None or not may_describe(node, call, topic.name):
            # Its name is not to be learned by asking for ids.
            error = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return MetadataResponseTopic(error, None, topic_id)
        return reader.topic(topic)
    assert name is not None
    if not may_describe(node, call, name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    if name == METADATA_TOPIC:
        return metadata_topic.describe(of_call(node, call), is_internal=False)
    topic = image.topic(image.topic_names().get(name, ZERO_UUID))
    return MetadataResponseTopic(name_error(name), name) if topic is None else reader.topic(topic)


def may_describe(node: ClientNode, call: Call, name: str) -> bool:
    return node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)


def may_see(node: ClientNode, call: Call, name: str) -> bool:
    """The same of a topic that the client has not named: left out without a word in the audit."""
    return node.boundary.allows_quietly(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)


def add_operations(node: ClientNode, call: Call, topics: list[MetadataResponseTopic]) -> None:
    """What the client may do with each topic, if it asks for that (KIP-430)."""
    if call.message.include_topic_authorized_operations and call.version >= 8:
        for topic in topics:
            if not topic.error_code and topic.name is not None:
                topic.topic_authorized_operations = allowed_operations(
                    node, call, AclResourceType.TOPIC, topic.name
                )
