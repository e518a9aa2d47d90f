"""What must hold of a coordinator, whatever is asked of it: checked beside a model of offsets and owners."""

from __future__ import annotations

from typing import Any

from kraftd.groups.classic.group import ClassicGroup
from kraftd.groups.classic.states import EMPTY, STABLE
from kraftd.groups.state import ShardState
from tests.groups.desk import Desk

Place = tuple[str, int]


class Owners:
    """Which member has been given a partition in a generation, as the answers to SyncGroup say."""

    def __init__(self) -> None:
        self.given: dict[tuple[str, int, bytes], str] = {}
        self.successor: dict[str, str] = {}  # of a static member, by its old id

    def give(self, group: str, generation: int, partitions: bytes, member_id: str) -> None:
        """A member owns partitions, a byte each; AssertionError if another one does."""
        for number in partitions:
            key = (group, generation, bytes([number]))
            owner = self.given.setdefault(key, member_id)
            while owner != member_id and owner in self.successor:
                owner = self.successor[owner]
            assert owner == member_id, f"{key} is owned by {owner} and {member_id}"
            self.given[key] = member_id


def persisted(state: ShardState) -> dict[str, Any]:
    """What a shard must be once it is loaded again: its offsets, and groups that do not rebalance."""
    offsets = {group_id: dict(rows) for group_id, rows in state.offsets.by_group.items() if rows}
    pending = {number: dict(rows) for number, rows in state.offsets.pending.items() if rows}
    groups: dict[str, Any] = {}
    for group_id, group in state.groups.items():
        assert isinstance(group, ClassicGroup)
        if group.state in (EMPTY, STABLE):
            groups[group_id] = (
                group.state,
                group.generation if group.members or group.generation else 0,
                group.protocol_name if group.members else None,
                group.leader_id,
                {
                    member.member_id: (
                        member.instance_id,
                        member.metadata(group.protocol_name),
                        member.assignment,
                        member.session_timeout_ms,
                        member.rebalance_timeout_ms,
                    )
                    for member in group.members.values()
                },
            )
    return {"offsets": offsets, "pending": pending, "groups": groups}


def check_replay(desk: Desk, with_groups: bool = True) -> None:
    """A coordinator that loads the logs knows what this one knows. Nothing may be on its way."""
    loaded = desk.new_coordinator()
    own, desk.coordinator = desk.coordinator, loaded
    answers, notes = desk.answers, desk.notes
    desk.answers, desk.notes = {}, []
    desk.load()
    desk.coordinator, desk.answers, desk.notes = own, answers, notes
    for number, shard in own.shards.items():
        after = persisted(loaded.shards[number].state)
        now = persisted(shard.state)
        assert now["offsets"] == after["offsets"]
        assert now["pending"] == after["pending"]
        for group_id, group in now["groups"].items() if with_groups else ():
            if group_id in after["groups"]:
                assert group == after["groups"][group_id], group_id
            else:
                is_bare = group[0] is EMPTY and group_id not in now["offsets"]
                assert is_bare or group_id in loaded.shards[number].state.groups, group_id


def check_group(group: ClassicGroup) -> None:
    """The counts that a group keeps fit its members."""
    waiting = sum(member.awaiting_join is not None for member in group.members.values())
    assert group.joining_count == waiting
    assert set(group.static_members.values()) <= set(group.members)
    assert group.pending_sync <= set(group.members)
    assert not group.pending_join & set(group.members)
    assert (group.leader_id is None) == (not group.members)
    if group.members:
        assert group.leader_id in group.members
        counts: dict[str, int] = {}
        for member in group.members.values():
            for name, _ in member.protocols:
                counts[name] = counts.get(name, 0) + 1
        assert counts == group.supported
    else:
        assert not group.supported
