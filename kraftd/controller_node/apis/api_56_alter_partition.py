"""AlterPartition (56), v2-3: a partition leader proposes a new ISR.

Authorization: CLUSTER_ACTION. Sent by: partition leaders. Answered after commit. Errors: STALE_BROKER_EPOCH
(whole request); per partition UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION,
INELIGIBLE_REPLICA (a proposed member is fenced, shutting down or of another broker epoch, KIP-903),
NEW_LEADER_ELECTED.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions.isr import alter_partition

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_partition.begin)
