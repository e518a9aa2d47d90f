"""InitProducerId (22), v0-6: passed on to a broker, which has a block of producer ids.

Authorization: WRITE on the transactional id, and TWO_PHASE_COMMIT for a transaction that another coordinator
prepares; without an id IDEMPOTENT_WRITE on the cluster, or WRITE on any topic. The broker is then asked in
this node's own name. Sent by: idempotent producers; transactional ones ask their coordinator. Answered when a
broker has. Errors: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED, the broker's, and
COORDINATOR_NOT_AVAILABLE.
Differs from a broker: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.ground.pace import Slices
from kraftd.ground.refusal import Refusal
from kraftd.metadata_topic_node import to_broker
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Work


def handle(node: MetadataTopicNode, call: Call) -> Work:
    if node.knows_metadata(call):
        yield from check_allowed(node, call)
        to_broker.pass_on(node, call, call.message, unchanged)


def unchanged(answer: Message) -> Slices[Message]:
    """The broker's answer as it is."""
    yield from ()
    return answer


def check_allowed(node: MetadataTopicNode, call: Call) -> Work:
    """Raises Refusal, after slices, for a client that may not get a producer id."""
    request, boundary = call.message, node.boundary
    if request.transactional_id is None:
        cluster = (AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, CLUSTER_NAME)
        may_write = boundary.allows_quietly(call, *cluster) or (
            yield from boundary.allows_on_any(call, AclOperation.WRITE, AclResourceType.TOPIC)
        )
        if not may_write:
            boundary.allows(call, *cluster)  # for the audit
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    needed = [AclOperation.WRITE]
    if request.enable2_pc:
        needed.append(AclOperation.TWO_PHASE_COMMIT)
    for operation in needed:
        if not boundary.allows(call, operation, AclResourceType.TRANSACTIONAL_ID, request.transactional_id):
            raise Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
