"""DescribeUserScramCredentials (50), v0: which SCRAM mechanisms users have (KIP-554).

Authorization: DESCRIBE on the cluster. Sent by: admin clients. Answered by every controller, once what it
shows is committed. Errors, per user: RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE.
Differs from Apache Kafka: its controllers answer UNKNOWN_SERVER_ERROR, and nothing for null users; this is
what its brokers answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.scram.describe import describe_user_scram_credentials

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    if node.following.knows_metadata(call):
        node.decisions.decide(call, describe_user_scram_credentials.begin, on_standby=True)
