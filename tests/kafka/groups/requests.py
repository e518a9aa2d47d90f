"""Random requests for groups: mostly what a client would send, and often wrong in one thing."""

from __future__ import annotations

from random import Random

from kraftd.groups.classic.group import ClassicGroup
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kraftd.wire.message import Message
from tests.groups.requests import subscription
from tests.kafka.groups.pair import LONG_MS, TOPICS, Pair

Drawn = tuple[Message, int]
STATES = ("Empty", "stable", " PreparingRebalance ", "CompletingRebalance", "Dead", "none")


class Requests:
    """Draws requests; what is valid at the moment it reads from kraftd's state."""

    def __init__(self, random: Random, pair: Pair, prefix: str) -> None:
        self.random = random
        self.pair = pair
        self.groups = [f"{prefix}-{number}" for number in range(3)]
        self.kinds = {
            self.join_new: 5,
            self.join_again: 5,
            self.join_static: 3,
            self.sync: 7,
            self.heartbeat: 4,
            self.leave: 2,
            self.commit: 4,
            self.fetch: 3,
            self.delete_offsets: 1,
            self.describe: 1,
            self.list: 1,
            self.delete: 1,
        }

    def draw(self) -> Drawn:
        kinds = list(self.kinds)
        return self.random.choices(kinds, list(self.kinds.values()))[0]()

    # Parts of requests

    def rarely(self, share: float = 0.12) -> bool:
        """Return whether something unusual happens now."""
        return self.random.random() < share

    def group_id(self) -> str:
        if self.rarely(0.02):
            return ""
        return self.random.choice(self.groups)

    def state_of(self, group_id: str) -> ClassicGroup | None:
        coordinator = self.pair.desk.coordinator
        partition = coordinator.partition_for(group_id)
        assert partition is not None
        return coordinator.shards[partition].state.classic_group(group_id)

    def member_of(self, group: ClassicGroup | None) -> str:
        if group is None or self.rarely(0.06):
            return self.random.choice(["", "stranger"])
        names = [*group.members, *group.pending_join]
        return self.random.choice(names) if names else "stranger"

    def instance_of(self, group: ClassicGroup | None, member_id: str, offered: bool) -> str | None:
        if not offered:
            return None
        if self.rarely(0.08):
            return self.random.choice(["i0", "i1", "unknown"])
        member = None if group is None else group.members.get(member_id)
        return None if member is None else member.instance_id

    def generation_of(self, group: ClassicGroup | None) -> int:
        generation = 0 if group is None else group.generation
        return generation + self.random.choice([-1, 1]) if self.rarely(0.08) else generation

    def protocols(self) -> list[JoinGroupRequestProtocol]:
        names = self.random.choice([["range"], ["range", "sticky"], ["sticky", "range"]])
        if self.rarely(0.05):
            names = self.random.choice([[], ["other"]])
        metadata = subscription(self.random.choice(["orders", "audit"]))
        if self.rarely(0.05):
            metadata = b"\0"
        return [JoinGroupRequestProtocol(name, metadata) for name in names]

    def join(self, group_id: str, member_id: str, instance_id: str | None, version: int) -> Drawn:
        kind = self.random.choice(["", "connect"]) if self.rarely(0.05) else "consumer"
        session_ms = self.random.choice([100, 1_800_001]) if self.rarely(0.02) else LONG_MS
        reason = "because" if version >= 8 and self.rarely() else None
        return (
            JoinGroupRequest(
                group_id, session_ms, LONG_MS, member_id, instance_id, kind, self.protocols(), reason
            ),
            version,
        )

    # Requests

    def join_new(self) -> Drawn:
        return self.join(self.group_id(), "", None, self.random.randint(0, 9))

    def join_again(self) -> Drawn:
        group_id = self.group_id()
        group = self.state_of(group_id)
        version = self.random.randint(0, 9)
        waiting = [] if group is None else [*group.pending_join, *group.members]
        still = [name for name in waiting if group is not None and not self.is_joining(group, name)]
        member_id = self.random.choice(still) if still and not self.rarely() else self.member_of(group)
        if group is not None and member_id in group.pending_join:
            return self.join(group_id, member_id, None, version)
        return self.join(group_id, member_id, self.instance_of(group, member_id, version >= 5), version)

    @staticmethod
    def is_joining(group: ClassicGroup, member_id: str) -> bool:
        member = group.members.get(member_id)
        return member is not None and member.awaiting_join is not None

    def join_static(self) -> Drawn:
        return self.join(self.group_id(), "", self.random.choice(["i0", "i1"]), self.random.randint(5, 9))

    def sync(self) -> Drawn:
        group_id = self.group_id()
        group = self.state_of(group_id)
        member_id = self.member_of(group)
        if group is not None and group.leader_id and self.rarely(0.5):
            member_id = group.leader_id
        version = self.random.randint(0, 5)
        kind = name = None
        if version >= 5 and group is not None and not self.rarely(0.04):
            kind, name = group.protocol_type or "consumer", group.protocol_name or "range"
            if self.rarely(0.05):
                name = "other"
        members = [] if group is None else list(group.members)
        rows = [
            SyncGroupRequestAssignment(one, f"for {one}".encode()) for one in members if not self.rarely()
        ]
        instance_id = self.instance_of(group, member_id, version >= 3)
        generation = self.generation_of(group)
        return SyncGroupRequest(group_id, generation, member_id, instance_id, kind, name, rows), version

    def heartbeat(self) -> Drawn:
        group_id = self.group_id()
        group = self.state_of(group_id)
        member_id = self.member_of(group)
        version = self.random.randint(0, 4)
        instance_id = self.instance_of(group, member_id, version >= 3)
        return HeartbeatRequest(group_id, self.generation_of(group), member_id, instance_id), version

    def leave(self) -> Drawn:
        group_id = self.group_id()
        group = self.state_of(group_id)
        version = self.random.randint(0, 5)
        if version < 3:
            return LeaveGroupRequest(group_id, self.member_of(group)), version
        rows = []
        for _ in range(self.random.randint(1, 2)):
            member_id = self.member_of(group)
            instance_id = self.instance_of(group, member_id, True)
            if instance_id is not None and self.rarely(0.5):
                member_id = ""
            rows.append(MemberIdentity(member_id, instance_id, "bye" if version >= 5 else None))
        return LeaveGroupRequest(group_id, members=rows), version

    def topic(self) -> str:
        return "missing" if self.rarely(0.06) else self.random.choice(list(TOPICS))

    def topic_id(self, name: str) -> bytes:
        return self.pair.desk.topics.topic_id(name) or b"\7" * 16

    def index(self) -> int:
        return 9 if self.rarely(0.06) else self.random.randint(0, 2)

    def commit(self) -> Drawn:
        group_id = self.group_id()
        group = self.state_of(group_id)
        version = self.random.randint(2, 10)
        member_id, generation = self.member_of(group), self.generation_of(group)
        if group is None or not group.members or self.rarely(0.08):
            member_id, generation = "", -1
        topics = []
        for name in {self.topic() for _ in range(2)}:
            rows = []
            for index in {self.index() for _ in range(2)}:
                metadata = self.random.choice(["", None, "note", "é" * 64, "𝄞" * 33, "x" * 65])
                epoch = self.random.choice([-1, 0, 7]) if version >= 6 else -1
                rows.append(OffsetCommitRequestPartition(index, self.random.randint(0, 99), epoch, metadata))
            by_id = version >= 10
            topics.append(
                OffsetCommitRequestTopic(
                    "" if by_id else name, self.topic_id(name) if by_id else bytes(16), rows
                )
            )
        retention_ms = 3_600_000 if version <= 4 and self.rarely(0.3) else -1
        instance_id = self.instance_of(group, member_id, version >= 7)
        return OffsetCommitRequest(
            group_id, generation, member_id, instance_id, retention_ms, topics
        ), version

    def fetch(self) -> Drawn:
        version = self.random.randint(1, 10)
        names = None if version >= 2 and self.rarely(0.4) else list({self.topic() for _ in range(2)})
        is_stable = version >= 7 and self.rarely(0.5)
        indexes = tuple({self.index() for _ in range(2)})
        if version < 8:
            old = None if names is None else [OffsetFetchRequestTopic(name, indexes) for name in names]
            return OffsetFetchRequest(self.group_id(), old, require_stable=is_stable), version
        groups = []
        for group_id in {self.group_id() for _ in range(self.random.randint(1, 2))}:
            topics = None
            if names is not None:
                by_id = version >= 10
                topics = [
                    OffsetFetchRequestTopics(
                        "" if by_id else name, self.topic_id(name) if by_id else bytes(16), indexes
                    )
                    for name in names
                ]
            groups.append(OffsetFetchRequestGroup(group_id, topics=topics))
        return OffsetFetchRequest(groups=groups, require_stable=is_stable), version

    def delete_offsets(self) -> Drawn:
        topics = [
            OffsetDeleteRequestTopic(
                name, [OffsetDeleteRequestPartition(index) for index in {0, self.index()}]
            )
            for name in {self.topic() for _ in range(2)}
        ]
        return OffsetDeleteRequest(self.group_id(), topics), 0

    def describe(self) -> Drawn:
        return DescribeGroupsRequest((self.group_id(), "missing")), self.random.randint(0, 6)

    def list(self) -> Drawn:
        version = self.random.randint(0, 5)
        states = tuple(self.random.sample(STATES, self.random.randint(0, 2))) if version >= 4 else ()
        types = ("Classic",) if version >= 5 and self.rarely(0.3) else ()
        return ListGroupsRequest(states, types), version

    def delete(self) -> Drawn:
        return DeleteGroupsRequest((self.group_id(), self.group_id())), self.random.randint(0, 2)
