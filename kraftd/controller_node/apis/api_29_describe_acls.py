"""DescribeAcls (29), v1-3: the ACLs that a filter matches (KIP-290).

Authorization: DESCRIBE on the cluster. Sent by: admin clients. Answered by every controller, once what it
shows is committed. Errors: SECURITY_DISABLED without an authorizer, INVALID_REQUEST for a filter with a
number that means nothing.
Differs from Apache Kafka: a filter with a number 0 is answered, where Kafka ends the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.acls.describe import describe_acls
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    if not node.boundary.has_authorizer:
        raise Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    if node.following.knows_metadata(call):
        node.decisions.decide(call, describe_acls.begin, on_standby=True)
