"""ListPartitionReassignments (46), v0: the moves under way (KIP-455).

Authorization: DESCRIBE on the cluster. Sent by: admin clients, and `kafka-topics --describe`. Answered once
what it shows is committed.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions.reassignment import list_partition_reassignments

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, list_partition_reassignments.begin)
