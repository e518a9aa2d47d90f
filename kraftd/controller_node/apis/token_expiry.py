"""RenewDelegationToken (39) and ExpireDelegationToken (40), v1-2: a later expiry for a token; another one, or
its end (KIP-48).

Authorization: none; the sender must be the owner or a renewer. Sent by: admin clients. Answered after commit.
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND,
DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED, UNSUPPORTED_VERSION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftd.controller.tokens.change import expire_delegation_token, renew_delegation_token
from kraftd.controller.tokens.refusals import refused_token
from kraftd.controller_node.apis.token_requests import may_change_tokens
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    if not may_change_tokens(node, call):
        denied = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        names = (call.principal.type, call.principal.name)
        node.boundary.answer(call, refused_token(call.key, call.version, call.message, names, denied))
        return
    renews = call.key == ApiKey.RENEW_DELEGATION_TOKEN
    change: Any = renew_delegation_token if renews else expire_delegation_token
    requester = str(call.principal)
    node.decisions.decide(call, lambda ctx, request, version: change(ctx, request, version, requester))
