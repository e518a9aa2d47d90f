"""AlterPartitionReassignments (45), v0-1: move partitions to other brokers (KIP-455).

`controller.partitions.reassignment` decides, and has the contract.
Here a sender without the right is refused undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.partitions.reassignment import alter_partition_reassignments
from kraftd.messages import alter_partition_reassignments_request as requested
from kraftd.messages import alter_partition_reassignments_response as answered
from kraftd.requests.unread_refusals import INNER_SAMPLE, UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("topics",),
    "name",
    lambda name: requested.AlterPartitionReassignmentsRequest(
        topics=[requested.ReassignableTopic(name, [requested.ReassignablePartition(INNER_SAMPLE)])]
    ),
    answered.AlterPartitionReassignmentsResponse,
    "responses",
    lambda name: answered.ReassignableTopicResponse(
        name, [answered.ReassignablePartitionResponse(INNER_SAMPLE, _DENIED, _DENIED.message)]
    ),
    _DENIED,
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="partition_index",
)


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_partition_reassignments.begin)
