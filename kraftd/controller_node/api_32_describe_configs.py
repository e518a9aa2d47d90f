"""DescribeConfigs (32), v1-4: the configs of topics, brokers, controllers and groups, with their sources.

Authorization: DESCRIBE_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered by
every controller, once what it shows is committed. Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION,
INVALID_REQUEST, INVALID_TOPIC_EXCEPTION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from kraftd.controller.configs.description import describe_configs
from kraftd.controller_node.permissions import refused_configs, with_refusals
from kraftd.messages.describe_configs_response import DescribeConfigsResult

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    request = call.message
    refused = refused_configs(node, call, request.resources, altering=False)
    refusals = [
        DescribeConfigsResult(code, code.message, one.resource_type, one.resource_name)
        for at, code in refused.items()
        for one in (request.resources[at],)
    ]
    if refused:
        left = [one for at, one in enumerate(request.resources) if at not in refused]
        request = structs.replace(request, resources=left)
    if node.following.knows_metadata(call):
        node.decisions.decide(
            call,
            lambda ctx, _, version: with_refusals(describe_configs.begin(ctx, request), "results", refusals),
            on_standby=True,
        )
