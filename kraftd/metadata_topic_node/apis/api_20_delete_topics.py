"""DeleteTopics (20), v1-6: passed on to the active controller; the metadata topic is not deleted (KIP-630).

Authorization: the controller's. Sent by: admin clients. Answered when the controller has. Errors: the
controller's, REQUEST_TIMED_OUT; POLICY_VIOLATION where only the metadata topic is named.
Differs from a broker: by POLICY_VIOLATION.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.ground.pace import Slices
from kraftd.metadata_topic_node.refused_changes import refuse_or_pass_on
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    request = call.message
    named = (name == METADATA_TOPIC for name in request.topic_names)
    meant = (one.name == METADATA_TOPIC or one.topic_id == METADATA_TOPIC_ID for one in request.topics)
    return refuse_or_pass_on(node, call, AclOperation.DELETE, chain(named, meant))
