"""Requests of transactions: handed to the coordinator, which authorizes and answers them
(`kraftd.groups.transactions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.unread_denials import unread as unread

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call


def handle(node: BrokerNode, call: Call) -> None:
    if node.knows_metadata(call):
        node.transactions.handle(call)
