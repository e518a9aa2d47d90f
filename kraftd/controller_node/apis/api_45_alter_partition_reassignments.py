"""AlterPartitionReassignments (45), v0-1: move replicas, or cancel a move (KIP-455).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per partition:
UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT,
INVALID_REPLICATION_FACTOR; REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions.reassignment import alter_partition_reassignments

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_partition_reassignments.begin)
