"""A group of a protocol that this coordinator does not serve: its partition was written by another broker.

It is kept, so that its id is not given to a classic group and its offsets do not expire.
"""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.groups.group import GroupType, RetentionStart
from kraftd.groups.records import CoordinatorRecord
from kraftd.messages.list_groups_response import ListedGroup
from kraftd.wire.error_code import ErrorCode


class OtherGroup:
    """Refuses all that would change it."""

    __slots__ = ("_type", "group_id")

    def __init__(self, group_id: str, group_type: GroupType) -> None:
        self.group_id = group_id
        self._type = group_type

    def __repr__(self) -> str:
        return f"<OtherGroup {self.group_id} of {self._type.value}>"

    @property
    def type(self) -> GroupType:
        return self._type

    def is_empty(self) -> bool:
        return False

    def state_name(self) -> str:
        return "Unknown"

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, "consumer", self.state_name(), self._type.value)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_fetch(self, member_id: str | None, member_epoch: int, *, is_latest: bool) -> None:
        """Offsets are shown: operators read them without being members."""
        if member_id or member_epoch >= 0:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_offset_delete(self) -> None:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return True

    def retention_start(self) -> RetentionStart | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return []
