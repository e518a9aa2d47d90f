"""DescribeConfigs (32), v1-4: the configs of topics, brokers, controllers and groups, with where each comes
from.

Authorization: DESCRIBE_CONFIGS on the topic, the group or the cluster (there is no authorizer yet: everyone
may). Sent by: admin clients. Answered by every controller, once what it shows is committed. Errors, per
resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, INVALID_TOPIC_EXCEPTION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.config_description import describe_configs

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    if node.knows_metadata(call):
        node.decide(call, lambda ctx, request, _: describe_configs.begin(ctx, request), on_standby=True)
