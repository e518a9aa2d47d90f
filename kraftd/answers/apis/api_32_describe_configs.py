"""DescribeConfigs (32), v1-4: the configs of topics and other resources, with where each comes from.

Authorization: DESCRIBE_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered once
what it shows is committed. The metadata topic has `cleanup.policy=snapshot` (KIP-630) and, for tools that
compare it with the replicas in sync, `min.insync.replicas`. Errors, per resource:
UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST (all
of them, if one is of an unknown type), INVALID_TOPIC_EXCEPTION.
Differs from a broker: the static defaults are those of this node's file; a broker's own configs are asked of
the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.nodes import metadata_partition
from kraftd.answers.unread_denials import HIDDEN_CONFIGS
from kraftd.answers.unread_denials import unread as unread
from kraftd.controller.configs.description import DESCRIBED, describe_configs
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraftd.metadata.state import GROUP_RESOURCE, TOPIC_RESOURCE
from kraftd.requests.permission import Permission
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.messages.describe_configs_request import DescribeConfigsResource
    from kraftd.requests.call import Call

RESOURCE_US = 3  # microseconds, for the pace
CLEANUP_POLICY, MIN_ISR = "cleanup.policy", "min.insync.replicas"
DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
INT, LIST = 3, 7
UNDECIDED = DescribeConfigsResult()


def handle(node: AnsweringNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


def describe(node: AnsweringNode, call: Call) -> Slices[DescribeConfigsResponse]:
    """The configs of each resource that the client may see; an admin client may name every topic."""
    request = call.message
    results: list[DescribeConfigsResult] = []
    others: list[DescribeConfigsResource] = []
    places: list[int] = []  # of their results
    pace = Pace()
    for resource in request.resources:
        if resource.resource_type not in DESCRIBED:  # refuses the whole request
            decision = yield from describe_configs.begin(node.view.context, request)
            return decision.answer
        if pace.spent(1):
            yield
    permissions = Permissions(node, call)
    serves_log = node.settings.serves_metadata_topic
    for resource in request.resources:
        error = permissions.denial(resource)
        if error:
            results.append(
                DescribeConfigsResult(error, HIDDEN_CONFIGS, resource.resource_type, resource.resource_name)
            )
        elif serves_log and (resource.resource_type, resource.resource_name) == (
            TOPIC_RESOURCE,
            METADATA_TOPIC,
        ):
            replicas = metadata_partition(node.view, node.settings, call.listener).replicas
            results.append(metadata_topic_configs(resource, len(replicas)))
        else:
            places.append(len(results))
            results.append(UNDECIDED)
            others.append(resource)
        if pace.spent(RESOURCE_US + permissions.cost_us):
            yield
    permissions.end()
    remaining_request = msgspec.structs.replace(request, resources=others)
    decision = yield from describe_configs.begin(node.view.context, remaining_request)
    for place, result in zip(places, decision.answer.results, strict=True):
        results[place] = result
        if pace.spent(1):
            yield
    return DescribeConfigsResponse(results=results)


class Permissions:
    """The permissions of a call on resources with configs."""

    def __init__(self, node: AnsweringNode, call: Call) -> None:
        def on(type: AclResourceType) -> Permission:
            return Permission(node.boundary, call, AclOperation.DESCRIBE_CONFIGS, type)

        self._on_topics = on(AclResourceType.TOPIC)
        self._on_groups = on(AclResourceType.GROUP)
        self._on_cluster = on(AclResourceType.CLUSTER)
        self.cost_us = 0

    def denial(self, resource: DescribeConfigsResource) -> int:
        """The error for a resource that the client may not see; 0 for one that it may."""
        permission, name, error = self._on_cluster, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if resource.resource_type == TOPIC_RESOURCE:
            permission, name = self._on_topics, resource.resource_name
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif resource.resource_type == GROUP_RESOURCE:
            permission, name = self._on_groups, resource.resource_name
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        allowed = permission.allows(name)
        self.cost_us = permission.cost_us
        return 0 if allowed else error

    def end(self) -> None:
        """Audit the refusals without a question."""
        for permission in (self._on_topics, self._on_groups, self._on_cluster):
            permission.end()


def metadata_topic_configs(resource: DescribeConfigsResource, replica_count: int) -> DescribeConfigsResult:
    """The configs of the metadata log as a topic of so many replicas, of which a majority has each record."""
    configs = [
        DescribeConfigsResourceResult(
            CLEANUP_POLICY, "snapshot", True, config_source=DYNAMIC_TOPIC_CONFIG, config_type=LIST
        ),
        DescribeConfigsResourceResult(
            MIN_ISR, str(replica_count // 2 + 1), True, config_source=DEFAULT_CONFIG, config_type=INT
        ),
    ]
    wanted = resource.configuration_keys
    shown = [one for one in configs if wanted is None or one.name in wanted]
    return DescribeConfigsResult(0, None, TOPIC_RESOURCE, METADATA_TOPIC, shown)
