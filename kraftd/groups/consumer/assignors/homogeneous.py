"""The uniform assignor for members that are all subscribed to the same topics."""

from __future__ import annotations

from itertools import groupby, islice
from operator import itemgetter

from kraftd.ground.java_hashes import copied_index_order, copied_order, grown_order, uuid_hash
from kraftd.groups.consumer.assignors.spec import (
    PARTITIONS_A_MEMBER,
    PARTITIONS_A_SLICE,
    Assigned,
    GroupSpec,
    Growing,
    Partitions,
    Slices,
    Uuid,
)

TopicPartition = tuple[Uuid, int]


def assign_homogeneous(spec: GroupSpec) -> Slices[Assigned]:
    """Every member keeps what fits its quota; the rest goes to the members below theirs, in order."""
    topic_ids = yield from copied_order.begin(next(iter(spec.members.values())).topic_ids, uuid_hash)
    if not topic_ids:
        return {}
    free = _Free(spec, topic_ids)
    yield from free.find_unassigned()
    quotas = _Quotas(sum(spec.partition_counts[topic_id] for topic_id in topic_ids), len(spec.members))
    growing = Growing()
    unfilled: list[tuple[str, int]] = []
    done = 0
    for member_id, member in spec.members.items():
        left = quotas.begin()
        growing.keep(member_id, member.assigned)
        left = yield from free.revoke_beyond(growing, member_id, left)
        left = quotas.end(left)
        if left > 0:
            unfilled.append((member_id, left))
        done += PARTITIONS_A_MEMBER + sum(map(len, member.assigned.values()))
        if done >= PARTITIONS_A_SLICE:
            done = 0
            yield
    partitions = iter(free.partitions)
    for member_id, left in unfilled:
        while left > 0:
            count = min(left, PARTITIONS_A_SLICE)
            for topic_id, given in groupby(islice(partitions, count), itemgetter(0)):
                growing.give(member_id, topic_id, map(itemgetter(1), given))
            left -= count
            done += PARTITIONS_A_MEMBER + count
            if done >= PARTITIONS_A_SLICE:
                done = 0
                yield
    return (yield from growing.finish())


class _Quotas:
    """How many partitions each member may have: the first ones that have more than the least may keep one."""

    def __init__(self, partition_count: int, member_count: int) -> None:
        self.least, self.extra = divmod(partition_count, member_count)
        self.members_left = member_count
        self._has_extra = False

    def begin(self) -> int:
        """The quota of the next member."""
        self._has_extra = self.extra > 0
        return self.least + self._has_extra

    def end(self, left: int) -> int:
        """What is left of the member's quota; one that does not need an extra partition leaves it."""
        if left > 0 and self._has_extra and self.members_left > self.extra:
            left -= 1
            self._has_extra = False
        if self._has_extra:
            self.extra -= 1
        self.members_left -= 1
        return left


class _Free:
    """Partitions that no member has, or has any more."""

    def __init__(self, spec: GroupSpec, topic_ids: list[Uuid]) -> None:
        self.spec = spec
        self.topic_ids = topic_ids
        self.subscribed = frozenset(topic_ids)
        self.partitions: list[TopicPartition] = []

    def find_unassigned(self) -> Slices[None]:
        assigned: dict[Uuid, set[int]] = {topic_id: set() for topic_id in self.topic_ids}
        done = 0
        for member in self.spec.members.values():
            for topic_id, indexes in member.assigned.items():
                if topic_id in assigned:
                    assigned[topic_id].update(indexes)
                    done += len(indexes)
            if done >= PARTITIONS_A_SLICE:
                done = 0
                yield
        yield
        for topic_id in self.topic_ids:
            taken = assigned[topic_id]
            count = self.spec.partition_counts[topic_id]
            for first in range(0, count, PARTITIONS_A_SLICE):
                some = range(first, min(first + PARTITIONS_A_SLICE, count))
                self.partitions += [(topic_id, index) for index in some if index not in taken]
                done += 1 + len(some)
                if done >= PARTITIONS_A_SLICE:
                    done = 0
                    yield

    def revoke_beyond(self, growing: Growing, member_id: str, left: int) -> Slices[int]:
        """Take from a member what is beyond its quota, or of other topics.

        Return what is left of the quota.
        """
        old: Partitions = growing.assigned[member_id]
        for topic_id in grown_order(old, uuid_hash):
            indexes = old[topic_id]
            if topic_id not in self.subscribed:
                del growing.change(member_id)[topic_id]
            elif len(indexes) <= left:
                left -= len(indexes)
            else:
                own = growing.change(member_id)
                if len(indexes) > PARTITIONS_A_SLICE:
                    yield
                beyond = (yield from copied_index_order.begin(indexes))[left:]
                for first in range(0, len(beyond), PARTITIONS_A_SLICE):
                    some = beyond[first : first + PARTITIONS_A_SLICE]
                    own[topic_id].difference_update(some)
                    self.partitions += [(topic_id, index) for index in some]
                    if len(some) == PARTITIONS_A_SLICE:
                        yield
                if not own[topic_id]:
                    del own[topic_id]
                left = 0
        return left
