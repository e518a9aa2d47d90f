"""The connections that may request delegation tokens (KIP-48), and changes of a token's expiry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.security.principals import ANONYMOUS
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

PLAINTEXT: Final = 0
SSL: Final = 1
NO_TIME_MS: Final = -1  # in the answer to a request that is denied


def may_change_tokens(node: Node, call: Call) -> bool:
    """Return whether the sender is authenticated by something other than a token.

    A request in an Envelope arrived at a broker, which has checked its own listener; only the controllers'
    listener may be PLAINTEXT.
    """
    if call.principal.token_authenticated:
        return False
    if call.envelope is not None:
        return True
    protocol = node.identity.security_protocol(call.listener)
    return protocol != PLAINTEXT and not (protocol == SSL and call.principal == ANONYMOUS)


def change_expiry(
    node: Node,
    call: Call,
    change: Callable[[Context, Any, int, str], Decision[Any]],
    response: type[Any],
) -> None:
    """Decide by `change` for the call's principal, or refuse with `response` if it may not."""
    if not may_change_tokens(node, call):
        refused = response(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME_MS)
        node.boundary.answer(call, refused)
        return
    requester = str(call.principal)
    node.decisions.decide(call, lambda ctx, request, version: change(ctx, request, version, requester))
