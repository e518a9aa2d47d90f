"""RenewDelegationToken (39), v1-2: a later expiry for a token (KIP-48).

Authorization: none; the sender must be the owner or a renewer. Sent by: admin clients. Answered after commit.
Errors: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND,
DELEGATION_TOKEN_OWNER_MISMATCH, DELEGATION_TOKEN_EXPIRED, UNSUPPORTED_VERSION.
Differs from Apache Kafka: nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.tokens.change import renew_delegation_token
from kraftd.controller_node.apis.token_requests import change_expiry
from kraftd.messages.renew_delegation_token_response import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    change_expiry(node, call, renew_delegation_token, RenewDelegationTokenResponse)
