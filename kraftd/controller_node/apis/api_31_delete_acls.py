"""DeleteAcls (31), v1-3: remove the ACLs that filters match (KIP-290).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per filter:
INVALID_REQUEST; for all, SECURITY_DISABLED without an authorizer, INVALID_REQUEST for more than 10,000 ACLs.
Differs from Apache Kafka: a filter with a number 0 is INVALID_REQUEST by itself, where Kafka ends the
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.acls.delete import delete_acls
from kraftd.ground.refusal import Refusal
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("filters",),
    "",
    lambda _name: DeleteAclsRequest([DeleteAclsFilter()]),
    DeleteAclsResponse,
    "filter_results",
    lambda _name: DeleteAclsFilterResult(_DENIED, _DENIED.message),
    _DENIED,
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
)


def handle(node: Node, call: Call) -> None:
    if not node.boundary.has_authorizer:
        raise Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    node.decisions.decide(call, delete_acls.begin)
