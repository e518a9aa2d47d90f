"""A share partition: a partition of a topic, as a share group reads it."""

from __future__ import annotations

import re

from kraftd.named_tuple import NamedTuple
from kraftd.types import Uuid, parse_uuid, uuid_text

MAX_INT = 2**31 - 1

_NUMBER = re.compile(r"[+-]?[0-9]+")


class SharePartitionKey(NamedTuple):
    """What the state of a share partition is kept by."""

    group_id: str
    topic_id: Uuid
    partition: int

    @property
    def text(self) -> str:
        """As FindCoordinator names it; its hash says which partition of ``__share_group_state`` has it."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def parse_key(text: str) -> SharePartitionKey:
    """A key of FindCoordinator: group id, which may have colons, topic id, partition. Raises ValueError."""
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()  # as Java splits
    if len(parts) < 3:
        raise ValueError(f"not of the form groupId:topicId:partition: {text!r}")
    *group, topic_id, partition = parts
    group_id = ":".join(group)
    if not group_id.strip():
        raise ValueError("a group id must not be blank")
    if _NUMBER.fullmatch(partition) is None or not -MAX_INT - 1 <= int(partition) <= MAX_INT:
        raise ValueError(f"not a partition: {partition!r}")
    return SharePartitionKey(group_id, parse_uuid(topic_id), int(partition))
