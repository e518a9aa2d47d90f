"""DescribeConfigs (32), v1-4: the configs of topics and other resources, with where each comes from.

Authorization: DESCRIBE_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered once
what it shows is committed. The metadata topic has `cleanup.policy=snapshot` (KIP-630). Errors, per resource:
UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST,
INVALID_TOPIC_EXCEPTION.
Differs from a broker: the static defaults are those of this node's file; a broker's own configs are asked of
the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.client_node.operations import decision_us
from kraftd.controller.configs.description import describe_configs
from kraftd.controller.slices import Pace, Slices
from kraftd.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraftd.metadata.state import GROUP_RESOURCE, TOPIC_RESOURCE
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.messages.describe_configs_request import DescribeConfigsResource
    from kraftd.requests.call import Call

RESOURCE_US = 3  # microseconds, for the pace
CLEANUP_POLICY = "cleanup.policy"
DYNAMIC_TOPIC_CONFIG = 1
LIST = 7
DENIED = "The client may not see the configs of this resource."


def handle(node: ClientNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


def describe(node: ClientNode, call: Call) -> Slices[DescribeConfigsResponse]:
    """The configs of each resource that the client may see; an admin client may name every topic."""
    request = call.message
    own: dict[int, DescribeConfigsResult] = {}
    pace, cost_us = Pace(), RESOURCE_US + decision_us(node)
    for place, resource in enumerate(request.resources):
        error = denied(node, call, resource)
        if error:
            own[place] = DescribeConfigsResult(error, DENIED, resource.resource_type, resource.resource_name)
        elif (resource.resource_type, resource.resource_name) == (TOPIC_RESOURCE, METADATA_TOPIC):
            own[place] = metadata_topic_configs(resource)
        if pace.spent(cost_us):
            yield
    others = [resource for place, resource in enumerate(request.resources) if place not in own]
    remaining_request = msgspec.structs.replace(request, resources=others)
    decision = yield from describe_configs.begin(node.view.context, remaining_request)
    rest = iter(decision.answer.results)
    results = [own[place] if place in own else next(rest) for place in range(len(request.resources))]
    return DescribeConfigsResponse(results=results)


def denied(node: ClientNode, call: Call, resource: DescribeConfigsResource) -> int:
    """The error for a resource that the client may not see; 0 for one that it may."""
    operation = AclOperation.DESCRIBE_CONFIGS
    if resource.resource_type == TOPIC_RESOURCE:
        allowed = node.boundary.allows(call, operation, AclResourceType.TOPIC, resource.resource_name)
        return 0 if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource.resource_type == GROUP_RESOURCE:
        allowed = node.boundary.allows(call, operation, AclResourceType.GROUP, resource.resource_name)
        return 0 if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = node.boundary.allows(call, operation, AclResourceType.CLUSTER, CLUSTER_NAME)
    return 0 if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def metadata_topic_configs(resource: DescribeConfigsResource) -> DescribeConfigsResult:
    wanted = resource.configuration_keys
    configs = []
    if wanted is None or CLEANUP_POLICY in wanted:
        configs.append(
            DescribeConfigsResourceResult(
                name=CLEANUP_POLICY,
                value="snapshot",
                read_only=True,
                config_source=DYNAMIC_TOPIC_CONFIG,
                config_type=LIST,
            )
        )
    return DescribeConfigsResult(0, None, TOPIC_RESOURCE, METADATA_TOPIC, configs)
