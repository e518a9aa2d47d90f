"""Requests to coordinators of groups and transactions, which are brokers: refused with NOT_COORDINATOR.

The client then looks for the coordinator again, and gets a broker even if this node was named
(`log_readers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.decision import Refusal
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.client_node.node import ClientNode
    from kraftd.requests.call import Call


def handle(node: ClientNode, call: Call) -> None:
    """Refuse a request that a broker must answer as coordinator. Raises Refusal(NOT_COORDINATOR)."""
    note_groups_of_brokers(node, call)
    raise Refusal(ErrorCode.NOT_COORDINATOR)


def note_groups_of_brokers(node: ClientNode, call: Call) -> None:
    """Note that the client needs brokers as coordinators of the groups that its request names."""
    for group in groups_of(call.message):
        node.log_readers.note_group_of_broker(call, group)


def groups_of(request: object) -> list[str]:
    """The groups that a request to a coordinator names."""
    for field in ("groups", "group_ids", "groups_names"):
        named = getattr(request, field, None)
        if named:
            return [one if isinstance(one, str) else one.group_id for one in named]
    group = getattr(request, "group_id", None)
    return [] if group is None else [group]


def is_of_log(topic: str, topic_id: bytes) -> bool:
    """Return whether a name, or an id, is the metadata topic's."""
    return topic == METADATA_TOPIC or topic_id == METADATA_TOPIC_ID
