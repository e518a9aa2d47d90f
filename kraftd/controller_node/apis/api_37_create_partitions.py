"""CreatePartitions (37), v0-3: give topics more partitions.

Authorization: ALTER on the topic. Sent by: admin clients. Answered after commit. Errors, per topic:
UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR,
INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED (v3); REQUEST_TIMED_OUT (no time left) for all.
Differs from Apache Kafka: a throttled connection is not muted meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller_node.apis.mutation_quota import charge_of
from kraftd.controller_node.apis.permissions import (
    TopicPermission,
    TopicProblems,
    allows_no_topic,
    sort_out_topics,
    with_only,
)
from kraftd.ground.pace import Slices
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kraftd.requests.refused_rows import RefusedRows
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


PROBLEMS = TopicProblems(
    CreatePartitionsTopicResult,
    repeated=(ErrorCode.INVALID_REQUEST, "The request has this topic name more than once."),
    denied=(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
    reserved={},
)
UNREAD = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: CreatePartitionsRequest([CreatePartitionsTopic(name, 1, None)]),
    CreatePartitionsResponse,
    "results",
    lambda name: CreatePartitionsTopicResult(name, *PROBLEMS.denied),
    PROBLEMS.denied[0],
    AclOperation.ALTER,
    AclResourceType.TOPIC,
)


def handle(node: Node, call: Call) -> Slices[None]:
    altering = TopicPermission(node, call, AclOperation.ALTER)
    refused = RefusedRows(call, CreatePartitionsResponse, "results")
    left = yield from sort_out_topics(call.message.topics, altering, PROBLEMS, refused)
    node.decisions.decide(
        call,
        lambda ctx, request, version: create_partitions.begin(
            ctx, with_only(request, "topics", left), version, charge=charge_of(ctx, call)
        ),
        on_standby=all(topic.name == METADATA_TOPIC for topic in left[:2]),
        refused=refused,
    )


def unread(node: Node, call: Call) -> UnreadRefusal | None:
    """How to refuse all topics of a sender that may alter none."""
    denied = allows_no_topic(node, call, AclOperation.ALTER)
    return UNREAD if denied else None
