"""Groups of every protocol, their members, and their rebalances.

A classic group's record has all its members, and is written when a rebalance is complete. Of the other
protocols each member has records of its own; behind them the epoch of the group is written when a rebalance
begins.
"""

from __future__ import annotations

from typing import Any

from kraftd.groups.records import CoordinatorRecord
from kraftd.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kraftd.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraftd.messages.group_metadata_key import GroupMetadataKey
from kraftd.messages.group_metadata_value import GroupMetadataValue
from kraftd.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraftd.messages.share_group_metadata_key import ShareGroupMetadataKey
from kraftd.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kraftd.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kraftd.spark.coordinators.records import Place
from kraftd.spark.tables.columns import Row, Rows
from kraftd.wire.message import Message

CLASSIC = "classic"
_EPOCHS: dict[type[Message], str] = {
    ConsumerGroupMetadataKey: "consumer",
    ShareGroupMetadataKey: "share",
    StreamsGroupMetadataKey: "streams",
}
_MEMBERS = (ConsumerGroupMemberMetadataKey, ShareGroupMemberMetadataKey, StreamsGroupMemberMetadataKey)


class Groups:
    """The groups in one partition of ``__consumer_offsets``."""

    def __init__(self, coordinator_partition: int) -> None:
        self._partition = coordinator_partition
        self._groups: dict[str, Row] = {}
        self._members: dict[str, dict[str, Row]] = {}

    def add(self, place: Place, record: CoordinatorRecord) -> Rows:
        """Apply a record; the row of `rebalances` that it makes, if it does."""
        key: Any = record.key
        if isinstance(key, GroupMetadataKey):
            if isinstance(record.value, GroupMetadataValue):
                return self._classic(place, key.group, record.value)
            self._remove(key.group, CLASSIC)
        elif type(key) in _EPOCHS:
            group_type = _EPOCHS[type(key)]
            value: Any = record.value
            if value is not None:
                members = self._members.get(key.group_id, {})
                return self._rebalance(place, key.group_id, group_type, value.epoch, members, {})
            self._remove(key.group_id, group_type)
        elif isinstance(key, _MEMBERS):
            members = self._members.setdefault(key.group_id, {})
            if record.value is None:
                members.pop(key.member_id, None)
            else:
                members[key.member_id] = _member(key.member_id, record.value)
        return []

    def rows(self) -> Rows:
        """The rows of `groups`."""
        found = []
        for group_id, row in self._groups.items():
            if row["group_type"] != CLASSIC:
                members = list(self._members.get(group_id, {}).values())
                row = row | {"members": members, "member_count": len(members)}
            found.append(row)
        return found

    def _classic(self, place: Place, group_id: str, value: GroupMetadataValue) -> Rows:
        members = {one.member_id: _member(one.member_id, one) for one in value.members}
        words = {
            "protocol_type": value.protocol_type or None,
            "protocol": value.protocol or None,
            "leader_id": value.leader or None,
        }
        return self._rebalance(place, group_id, CLASSIC, value.generation, members, words)

    def _rebalance(
        self,
        place: Place,
        group_id: str,
        group_type: str,
        generation: int,
        members: dict[str, Row],
        words: Row,
    ) -> Rows:
        """The group after a record; a row if it has another generation, or none is known before it."""
        before = self._groups.get(group_id)
        old = {} if before is None else {one["member_id"] for one in before["members"]}
        row = {
            "group_id": group_id,
            "group_type": group_type,
            "generation": generation,
            "protocol_type": None,
            "protocol": None,
            "leader_id": None,
            "members": list(members.values()),
            "member_count": len(members),
            "coordinator_partition": self._partition,
            "offset": place.offset,
            "timestamp_ms": place.timestamp_ms,
            **words,
        }
        self._groups[group_id] = row
        if before is not None and (before["group_type"], before["generation"]) == (group_type, generation):
            return []
        return [
            {
                **row,
                "old_generation": None if before is None else before["generation"],
                "joined": [member for member in members if member not in old],
                "left": [member for member in old if member not in members],
            }
        ]

    def _remove(self, group_id: str, group_type: str) -> None:
        """A group of one type may have replaced one of another: that is not removed."""
        found = self._groups.get(group_id)
        if found is not None and found["group_type"] == group_type:
            del self._groups[group_id]
            self._members.pop(group_id, None)


def _member(member_id: str, value: Any) -> Row:
    """What every protocol knows of a member."""
    instance = getattr(value, "group_instance_id", None) or getattr(value, "instance_id", None)
    return {
        "member_id": member_id,
        "group_instance_id": instance,
        "client_id": value.client_id,
        "client_host": value.client_host,
    }
