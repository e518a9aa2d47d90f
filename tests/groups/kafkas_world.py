"""A manager of groups in a test of Kafka's, as kraftd's state of the same groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kraftd.groups.call import Call
from kraftd.groups.classic.member import ClassicMember
from kraftd.groups.classic.memory import MemberMemory
from kraftd.groups.classic.rebalance import heard
from kraftd.groups.classic.states import ClassicState
from kraftd.groups.config import GroupConfig
from kraftd.groups.consumer.assignors.spec import Assigned, AssignorFailed, GroupSpec, Slices
from kraftd.groups.consumer.group import ConsumerGroup
from kraftd.groups.consumer.metadata_hash import topic_hash
from kraftd.groups.consumer.patterns import RESOLVING
from kraftd.groups.modern_group import ModernGroup
from kraftd.groups.outcome import Outcome
from kraftd.groups.records import CoordinatorRecord, decode_record
from kraftd.groups.replay import replay
from kraftd.groups.state import Counts, ShardState
from kraftd.messages.join_group_request import JoinGroupRequest
from kraftd.messages.join_group_response import JoinGroupResponse
from kraftd.types import parse_uuid
from kraftd.wire.codec import decode
from kraftd.wire.message import Message
from kraftd.wire.table import table_of

Columns = list[str]

# Kafka's keys of deadlines, by the kind of kraftd's.
TIMERS = {
    "heartbeat": "heartbeat",
    "join": "join",
    "sync": "sync",
    "session": "session-timeout",
    "share session": "session-timeout",
    "rebalance": "rebalance-timeout",
    "classic join": "join",
    "classic sync": "sync",
}


MAX_LONG = 2**63 - 1
NAMED_VERSION = 9  # of OffsetCommit and OffsetFetch


class Otherwise(Exception):
    """A decision is given something else than Kafka's."""


def newest(kind: type[Message]) -> int:
    return table_of(kind).valid[1]


def read(kind: type[Any], text: str) -> Any:
    """A message as the agent writes it: if its newest version has ids of topics, in one with names too."""
    first, *others = text[1:].split(",")
    message = decode(kind, newest(kind), bytes.fromhex(first))
    if others:
        named = decode(kind, NAMED_VERSION, bytes.fromhex(others[0]))
        for one, other in zip(topics_of(message), topics_of(named), strict=True):
            one.name = other.name
    if len(others) > 1:
        message.retention_time_ms = int(others[1])
    return message


def topics_of(message: Any) -> list[Any]:
    """The topics of a message about offsets."""
    groups = getattr(message, "groups", [message])
    return [topic for group in groups for topic in group.topics or ()]


class Known:
    """The topics of a test's metadata image, and the configs of its groups."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[bytes, tuple[tuple[str, ...], ...]]] = {}
        self.image_version = self.newest_version = 0
        self.changes = 0
        self.configs: dict[str, dict[str, str]] = {}

    def take(self, version: str, newest_version: str, topics: str) -> None:
        self.image_version, self.newest_version = int(version), int(newest_version)
        self.changes += 1
        self.topics = {}
        for row in topics.split():
            name, topic_id, partitions = row.split(",")
            racks = [tuple(filter(None, one[1:].split("+"))) for one in partitions.split("/") if one]
            self.topics[name] = parse_uuid(topic_id), tuple(racks)

    def topic_id(self, name: str) -> bytes | None:
        return self.topics[name][0] if name in self.topics else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, (known, _) in self.topics.items() if known == topic_id), None)

    def has_partition(self, name: str, index: int) -> bool:
        return 0 <= index < len(self.topics[name][1]) if name in self.topics else False

    def version(self) -> int:
        return self.image_version

    def hashes_version(self) -> int:
        return self.changes

    def names_version(self) -> int:
        return self.newest_version

    def names(self) -> Iterable[str]:
        return list(self.topics)

    def partition_count(self, topic_id: bytes) -> int:
        name = self.topic_name(topic_id)
        return 0 if name is None else len(self.topics[name][1])

    def topic_hash(self, name: str) -> int | None:
        if name not in self.topics:
            return None
        topic_id, partitions = self.topics[name]
        ids = {rack: number for number, rack in enumerate({one for racks in partitions for one in racks})}
        replicas = tuple(tuple(ids[rack] for rack in racks) for racks in partitions)
        return topic_hash(topic_id, name, replicas, {number: rack for rack, number in ids.items()})

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        return self.configs.get(group_id, {})

    def dynamic_config(self, name: str) -> str | None:
        return None


def partitions_of(text: str) -> dict[bytes, set[int]]:
    rows = (row.split(":") for row in text.split(",") if row)
    return {parse_uuid(topic): {int(one) for one in indexes.split(".") if one} for topic, indexes in rows}


class Prepared:
    """Assignors that return what those of Kafka's test have returned."""

    def __init__(self) -> None:
        self.rows: deque[Columns] = deque()

    def __call__(self, spec: GroupSpec, assignable: object = None) -> Slices[Assigned]:
        yield from ()
        if not self.rows:
            raise Otherwise("an assignor is asked")
        kind, members, targets, failure = self.rows.popleft()
        if (kind == "Homogeneous") != spec.is_homogeneous:
            raise Otherwise(f"the subscriptions are {kind} in Kafka")
        rows = (row.split("|") for row in members.split(";") if row)
        asked = {
            one: (sorted(parse_uuid(id) for id in ids.split(",") if id), partitions_of(text))
            for one, ids, text in rows
        }
        own = {one: (sorted(member.topic_ids), dict(member.assigned)) for one, member in spec.members.items()}
        if own != asked:
            raise Otherwise(f"an assignor is given {own} and not {asked}")
        if targets == "null":
            raise AssignorFailed(failure)
        return {
            one: partitions_of(text) for one, text in (row.split("|") for row in targets.split(";") if row)
        }


class World:
    """A manager of groups in a test of Kafka's, and kraftd's state of the same groups."""

    def __init__(self, settings: Iterable[str]) -> None:
        given = dict(one.split("=", 1) for one in settings)
        names = given.pop("group_consumer_assignors").split(",")
        policy = given.pop("group_consumer_migration_policy")
        numbers = {name: int(value) for name, value in given.items()}
        self.prepared = Prepared()
        config = GroupConfig(
            group_consumer_assignors=names,
            assignors=dict.fromkeys(names, self.prepared),
            group_consumer_migration_policy=policy.lower(),
            **numbers,  # type: ignore[arg-type]
        )
        self.known = Known()
        self.uuids: deque[str] = deque()
        self.answers: list[tuple[str, str]] = []  # of requests that waited
        memory = MemberMemory(config.members_max_bytes)
        self.state = ShardState(config, self.respond, self.uuid, Counts(), memory, self.known)
        self.state.timeline.committed = 1
        self.written = 1  # the next record's offset
        self.waiting: dict[str, Outcome] = {}
        self.denied: set[str] = set()  # topics that the caller of a heartbeat may not describe

    def respond(self, call: Call, response: Message) -> None:
        self.answers.append((call.token, shown(response)))

    def uuid(self) -> str:
        if not self.uuids:
            raise Otherwise("a member id is drawn")
        return self.uuids.popleft()

    def replay(self, record: str, now_ms: str) -> None:
        self.state.now_ms = int(now_ms)
        replay(self.state, record_of(record), self.written, -1)
        self.written += 1

    def limit_offsets(self, metadata_max_bytes: str, retention_minutes: str) -> None:
        self.state.config = msgspec.structs.replace(
            self.state.config,
            offset_metadata_max_bytes=int(metadata_max_bytes),
            offsets_retention_minutes=int(retention_minutes),
        )

    def replay_offset(self, offset: str, producer_id: str, record: str, now_ms: str) -> None:
        """A record of an offset, at its own offset in the log."""
        self.state.now_ms = int(now_ms)
        self.written = int(offset) + 1
        replay(self.state, record_of(record), self.written, int(producer_id))
        self.written += 1

    def end_transaction(self, producer_id: str, result: str) -> None:
        self.state.timeline.offset = self.written
        self.state.offsets.end_transaction(int(producer_id), result == "COMMIT")
        self.written += 1

    def settle(self, how: str) -> None:
        if how == "commit":
            self.state.timeline.commit(self.written)
        else:
            self.written = self.state.timeline.committed
            self.state.timeline.revert(self.written)

    def timers(self) -> list[str]:
        """The deadlines as Kafka names them."""
        found = []
        for (kind, *names), entry in self.state.deadlines._entries.items():  # type: ignore[misc]
            if kind == RESOLVING:
                continue  # a task in Kafka
            found.append(f"{'-'.join((TIMERS[kind], *names))}={entry.due_ms}")
        return sorted(found)

    def touch(self, group_id: str, how: str, now_ms: str, arguments: Columns) -> None:
        """Change a group as a test does it, not by a request or a record."""
        state = self.state
        state.now_ms = int(now_ms)
        state.timeline.offset = self.written
        if how == "getOrMaybeCreateClassicGroup":
            if group_id not in state.groups:
                state.new_classic_group(group_id)
            return
        if how == "getOrMaybeCreatePersistedConsumerGroup":
            if group_id not in state.groups:
                state.timeline.put(state.groups, group_id, ConsumerGroup(group_id, state.timeline))
            return
        group: Any = state.groups.get(group_id)
        if how == "replay":
            replay(state, record_of(arguments[0]), self.written, -1)
        elif isinstance(group, ModernGroup):
            group.refreshed(self.known.hashes_version(), int(arguments[1]))
        elif how == "add":
            said = read(JoinGroupRequest, arguments[0])
            protocols = [(one.name, one.metadata) for one in said.protocols]
            member = ClassicMember(
                said.member_id,
                said.group_instance_id,
                arguments[1],
                arguments[2],
                said.rebalance_timeout_ms,
                said.session_timeout_ms,
                said.protocol_type,
                protocols,
                bytes.fromhex(arguments[3]),
            )
            if arguments[4] == "true":
                member.awaiting_join = Call("a test's", 9)
            group.add(member)
        elif how == "heard":
            heard(state, group, group.members[arguments[0]])
        elif how == "remove":
            group.remove(arguments[0])
        elif how == "transitionTo":
            group.transition_to(ClassicState(arguments[0]), state.now_ms)
        elif how == "setProtocolName":
            group.protocol_name = arguments[0].removeprefix("Optional[").removesuffix("]")
        elif how == "setSubscribedTopics":
            named = arguments[0].removeprefix("Optional[[").removesuffix("]]")
            group.subscribed_topics = frozenset(one for one in named.split(", ") if one)
        elif how == "initNextGeneration":
            group.generation += 1
            group.protocol_name = group.elected_protocol()
            group.subscribed_topics = group.compute_subscribed_topics()
        else:
            raise Otherwise(f"touched by {how}")


def record_of(text: str) -> CoordinatorRecord:
    """A record as the agent writes it."""
    key, _, value = text.partition(":")
    return decode_record(bytes.fromhex(key), bytes.fromhex(value) if value else None)[1]


def shown(message: Any) -> str:
    """A message in a form that is compared: without the order of lists."""
    if isinstance(message, JoinGroupResponse):
        message.protocol_name = message.protocol_name or None  # as its version has it
    return repr(plain(msgspec.to_builtins(message)))


def plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: plain(item) for key, item in node.items()}
    if isinstance(node, list | tuple):
        return sorted((plain(item) for item in node), key=repr)
    return node
