"""ListPartitionReassignments (46), v0: the partitions that are being moved (KIP-455).

`controller.partitions.reassignment` decides, and has the contract.
Here a sender without the right is refused undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.partitions.reassignment import list_partition_reassignments
from kraftd.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraftd.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
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
    lambda name: ListPartitionReassignmentsRequest(
        topics=[ListPartitionReassignmentsTopics(name, (INNER_SAMPLE,))]
    ),
    ListPartitionReassignmentsResponse,
    "topics",
    lambda name: OngoingTopicReassignment(name, [OngoingPartitionReassignment(INNER_SAMPLE)]),
    _DENIED,
    AclOperation.DESCRIBE,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
    inner="partition_indexes",
    inner_copied="",
)


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, list_partition_reassignments.begin)
