"""DescribeCluster (60), v0-2: the controllers, for admin clients that talk to them directly (KIP-919).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered by every node, once it knows the
metadata. Errors: UNSUPPORTED_VERSION (metadata.version below 3.7, also to a caller that may not ask),
MISMATCHED_ENDPOINT_TYPE (INVALID_REQUEST before v1), UNSUPPORTED_ENDPOINT_TYPE.
Differs from Apache Kafka: while no leader is known, the last one is named (docs/divergence.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.controller.cluster import describe_cluster
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

# Bits by Kafka's numbers: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS and
# IDEMPOTENT_WRITE.
_ALL_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


def handle(node: Node, call: Call) -> None:
    if not node.following.knows_metadata(call):
        return
    leader_id = node.core.leader_id
    response = describe_cluster(
        node.image,
        call.message,
        call.version,
        cluster_id=node.identity.cluster_id,
        listener=call.listener,
        # Java's AdminClient stops asking after an answer without a controller.
        leader_id=node.leadership.last_leader_id if leader_id is None else leader_id,
        authorized_operations=_ALL_OPERATIONS,
    )
    if not node.boundary.allows(call, AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME):
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        raise Refusal(denied, denied.message)
    node.boundary.answer(call, response)
