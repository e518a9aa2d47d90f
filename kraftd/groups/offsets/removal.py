"""How offsets and groups go: by age, with their topics, or by an operator's DeleteGroups."""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.ground.refusal import Refusal
from kraftd.groups.group import Group, GroupType
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, offset_record
from kraftd.groups.state import ShardState
from kraftd.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse

ZERO_UUID = bytes(16)


def expire_offsets(state: ShardState, group_ids: Iterable[str]) -> Outcome:
    """Remove offsets whose time is over, and groups that are empty without them."""
    records: list[CoordinatorRecord] = []
    for group_id in group_ids:
        group = state.groups.get(group_id)
        if group is None or group.type is GroupType.SHARE:
            continue  # a share group stays until it is deleted
        if expire_of_group(state, group, records) and group.is_empty():
            records += group.tombstones()
    return Outcome(records, atomic=False)


def expire_of_group(state: ShardState, group: Group, records: list[CoordinatorRecord]) -> bool:
    """Add tombstones of a group's expired offsets.

    Return whether no offset is left, neither committed nor in an open transaction.
    """
    group_id = group.group_id
    offsets = state.offsets.of_group(group_id)
    is_open = state.offsets.has_open(group_id)
    if not offsets:
        return not is_open
    start_of = group.retention_start()
    if start_of is None:
        return False
    retention_ms, now_ms = state.config.offsets_retention_minutes * 60_000, state.now_ms
    expired = 0
    for (topic, partition), committed in offsets.items():
        if (
            committed.is_expired(start_of(committed), now_ms, retention_ms)
            and not group.is_subscribed_to(topic)
            and not state.offsets.is_open(group_id, (topic, partition))
        ):
            records.append(offset_record(group_id, topic, partition, None))
            expired += 1
    state.counts.offset_expirations += expired
    return expired == len(offsets) and not is_open


def delete_groups(state: ShardState, group_ids: Iterable[str]) -> Outcome:
    """Delete groups without members, with all of their offsets."""
    records: list[CoordinatorRecord] = []
    results: list[DeletableGroupResult] = []
    for group_id in group_ids:
        try:
            group = state.group(group_id)
            group.check_delete()
        except Refusal as error:
            results.append(DeletableGroupResult(group_id, error.code))
            continue
        places = dict.fromkeys([*state.offsets.of_group(group_id), *state.offsets.open_places(group_id)])
        records += [offset_record(group_id, topic, partition, None) for topic, partition in places]
        records += group.tombstones()
        results.append(DeletableGroupResult(group_id))
    return Outcome(records, DeleteGroupsResponse(results=results))


def remove_topics(state: ShardState, topics: dict[str, bytes], group_ids: Iterable[str]) -> Outcome:
    """Remove the offsets that groups have in deleted topics, given by name and topic id."""
    records: list[CoordinatorRecord] = []
    for group_id in group_ids:
        for place, committed in state.offsets.of_group(group_id).items():
            if place[0] in topics and committed.topic_id in (ZERO_UUID, topics[place[0]]):
                records.append(offset_record(group_id, *place, None))
        # Offsets of open transactions name no topic id.
        opened = [place for place in state.offsets.open_places(group_id) if place[0] in topics]
        records += [offset_record(group_id, *place, None) for place in opened]
    return Outcome(records, atomic=False)
