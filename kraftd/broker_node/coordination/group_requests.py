"""Requests of groups: handed to the coordinator, which authorizes and answers them (`kraftd.groups`)."""

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
    if call.key == ApiKey.LIST_GROUPS:
        return node.groups.list_in_slices(call)
    if call.is_large:
        return node.groups.handle_in_pieces(call)
    if call.key in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE):
        return node.groups.describe_in_slices(call)
    prepared = node.groups.prepared(call)
    if prepared is None:
        node.groups.handle(call)
    return prepared
