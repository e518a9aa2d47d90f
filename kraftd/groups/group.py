"""What every kind of group is to offsets, lists and deletions.

Classic groups and consumer groups are two kinds. Another one comes beside them: a class with these methods,
rows in `kraftd.groups.replay`, and APIs of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

from kraftd.groups.offsets.committed import Committed
from kraftd.groups.records import CoordinatorRecord
from kraftd.messages.list_groups_response import ListedGroup

# The time from which an offset's retention runs, in milliseconds.
RetentionStart = Callable[[Committed], int]
# Raises Refusal if a member may not commit an offset of this partition, given by topic id and index.
CommitCheck = Callable[[bytes, int], None]


class GroupType(Enum):
    """The protocols of groups, with the names of ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(Protocol):
    """A group of any protocol."""

    group_id: str

    @property
    def type(self) -> GroupType: ...

    def is_empty(self) -> bool:
        """Return whether the group has no member and none on its way."""

    def state_name(self) -> str:
        """The state as ListGroups shows it."""

    def listed(self) -> ListedGroup: ...

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> CommitCheck | None:
        """Raise Refusal if this member may not commit offsets; return what is still to be checked of each."""

    def check_fetch(self, member_id: str | None, member_epoch: int, *, is_latest: bool) -> None:
        """Raise Refusal if this member may not read offsets; is_latest: not as of the high watermark."""

    def check_offset_delete(self) -> None:
        """Raise Refusal if the group's offsets may not be deleted by an operator."""

    def check_delete(self) -> None:
        """Raise Refusal if the group may not be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether members may be reading the topic, so that its offsets are kept."""

    def retention_start(self) -> RetentionStart | None:
        """From when offsets age; None if they do not age now."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """Records that remove the group."""
