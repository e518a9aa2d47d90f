"""The common part of AlterConfigs (33) and IncrementalAlterConfigs (44): what a broker refuses by itself.

It checks changes of its own configs and of the cluster's. The active controller decides on all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from kraftd.answers import to_controller
from kraftd.controller.configs.broker_changes import check_broker_change
from kraftd.controller.configs.resources import DUPLICATE_RESOURCE, ResourceType, named_resource
from kraftd.controller.configs.validation import invalid_request
from kraftd.ground.occurrences import count_in_slices
from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call

RESOURCE_US, CONFIG_US, CHECK_US = 2, 4, 60  # microseconds, for the pace
NAMED_TWICE = invalid_request(DUPLICATE_RESOURCE)


def pass_on(
    node: BrokerNode, call: Call, response: type[Any], row: type[Any], *, incremental: bool
) -> Slices[None]:
    """Answer what the broker refuses, each with a `row` of the `response`; pass on the other resources."""
    pace = Pace()
    resources = call.message.resources
    times = yield from count_in_slices(resources, named_resource, pace)
    left: list[Any] = []
    refused: list[Any] = []
    for resource in resources:
        refusal, cost_us = None, RESOURCE_US
        if times.count(named_resource(resource)) > 1:
            refusal = NAMED_TWICE
        elif resource.resource_type == ResourceType.BROKER:
            refusal = _refusal(node, resource, incremental=incremental)
            cost_us += CHECK_US + CONFIG_US * len(resource.configs)
        if refusal is None:
            left.append(resource)
        else:
            refused.append(row(refusal.code, refusal.message, *named_resource(resource)))
        if pace.spent(cost_us):
            yield
    yield from times.free(pace)
    if refused and not left:
        yield from node.boundary.answer_in_slices(call, response(responses=refused))
        return
    if refused:
        call.message = structs.replace(call.message, resources=left)
        call.refused_rows = refused
    yield from to_controller.handle(node, call)


def _refusal(node: BrokerNode, resource: Any, *, incremental: bool) -> Refusal | None:
    try:
        name, configs = resource.resource_name, resource.configs
        check_broker_change(node.view.context, name, configs, incremental=incremental)
    except Refusal as refusal:
        return refusal
    return None
