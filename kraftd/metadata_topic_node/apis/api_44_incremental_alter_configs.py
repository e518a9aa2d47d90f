"""IncrementalAlterConfigs (44), v0-1: passed on to the controller; the metadata topic's are fixed (KIP-630).

Authorization: the controller's. Sent by: admin clients. Answered when the controller has. Errors: the
controller's, REQUEST_TIMED_OUT; POLICY_VIOLATION where only the metadata topic is named.
Differs from a broker: by POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.ground.pace import Slices
from kraftd.metadata_topic_node.refused_changes import refuse_or_pass_on_configs

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    return refuse_or_pass_on_configs(node, call)
