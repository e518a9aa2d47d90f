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
from kraftd.controller.tokens.change import FIRST_VERSION_WITH_REQUESTER, create_delegation_token
from kraftd.controller_node.apis.token_requests import NO_TIME_MS, may_change_tokens
from kraftd.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    request, requester = call.message, (call.principal.type, call.principal.name)
    owner = requester
    if request.owner_principal_name:
        owner = (request.owner_principal_type or "", request.owner_principal_name)
    name = ":".join(owner)
    if not may_change_tokens(node, call):
        refuse(node, call, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, owner)
    elif owner != requester and not node.boundary.allows(
        call, AclOperation.CREATE_TOKENS, AclResourceType.USER, name
    ):
        refuse(node, call, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, owner)
    else:
        node.decisions.decide(
            call, lambda ctx, request, version: create_delegation_token(ctx, request, version, requester)
        )


def refuse(node: Node, call: Call, code: ErrorCode, owner: tuple[str, str]) -> None:
    """Answer as Kafka does: with the principals, and times of -1."""
    times = (NO_TIME_MS, NO_TIME_MS, NO_TIME_MS)
    requester = ("", "")
    if call.version >= FIRST_VERSION_WITH_REQUESTER:
        requester = (call.principal.type, call.principal.name)
    node.boundary.answer(call, CreateDelegationTokenResponse(code, *owner, *requester, *times))
