"""DeleteTopics (20), v1-6, AlterConfigs (33), v0-2, CreatePartitions (37), v0-3, and IncrementalAlterConfigs
(44), v0-1: passed on to the active controller, but only the quorum changes the metadata topic (KIP-630).

Authorization: the controller's. Sent by: admin clients. Answered when the controller has. Errors: the
controller's, REQUEST_TIMED_OUT; POLICY_VIOLATION where only the metadata topic is named.
Differs from a broker: by POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers import to_controller
from kraftd.ground.pace import Pace, Slices
from kraftd.metadata.state import TOPIC_RESOURCE
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

TEXT = "The metadata log is a read-only topic that the quorum keeps."


def _deleted(request: Any) -> Iterable[bool]:
    named = (name == METADATA_TOPIC for name in request.topic_names)
    meant = (one.name == METADATA_TOPIC or one.topic_id == METADATA_TOPIC_ID for one in request.topics)
    return chain(named, meant)


def _extended(request: Any) -> Iterable[bool]:
    return (one.name == METADATA_TOPIC for one in request.topics)


def _configured(request: Any) -> Iterable[bool]:
    metadata_topic = (TOPIC_RESOURCE, METADATA_TOPIC)
    return ((one.resource_type, one.resource_name) == metadata_topic for one in request.resources)


# The operation of each API, and whether its elements are the metadata topic.
CHANGES: dict[ApiKey, tuple[AclOperation, Callable[[Any], Iterable[bool]]]] = {
    ApiKey.DELETE_TOPICS: (AclOperation.DELETE, _deleted),
    ApiKey.ALTER_CONFIGS: (AclOperation.ALTER_CONFIGS, _configured),
    ApiKey.CREATE_PARTITIONS: (AclOperation.ALTER, _extended),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (AclOperation.ALTER_CONFIGS, _configured),
}


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    """Refuse a request that is of the metadata topic alone with POLICY_VIOLATION; pass on any other.

    The controller, to which the metadata topic is unknown, refuses that part of a mixed request, and a client
    that may not do the operation.
    """
    operation, elements = CHANGES[ApiKey(call.key)]
    pace, count, is_alone = Pace(), 0, True
    for is_metadata in elements(call.message):
        count += 1
        is_alone = is_metadata
        if not is_metadata:
            break
        if pace.spent(1):
            yield
    allowed = node.boundary.allows_quietly(call, operation, AclResourceType.TOPIC, METADATA_TOPIC)
    if count and is_alone and allowed:
        node.boundary.refuse(call, ErrorCode.POLICY_VIOLATION, TEXT)
    else:
        yield from to_controller.handle(node, call)
