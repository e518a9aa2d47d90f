"""The connections that may request delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraftd.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

PLAINTEXT: Final = 0
SSL: Final = 1


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
