"""Requests to coordinators of groups and transactions, which are brokers: refused with NOT_COORDINATOR.

The client then looks for the coordinator again, and gets a broker even if this node was named
(`log_readers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kraftd.ground.pace import Pace, Slices
from kraftd.ground.refusal import Refusal
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.metadata_topic_node.node import MetadataTopicNode
    from kraftd.requests.call import Call

GROUP_US = 2  # microseconds, for the pace


def handle(node: MetadataTopicNode, call: Call) -> Slices[None]:
    """Refuse a request that a broker must answer as coordinator. Raises Refusal(NOT_COORDINATOR)."""
    yield from note_groups_of_brokers(node, call)
    raise Refusal(ErrorCode.NOT_COORDINATOR)


def note_groups_of_brokers(node: MetadataTopicNode, call: Call) -> Slices[None]:
    """Note that the client needs brokers as coordinators of the groups that its request names."""
    pace = Pace()
    for group in groups_of(call.message):
        node.log_readers.note_group_of_broker(call, group)
        if pace.spent(GROUP_US):
            yield


def groups_of(request: object) -> Iterator[str]:
    """The groups that a request to a coordinator names."""
    for field in ("groups", "group_ids", "groups_names"):
        named = getattr(request, field, None)
        if named:
            yield from (one if isinstance(one, str) else one.group_id for one in named)
            return
    group = getattr(request, "group_id", None)
    if group is not None:
        yield group


def asks_for_log(topics: Sequence[Any] | None, pace: Pace) -> Slices[bool]:
    """Return whether the metadata topic is the only one named; None stands for all topics."""
    for topic in topics or ():
        if not is_of_log(topic.name, getattr(topic, "topic_id", ZERO_UUID)):
            return False
        if pace.spent(1):
            yield
    return bool(topics)


def is_of_log(topic: str, topic_id: bytes) -> bool:
    """Return whether a name, or an id, is the metadata topic's."""
    return topic == METADATA_TOPIC or topic_id == METADATA_TOPIC_ID
