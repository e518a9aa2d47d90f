"""What all APIs of the quorum share: the consensus core answers them, at once or later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kraftd.server.call import Call
    from kraftd.server.node import Node


def handle(node: Node, call: Call) -> None:
    """Hand the request to the core."""
    node.ask_core(call)
