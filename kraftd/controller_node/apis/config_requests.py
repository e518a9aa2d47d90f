"""The common part of AlterConfigs (33) and IncrementalAlterConfigs (44): sort out, then decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.configs.resources import DUPLICATE_RESOURCE, ResourceType, named_resource
from kraftd.controller.decision import Decision
from kraftd.controller_node.apis.permissions import (
    ELEMENT_US,
    ConfigPermissions,
    is_resource_type,
    with_only,
)
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.requests.refused_rows import ROW_US, RefusedRows
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.ground.pace import Sliced
    from kraftd.requests.call import Call

ONLY_INCREMENTAL = "Log levels are changed with IncrementalAlterConfigs."
Problem = tuple[ErrorCode, str | None]


def unread_changes(request: Callable[[str], Message], response: type[Any], row: type[Any]) -> UnreadRefusal:
    """How to refuse the configs of topics, those of the request that a name makes, unread."""
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return UnreadRefusal(
        ("resources",),
        "resource_name",
        request,
        response,
        "responses",
        lambda name: row(denied, denied.message, ResourceType.TOPIC, name),
        denied,
        AclOperation.ALTER_CONFIGS,
        AclResourceType.TOPIC,
        checked="resource_type",
    )


def decide_change(
    node: Node,
    call: Call,
    change: Sliced[..., Decision[Any]],
    response: type[Any],
    row: type[Any],
    *,
    loggers: bool,
) -> Slices[None]:
    """Refuse what needs no decision, each with a `row` of the `response`; decide on the others by `change`.

    `loggers` says whether log levels can be changed, and thus be denied.
    """
    forwarded = call.envelope is not None or call.by_broker
    refused = RefusedRows(call, response, "responses")
    left = yield from sort_out(node, call, refused, row, loggers=loggers)
    only_loggers = all(one.resource_type == ResourceType.BROKER_LOGGER for one in left[:1])
    node.decisions.decide(
        call,
        lambda ctx, request, version: change.begin(
            ctx, with_only(request, "resources", left), forwarded=forwarded
        ),
        on_standby=only_loggers,
        refused=refused,
    )


def sort_out(
    node: Node, call: Call, refused: RefusedRows, row: type[Any], *, loggers: bool
) -> Slices[list[Any]]:
    """The resources that are decided on, those of nodes' log levels last; the others are refused.

    A resource that is named twice is refused once; log levels and unknown types are each answered.
    """
    resources = call.message.resources
    permissions = ConfigPermissions(node, call, altering=True)
    left: list[Any] = []
    of_loggers: list[Any] = []
    pace = Pace()
    times = yield from count_in_slices(resources, named_resource, pace)
    for resource in resources:
        type, name = named_resource(resource)
        is_logger = type == ResourceType.BROKER_LOGGER
        count = times.take((type, name))
        cost_us, problem = ELEMENT_US, None
        if not is_resource_type(type):
            problem = ErrorCode.UNSUPPORTED_VERSION, f"There is no resource type {type}."
        elif not (is_logger and loggers):
            if not count:
                continue  # answered at its first place
            if count > 1:
                problem = ErrorCode.INVALID_REQUEST, DUPLICATE_RESOURCE
            elif is_logger:
                problem = ErrorCode.INVALID_REQUEST, ONLY_INCREMENTAL
        if problem is None:
            code = permissions.denial(type, name)
            cost_us += permissions.cost_us
            if code is not None:
                problem = code, code.message
            else:
                (of_loggers if is_logger else left).append(resource)
        if problem is not None:
            refused.add(row(*problem, type, name))
            cost_us += ROW_US
        if pace.spent(cost_us):
            yield
    permissions.end()
    refused.end()
    return left + of_loggers
