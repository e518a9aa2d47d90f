"""A classic group: its members, its generation and its state.

Steps that answer members or set deadlines are in the modules beside this one.
"""

from __future__ import annotations

from struct import error as StructError
from struct import unpack_from

from kraftd.ground.java_hashes import hash_map_order
from kraftd.ground.refusal import Refusal
from kraftd.groups.classic.member import MEMBER_BYTES, ClassicMember, Protocols
from kraftd.groups.classic.memory import MemberMemory
from kraftd.groups.classic.states import (
    CAN_REBALANCE,
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    STABLE,
    TRANSITIONS,
    ClassicState,
)
from kraftd.groups.group import GroupType, RetentionStart
from kraftd.groups.offsets.committed import Committed
from kraftd.groups.records import CoordinatorRecord, group_record
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraftd.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraftd.messages.list_groups_response import ListedGroup
from kraftd.wire.codec import decode_prefix
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import ProtocolError

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicGroup:
    """Kafka's ClassicGroup.

    static_members maps a group.instance.id to the member id that holds it. pending_join are member ids that
    were given out and have not joined yet (KIP-394). pending_sync are members whose SyncGroup is outstanding.
    subscribed_topics is None while it is unknown what the members read.
    """

    __slots__ = (
        "generation",
        "group_id",
        "has_new_members",
        "joining_count",
        "leader_id",
        "members",
        "memory",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_members",
        "subscribed_topics",
        "supported",
    )

    def __init__(self, group_id: str, state: ClassicState, now_ms: int | None, memory: MemberMemory) -> None:
        self.group_id = group_id
        self.memory = memory
        self.state = state
        self.previous_state = DEAD
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_join: set[str] = set()
        self.pending_sync: set[str] = set()
        self.supported: dict[str, int] = {}  # protocol -> how many members support it
        self.joining_count = 0
        self.subscribed_topics: frozenset[str] | None = None
        self.has_new_members = False

    def __repr__(self) -> str:
        return (
            f"<ClassicGroup {self.group_id} {self.state.value} generation {self.generation}"
            f" of {len(self.members)} led by {self.leader_id}>"
        )

    # What every kind of group is asked

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    def is_empty(self) -> bool:
        return self.state is EMPTY

    def state_name(self) -> str:
        return self.state.value

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, self.protocol_type or "", self.state.value, self.type.value)

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, is_transactional: bool, version: int
    ) -> None:
        """A commit without generation is of a simple consumer: it is accepted while there are no members."""
        if self.state is DEAD:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state is EMPTY:
            return
        if generation >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise Refusal(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is COMPLETING_REBALANCE:
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, member_epoch: int, *, is_latest: bool) -> None:
        self.check_alive()

    def check_alive(self) -> None:
        """Raise Refusal once the group is gone."""
        if self.state is DEAD:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def check_offset_delete(self) -> None:
        self.check_alive()
        if self.state is not EMPTY and not self.is_of_consumers():
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        self.check_alive()
        if self.state is not EMPTY:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers()
        return topic in self.subscribed_topics

    def retention_start(self) -> RetentionStart | None:
        """An empty group's offsets age since it is empty, a simple group's since their commit (KIP-211)."""
        if self.protocol_type is None:
            return _committed_ms
        if self.state is EMPTY:
            since = self.state_since_ms
            return _committed_ms if since is None else lambda _: since
        if self.is_of_consumers() and self.subscribed_topics is not None and self.state is STABLE:
            return _committed_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_record(self.group_id, None)]

    # Members

    def is_of_consumers(self) -> bool:
        """Return whether the members speak the protocol of consumers."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_simple(self) -> bool:
        """Return whether the group is there for its offsets alone: it has no record of its own."""
        return self.protocol_type is None and self.state is EMPTY and not self.pending_join

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise Refusal if this is no member, or if another one holds the instance id (KIP-345)."""
        if instance_id is not None:
            holder = self.static_members.get(instance_id)
            if holder is None:
                raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
            if holder != member_id:
                raise Refusal(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        """Return whether a member of this type with these protocols fits those that are there."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(names)
        if self.protocol_type != protocol_type:
            return False
        return any(self.supported.get(name, 0) == len(self.members) for name in names)

    def add(self, member: ClassicMember) -> None:
        """Add a member; the first one gives the group its type and leads it."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        if member.awaiting_join is not None:
            self.joining_count += 1
        self.forget_pending(member.member_id)

    def expect(self, member_id: str) -> None:
        """Note a member id that was given out; its member is expected to join."""
        self.pending_join.add(member_id)
        self.memory.used_bytes += MEMBER_BYTES

    def forget_pending(self, member_id: str) -> None:
        if member_id in self.pending_join:
            self.pending_join.discard(member_id)
            self.memory.used_bytes -= MEMBER_BYTES

    def release(self) -> None:
        """The group is no longer kept: its members do not count any more."""
        for member in self.members.values():
            self._count_protocols(member, -1)
        self.memory.used_bytes -= MEMBER_BYTES * len(self.pending_join)
        self.memory = MemberMemory(0)

    def remove(self, member_id: str) -> None:
        """Remove a member, or one that was to join; if it led, another one leads."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            if member.awaiting_join is not None:
                self.joining_count -= 1
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = hash_map_order(self.members)[0] if self.members else None
        self.forget_pending(member_id)
        self.pending_sync.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> ClassicMember:
        """Give the place of a static member to its successor with another member id."""
        old = self.members.pop(old_id)
        new = ClassicMember(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self.members[new_id] = new
        if self.is_leader(old_id):
            self.leader_id = new_id
        self.static_members[instance_id] = new_id
        return new

    def update(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        """Take over what a member says anew; the caller sets the request in which it waits."""
        self._count_protocols(member, -1)
        member.protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def _count_protocols(self, member: ClassicMember, by: int) -> None:
        self.memory.used_bytes += by * member.size_bytes()
        for name, _ in member.protocols:
            count = self.supported.get(name, 0) + by
            if count:
                self.supported[name] = count
            else:
                del self.supported[name]

    def elect_joined_leader(self) -> bool:
        """If the leader has not rejoined, let a member lead that has.

        Return whether the leader has joined.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member_id in hash_map_order(self.members):
            if self.members[member_id].awaiting_join is not None:
                self.leader_id = member_id
                return True
        return False

    def has_all_joined(self) -> bool:
        """Return whether every member has rejoined and no member id is outstanding."""
        return len(self.members) == self.joining_count and not self.pending_join

    def rebalance_timeout_ms(self) -> int:
        """The longest of the members'."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Generations

    def can_rebalance(self) -> bool:
        return self.state in CAN_REBALANCE

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self!r} cannot become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        """End a rebalance with those that have joined."""
        self.generation += 1
        self.protocol_name = self.elected_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, now_ms)
        self.pending_sync.clear()

    def elected_protocol(self) -> str:
        """The protocol that most members prefer, of those that all support."""
        votes: dict[str, int] = {}
        count = len(self.members)
        for member in self.members.values():
            choice = next(name for name, _ in member.protocols if self.supported[name] == count)
            votes[choice] = votes.get(choice, 0) + 1
        return max(hash_map_order(votes), key=lambda name: votes[name])

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that consumers read, as the metadata for the protocol says; None if unknown."""
        if not self.is_of_consumers():
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self.members.values():
                metadata = member.metadata(self.protocol_name)
                if metadata is None:
                    return None
                unpack_from(">h", metadata)
                topics.update(decode_prefix(ConsumerProtocolSubscription, 0, metadata, 2)[0].topics)
        except (StructError, ProtocolError):
            return None
        return frozenset(topics)

    # As a record

    def record(self, assignment: dict[str, bytes] | None = None) -> CoordinatorRecord:
        """The group as its record: with the members' assignments, or with those of a leader's SyncGroup."""
        members = [
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(self.protocol_name) or b"",
                assignment=member.assignment if assignment is None else assignment.get(member.member_id, b""),
            )
            for member in self.members.values()
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=-1 if self.state_since_ms is None else self.state_since_ms,
            members=members,
        )
        return group_record(self.group_id, value)

    def empty_record(self) -> CoordinatorRecord:
        """The record of a group that a request has just created."""
        since_ms = -1 if self.state_since_ms is None else self.state_since_ms
        value = GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=since_ms)
        return group_record(self.group_id, value)


def group_of(group_id: str, value: GroupMetadataValue, memory: MemberMemory) -> ClassicGroup:
    """The group that a record holds: stable if it has members, else empty."""
    since_ms = value.current_state_timestamp
    state = STABLE if value.members else EMPTY
    group = ClassicGroup(group_id, state, None if since_ms == -1 else since_ms, memory)
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for row in value.members:
        rebalance_timeout_ms = row.session_timeout if row.rebalance_timeout == -1 else row.rebalance_timeout
        group.add(
            ClassicMember(
                row.member_id,
                row.group_instance_id,
                row.client_id,
                row.client_host,
                rebalance_timeout_ms,
                row.session_timeout,
                value.protocol_type,
                [(value.protocol or "", row.subscription)],
                row.assignment,
            )
        )
    group.subscribed_topics = group.compute_subscribed_topics()
    return group


def _committed_ms(committed: Committed) -> int:
    return committed.committed_ms
