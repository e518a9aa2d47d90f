"""The decisions of kraftd that ``test_kafkas_decisions`` holds beside Kafka's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from kraftd.configdef.node import NodeConfig
from kraftd.controller.brokers import transitions
from kraftd.controller.brokers.heartbeats import BrokerHeartbeats
from kraftd.controller.brokers.registration import register_broker, unregister_broker
from kraftd.controller.brokers.states import broker_heartbeat, fence_stale_broker
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.features.controllers import register_controller
from kraftd.controller.partitions.directories import assign_replicas_to_dirs
from kraftd.controller.partitions.election import balance_leaders, elect_leaders, elect_unclean_leaders
from kraftd.controller.partitions.isr import alter_partition
from kraftd.controller.partitions.reassignment import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from kraftd.controller.topics.create_partitions import create_partitions
from kraftd.controller.topics.create_topics import create_topics
from kraftd.controller.topics.delete_topics import delete_topics
from kraftd.ground.refusal import Refusal
from kraftd.messages.alter_partition_reassignments_request import AlterPartitionReassignmentsRequest
from kraftd.messages.alter_partition_request import AlterPartitionRequest
from kraftd.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.create_partitions_request import CreatePartitionsRequest
from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata import metadata_version as mv
from kraftd.metadata.errors import ReplayError
from kraftd.types import parse_uuid, uuid_text
from kraftd.wire.codec import decode, encode_bytes
from kraftd.wire.error_code import ErrorCode as E
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from tests.controller.cluster import ELR, Cluster
from tests.controller.test_controller_oracle import plain

Columns = list[str]
Decided = tuple[Decision[Any] | list[VersionedRecord], int | str]  # and the answer's version, or its text


class Call(NamedTuple):
    """A decision of Kafka's: what was asked, and the result."""

    name: str
    now_ms: int
    session_ms: int
    level: int
    elr: bool
    cluster_id: str
    arguments: Columns
    draws: list[tuple[int, int]]
    error: str | None
    answer: str
    records: list[str]

    @property
    def topic_ids(self) -> Iterator[bytes]:
        messages = [decode_record(bytes.fromhex(record)).message for record in self.records]
        return iter([message.topic_id for message in messages if isinstance(message, TopicRecord)])

    def request(self, kind: type[Any], version: int, place: int = 0) -> Any:
        return decode(kind, version, bytes.fromhex(self.arguments[place][1:]))


def call_of(head: Columns, draws: list[tuple[int, int]], end: Columns) -> Call:
    _, _, name, now_ms, session_ms, level, elr, cluster_id, *arguments = head
    error = end[1] if end[0] == "refused" else None
    answer, records = ("", "") if error is not None else end[1:]
    return Call(
        name=name,
        now_ms=int(now_ms),
        session_ms=int(session_ms),
        level=int(level),
        elr=elr == "true",
        cluster_id=cluster_id,
        arguments=arguments,
        draws=draws,
        error=error,
        answer=answer,
        records=records.split(),
    )


def pairs(text: str) -> dict[str, str]:
    """A map as Java writes it."""
    return dict(one.split("=", 1) for one in text.strip("{}").split(", ") if one)


class Otherwise(Exception):
    """A draw that is not Kafka's."""


class Kafkas:
    """Kafka's random numbers and topic ids."""

    def __init__(self) -> None:
        self.draws: deque[tuple[int, int]] = deque()
        self.topic_ids: Iterator[bytes] = iter(())

    def below(self, n: int) -> int:
        if not self.draws:
            return 0  # Kafka chooses none among racks if there is one rack
        bound, value = self.draws.popleft()
        if bound != n:
            raise Otherwise(f"draws below {n}")
        return value

    def uuid(self) -> bytes:
        return next(self.topic_ids, b"\1" * 16)


class Exhausted:
    """A mutation quota that is used up."""

    throttle_ms = 0

    def take(self, partition_count: int) -> None:
        raise Refusal(E.THROTTLING_QUOTA_EXCEEDED)

    def commit(self, end_offset: int = 0) -> None:
        pass


class World:
    """Kafka's managers of one test, as a cluster of kraftd's."""

    def __init__(self) -> None:
        self.rng = Kafkas()
        self.cluster = Cluster(rng=self.rng, num_partitions=1, default_replication_factor=3)
        self.cluster.image = type(self.cluster.image)()  # the tests set the metadata.version

    def configure(self, texts: str, node_id: str) -> None:
        """Set the configs of the controller's file, Java's text of a map, and the controller's id."""
        static = NodeConfig(pairs(texts))
        settings = self.cluster.settings
        self.cluster.settings = msgspec.structs.replace(settings, static_config=static, node_id=int(node_id))

    def takes(self, record: str) -> bool:
        """Replay a record. Returns false if it contradicts the image."""
        image = self.cluster.image
        try:
            image.apply(decode_record(bytes.fromhex(record)).message, image.offset + 1, 1)
        except ReplayError:
            return False
        return True

    def context(self, call: Call) -> Context:
        """The context of a decision. The features of some tests have a snapshot registry of their own."""
        cluster, image = self.cluster, self.cluster.image
        for name, level in (("metadata.version", call.level), (ELR, int(call.elr))):
            if image.features.get(name, 0) != level:
                image.apply(FeatureLevelRecord(name, level), image.offset + 1, 1)
        if cluster.heartbeats.session_timeout_ms != call.session_ms:
            cluster.heartbeats = BrokerHeartbeats(call.session_ms)
        self.rng.draws, self.rng.topic_ids = deque(call.draws), call.topic_ids
        cluster.settings = msgspec.structs.replace(cluster.settings, cluster_id=call.cluster_id)
        ctx = cluster.ctx
        ctx.now_ms = call.now_ms
        return ctx


# --- the decisions of kraftd ----------------------------------------------------------------------


def quota(call: Call) -> dict[str, Any]:
    """What a test charges: a quota that is used up if Kafka's answer says so."""
    used_up = E.THROTTLING_QUOTA_EXCEEDED
    code = used_up.to_bytes(2, "big").hex()
    throttled = used_up.name in call.answer or (code in call.answer and not call.records)
    return {"charge": Exhausted()} if throttled else {}


def topics_created(ctx: Context, call: Call) -> Decided:
    request = call.request(CreateTopicsRequest, 7, 1)
    described = call.arguments[2].split(",")
    return create_topics(ctx, request, 7, describable=lambda name: name in described, **quota(call)), 7


def topics_deleted(ctx: Context, call: Call) -> Decided:
    named = [DeleteTopicState(None, parse_uuid(text)) for text in call.arguments[1].split(",")]
    made = delete_topics(ctx, DeleteTopicsRequest(named), 6, **quota(call))
    rows = [f"{uuid_text(row.topic_id)}={E(row.error_code).name}" for row in made.answer.responses]
    return made, " ".join(rows)


def partitions_created(ctx: Context, call: Call) -> Decided:
    request = call.request(CreatePartitionsRequest, 3, 1)
    request.timeout_ms = 60_000
    made = create_partitions(ctx, request, 3, **quota(call))
    return made, " ".join(f"{row.name}={E(row.error_code).name}" for row in made.answer.results)


def heartbeat(ctx: Context, call: Call) -> Decided:
    request = call.request(BrokerHeartbeatRequest, 2)
    offsets = ctx.image.registration_offsets
    if request.broker_id in offsets:
        offsets[request.broker_id] = int(call.arguments[1])
    made = broker_heartbeat(ctx, request)
    answer = made.answer
    texts = map(str, (answer.is_caught_up, answer.is_fenced, answer.should_shut_down))
    return made, " ".join(texts).lower()


def stale_fenced(ctx: Context, call: Call) -> Decided:
    """Of several silent brokers Kafka takes any, so its choice is made the one that is silent for longest."""
    for record in call.records:
        message = decode_record(bytes.fromhex(record)).message
        if isinstance(message, BrokerRegistrationChangeRecord):
            heartbeats: Any = ctx.heartbeats
            key = (message.broker_id, message.broker_epoch)
            heartbeats._contacts = {key: heartbeats._contacts[key], **heartbeats._contacts}
    made = fence_stale_broker(ctx)
    return made, str(made.answer).lower()


def registered(ctx: Context, call: Call) -> Decided:
    """Some tests register a broker under another metadata.version than the one in force."""
    request = call.request(BrokerRegistrationRequest, 4)
    finalized = pairs(call.arguments[2])
    level = int(finalized.get(mv.METADATA_VERSION, -1))
    own = (mv.METADATA_VERSION, level)
    narrow = [one for one in request.features if (one.name, one.max_supported_version) == own]
    for feature in narrow:
        feature.max_supported_version = max(level, call.level)
    ctx.next_offset, ctx.kraft_version = int(call.arguments[1]), int(finalized.get("kraft.version", 0))
    made = register_broker(ctx, request, 4 if call.arguments[3] == "true" else 2)
    for record in made.records if narrow else ():
        for feature in getattr(record.message, "features", ()):
            if feature.name == mv.METADATA_VERSION:
                feature.max_supported_version = level
    return made, str(made.answer.broker_epoch)


def tracked(ctx: Context, call: Call) -> Decided:
    broker_id, broker_epoch = map(int, call.arguments)
    ctx.heartbeats.renew(broker_id, broker_epoch, ctx.now_ms)
    return [], "null"


def activated(ctx: Context, call: Call) -> Decided:
    ctx.heartbeats.start(ctx.image.brokers.values(), ctx.now_ms)
    return [], "null"


def moved(transition: Callable[..., list[VersionedRecord]]) -> Callable[[Context, Call], Decided]:
    """A decision about a broker's partitions; its arguments are numbers and whether a shutdown was clean."""

    def decide(ctx: Context, call: Call) -> Decided:
        some = [text == "true" if text in ("true", "false") else int(text) for text in call.arguments[:-1]]
        return transition(ctx, *some), "null"

    return decide


def disks_lost(ctx: Context, call: Call) -> Decided:
    broker_id, broker_epoch, lost = call.arguments[:3]
    places = [parse_uuid(text) for text in lost.split(",")]
    return transitions.handle_directories_offline(ctx, int(broker_id), int(broker_epoch), places), "null"


def unregistered(ctx: Context, call: Call) -> Decided:
    return unregister_broker(ctx, UnregisterBrokerRequest(int(call.arguments[0]))), "null"


def periodic(task: Callable[[Context], Decision[bool]]) -> Callable[[Context, Call], Decided]:
    def decide(ctx: Context, call: Call) -> Decided:
        made = task(ctx)
        return made, str(made.answer).lower()

    return decide


def asked(
    decision: Callable[..., Decision[Any]], kind: type[Any], version: int
) -> Callable[[Context, Call], Decided]:
    """A decision on a request of one version."""
    return lambda ctx, call: (decision(ctx, call.request(kind, version), version), version)


def reassignments_listed(ctx: Context, call: Call) -> Decided:
    request = ListPartitionReassignmentsRequest(60_000, None)
    if call.arguments[0] != "null":
        request = call.request(ListPartitionReassignmentsRequest, 0)
    return list_partition_reassignments(ctx, request, 0), 0


def isr_altered(ctx: Context, call: Call) -> Decided:
    version = int(call.arguments[0])
    return alter_partition(ctx, call.request(AlterPartitionRequest, version, 1), version), version


def controller_registered(ctx: Context, call: Call) -> Decided:
    return register_controller(ctx, call.request(ControllerRegistrationRequest, 0)), "null"


DECISIONS: dict[str, Callable[[Context, Call], Decided]] = {
    "activate": activated,
    "alterPartition": isr_altered,
    "alterPartitionReassignments": asked(
        alter_partition_reassignments, AlterPartitionReassignmentsRequest, 1
    ),
    "createPartitions": partitions_created,
    "createTopics": topics_created,
    "deleteTopics": topics_deleted,
    "electLeaders": asked(elect_leaders, ElectLeadersRequest, 2),
    "handleAssignReplicasToDirs": asked(assign_replicas_to_dirs, AssignReplicasToDirsRequest, 0),
    "handleBrokerFenced": moved(transitions.handle_broker_fenced),
    "handleBrokerInControlledShutdown": moved(transitions.handle_broker_in_controlled_shutdown),
    "handleBrokerShutdown": moved(transitions.handle_broker_shutdown),
    "handleBrokerUnfenced": moved(transitions.handle_broker_unfenced),
    "handleBrokerUnregistered": moved(transitions.handle_broker_unregistered),
    "handleDirectoriesOffline": disks_lost,
    "listPartitionReassignments": reassignments_listed,
    "maybeBalancePartitionLeaders": periodic(balance_leaders),
    "maybeElectUncleanLeaders": periodic(elect_unclean_leaders),
    "maybeFenceOneStaleBroker": stale_fenced,
    "processBrokerHeartbeat": heartbeat,
    "registerBroker": registered,
    "registerController": controller_registered,
    "trackBrokerHeartbeat": tracked,
    "unregisterBroker": unregistered,
}


# --- comparison -----------------------------------------------------------------------------------


def calls_differ(world: World, call: Call) -> str | None:
    """How kraftd's decision differs from Kafka's; None if it does not."""
    ctx = world.context(call)
    try:
        made, how = DECISIONS[call.name](ctx, call)
    except Refusal as refusal:
        return None if call.error == refusal.code.name else f"refused {refusal.code.name}"
    except Otherwise as otherwise:
        return str(otherwise)
    if call.error is not None:
        return f"not refused: {made}"
    records = made.records if isinstance(made, Decision) else made
    if records and world.rng.draws:
        return f"does not draw {world.rng.draws}"
    if sorted(encode_record(record).hex() for record in records) != sorted(call.records):
        return f"{records}"
    if isinstance(made, Decision) and made.after is not None:
        made.after(ctx.image.offset + 1 + len(records))
    if isinstance(how, str):
        return None if sorted(how.split()) == sorted(call.answer.split()) else how
    assert isinstance(made, Decision)
    answers = [decode(type(made.answer), how, encode_bytes(made.answer, how))]
    answers.append(decode(type(made.answer), how, bytes.fromhex(call.answer[1:])))
    if call.name == "createTopics":
        for row in (row for answer in answers for row in answer.topics):
            row.configs = []  # of Kafka's tests' own schema
            row.topic_id = row.topic_id if records else bytes(16)
    return None if plain(answers[0]) == plain(answers[1]) else f"{made.answer}"
