"""IncrementalAlterConfigs (44), v0-1: changes of brokers' configs are checked, then passed on.

Authorization: by the active controller. Sent by: admin clients. Answered after commit. Errors, per resource:
INVALID_REQUEST (a key that cannot be changed while a broker runs, or a value that does not parse) and those
of the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.broker_node.apis.config_changes import pass_on
from kraftd.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.ground.pace import Slices
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> Slices[None]:
    return pass_on(
        node, call, IncrementalAlterConfigsResponse, AlterConfigsResourceResponse, incremental=True
    )
