"""CreateTopics (19), v2-7: create topics, or validate their creation.

Authorization: CREATE on the cluster or the topic; DESCRIBE_CONFIGS to see configs. Sent by: admin clients,
brokers for their internal topics. Answered after commit. Errors, per topic: TOPIC_ALREADY_EXISTS,
INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT,
INVALID_CONFIG, INVALID_REQUEST (named twice), POLICY_VIOLATION, THROTTLING_QUOTA_EXCEEDED (v6 and later);
POLICY_VIOLATION and REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: a throttled connection is not muted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller_node.apis.mutation_quota import charge_of
from kraftd.controller_node.apis.permissions import (
    TopicPermission,
    TopicProblems,
    allows_no_topic,
    sort_out_topics,
    with_only,
)
from kraftd.ground.pace import Slices
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.requests.refused_rows import RefusedRows
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def _row(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=code, error_message=message)


PROBLEMS = TopicProblems(
    _row,
    repeated=(ErrorCode.INVALID_REQUEST, "The request has this topic name more than once."),
    denied=(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
    reserved={
        METADATA_TOPIC: (ErrorCode.INVALID_REQUEST, f"{METADATA_TOPIC} is internal and cannot be created.")
    },
)
UNREAD = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: CreateTopicsRequest([CreatableTopic(name, 1, 1)]),
    CreateTopicsResponse,
    "topics",
    lambda name: _row(name, *PROBLEMS.denied),
    PROBLEMS.denied[0],
    AclOperation.CREATE,
    AclResourceType.TOPIC,
    reserved=frozenset(PROBLEMS.reserved),
)


def handle(node: Node, call: Call) -> Slices[None]:
    creating = TopicPermission(node, call, AclOperation.CREATE, or_on_cluster=True)
    describing = TopicPermission(node, call, AclOperation.DESCRIBE_CONFIGS, quietly=True)
    refused = RefusedRows(call, CreateTopicsResponse, "topics")
    left = yield from sort_out_topics(call.message.topics, creating, PROBLEMS, refused)
    node.decisions.decide(
        call,
        lambda ctx, request, version: create_topics.begin(
            ctx,
            with_only(request, "topics", left),
            version,
            describable=describing.allows,
            charge=charge_of(ctx, call),
        ),
        on_standby=not left,
        refused=refused,
    )


def unread(node: Node, call: Call) -> UnreadRefusal | None:
    """How to refuse all topics of a sender that may create none."""
    denied = allows_no_topic(node, call, AclOperation.CREATE, or_on_cluster=True)
    return UNREAD if denied else None
