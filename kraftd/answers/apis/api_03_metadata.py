"""Metadata (3), v0-13: the brokers, and topics with the leaders, replicas and epochs of their partitions.

Authorization: DESCRIBE on each topic. Sent by: every client. Answered from committed metadata, in several
event loop callbacks if it is long; the node keeps answers for equal requests. The nodes include kraftd
nodes only in an answer with the metadata topic, or if no broker can be named. An answer with only the
metadata topic names no brokers, nor does any to a client that declares itself (`metadata_topic`): the client
would ask one of them for the next leader, and they do not know this topic. Errors, per topic:
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED,
INVALID_REQUEST (the whole request: a topic without name or id before v10 or v12); per partition:
LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND. A broker has a missing topic created, where
auto.create.topics.enable and the client's rights allow it. Differs from Apache Kafka: the metadata topic
exists; a broker names itself where no broker is unfenced.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers import metadata_topic
from kraftd.answers.nodes import (
    MetadataPartition,
    broker_listener,
    controller_id,
    itself,
    log_nodes,
    metadata_partition,
    reported_nodes,
)
from kraftd.answers.operations import allowed_operations, decision_us, operations_us
from kraftd.answers.topics import INTERNAL_TOPICS, TopicReader, name_error
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace
from kraftd.ground.refusal import Refusal
from kraftd.messages.metadata_response import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from kraftd.metadata.state import TopicState
from kraftd.named_tuple import NamedTuple
from kraftd.requests.answer_memo import CONNECTION_CLASSES
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
    from kraftd.requests.call import Call

PARTITIONS_PER_CALLBACK = 2_000  # of one topic
CLUSTER_OPERATIONS_VERSIONS = range(8, 11)


def handle(node: AnsweringNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


class Described(NamedTuple):
    """The topics of an answer, and how many of them are the metadata topic."""

    topics: list[MetadataResponseTopic]
    of_log: int


def describe(node: AnsweringNode, call: Call) -> Generator[None, None, MetadataResponse]:
    """The answer, made some partitions per event loop callback."""
    request: MetadataRequest = call.message
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    topics = DescribedTopics(node, call)
    found, of_log = yield from (topics.all() if wants_all else topics.named())
    response = MetadataResponse(topics=found, cluster_id=node.view.cluster_id)
    if node.settings.serves_metadata_topic and metadata_topic.declares_itself(call):
        reported = log_nodes(node.view, node.settings, call.listener)
    elif of_log and of_log == len(found) and not wants_all:
        node.note_log_reader(call)
        call.place = None  # not kept: the next such request must be noted as well
        reported = log_nodes(node.view, node.settings, call.listener)
    else:
        reported = reported_nodes(node.view, node.settings, call.listener, of_log > 0)
    # librdkafka forgets all brokers, even its bootstrap servers, when an answer with topics names none.
    nodes = reported.nodes or itself(node.view, broker_listener(node.settings, call.listener))
    response.brokers = [
        MetadataResponseBroker(node_id, endpoint.host, endpoint.port, rack)
        for node_id, (endpoint, rack) in nodes.items()
    ]
    response.controller_id = controller_id(reported.controller_ids, call.connection_id % CONNECTION_CLASSES)
    if request.include_cluster_authorized_operations and call.version in CLUSTER_OPERATIONS_VERSIONS:
        response.cluster_authorized_operations = allowed_operations(node, call, AclResourceType.CLUSTER)
    return response


def of_call(node: AnsweringNode, call: Call) -> MetadataPartition:
    return metadata_partition(node.view, node.settings, call.listener)


class DescribedTopics:
    """Describes the topics of one answer, with a pause after each callback's share."""

    def __init__(self, node: AnsweringNode, call: Call) -> None:
        self._node = node
        self._call = call
        self._listener = broker_listener(node.settings, call.listener)
        self._pace = Pace()
        self._with_operations = call.message.include_topic_authorized_operations and call.version >= 8
        self._name_us = decision_us(node)
        self._describing = Permission(node.boundary, call, AclOperation.DESCRIBE, AclResourceType.TOPIC)
        self._topic_us = self._name_us
        if self._with_operations:
            self._topic_us += operations_us(node, AclResourceType.TOPIC)
        self._read_image()

    def _read_image(self) -> None:
        """Use the current image from now on."""
        self._reader = TopicReader(self._node.view.image, self._listener, self._call.version)

    def all(self) -> Generator[None, None, Described]:
        """Every topic that the client may describe; the metadata topic comes first."""
        node, call = self._node, self._call
        found = []
        if node.settings.serves_metadata_topic and may_see(node, call, METADATA_TOPIC):
            found.append(self._metadata_topic(is_internal=True))
        of_log = len(found)
        for topic_id in list(node.view.image.topics):
            topic = node.view.image.topic(topic_id)
            work_us = self._name_us
            if topic is not None and may_see(node, call, topic.name):
                found.append((yield from self._topic(topic)))
                work_us = self._topic_us + len(topic.partitions)  # about 1 µs each
            if self._pace.spent(work_us):
                yield
                self._read_image()
        return Described(found, of_log)

    def named(self) -> Generator[None, None, Described]:
        """The topics that the request names, by name or by id; raises Refusal(INVALID_REQUEST)."""
        found, of_log = [], 0
        requested_topics = self._call.message.topics
        times = yield from count_in_slices(requested_topics, _identity, self._pace)
        for requested in requested_topics:
            if self._pace.spent(1):
                yield
                self._read_image()
            if requested.topic_id != ZERO_UUID and self._call.version < 12:
                raise Refusal(ErrorCode.INVALID_REQUEST)
            if requested.name is None and requested.topic_id == ZERO_UUID:
                raise Refusal(ErrorCode.INVALID_REQUEST)
            if not times.take(_identity(requested)):
                continue  # described once, however often it is named
            topic = yield from self._named(requested.name, requested.topic_id)
            found.append(topic)
            of_log += topic.name == METADATA_TOPIC and bool(topic.partitions)
            if self._pace.spent(self._topic_us + len(topic.partitions)):
                yield
                self._read_image()
        self._describing.end()
        return Described(found, of_log)

    def _named(self, name: str | None, topic_id: bytes) -> Generator[None, None, MetadataResponseTopic]:
        """One topic by its id, or by its name where it has none; or the error for it."""
        image = self._node.view.image
        serves_log = self._node.settings.serves_metadata_topic
        if topic_id == METADATA_TOPIC_ID and serves_log:
            name = METADATA_TOPIC
        elif topic_id != ZERO_UUID:
            topic = image.topic(topic_id)
            if topic is None or not self._describing.allows(topic.name):
                # The topic's name is left out: a client must not learn it from the id.
                error = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return MetadataResponseTopic(error, None, topic_id)
            return (yield from self._topic(topic))
        assert name is not None
        if not self._describing.allows(name):
            return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
        if name == METADATA_TOPIC and serves_log:
            return self._metadata_topic(is_internal=False)
        topic = image.topic(image.topic_id(name))
        if topic is None:
            is_internal = name in INTERNAL_TOPICS
            creates = self._call.message.allow_auto_topic_creation
            if creates and not self._node.create_missing(self._call, name):
                denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return MetadataResponseTopic(denied, name, is_internal=is_internal)
            missing = MetadataResponseTopic(name_error(name), name, is_internal=is_internal)
            if self._with_operations:
                self._add_operations(missing)
            return missing
        return (yield from self._topic(topic))

    def _topic(self, topic: TopicState) -> Generator[None, None, MetadataResponseTopic]:
        described = self._reader.topic(topic, PARTITIONS_PER_CALLBACK)
        if len(topic.partitions) > PARTITIONS_PER_CALLBACK:
            partitions = list(topic.partitions.items())
            for first in range(PARTITIONS_PER_CALLBACK, len(partitions), PARTITIONS_PER_CALLBACK):
                yield
                self._read_image()
                some = partitions[first : first + PARTITIONS_PER_CALLBACK]
                described.partitions += [self._reader.partition(index, state) for index, state in some]
        if self._with_operations:
            self._add_operations(described)
        return described

    def _metadata_topic(self, *, is_internal: bool) -> MetadataResponseTopic:
        described = metadata_topic.describe(of_call(self._node, self._call), is_internal=is_internal)
        if self._with_operations:
            self._add_operations(described)
        return described

    def _add_operations(self, topic: MetadataResponseTopic) -> None:
        """Add what the client may do with a topic of that name, whether it exists or not (KIP-430)."""
        node, call, type, name = self._node, self._call, AclResourceType.TOPIC, topic.name or ""
        topic.topic_authorized_operations = allowed_operations(node, call, type, name)


def _identity(topic: MetadataRequestTopic) -> tuple[str | None, bytes]:
    """What a topic is looked up by: its id or, if it has none, its name."""
    return (topic.name, ZERO_UUID) if topic.topic_id == ZERO_UUID else (None, topic.topic_id)


def may_describe(node: AnsweringNode, call: Call, name: str) -> bool:
    return node.boundary.allows(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)


def may_see(node: AnsweringNode, call: Call, name: str) -> bool:
    """Return whether the client may describe a topic that it has not named; a denial is not audited."""
    return node.boundary.allows_quietly(call, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)
