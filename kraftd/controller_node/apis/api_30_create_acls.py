"""CreateAcls (30), v1-3: add ACLs (KIP-290).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per ACL:
INVALID_REQUEST; SECURITY_DISABLED without an authorizer, POLICY_VIOLATION for more than 10,000, for all.
Differs from Apache Kafka: an ACL with a number that means nothing, or with ANY or MATCH, is INVALID_REQUEST
by itself. Kafka ends the connection or answers UNKNOWN_SERVER_ERROR for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.acls.create import create_acls
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_acls_response import AclCreationResult, CreateAclsResponse
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("creations",),
    "",
    lambda _name: CreateAclsRequest([AclCreation()]),
    CreateAclsResponse,
    "results",
    lambda _name: AclCreationResult(_DENIED, _DENIED.message),
    _DENIED,
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
)


def handle(node: Node, call: Call) -> None:
    if not node.boundary.has_authorizer:
        raise Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    node.decisions.decide(call, create_acls.begin)
