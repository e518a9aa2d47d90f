"""The range assignor: of each topic, consecutive partitions for each member, in the order of the members.

Members with equal ranks get the same partitions of topics with as many partitions, so that such topics can be
joined. Static members come first, by instance id; then the others by member id.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from kraftd.groups.consumer.assignors.spec import PARTITIONS_A_SLICE, Assigned, GroupSpec, Slices, Uuid


class _Topic:
    """How a topic is divided: `extra` members get one partition more than the quota."""

    __slots__ = ("count", "extra", "next", "quota", "subscribers")

    def __init__(self, count: int) -> None:
        self.count = count
        self.subscribers = 0
        self.quota = self.extra = self.next = 0

    def divide(self) -> None:
        self.quota, self.extra = divmod(self.count, self.subscribers)

    def take(self) -> frozenset[int]:
        """The partitions of the next member."""
        start, size = self.next, self.quota
        if self.extra > 0:
            size += 1
            self.extra -= 1
        self.next = start + size
        return frozenset(range(start, self.next))


def assign_ranges(spec: GroupSpec) -> Slices[Assigned]:
    """Assign ranges; what members have had so far does not matter.

    As in Kafka, the first member's topics are those of all, if these are said to be subscribed to the same.
    """
    member_ids = sorted(spec.members, key=lambda member_id: _rank(spec, member_id))
    subscribed = {
        member_id: spec.members[member_ids[0] if spec.is_homogeneous else member_id].topic_ids
        for member_id in member_ids
    }
    # Members with one subscription share one object of it; by its identity, with how many members it has.
    shared: dict[int, tuple[Sequence[Uuid], int]] = {}
    for topic_ids in subscribed.values():
        shared[id(topic_ids)] = topic_ids, shared.get(id(topic_ids), (topic_ids, 0))[1] + 1
    topics: dict[Uuid, _Topic] = {}
    done = 0
    for topic_ids, member_count in shared.values():
        for topic_id in topic_ids:
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = _Topic(spec.partition_counts[topic_id])
            topic.subscribers += member_count
            done += 1
            if done % PARTITIONS_A_SLICE == 0:
                yield
    yield
    for topic in topics.values():
        topic.divide()
    left = {key: list(topic_ids) for key, (topic_ids, _) in shared.items()}
    assigned: Assigned = {}
    done = 0
    for member_id in member_ids:
        own = assigned[member_id] = dict[Uuid, AbstractSet[int]]()
        some_left: list[Uuid] = []
        for topic_id in left[id(subscribed[member_id])]:
            topic = topics[topic_id]
            if indexes := topic.take():
                own[topic_id] = indexes
            if topic.next < topic.count:
                some_left.append(topic_id)
            done += 1 + len(indexes)
            if done >= PARTITIONS_A_SLICE:
                done = 0
                yield
        left[id(subscribed[member_id])] = some_left
    return assigned


def _rank(spec: GroupSpec, member_id: str) -> tuple[bool, bytes]:
    """The order of members; Java compares strings by UTF-16 units."""
    instance_id = spec.members[member_id].instance_id
    name = member_id if instance_id is None else instance_id
    return instance_id is None, name.encode("utf-16-be", "surrogatepass")
