"""IncrementalAlterConfigs (44), v0-1: set, delete, append to or subtract from single configs (KIP-339).

Authorization: ALTER_CONFIGS on the topic, the group or the cluster (there is no authorizer yet: everyone
may). Sent by: admin clients. Answered after commit. Errors, per resource: INVALID_CONFIG, INVALID_REQUEST,
UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED, UNSUPPORTED_VERSION (an unknown type of resource).
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.config_changes import incremental_alter_configs

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    forwarded = call.envelope is not None
    node.decide(
        call, lambda ctx, request, _: incremental_alter_configs.begin(ctx, request, forwarded=forwarded)
    )
