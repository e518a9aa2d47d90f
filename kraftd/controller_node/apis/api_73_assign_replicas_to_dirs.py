"""AssignReplicasToDirs (73), v0: a broker reports the log directories of its replicas (KIP-858).

Authorization: CLUSTER_ACTION. Sent by: brokers with several log directories. Answered after commit. Errors:
STALE_BROKER_EPOCH, UNSUPPORTED_VERSION (whole request); per partition UNKNOWN_TOPIC_ID,
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.partitions.directories import assign_replicas_to_dirs

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, assign_replicas_to_dirs.begin)
