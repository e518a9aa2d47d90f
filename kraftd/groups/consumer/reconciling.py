"""How a member moves towards its target: it gives up first, then gets what others have given up.

```
STABLE               -> UNREVOKED_PARTITIONS   there is something to give up; the epoch stays
UNREVOKED_PARTITIONS -> the others             the member does not report those partitions any more
any                  -> UNRELEASED_PARTITIONS  in the target's epoch; other members still have some of it
any                  -> STABLE                 in the target's epoch, with all of the target
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from kraftd.ground.pace import Slices, at_once
from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.assignors.spec import PARTITIONS_A_SLICE, Partitions
from kraftd.groups.consumer.member import Epochs, Member, MemberState
from kraftd.groups.consumer.owners import MANY, Owners
from kraftd.groups.consumer.subscriptions import Subscription
from kraftd.messages.consumer_group_heartbeat_request import TopicPartitions
from kraftd.wire.error_code import ErrorCode

TOPICS_A_SLICE = 500
NONE_OF_IT: frozenset[int] = frozenset()


class Division(Struct, frozen=True):
    """What a member keeps of its partitions, what it is to give up, and what it has with all that is free."""

    kept: Epochs
    revoking: Epochs
    reached: Epochs
    has_unreleased: bool


class Reconciling(Struct, frozen=True):
    """A member with its target. owned: what it reports to have, None if it reports nothing.

    topic_ids: of the topics to which it is subscribed; true if it is subscribed to any, even if none exists.
    division: if it was made in slices already.
    """

    member: Member
    target_epoch: int
    target: Partitions
    topic_ids: Subscription
    has_new_subscription: bool
    owners: Owners
    owned: Sequence[TopicPartitions] | None = None
    division: Division | None = None

    def next(self) -> Member:
        """The member as it is to be now; itself if nothing changes. Raises Refusal."""
        member = self.member
        if member.state is MemberState.STABLE:
            if member.epoch != self.target_epoch:
                return self.next_assignment()
            return self.without_unsubscribed() if self.has_new_subscription else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self.still_owns(member.revoking):
                return self.without_unsubscribed() if self.has_new_subscription else member
            return self.next_assignment()
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self.next_assignment()
        if self.owned is None or self.owned:
            raise Refusal(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self.next_assignment()

    def still_owns(self, revoking: Epochs) -> bool:
        """Return whether the member may still have one of these: it reports it, or nothing at all."""
        if self.owned is None:
            return True
        return any(
            not revoking.get(topic.topic_id, {}).keys().isdisjoint(topic.partitions) for topic in self.owned
        )

    def without_unsubscribed(self) -> Member:
        """The member without the topics to which it is not subscribed any more."""
        member = self.member
        gone = {topic_id: had for topic_id, had in member.assigned.items() if topic_id not in self.topic_ids}
        if not gone and (self.topic_ids or member.revoking):
            return member  # else, as in Kafka, its former epoch is that of now, although nothing goes
        kept = {topic_id: had for topic_id, had in member.assigned.items() if topic_id not in gone}
        revoking = dict(member.revoking)
        for topic_id, had in gone.items():
            before = revoking.get(topic_id)
            revoking[topic_id] = {**before, **had} if before else had
        changed = replace(member, previous_epoch=member.epoch, assigned=kept)
        if revoking and self.still_owns(revoking):
            return replace(changed, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
        return changed

    def next_assignment(self) -> Member:
        """The next step towards the target: in the member's epoch while it has something to give up."""
        member, division = self.member, self.division or at_once(self.divide())
        if division.revoking and self.still_owns(division.revoking):
            return replace(
                member,
                state=MemberState.UNREVOKED_PARTITIONS,
                previous_epoch=member.epoch,
                assigned=division.kept,
                revoking=division.revoking,
            )
        return replace(
            member,
            state=MemberState.UNRELEASED_PARTITIONS if division.has_unreleased else MemberState.STABLE,
            epoch=self.target_epoch,
            previous_epoch=member.epoch,
            assigned=division.reached,
            revoking={},
        )

    def divide(self) -> Slices[Division]:
        """Compare what the member has with its target, some partitions in each slice."""
        kept: dict[bytes, Mapping[int, int]] = {}
        revoking: dict[bytes, Mapping[int, int]] = {}
        more: dict[bytes, Mapping[int, int]] = {}
        has_unreleased = False
        for number, topic_id in enumerate({**self.target, **self.member.assigned}, 1):
            if number % TOPICS_A_SLICE == 0:
                yield
            wanted = self.target.get(topic_id, NONE_OF_IT) if topic_id in self.topic_ids else NONE_OF_IT
            had = self.member.assigned.get(topic_id, {})
            goes = yield from _part(had, wanted, within=False)
            stays = had
            if goes:
                revoking[topic_id] = goes
                stays = yield from _part(had, wanted, within=True)
            if stays:
                kept[topic_id] = stays
            reached, is_whole = yield from self._add(topic_id, stays, wanted)
            has_unreleased = has_unreleased or not is_whole
            if len(reached) > len(stays):
                more[topic_id] = reached
        return Division(kept, revoking, {**kept, **more}, has_unreleased)

    def _add(
        self, topic_id: bytes, stays: Mapping[int, int], wanted: AbstractSet[int]
    ) -> Slices[tuple[Mapping[int, int], bool]]:
        """What the member has of a topic with all that is free, and whether that is all."""
        if len(stays) == len(wanted):
            return stays, True
        reached, is_whole = dict(stays), True
        indexes = iter(wanted)
        while some := list(islice(indexes, PARTITIONS_A_SLICE)):
            missing = [index for index in some if index not in stays]
            free = self.released(topic_id, missing)
            is_whole = is_whole and len(free) == len(missing)
            reached.update(dict.fromkeys(free, self.target_epoch))
            if len(some) == PARTITIONS_A_SLICE:
                yield
        return reached, is_whole

    def released(self, topic_id: bytes, indexes: list[int]) -> list[int]:
        """The partitions that no other member has: a member may take back what it was to give up."""
        return self.owners.free(topic_id, indexes, self.member)

    def is_large(self) -> bool:
        """Return whether the member is to be compared with its target in slices, before its heartbeat."""
        return sum(map(len, (*self.target.values(), *self.member.assigned.values()))) > MANY

    def inputs(self) -> tuple[list[object], list[object]]:
        """What a division depends on: values, and objects that are replaced when they change."""
        member, target = self.member, self.target
        topics = list({**target, **member.assigned})
        by_topic = target, member.assigned, member.revoking
        maps = [one.get(topic_id) for one in by_topic for topic_id in topics]
        values = [self.target_epoch, topics, *self.topic_ids.inputs()]
        return values, [*maps, *self.owners.noted(topics)]


def _part(
    partitions: Mapping[int, int], wanted: AbstractSet[int], *, within: bool
) -> Slices[Mapping[int, int]]:
    """The partitions that are wanted, or those that are not, with their epochs."""
    part: dict[int, int] = {}
    rows = iter(partitions.items())
    while some := list(islice(rows, PARTITIONS_A_SLICE)):
        part.update([row for row in some if (row[0] in wanted) is within])
        if len(some) == PARTITIONS_A_SLICE:
            yield
    return part
