"""DescribeConfigs (32), v1-4: the configs of topics, brokers, controllers and groups, with their sources.

Authorization: DESCRIBE_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered by
every controller, once what it shows is committed. Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION,
INVALID_REQUEST, INVALID_TOPIC_EXCEPTION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.configs.description import describe_configs
from kraftd.controller.configs.resources import ResourceType
from kraftd.controller.configs.validation import cut
from kraftd.controller_node.apis.permissions import (
    ELEMENT_US,
    ConfigPermissions,
    allows_no_topic,
    is_resource_type,
    with_only,
)
from kraftd.ground.pace import Pace, Slices
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from kraftd.requests.refused_rows import ROW_US, RefusedRows
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call
_TOPIC, _DENIED = ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("resources",),
    "resource_name",
    lambda name: DescribeConfigsRequest([DescribeConfigsResource(_TOPIC, name)]),
    DescribeConfigsResponse,
    "results",
    lambda name: DescribeConfigsResult(_DENIED, _DENIED.message, _TOPIC, name),
    _DENIED,
    AclOperation.DESCRIBE_CONFIGS,
    AclResourceType.TOPIC,
    checked="resource_type",
    repeated=Repeated.KEPT,
)


def handle(node: Node, call: Call) -> Slices[None]:
    if not node.following.knows_metadata(call):
        return
    refused = RefusedRows(call, DescribeConfigsResponse, "results")
    left = yield from sort_out(node, call, refused)
    node.decisions.decide(
        call,
        lambda ctx, request, version: describe_configs.begin(ctx, with_only(request, "resources", left)),
        on_standby=True,
        refused=refused,
    )


def unread(node: Node, call: Call) -> UnreadRefusal | None:
    """How to refuse all topics of a sender that may describe none."""
    denied = allows_no_topic(node, call, AclOperation.DESCRIBE_CONFIGS)
    return UNREAD if denied else None


def sort_out(node: Node, call: Call, refused: RefusedRows) -> Slices[list[DescribeConfigsResource]]:
    """The resources to describe; denied ones are refused, and all of them if one is of an unknown type."""
    resources: list[DescribeConfigsResource] = call.message.resources
    pace = Pace()
    unknown = None
    for resource in resources:
        if not is_resource_type(resource.resource_type):
            unknown = cut(
                f"Resources of type {resource.resource_type} ({resource.resource_name!r}) have no configs."
            )
            break
        if pace.spent(ELEMENT_US):
            yield
    permissions = ConfigPermissions(node, call, altering=False)
    left = []
    for resource in resources:
        type, name = resource.resource_type, resource.resource_name
        cost_us = ELEMENT_US
        code: ErrorCode | None = ErrorCode.INVALID_REQUEST
        if unknown is None:
            code = permissions.denial(type, name)
            cost_us += permissions.cost_us
        if code is None:
            left.append(resource)
        else:
            refused.add(DescribeConfigsResult(code, unknown or code.message, type, name))
            cost_us += ROW_US
        if pace.spent(cost_us):
            yield
    permissions.end()
    refused.end()
    return left
