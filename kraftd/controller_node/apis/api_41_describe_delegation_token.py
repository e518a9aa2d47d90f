"""DescribeDelegationToken (41), v1-3: the tokens that the sender may see, with their HMACs (KIP-48, KIP-373).

Authorization: none for tokens that the sender owns or may renew; DESCRIBE on the token or DESCRIBE_TOKENS on
its owner for others. Sent by: admin clients. Answered by every controller, once what it shows is committed.
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
Differs from Apache Kafka: its controllers answer UNKNOWN_SERVER_ERROR; this is what its brokers answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.tokens.describe import describe_delegation_tokens
from kraftd.controller_node.apis.token_requests import may_change_tokens
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    if not may_change_tokens(node, call):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if not node.following.knows_metadata(call):
        return
    requester, allows = str(call.principal), node.boundary.allows

    def may_describe(token_id: str, owner: str) -> bool:
        return allows(call, AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token_id) or allows(
            call, AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, owner
        )

    node.decisions.decide(
        call,
        lambda ctx, request, version: describe_delegation_tokens.begin(
            ctx, request, version, requester, may_describe
        ),
        on_standby=True,
    )
