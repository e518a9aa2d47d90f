"""CreatePartitions (37), v0-3: passed on to the active controller; the metadata topic has one (KIP-630).

Authorization: the controller's. Sent by: admin clients. Answered when the controller has. Errors: the
controller's, REQUEST_TIMED_OUT; POLICY_VIOLATION where only the metadata topic is named.
Differs from a broker: by POLICY_VIOLATION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.ground.pace import Slices
from kraftd.metadata_topic_node.refused_changes import refuse_or_pass_on
from kraftd.types import METADATA_TOPIC

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    return refuse_or_pass_on(
        node, call, AclOperation.ALTER, (one.name == METADATA_TOPIC for one in call.message.topics)
    )
