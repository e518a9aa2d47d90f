"""AlterConfigs (33), v0-2: give resources exactly these configs (superseded by IncrementalAlterConfigs).

Authorization: ALTER_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered after
commit. Errors, per resource: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION,
BROKER_ID_NOT_REGISTERED, UNSUPPORTED_VERSION (an unknown type of resource).
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.configs.changes import alter_configs
from kraftd.controller_node.apis.config_requests import decide_change
from kraftd.ground.pace import Slices
from kraftd.messages.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> Slices[None]:
    return decide_change(
        node, call, alter_configs, AlterConfigsResponse, AlterConfigsResourceResponse, loggers=False
    )
