"""How a member moves towards its target: it gives up first, then gets what others have given up.

```
STABLE               -> UNREVOKED_PARTITIONS   there is something to give up; the epoch stays
UNREVOKED_PARTITIONS -> the others             the member does not report those partitions any more
any                  -> UNRELEASED_PARTITIONS  in the target's epoch; other members still have some of it
any                  -> STABLE                 in the target's epoch, with all of the target
```
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.assignors.spec import Partitions
from kraftd.groups.consumer.member import Epochs, Member, MemberState
from kraftd.messages.consumer_group_heartbeat_request import TopicPartitions
from kraftd.wire.error_code import ErrorCode

NONE_OF_IT: frozenset[int] = frozenset()


class Reconciling(Struct, frozen=True):
    """A member with its target. owned: what it reports to have, None if it reports nothing.

    topic_ids: of the topics to which it is subscribed. owners: the partitions that some member has.
    """

    member: Member
    target_epoch: int
    target: Partitions
    topic_ids: Collection[bytes]
    has_new_subscription: bool
    owners: Mapping[bytes, Container[int]]
    owned: Sequence[TopicPartitions] | None

    def next(self) -> Member:
        """The member as it is to be now; itself if nothing changes. Raises Refusal."""
        member = self.member
        if member.state is MemberState.STABLE:
            if member.epoch != self.target_epoch:
                return self.next_assignment(member.epoch)
            return self.without_unsubscribed() if self.has_new_subscription else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self.still_owns(member.revoking):
                return self.without_unsubscribed() if self.has_new_subscription else member
            return self.next_assignment(member.epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self.next_assignment(member.epoch)
        if self.owned is None or self.owned:
            raise Refusal(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self.next_assignment(self.target_epoch)

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
        if not gone:
            return member
        kept = {topic_id: had for topic_id, had in member.assigned.items() if topic_id not in gone}
        revoking = dict(member.revoking)
        for topic_id, had in gone.items():
            revoking[topic_id] = {**revoking.get(topic_id, {}), **had}
        changed = replace(member, previous_epoch=member.epoch, assigned=kept)
        if self.still_owns(revoking):
            return replace(changed, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)
        return changed

    def next_assignment(self, epoch: int) -> Member:
        """The next step towards the target."""
        member = self.member
        kept: dict[bytes, dict[int, int]] = {}
        revoking: dict[bytes, dict[int, int]] = {}
        added: dict[bytes, dict[int, int]] = {}
        has_unreleased = False
        for topic_id in {**self.target, **member.assigned}:
            wanted = self.target.get(topic_id, NONE_OF_IT) if topic_id in self.topic_ids else NONE_OF_IT
            had = member.assigned.get(topic_id, {})
            stays = {index: since for index, since in had.items() if index in wanted}
            goes = {index: since for index, since in had.items() if index not in wanted}
            missing = [index for index in wanted if index not in stays]
            free = self.released(topic_id, missing)
            has_unreleased = has_unreleased or len(free) < len(missing)
            for found, rows in (
                (kept, stays),
                (revoking, goes),
                (added, dict.fromkeys(free, self.target_epoch)),
            ):
                if rows:
                    found[topic_id] = rows
        if revoking and self.still_owns(revoking):
            return replace(
                member,
                state=MemberState.UNREVOKED_PARTITIONS,
                epoch=epoch,
                previous_epoch=member.epoch,
                assigned=kept,
                revoking=revoking,
            )
        for topic_id, rows in added.items():
            kept[topic_id] = {**kept.get(topic_id, {}), **rows}
        return replace(
            member,
            state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
            epoch=self.target_epoch,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking={},
        )

    def released(self, topic_id: bytes, indexes: list[int]) -> list[int]:
        """The partitions that no other member has: a member may take back what it was to give up."""
        owners, own = self.owners.get(topic_id), self.member.revoking.get(topic_id, {})
        if not owners:
            return indexes
        return [index for index in indexes if index not in owners or index in own]
