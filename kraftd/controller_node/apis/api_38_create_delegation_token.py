"""CreateDelegationToken (38), v1-3: a token for the sender, or for another user (KIP-48, KIP-373).

Authorization: none for oneself, CREATE_TOKENS on the user for another. Sent by: admin clients. Answered after
commit. Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED over PLAINTEXT, for ANONYMOUS over SSL, and for a sender
that came in with a token; DELEGATION_TOKEN_AUTHORIZATION_FAILED, DELEGATION_TOKEN_AUTH_DISABLED,
INVALID_PRINCIPAL_TYPE, UNSUPPORTED_VERSION (before metadata.version 3.6-IV2).
Differs from Apache Kafka: an owner whose type is null is INVALID_PRINCIPAL_TYPE, not UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.tokens.change import create_delegation_token
from kraftd.controller.tokens.refusals import owner_of, refused_token
from kraftd.controller_node.apis.token_requests import may_change_tokens
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    requester = (call.principal.type, call.principal.name)
    owner = owner_of(call.message, requester)
    code = None
    if not may_change_tokens(node, call):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != requester and not node.boundary.allows(
        call, AclOperation.CREATE_TOKENS, AclResourceType.USER, ":".join(owner)
    ):
        code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if code is not None:
        node.boundary.answer(call, refused_token(call.key, call.version, call.message, requester, code))
        return
    node.decisions.decide(
        call, lambda ctx, request, version: create_delegation_token(ctx, request, version, requester)
    )
