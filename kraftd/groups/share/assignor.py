"""The simple assignor of share groups: as many partitions for each member, few of which move.

If there are more members than partitions, several members share each. Members that are subscribed to
different topics divide each topic by itself. The result is that of Apache Kafka's class of the same name, so
the order of its hash maps is kept where it decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from kraftd.ground.java_hashes import (
    HashTable,
    copied_index_order,
    grown_order,
    int_hash,
    new_map_buckets,
    uuid_hash,
)
from kraftd.groups.consumer.assignors.spec import (
    Assigned,
    GroupSpec,
    Growing,
    Partitions,
    Slices,
    Uuid,
)

SIMPLE = "simple"

Place = tuple[Uuid, int]

PLACES_A_SLICE = 500
PLACES_SEEN_A_SLICE = 4000


def assign_simply(spec: GroupSpec, assignable: Partitions) -> Slices[Assigned]:
    """Assign the assignable partitions of the members' topics."""
    if not spec.members:
        return {}
    if spec.is_homogeneous:
        topic_ids = next(iter(spec.members.values())).topic_ids
        if not topic_ids:
            return {}
        dividing = _Dividing(spec, places_of(spec, topic_ids, assignable), list(range(len(spec.members))))
        yield from dividing.run(frozenset(topic_ids))
        return (yield from dividing.growing.finish())
    return (yield from _assign_by_topic(spec, assignable))


def _assign_by_topic(spec: GroupSpec, assignable: Partitions) -> Slices[Assigned]:
    """Divide each topic among its subscribers, one after the other."""
    subscribers: dict[Uuid, list[int]] = {}
    for number, member in enumerate(spec.members.values()):
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(number)
    if not subscribers:
        return {}
    growing = None
    for topic_id, numbers in subscribers.items():
        dividing = _Dividing(spec, places_of(spec, [topic_id], assignable), numbers, growing, topic_id)
        growing = dividing.growing
        yield from dividing.run(frozenset((topic_id,)))
    assert growing is not None
    return (yield from growing.finish())


def places_of(spec: GroupSpec, topic_ids: Iterable[Uuid], assignable: Partitions) -> list[Place]:
    """The partitions that may be assigned, topic by topic."""
    places: list[Place] = []
    for topic_id in topic_ids:
        known = assignable.get(topic_id, ())
        places += [(topic_id, index) for index in range(spec.partition_counts[topic_id]) if index in known]
    return places


def place_hash(place: Place) -> int:
    """``hashCode`` of Kafka's record of a topic id and a partition."""
    return uuid_hash(place[0]) * 31 + place[1]


def index_hash(place: Place) -> int:
    """As Kafka hashes a partition where all are of one topic."""
    return place[1]


class _Dividing:
    """Divides partitions among some of the members, which are numbered in the order of `spec`.

    only: the one topic that is divided; None for all. sharing: how many members are to read each partition.
    """

    def __init__(
        self,
        spec: GroupSpec,
        places: list[Place],
        numbers: list[int],
        growing: Growing | None = None,
        only: Uuid | None = None,
    ) -> None:
        self.names = list(spec.members)
        self.places = places
        self.numbers = numbers
        self.only = only
        self.hash_of = place_hash if only is None else index_hash
        self.old = [member.assigned for member in spec.members.values()]
        if growing is None:
            growing = Growing()
            for name, member in spec.members.items():
                growing.keep(name, member.assigned)
        self.growing = growing
        self.sharing = -(-len(numbers) // len(places)) if places else 0
        self.wanted = dict.fromkeys(range(len(self.names)), 0) | self._wanted()
        # The members of each partition, and the partitions of each member, both in Java's order.
        self.members: HashTable[Place, HashTable[int, None]] = HashTable(
            self.hash_of, new_map_buckets(len(places))
        )
        self.has: dict[int, HashTable[Place, None]] = {}

    def _wanted(self) -> dict[int, int]:
        """How many partitions each member is to have; rounded so that all together are as many as wanted."""
        precise = self.sharing * len(self.places) / len(self.numbers)
        ends = [ceil(precise * number) for number in range(len(self.numbers) + 1)]
        return {member: ends[one + 1] - ends[one] for one, member in enumerate(self.numbers)}

    def run(self, subscribed: frozenset[Uuid]) -> Slices[None]:
        yield from self._keep(subscribed)
        yield from self._revoke_overfilled()
        yield from self._revoke_overshared()
        for number, place in enumerate(self.places):
            if number % PLACES_A_SLICE == 0:
                yield
            if place not in self.members:
                self.members.compute_absent(place, HashTable(int_hash))
        yield from self._give()

    def _keep(self, subscribed: frozenset[Uuid]) -> Slices[None]:
        """Begin with what members have of these topics."""
        done = 0
        for number, old in enumerate(self.old):
            topic_ids = grown_order(old, uuid_hash) if self.only is None else [self.only]
            for topic_id in topic_ids:
                if topic_id not in subscribed:
                    del self.growing.change(self.names[number])[topic_id]
                    continue
                for index in copied_index_order(old.get(topic_id, ())):
                    self._note(number, (topic_id, index))
                    done += 1
                    if done == PLACES_A_SLICE:
                        done = 0
                        yield

    def _note(self, number: int, place: Place) -> None:
        if place not in self.members:
            self.members.compute_absent(place, HashTable(int_hash))
        self.members[place][number] = None
        if number not in self.has:
            self.has[number] = HashTable(self.hash_of)
        self.has[number][place] = None

    def _drop(self, number: int, place: Place) -> None:
        del self.members[place][number]
        del self.has[number][place]
        self.growing.change(self.names[number])[place[0]].discard(place[1])

    def _revoke_overfilled(self) -> Slices[None]:
        done = 0
        for number, has in self.has.items():
            surplus = len(has) - self.wanted[number]
            if surplus > 0:
                done += len(has)
                for count, place in enumerate((yield from has.begin_order())[:surplus], 1):
                    self._drop(number, place)
                    if count % PLACES_A_SLICE == 0:
                        yield
                if done >= PLACES_A_SLICE:
                    done = 0
                    yield

    def _revoke_overshared(self) -> Slices[None]:
        done = 0
        for at, place in enumerate((yield from self.members.begin_order())):
            if at % PLACES_SEEN_A_SLICE == 0:
                yield
            members = self.members[place]
            surplus = len(members) - self.sharing
            if surplus > 0:
                done += len(members)
                for number in (yield from members.begin_order())[:surplus]:
                    self._drop(number, place)
                if done >= PLACES_A_SLICE:
                    done = 0
                    yield

    def _give(self) -> Slices[None]:
        """Give the partitions that have too few members to members that have too few partitions, in order.

        If those have such a partition already, it stays with fewer members.
        """
        unfilled = [
            number for number in sorted(self.numbers) if len(self.has.get(number, ())) < self.wanted[number]
        ]
        turn, was_given, done = 0, False, 0
        for at, place in enumerate((yield from self.members.begin_order())):
            if not unfilled:
                return
            if at % PLACES_SEEN_A_SLICE == 0:
                yield
            members = self.members[place]
            missing = self.sharing - len(members)
            while missing > 0 and unfilled:
                if turn >= len(unfilled):
                    if not was_given:
                        break
                    turn, was_given = 0, False
                number = unfilled[turn]
                turn += 1
                done += 1
                if number in members:
                    continue
                self._note(number, place)
                self.growing.give(self.names[number], place[0], (place[1],))
                missing -= 1
                was_given = True
                if len(self.has[number]) >= self.wanted[number]:
                    turn -= 1
                    del unfilled[turn]
            if done >= PLACES_A_SLICE:
                done = 0
                yield
