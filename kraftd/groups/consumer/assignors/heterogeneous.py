"""The uniform assignor for members with different subscriptions.

Partitions without owner go to the least loaded subscribers. Then partitions move from more to less loaded
ones, topic by topic, until a round moves none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter

from kraftd.groups.consumer.assignors.balancer import Balancer
from kraftd.groups.consumer.assignors.spec import (
    PARTITIONS_A_SLICE,
    Assigned,
    GroupSpec,
    Growing,
    Slices,
    Uuid,
)

MAX_ROUNDS = 16  # subscriptions that overlap converge slowly; this is balanced enough
NO_OWNER = -1
MEMBERS_A_PARTITION = 5  # to look at the load of so many costs as much as to assign a partition


def assign_heterogeneous(spec: GroupSpec) -> Slices[Assigned]:
    """Balance topic by topic, those with the most partitions for each subscriber first."""
    levelling = _Levelling(spec)
    yield from levelling.find_subscribers()
    if not levelling.subscribers:
        return {}
    yield from levelling.keep_subscribed()
    yield from levelling.assign_free()
    yield from levelling.balance()
    return (yield from levelling.growing.finish())


class _Levelling:
    """Owners of partitions as indexes of members, and how many partitions each member has."""

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.member_ids = list(spec.members)
        self.loads = [0] * len(self.member_ids)
        self.subscribers: dict[Uuid, list[int]] = {}
        self.owners: dict[Uuid, list[int]] = {}
        self.growing = Growing()
        self.work = 0  # since the last pause, in members and partitions
        self.subscriptions: dict[int, frozenset[Uuid]] = {}  # members share objects: by their identity

    def find_subscribers(self) -> Slices[None]:
        """Find the members of each topic; topics with the same members share one list."""
        members: dict[int, tuple[Sequence[Uuid], list[int]]] = {}
        for number, member in enumerate(self.spec.members.values()):
            members.setdefault(id(member.topic_ids), (member.topic_ids, []))[1].append(number)
        found: dict[Uuid, list[int]] = {}  # the numbers of its subscriptions, by topic
        work = 0
        for at, (key, (topic_ids, _)) in enumerate(members.items()):
            self.subscriptions[key] = frozenset(topic_ids)
            for topic_id in topic_ids:
                found.setdefault(topic_id, []).append(at)
                work += 1
                if work % PARTITIONS_A_SLICE == 0:
                    yield
        numbers = [some for _, some in members.values()]
        merged: dict[tuple[int, ...], list[int]] = {}
        for topic_id, places in found.items():
            same = tuple(places)
            if same not in merged:
                merged[same] = sorted(number for at in same for number in numbers[at])
                work += len(merged[same])
            self.subscribers[topic_id] = merged[same]
            self.owners[topic_id] = [NO_OWNER] * self.spec.partition_counts[topic_id]
            work += 1
            if work >= PARTITIONS_A_SLICE:
                work = 0
                yield

    def keep_subscribed(self) -> Slices[None]:
        """Every member keeps what it has of topics to which it is subscribed."""
        done = 0
        for number, (member_id, member) in enumerate(self.spec.members.items()):
            self.growing.keep(member_id, member.assigned)
            topic_ids = self.subscriptions[id(member.topic_ids)]
            done += 1 + sum(map(len, member.assigned.values()))
            if done >= PARTITIONS_A_SLICE:
                done = 0
                yield
            for topic_id, indexes in member.assigned.items():
                if topic_id not in topic_ids:
                    del self.growing.change(member_id)[topic_id]
                    continue
                self.loads[number] += len(indexes)
                owners = self.owners[topic_id]
                for index in indexes:
                    owners[index] = number

    def ranked(self, topic_ids: Iterable[Uuid]) -> Slices[list[Uuid]]:
        """Topics in order: most partitions a subscriber, then fewest subscribers, then by id as in Java."""
        ranks: dict[tuple[float, int], dict[Uuid, int]] = {}
        for number, topic_id in enumerate(topic_ids, 1):
            count, subscribers = self.spec.partition_counts[topic_id], len(self.subscribers[topic_id])
            # Java compares both halves of an id as signed numbers.
            key = int.from_bytes(topic_id, "big", signed=True) ^ (1 << 63)
            ranks.setdefault((-(count / subscribers), subscribers), {})[topic_id] = key
            if number % PARTITIONS_A_SLICE == 0:
                yield
        return [
            topic_id
            for _, keys in sorted(ranks.items(), key=itemgetter(0))
            for topic_id in sorted(keys, key=keys.__getitem__)
        ]

    def assign_free(self) -> Slices[None]:
        done = 0
        for topic_id in (yield from self.ranked(self.subscribers)):
            free = [index for index, owner in enumerate(self.owners[topic_id]) if owner == NO_OWNER]
            if not free:
                continue
            subscribers = self.subscribers[topic_id]
            balancer = Balancer(self.loads, subscribers)
            done += len(subscribers) // MEMBERS_A_PARTITION
            for index in free:
                self.give(topic_id, index, balancer.least_loaded())
                done += 1
                if done >= PARTITIONS_A_SLICE:
                    done = 0
                    yield
        yield

    def balance(self) -> Slices[None]:
        shared = [topic_id for topic_id, some in self.subscribers.items() if len(some) >= 2]
        topic_ids = yield from self.ranked(shared)
        last_moved: Uuid | None = None
        looked_at = 0
        for _ in range(MAX_ROUNDS):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return  # a whole round has moved nothing else
                looked_at += MEMBERS_A_PARTITION + len(self.subscribers[topic_id])
                if looked_at >= MEMBERS_A_PARTITION * PARTITIONS_A_SLICE:
                    looked_at = 0
                    yield
                moved = yield from self.balance_topic(topic_id)
                if moved or last_moved is None:
                    last_moved = topic_id

    def balance_topic(self, topic_id: Uuid) -> Slices[int]:
        """Move partitions of a topic from the most to the least loaded subscribers; return how many."""
        loads = [self.loads[number] for number in self.subscribers[topic_id]]
        if max(loads) - min(loads) <= 1:
            return 0
        balancer = Balancer(self.loads, self.subscribers[topic_id])
        self.work += len(loads) + len(self.owners[topic_id])
        if self.work >= PARTITIONS_A_SLICE:
            self.work = 0
            yield
        by_owner: dict[int, list[int]] = {}
        for index, owner in enumerate(self.owners[topic_id]):
            by_owner.setdefault(owner, []).append(index)
        moved = 0
        while not balancer.is_balanced():
            giver = balancer.most_loaded()
            while giver is not None and not by_owner.get(giver):
                balancer.exclude()
                giver = balancer.most_loaded()
            if giver is None:
                break
            index = by_owner[giver].pop()
            taker = balancer.least_loaded()
            if balancer.is_balanced():
                break
            self.take(topic_id, index, giver)
            self.give(topic_id, index, taker)
            moved += 1
            if moved % PARTITIONS_A_SLICE == 0:
                yield
        return moved

    def give(self, topic_id: Uuid, index: int, number: int) -> None:
        self.growing.give(self.member_ids[number], topic_id, (index,))
        self.owners[topic_id][index] = number
        self.loads[number] += 1

    def take(self, topic_id: Uuid, index: int, number: int) -> None:
        own = self.growing.change(self.member_ids[number])
        own[topic_id].discard(index)
        if not own[topic_id]:
            del own[topic_id]
        self.loads[number] -= 1
