"""A share group: its members, its target, and the partitions that the share coordinator knows."""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.ground.refusal import Refusal
from kraftd.groups.group import Group, GroupType
from kraftd.groups.modern_group import ModernGroup
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.share.member import ShareMember
from kraftd.groups.share.records import group_tombstones
from kraftd.groups.share.state_partitions import UNTOUCHED, StatePartitions
from kraftd.groups.timeline import Timeline
from kraftd.messages.list_groups_response import ListedGroup
from kraftd.wire.error_code import ErrorCode

PROTOCOL_TYPE = "share"
EMPTY, STABLE = "Empty", "Stable"


Groups = Mapping[str, Group]  # by id


class ShareGroup(ModernGroup[ShareMember]):
    """Kafka's ShareGroup. asked: the partitions that share coordinators were asked to begin, without an
    answer yet; in no record.
    """

    __slots__ = ("_state", "asked")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self._state: dict[None, StatePartitions] = {}
        self.asked: set[tuple[bytes, int]] = set()

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"<ShareGroup {self.group_id} epoch {facts.epoch}, target {facts.target_epoch},"
            f" {len(self.members)} members>"
        )

    # What every kind of group is asked

    @property
    def type(self) -> GroupType:
        return GroupType.SHARE

    def state_name(self) -> str:
        """The state as of the high watermark."""
        return STABLE if any(True for _ in self.timeline.committed_items(self.members)) else EMPTY

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, PROTOCOL_TYPE, self.state_name(), self.type.value)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> None:
        raise self._refusal()

    def check_fetch(self, member_id: str | None, member_epoch: int, *, is_latest: bool) -> None:
        raise self._refusal()

    def check_offset_delete(self) -> None:
        raise self._refusal()

    def _refusal(self) -> Refusal:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def retention_start(self) -> None:
        """A share group has no committed offsets."""

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id)

    # Members and state

    @property
    def state(self) -> StatePartitions | None:
        """What the share coordinator knows; None if nothing was written of that."""
        return self._state.get(None)

    def known(self) -> StatePartitions:
        return self.state or UNTOUCHED

    # Changes, by records

    def set_state(self, state: StatePartitions | None) -> None:
        if state is None:
            self.timeline.remove(self._state, None)
        else:
            self.timeline.put(self._state, None, state)

    def put(self, member: ShareMember) -> None:
        """Add a member, or replace it."""
        old = self.put_member(member)
        self.count_names(old, member)

    def remove(self, member_id: str) -> None:
        old = self.timeline.remove(self.members, member_id)
        if old is not None:
            self.count_names(old, None)


def share_group(groups: Groups, group_id: str) -> ShareGroup:
    """A share group; Refusal if there is none."""
    group = groups.get(group_id)
    if isinstance(group, ShareGroup):
        return group
    reason = "not found" if group is None else "is not a share group"
    raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")


def found_group(groups: Groups, timeline: Timeline, group_id: str, *, may_make: bool) -> ShareGroup:
    """The group; a missing one may be made. Raises Refusal."""
    present = groups.get(group_id)
    if isinstance(present, ShareGroup):
        return present
    if present is not None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if not may_make:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return ShareGroup(group_id, timeline)
