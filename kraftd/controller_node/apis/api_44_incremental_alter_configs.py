"""IncrementalAlterConfigs (44), v0-1: set, delete, append to or subtract from single configs (KIP-339).

Authorization: ALTER_CONFIGS on the topic, the group or the cluster. Sent by: admin clients. Answered after
commit. Errors, per resource: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION,
BROKER_ID_NOT_REGISTERED, UNSUPPORTED_VERSION (an unknown type of resource).
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.controller.configs.changes import incremental_alter_configs
from kraftd.controller.configs.resources import ResourceType
from kraftd.controller_node.apis.config_requests import decide_change, unread_changes
from kraftd.controller_node.apis.permissions import allows_no_topic
from kraftd.ground.pace import Slices
from kraftd.messages.incremental_alter_configs_request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call
    from kraftd.requests.unread_refusals import UnreadRefusal

UNREAD = unread_changes(
    lambda name: IncrementalAlterConfigsRequest([AlterConfigsResource(ResourceType.TOPIC, name)]),
    IncrementalAlterConfigsResponse,
    AlterConfigsResourceResponse,
)


def handle(node: Node, call: Call) -> Slices[None]:
    return decide_change(
        node,
        call,
        incremental_alter_configs,
        IncrementalAlterConfigsResponse,
        AlterConfigsResourceResponse,
        loggers=True,
    )


def unread(node: Node, call: Call) -> UnreadRefusal | None:
    """How to refuse the configs of topics of a sender that may change those of none."""
    denied = node.active and allows_no_topic(node, call, AclOperation.ALTER_CONFIGS)
    return UNREAD if denied else None
