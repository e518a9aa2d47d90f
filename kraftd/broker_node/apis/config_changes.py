"""The common part of AlterConfigs (33) and IncrementalAlterConfigs (44): what a broker refuses by itself.

It checks the form of all changes, and the values of its own configs and the cluster's; changes of its log
levels end here. The active controller decides on all others. Facts: the ConfigAdminManager of Apache Kafka
4.3.1.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers import to_controller
from kraftd.controller.configs.broker_changes import after_change, check_broker_change
from kraftd.controller.configs.changes import change_log_levels
from kraftd.controller.configs.resources import (
    DUPLICATE_RESOURCE,
    Operation,
    ResourceType,
    named_resource,
)
from kraftd.controller.configs.validation import invalid_request
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

SSL = ".ssl."  # in the keys of a listener's stores
RESOURCE_US, CONFIG_US, CHECK_US = 2, 4, 60  # microseconds, for the pace
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
PASSED_ON = frozenset(
    (ResourceType.TOPIC, ResourceType.BROKER, ResourceType.CLIENT_METRICS, ResourceType.GROUP)
)


def pass_on(
    node: BrokerNode, call: Call, response: type[Any], row: type[Any], *, incremental: bool
) -> Slices[None]:
    """Answer what the broker decides, each with a `row` of the `response`; pass on the other resources."""
    pace = Pace()
    resources = call.message.resources
    times = yield from count_in_slices(resources, named_resource, pace)
    left: list[Any] = []
    answered: list[Any] = []
    for resource in resources:
        code, message, is_left = 0, None, False
        try:
            if times.count(named_resource(resource)) > 1:
                raise invalid_request(DUPLICATE_RESOURCE)
            yield from _check_form(resource, pace, incremental=incremental)
            is_left = _check(node, call, resource, incremental=incremental)
        except Refusal as refusal:
            code, message = refusal.code, refusal.message
        if is_left:
            left.append(resource)
        else:
            answered.append(row(code, message, *named_resource(resource)))
        cost_us = RESOURCE_US
        if resource.resource_type == ResourceType.BROKER:
            cost_us += CHECK_US + CONFIG_US * len(resource.configs)
        if pace.spent(cost_us):
            yield
    yield from times.free(pace)
    if answered and not left:
        yield from node.boundary.answer_in_slices(call, response(responses=answered))
        return
    if answered:
        call.message = structs.replace(call.message, resources=left)
        call.refused_rows = answered
    yield from to_controller.handle(node, call)


def _check_form(resource: Any, pace: Pace, *, incremental: bool) -> Slices[None]:
    """Raise Refusal(INVALID_REQUEST) if a key is given twice, or has no value and is not deleted."""
    times = yield from count_in_slices(resource.configs, attrgetter("name"), pace)
    for config in resource.configs:
        if times.take(config.name) != 1:
            raise invalid_request("A key is given twice.")
        if config.value is None and not (incremental and config.config_operation == Operation.DELETE):
            raise invalid_request(f"{config.name} needs a value.")
        if pace.spent(1):
            yield


def _check(node: BrokerNode, call: Call, resource: Any, *, incremental: bool) -> bool:
    """Return whether the controller decides on a resource; False if its change is done. Raises Refusal."""
    type, name = named_resource(resource)
    ctx = node.view.context
    if type == ResourceType.BROKER_LOGGER and incremental:
        operation, cluster = AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER
        if not node.boundary.allows(call, operation, cluster, CLUSTER_NAME):
            raise Refusal(DENIED, DENIED.message)
        change_log_levels(ctx, name, resource.configs, validate_only=call.message.validate_only)
        return False
    if type not in PASSED_ON:
        raise invalid_request(f"Resources of type {type} have no configs here.")
    if type == ResourceType.BROKER:
        check_broker_change(ctx, name, resource.configs, incremental=incremental)
        if any(SSL in config.name for config in resource.configs):
            _check_stores(node, call, after_change(ctx, name, resource.configs, incremental=incremental))
    return True


def _check_stores(node: BrokerNode, call: Call, after: dict[str, str]) -> None:
    """Raise Refusal if this broker cannot use its key stores and trust stores as they would be (KIP-226).

    For a client without the right to change them no file is read: the controller refuses it.
    """
    if node.boundary.allows(call, AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER, CLUSTER_NAME):
        fault = node.fault_of_stores(after)
        if fault is not None:
            raise invalid_request(fault)
