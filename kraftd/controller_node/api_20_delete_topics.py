"""DeleteTopics (20), v1-6: delete topics by name or id (KIP-516).

Authorization: DELETE on the cluster or the topic. Sent by: admin clients. Answered after commit. Errors, per
topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED (v5 and
later); TOPIC_DELETION_DISABLED and REQUEST_TIMED_OUT (no time left) for the whole.
Differs from Apache Kafka: answers come in order, not shuffled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.controller.topics.names import everything
from kraftd.controller_node.mutation_quota import charge_of
from kraftd.controller_node.permissions import topics_allowed

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    deletable = topics_allowed(node, call, AclOperation.DELETE, or_on_cluster=True)
    describable = deletable
    if deletable is not everything:
        describable = topics_allowed(node, call, AclOperation.DESCRIBE, quietly=True)
    node.decisions.decide(
        call,
        lambda ctx, request, version: delete_topics.begin(
            ctx, request, version, deletable=deletable, describable=describable, charge=charge_of(ctx, call)
        ),
    )
