"""What consumer groups and share groups have in common: members, a target, epochs, topics with subscribers.

All of it changes by records alone, through the timeline: a record that could not be written is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Generic, Protocol, TypeVar

from kraftd.ground.java_hashes import timeline_order
from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.assignors.spec import NOTHING, Partitions
from kraftd.groups.timeline import Timeline
from kraftd.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kraftd.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kraftd.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraftd.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kraftd.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kraftd.messages.share_group_target_assignment_member_value import ShareGroupTargetAssignmentMemberValue
from kraftd.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kraftd.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode

MOST_ORDERED = 1000  # members
NO_TARGET_EPOCH = -1
_NEVER = -1  # no version of metadata


class Subscribers(NamedTuple):
    """By how many members a topic is named, and by how many patterns it is matched."""

    by_name: int = 0
    by_regex: int = 0


NOBODY = Subscribers()
BY_ONE_REGEX = Subscribers(0, 1)


class Facts(NamedTuple):
    """What is true of the group as a whole.

    metadata_hash: of the topics to which it is subscribed. target_epoch: the group epoch for which the target
    was computed; target_ms: when. has_partition_metadata: a record of a release before 4.1 is in the log.
    """

    epoch: int = 1
    metadata_hash: int = 0
    target_epoch: int = 1
    target_ms: int = 0
    has_partition_metadata: bool = False


INITIAL = Facts()


class GroupMember(Protocol):
    """What a group asks of its members; topics: the names to which one is subscribed."""

    @property
    def member_id(self) -> str: ...
    @property
    def topics(self) -> AbstractSet[str]: ...


M = TypeVar("M", bound=GroupMember)


class ModernGroup(Generic[M]):
    """Kafka's ModernGroup. most_members: for how many its table of members has made room.

    By which metadata the topics were compared last is in no record, so it is not taken back.
    """

    __slots__ = (
        "_facts",
        "_seen_epoch",
        "_seen_version",
        "group_id",
        "members",
        "most_members",
        "targets",
        "timeline",
        "topics",
    )

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        self.group_id = group_id
        self.timeline = timeline
        self._facts: dict[None, Facts] = {}
        self.members: dict[str, M] = {}
        self.most_members = 0
        self.targets: dict[str, Partitions] = {}
        self.topics: dict[str, Subscribers] = {}
        self._seen_version = _NEVER
        self._seen_epoch = 0

    def is_empty(self) -> bool:
        return not self.members

    @property
    def facts(self) -> Facts:
        return self._facts.get(None, INITIAL)

    def committed_facts(self) -> Facts:
        """As of the high watermark."""
        return self.timeline.committed_value(self._facts, None) or INITIAL

    def member(self, member_id: str) -> M:
        """A member; Refusal if there is none."""
        member = self.members.get(member_id)
        if member is None:
            reason = f"Member {member_id} is not a member of group {self.group_id}."
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, reason)
        return member

    def member_ids(self, *joining: str) -> list[str]:
        """The members in the order of Kafka's table; in a large group in that in which they came."""
        ids = list(dict.fromkeys((*self.members, *joining)))
        return ids if len(ids) > MOST_ORDERED else timeline_order(ids, max(self.most_members, len(ids)))

    def target(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NOTHING)

    def needs_refresh(self, version: int) -> bool:
        """Return whether the topics are to be compared: the metadata is newer, or what was noted is lost."""
        return version != self._seen_version or self.facts.epoch < self._seen_epoch

    def has_expired(self) -> bool:
        """Return whether the topics were not compared yet, or what was noted of it is lost."""
        return self._seen_version == _NEVER or self.facts.epoch < self._seen_epoch

    def changes_hash(self, version: int, present_hash: Callable[[], int]) -> None:
        """Members go, which changes the hash of the topics; note if the topics had changed themselves."""
        if self.needs_refresh(version) and present_hash() != self.facts.metadata_hash:
            self._seen_version = _NEVER

    def refreshed(self, version: int, epoch: int) -> None:
        """The topics were compared by this metadata, which led to this epoch."""
        self._seen_version, self._seen_epoch = version, epoch

    # Changes, by records

    def put_member(self, member: M) -> M | None:
        """Add a member, or replace it; return the one that was there."""
        self.most_members = max(self.most_members, len(self.members) + 1)  # as Kafka's table in any case
        return self.timeline.put(self.members, member.member_id, member)

    def set_facts(self, **changes: Any) -> None:
        self.timeline.put(self._facts, None, self.facts._replace(**changes))

    def set_target(self, member_id: str, partitions: Partitions | None) -> None:
        if partitions is None:
            self.timeline.remove(self.targets, member_id)
        else:
            self.timeline.put(self.targets, member_id, partitions)

    def replay_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey | ShareGroupTargetAssignmentMemberKey,
        value: ConsumerGroupTargetAssignmentMemberValue
        | ShareGroupTargetAssignmentMemberValue
        | Partitions
        | None,
    ) -> None:
        """Set what a member is to have, by the record of either kind of group."""
        partitions: Partitions | None
        if value is None or isinstance(value, Mapping):
            partitions = value
        else:
            partitions = {row.topic_id: frozenset(row.partitions) for row in value.topic_partitions}
        self.set_target(key.member_id, partitions)

    def replay_target_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey | ShareGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | ShareGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        """Set for which epoch the target was computed, by the record of either kind of group."""
        if value is None:
            self.set_facts(target_epoch=NO_TARGET_EPOCH, target_ms=0)
        else:
            self.set_facts(target_epoch=value.assignment_epoch, target_ms=value.assignment_timestamp)

    def count_names(self, old: M | None, new: M | None) -> None:
        """Count the subscribers by name when a member has become another, come or gone."""
        old_topics: AbstractSet[str] = frozenset() if old is None else old.topics
        new_topics: AbstractSet[str] = frozenset() if new is None else new.topics
        if old_topics == new_topics:
            return
        for topics, by in ((old_topics - new_topics, -1), (new_topics - old_topics, 1)):
            for topic in topics:
                names, regexes = self.topics.get(topic, NOBODY)
                self.set_subscribers(topic, Subscribers(names + by, regexes))

    def set_subscribers(self, topic: str, subscribers: Subscribers) -> None:
        if any(subscribers):
            self.timeline.put(self.topics, topic, subscribers)
        else:
            self.timeline.remove(self.topics, topic)


def is_homogeneous(regexes: Mapping[str, int], topics: Mapping[str, Subscribers], member_count: int) -> bool:
    """Return whether all members are subscribed to the same topics, by name or all by one pattern."""
    if not regexes:
        return all(subscribers.by_name == member_count for subscribers in topics.values())
    if next(iter(regexes.values())) != member_count:
        return False
    return all(subscribers == BY_ONE_REGEX for subscribers in topics.values())


def add_subscribers(topics: dict[str, Subscribers], name: str, by_name: int = 0, by_regex: int = 0) -> None:
    """Add to the subscribers of a topic, or take some away; a topic without any goes."""
    names, regexes = topics.get(name, NOBODY)
    subscribers = Subscribers(names + by_name, regexes + by_regex)
    if any(number > 0 for number in subscribers):
        topics[name] = subscribers
    else:
        topics.pop(name, None)


def names_after(
    topics: Mapping[str, Subscribers], old: GroupMember | None, new: GroupMember | None
) -> dict[str, Subscribers]:
    """The topics with their subscribers when a member has become another, come or gone."""
    after = dict(topics)
    for name in () if old is None else old.topics:
        add_subscribers(after, name, by_name=-1)
    for name in () if new is None else new.topics:
        add_subscribers(after, name, by_name=1)
    return after
