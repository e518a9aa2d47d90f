"""Requests of transactions: handed to the coordinator, which authorizes and answers them
(`kraftd.groups.transactions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.answers.unread_denials import unread as unread
from kraftd.wire.api import ApiKey

if TYPE_CHECKING:
    from kraftd.broker_node.node import BrokerNode
    from kraftd.requests.call import Call
    from kraftd.requests.holds import Work


def handle(node: BrokerNode, call: Call) -> Work | None:
    if not node.knows_metadata(call):
        return None
    if call.is_large or call.key == ApiKey.LIST_TRANSACTIONS:
        return node.coordinators.transactions.handle_in_slices(call)
    node.coordinators.transactions.handle(call)
    return None
