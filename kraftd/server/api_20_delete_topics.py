"""DeleteTopics (20), v1-6: delete topics by name or id (KIP-516).

Authorization: DELETE on the cluster or the topic (there is no authorizer yet: everyone may). Sent by: admin
clients. Answered after commit. Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID,
INVALID_REQUEST; TOPIC_DELETION_DISABLED for the whole.
Differs from Apache Kafka: answers come in order, not shuffled; no mutation quota is charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.topics import delete_topics

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    node.decide(call, delete_topics.begin)
