"""Refuses changes of the metadata topic, which only the quorum makes (KIP-630)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers import to_controller
from kraftd.ground.pace import Pace, Slices
from kraftd.metadata.state import TOPIC_RESOURCE
from kraftd.types import METADATA_TOPIC
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

TEXT = "The metadata log is a read-only topic that the quorum keeps."


def refuse_or_pass_on(
    node: MetadataTopicNode, call: Call, operation: AclOperation, is_metadata: Iterable[bool]
) -> Slices[None]:
    """Refuse a request that is of the metadata topic alone with POLICY_VIOLATION; pass on any other.

    The controller, to which the metadata topic is unknown, refuses that part of a mixed request, and a client
    that may not do the operation.
    """
    pace, count, is_alone = Pace(), 0, True
    for meant in is_metadata:
        count += 1
        is_alone = meant
        if not meant:
            break
        if pace.spent(1):
            yield
    allowed = node.boundary.allows_quietly(call, operation, AclResourceType.TOPIC, METADATA_TOPIC)
    if count and is_alone and allowed:
        node.boundary.refuse(call, ErrorCode.POLICY_VIOLATION, TEXT)
    else:
        yield from to_controller.handle(node, call)


def refuse_or_pass_on_configs(node: MetadataTopicNode, call: Call) -> Slices[None]:
    """The same for a request that changes configs of its `resources`, whole sets or single keys."""
    metadata_topic = (TOPIC_RESOURCE, METADATA_TOPIC)
    named = ((one.resource_type, one.resource_name) == metadata_topic for one in call.message.resources)
    return refuse_or_pass_on(node, call, AclOperation.ALTER_CONFIGS, named)
