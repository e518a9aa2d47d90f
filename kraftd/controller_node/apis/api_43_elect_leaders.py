"""ElectLeaders (43), v0-2: elect the leaders of partitions (KIP-460).

`controller.partitions.election` decides, and has the contract.
Here a sender without the right is refused undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.partitions.election import elect_leaders
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kraftd.requests.unread_refusals import INNER_SAMPLE, UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("topic_partitions",),
    "topic",
    lambda name: ElectLeadersRequest(0, [TopicPartitions(name, (INNER_SAMPLE,))]),
    ElectLeadersResponse,
    "replica_election_results",
    lambda name: ReplicaElectionResult(name, [PartitionResult(INNER_SAMPLE, _DENIED, _DENIED.message)]),
    _DENIED,
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
    inner="partitions",
    inner_copied="",
)


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, elect_leaders.begin)
