"""The group coordinator beside this broker's partitions: its records are appended, read and committed there.

It loads a partition of `__consumer_offsets` when this broker becomes its leader, and drops it when it is no
more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kraftd.acl import AclOperation, AclResourceType
from kraftd.answers.operations import allowed_operations
from kraftd.broker_node.audit import audit
from kraftd.broker_node.effects import ReadPartition
from kraftd.broker_node.topic_creation import OFFSETS_TOPIC
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.groups.call import Call as GroupCall
from kraftd.groups.config import GroupConfig
from kraftd.groups.coordinator import GroupCoordinator
from kraftd.groups.effects import (
    AppendMarker,
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    Respond,
    ScheduleLoading,
)
from kraftd.groups.events import (
    AppendFailed,
    HighWatermarkAdvanced,
    LoadingDue,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
    RecordsRead,
    TopicsDeleted,
)
from kraftd.messages.describe_groups_response import DescribeGroupsResponse
from kraftd.messages.offset_commit_request import OffsetCommitRequest
from kraftd.partition.partition import ACKS_ALL
from kraftd.partition.validation import ProduceRefusal
from kraftd.types import ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.keyed_records import KeyedRecord, build_keyed_batch

if TYPE_CHECKING:
    from kraftd.answers.node import Slices
    from kraftd.answers.view import ClusterView
    from kraftd.broker_node.events import PartitionRead
    from kraftd.broker_node.replicas import Hosted, Replicas
    from kraftd.partition.effects import AppendBatches
    from kraftd.requests.boundary import Boundary
    from kraftd.requests.call import Call
    from kraftd.requests.outbox import Outbox


class KnownTopics:
    """What the image says of topics, for the coordinator."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def topic_id(self, name: str) -> bytes | None:
        """The id of a topic; None if there is none."""
        return self._view.image.topic_names().get(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic; None if there is none."""
        topic = self._view.image.topic(topic_id)
        return None if topic is None else topic.name

    def has_partition(self, name: str, index: int) -> bool:
        """Return whether a topic has a partition."""
        return self._view.image.partition(self.topic_id(name) or ZERO_UUID, index) is not None

    def __repr__(self) -> str:
        return f"<KnownTopics {self._view.image.topic_count}>"


class CoordinatingNode(Protocol):
    """What the coordinator's driver uses of its node."""

    now_ms: int

    @property
    def view(self) -> ClusterView: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def boundary(self) -> Boundary: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def wall_ms(self) -> int: ...

    def guarded(self, call: Call, work: Callable[[], None]) -> bool: ...
    def append(self, hosted: Hosted, append: AppendBatches) -> None: ...
    def go_on(self, slices: Slices) -> None: ...


class GroupCoordination:
    """Drives the coordinator; `node` performs what it wants."""

    def __init__(self, node: CoordinatingNode, config: GroupConfig, new_uuid: Callable[[], str]) -> None:
        self.coordinator = GroupCoordinator(config, KnownTopics(node.view), new_uuid)
        self._node = node
        self._batches: dict[tuple[int, int], int] = {}  # ids by partition and base offset, until written
        self._is_dirty = False
        self._setting_back: set[Call] = set()  # commits of an offset before that of the group
        self._performers: dict[type, Callable[[Any], None]] = {
            Respond: self._respond,
            AppendRecords: self._append,
            AppendMarker: self._append_marker,
            ReadRecords: self._read,
            ScheduleLoading: lambda effect: self._node.go_on(self._load_later(effect)),
            PartitionLoaded: self._loaded,
            PartitionFailed: self._failed,
        }

    def __repr__(self) -> str:
        return f"<GroupCoordination of {self.coordinator!r}>"

    # -- requests

    def handle(self, call: Call) -> None:
        """Take a request of a group."""
        call.settled = True
        boundary = self._node.boundary

        def allows(operation: AclOperation, type: AclResourceType, name: str) -> bool:
            return boundary.allows(call, operation, type, name)

        self._count_partitions()
        if isinstance(call.message, OffsetCommitRequest) and self.coordinator.sets_back(call.message):
            self._setting_back.add(call)
        group_call = GroupCall(call, call.version, call.client_id, f"/{call.host}", allows)
        self._perform(self.coordinator.handle(group_call, call.message, self._node.wall_ms))

    def _respond(self, effect: Respond) -> None:
        call: Call = effect.token
        sets_back = call in self._setting_back
        self._setting_back.discard(call)

        def answer() -> None:
            audit(self._node.outbox, call, effect.response, sets_back=sets_back)
            if isinstance(effect.response, DescribeGroupsResponse):
                self._add_operations(call, effect.response)
            self._node.boundary.answer(call, effect.response)

        self._node.guarded(call, answer)

    def _add_operations(self, call: Call, response: DescribeGroupsResponse) -> None:
        """Add what the client may do with each group, if it asks for that."""
        if call.message.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    type = AclResourceType.GROUP
                    group.authorized_operations = allowed_operations(self._node, call, type, group.group_id)

    def _count_partitions(self) -> None:
        image = self._node.view.image
        topic = image.topic(image.topic_names().get(OFFSETS_TOPIC, ZERO_UUID))
        if topic is not None:
            self.coordinator.partition_count = len(topic.partitions)

    # -- driving

    def flush(self) -> None:
        """At the end of a step: append what its requests and events have written."""
        while self._is_dirty:
            self._is_dirty = False
            self._carry_out(self.coordinator.flush(self._node.wall_ms))

    def deadline_ms(self) -> int | None:
        """When `run_due` has work, by the node's time; None for never."""
        due_ms = self.coordinator.deadline_ms()
        return None if due_ms is None else due_ms - self._node.wall_ms + self._node.now_ms

    def run_due(self) -> None:
        """Perform what is due."""
        due_ms = self.coordinator.deadline_ms()
        if due_ms is not None and due_ms <= self._node.wall_ms:
            self._perform(self.coordinator.tick(self._node.wall_ms))

    def _step(self, event: Event) -> None:
        self._perform(self.coordinator.step(event, self._node.wall_ms))

    def _perform(self, effects: list[Effect]) -> None:
        self._is_dirty = True
        self._carry_out(effects)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._performers[type(effect)](effect)

    # -- partitions

    def leadership_changed(self, index: int, hosted: Hosted | None) -> None:
        """A partition of the topic may have another leader, or be gone."""
        self._count_partitions()
        partition = None if hosted is None else hosted.partition
        if partition is not None and partition.is_leader:
            self._step(
                PartitionElected(
                    index, partition.leader_epoch, partition.log_start_offset, partition.next_offset
                )
            )
            self._step(HighWatermarkAdvanced(index, partition.high_watermark))
        else:
            self._step(PartitionResigned(index))

    def high_watermark_moved(self, index: int, offset: int) -> None:
        """The high watermark of a partition of the topic moved."""
        self._step(HighWatermarkAdvanced(index, offset))

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Forget the offsets of topics that are gone, by name and id; a name may be there repeatedly."""
        while topics:
            latest = dict(topics)
            self._step(TopicsDeleted(latest))
            topics = [one for one in topics if latest[one[0]] != one[1]]

    def append_ended(self, index: int, base_offset: int, error: ErrorCode | None) -> None:
        """An append to a partition of the topic ended."""
        batch_id = self._batches.pop((index, base_offset), None)
        if batch_id is None:
            return
        if error is None:
            self._step(RecordsAppended(index, batch_id))
        else:
            self._step(AppendFailed(index, batch_id, error))

    def _append(self, effect: AppendRecords) -> None:
        hosted = self._node.replicas.get(OFFSETS_TOPIC, effect.partition)
        partition = None if hosted is None else hosted.partition
        if hosted is None or partition is None:
            self._step(AppendFailed(effect.partition, effect.batch_id, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        if partition.next_offset != effect.base_offset:  # another client has written into the topic
            failed = effect.partition, effect.batch_id, ErrorCode.NOT_COORDINATOR
            self._step(AppendFailed(*failed, partition.log_end_offset))
            return
        self._node.replicas.refresh_config(hosted)
        records = [KeyedRecord(key, value) for key, value in effect.records]
        producer = effect.producer_id, effect.producer_epoch, 0  # as Kafka's coordinators have it
        data = bytearray(build_keyed_batch(records, effect.timestamp_ms, producer=producer))
        produced = partition.append_own(data, ACKS_ALL, self._node.wall_ms)
        if isinstance(produced, ProduceRefusal):
            self._step(AppendFailed(effect.partition, effect.batch_id, produced.error))
            return
        assert produced.append is not None
        hosted.traffic.bytes_in += len(data)
        hosted.traffic.messages_in += len(records)
        self._batches[effect.partition, produced.base_offset] = effect.batch_id
        self._node.append(hosted, produced.append)

    def _append_marker(self, effect: AppendMarker) -> None:
        raise NotImplementedError(f"transactions are not served: {effect!r}")

    # -- loading

    def _read(self, effect: ReadRecords) -> None:
        self._node.outbox.emit(
            ReadPartition(
                OFFSETS_TOPIC, effect.partition, effect.offset, effect.max_bytes, effect.leader_epoch
            )
        )

    def partition_read(self, event: PartitionRead) -> None:
        """Records of a partition of the topic, or why there are none."""
        hosted = self._node.replicas.get(OFFSETS_TOPIC, event.partition)
        partition = None if hosted is None else hosted.partition
        marks = 0 if partition is None else partition.high_watermark
        self._step(RecordsRead(event.partition, event.leader_epoch, event.data, marks, event.error))

    def _load_later(self, effect: ScheduleLoading) -> Slices:
        yield
        self._step(LoadingDue(effect.partition, effect.leader_epoch))

    def _loaded(self, effect: PartitionLoaded) -> None:
        if effect.record_count:
            self._node.outbox.log(
                "info",
                "groups loaded",
                partition=f"{OFFSETS_TOPIC}-{effect.partition}",
                records=effect.record_count,
                groups=effect.group_count,
            )

    def _failed(self, effect: PartitionFailed) -> None:
        self._node.outbox.log(
            "error",
            "groups could not be loaded",
            partition=f"{OFFSETS_TOPIC}-{effect.partition}",
            why=effect.reason,
        )
