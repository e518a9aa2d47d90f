"""The groups that the broker of the process coordinates, with their lag; those that lag most have rows.

Found in slices, as a broker may keep a hundred thousand committed offsets.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from heapq import nlargest
from typing import TypeVar

from msgspec import Struct

from kraftd.broker_node.node import BrokerNode
from kraftd.groups.group import Group, GroupType
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.offsets.store import TopicPartition
from kraftd.groups.shard import ShardStatus

Item = TypeVar("Item")

SLICE_PARTITIONS = 500
MAX_GROUPS = 20  # with rows


class GroupRow(Struct, frozen=True):
    """A group. `lag` is in records, of the `partitions` with a committed offset and a replica here;
    `elsewhere` are those without one. A share group's offsets are the share coordinator's: it has no lag.
    """

    id: str
    type: str
    state: str
    members: int
    partitions: int
    elsewhere: int
    lag: int | None


class GroupSurvey(Struct, frozen=True):
    """How many groups there are, and those that lag most."""

    count: int
    furthest: list[GroupRow]


class _Lag:
    """What is found of a group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.partitions = self.elsewhere = self.lag = 0

    def add(self, broker: BrokerNode, offsets: Iterable[tuple[TopicPartition, Committed]]) -> None:
        for place, committed in offsets:
            hosted = broker.replicas.get(*place)
            if hosted is None or hosted.partition is None:
                self.elsewhere += 1
            else:
                self.partitions += 1
                offset = max(0, committed.offset)  # clients may commit negative ones
                self.lag += max(0, hosted.partition.high_watermark - offset)

    def row(self) -> GroupRow:
        group = self.group
        return GroupRow(
            group.group_id,
            group.type.value,
            group.state_name(),
            len(getattr(group, "members", ())),
            self.partitions,
            self.elsewhere,
            None if group.type is GroupType.SHARE else self.lag,
        )


def survey_groups(broker: BrokerNode) -> Generator[None, None, GroupSurvey]:
    """Go through the committed offsets of all groups; yields after each slice."""
    count = 0
    furthest: list[_Lag] = []
    for shard in list(broker.groups.coordinator.shards.values()):
        if shard.status is not ShardStatus.ACTIVE:
            continue
        for groups in slices(shard.state.groups.values()):
            for group in groups:
                found = _Lag(group)
                for part in slices(shard.state.offsets.of_group(group.group_id).items()):
                    found.add(broker, part)
                    yield
                furthest.append(found)
            count += len(groups)
            furthest = nlargest(MAX_GROUPS, furthest, lambda one: one.lag)
            yield
    return GroupSurvey(count, [one.row() for one in furthest])


def slices(every: Iterable[Item]) -> Iterator[list[Item]]:
    """Those of now, though others are added or removed meanwhile."""
    now = list(every)
    return (now[start : start + SLICE_PARTITIONS] for start in range(0, len(now), SLICE_PARTITIONS))
