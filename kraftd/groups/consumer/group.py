"""A consumer group: its members, its target, and what follows from both.

All of it changes by records alone, through the timeline: a record that could not be written is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable

from kraftd.ground.refusal import Refusal
from kraftd.groups.consumer.member import Member
from kraftd.groups.consumer.owners import Owners
from kraftd.groups.consumer.records import Resolved, group_tombstones
from kraftd.groups.group import CommitCheck, GroupType, RetentionStart
from kraftd.groups.modern_group import BY_ONE_REGEX, NOBODY, Facts, ModernGroup, Subscribers, is_homogeneous
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.records import CoordinatorRecord
from kraftd.groups.timeline import Timeline
from kraftd.messages.list_groups_response import ListedGroup
from kraftd.wire.error_code import ErrorCode

PROTOCOL_TYPE = "consumer"
EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"
EPOCH_COMMIT_VERSION = 9  # of OffsetCommit: the first that knows member epochs


class ConsumerGroup(ModernGroup[Member]):
    """Kafka's ConsumerGroup. owners: which member has a partition, or still has to give it up."""

    __slots__ = ("_homogeneous", "assignors", "owners", "regexes", "resolved", "static_members")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self.static_members: dict[str, str] = {}  # member ids by instance id
        self.assignors: dict[str, int] = {}  # how many members prefer each
        self.regexes: dict[str, int] = {}  # how many members are subscribed by each
        self.resolved: dict[str, Resolved] = {}
        self._homogeneous: dict[None, bool] = {}  # while patterns match other topics than at the last change
        self.owners = Owners(timeline)

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"<ConsumerGroup {self.group_id} {self.state_now()} epoch {facts.epoch},"
            f" target {facts.target_epoch}, {len(self.members)} members>"
        )

    # What every kind of group is asked

    @property
    def type(self) -> GroupType:
        return GroupType.CONSUMER

    def state_name(self) -> str:
        """The state as of the high watermark."""
        members = (member for _, member in self.timeline.committed_items(self.members))
        return _state(members, self.committed_facts())

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, PROTOCOL_TYPE, self.state_name(), self.type.value)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> CommitCheck | None:
        """A member commits in its epoch, or in an older one since which it has had the partition."""
        if generation < 0 and not self.members:
            return None
        if is_transactional and generation == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not is_transactional and member.classic is None and version < EPOCH_COMMIT_VERSION:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
        if generation == member.epoch:
            return None
        stale = stale_epoch(member)
        if generation > member.epoch:
            raise stale

        def check(topic_id: bytes, index: int) -> None:
            epoch = member.assignment_epoch(topic_id, index)
            if epoch is None or generation < epoch:
                raise stale

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int, *, is_latest: bool) -> None:
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)  # as from Kafka, whose table has no such key
        members = self.members
        member = members.get(member_id) if is_latest else self.timeline.committed_value(members, member_id)
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise stale_epoch(member)

    def check_offset_delete(self) -> None:
        """Offsets of topics without subscribers may be deleted at any time."""

    def check_delete(self) -> None:
        if self.members:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def retention_start(self) -> RetentionStart | None:
        return _committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        return group_tombstones(self.group_id, self.resolved)

    # Members

    def state_now(self) -> str:
        """The state with what is not committed yet."""
        return _state(self.members.values(), self.facts)

    def static_member(self, instance_id: str) -> Member | None:
        """The member that holds an instance id.

        As in Kafka, a former instance id of a member that has gone stays, and its use is refused.
        """
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.member(member_id)

    def is_homogeneous(self) -> bool:
        """Return whether all members are subscribed to the same topics, as it was when a member last changed.

        As in Kafka, what patterns match since then does not count.
        """
        noted = self._homogeneous.get(None)
        return is_homogeneous(self.regexes, self.topics, len(self.members)) if noted is None else noted

    # Changes, by records

    def put(self, member: Member) -> None:
        """Add a member, or replace it."""
        self.timeline.remove(self._homogeneous, None)
        old = self.put_member(member)
        self._count(old, member)
        if member.instance_id is not None:
            self.timeline.put(self.static_members, member.instance_id, member.member_id)

    def remove(self, member_id: str) -> None:
        old = self.timeline.remove(self.members, member_id)
        if old is None:
            return
        self.timeline.remove(self._homogeneous, None)
        self._count(old, None)
        if old.instance_id is not None:
            self.timeline.remove(self.static_members, old.instance_id)

    def set_resolved(self, regex: str, resolved: Resolved | None) -> None:
        """Note the topics that match a pattern, or that it is not used any more."""
        if None not in self._homogeneous:
            self.timeline.put(self._homogeneous, None, self.is_homogeneous())
        if resolved is None:
            old = self.timeline.remove(self.resolved, regex)
        else:
            old = self.timeline.put(self.resolved, regex, resolved)
        before, now = (frozenset() if one is None else one.topics for one in (old, resolved))
        self._count_matches(before - now, -1)
        self._count_matches(now - before, 1)

    def _count_matches(self, topics: frozenset[str], by: int) -> None:
        for topic in topics:
            known = self.topics.get(topic, NOBODY)
            is_first = by == 1 and known is NOBODY
            now = BY_ONE_REGEX if is_first else Subscribers(known.by_name, known.by_regex + by)
            self.set_subscribers(topic, now)

    def _count(self, old: Member | None, new: Member | None) -> None:
        self.count_names(old, new)
        self._recount(self.assignors, _assignor(old), _assignor(new))
        self._recount(self.regexes, _regex(old), _regex(new))
        self.owners.change(old, new)

    def _recount(self, counts: dict[str, int], old: str | None, new: str | None) -> None:
        if old == new:
            return
        for name, by in ((old, -1), (new, 1)):
            if name is not None:
                number = counts.get(name, 0) + by
                if number:
                    self.timeline.put(counts, name, number)
                else:
                    self.timeline.remove(counts, name)


def _assignor(member: Member | None) -> str | None:
    return None if member is None else member.assignor


def _regex(member: Member | None) -> str | None:
    return None if member is None else member.regex or None


def stale_epoch(member: Member) -> Refusal:
    """The refusal of an epoch that is not the member's; a classic member calls it a generation."""
    is_classic = member.classic is not None
    return Refusal(ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH)


def preferred_assignor(counts: dict[str, int], old: str | None = None, new: str | None = None) -> str | None:
    """The assignor that most members prefer when a member prefers another one than before.

    Of several, the first in the order of Kafka's map: it has uniform before range, and new ones before both.
    """
    ordered = {name: counts[name] for name in sorted(counts, reverse=True)}
    if old is not None:
        ordered[old] = ordered.get(old, 0) - 1
        ordered = {name: number for name, number in ordered.items() if number > 0}
    if new is not None:
        ordered = {**ordered, new: ordered[new] + 1} if new in ordered else {new: 1, **ordered}
    return max(ordered, key=lambda name: ordered[name], default=None)


def _state(members: Iterable[Member], facts: Facts) -> str:
    listed = list(members)
    if not listed:
        return EMPTY
    if facts.epoch > facts.target_epoch:
        return ASSIGNING
    is_stable = all(member.is_reconciled_to(facts.target_epoch) for member in listed)
    return STABLE if is_stable else RECONCILING


def _committed_ms(committed: Committed) -> int:
    return committed.committed_ms
