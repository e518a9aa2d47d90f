"""A coordinator beside this broker's partitions: its records are appended, read and committed there.

It loads a partition of its topic when this broker becomes its leader, and drops it when it is no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kraftd.broker_node.effects import ReadPartition
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.groups.call import Call as CoordinatorCall
from kraftd.groups.effects import (
    AppendMarker,
    AppendRecords,
    PartitionFailed,
    PartitionLoaded,
    ReadRecords,
    Respond,
    RespondAgain,
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
)
from kraftd.groups.shards import Shards
from kraftd.partition.partition import ACKS_ALL
from kraftd.partition.producer_entry import LEGACY_TRANSACTIONS, TRANSACTIONAL
from kraftd.partition.validation import ProduceRefusal
from kraftd.recent import Recent
from kraftd.requests.repeated_requests import Varied
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.records import build_records_batch

if TYPE_CHECKING:
    from kraftd.answers.node import Slices
    from kraftd.answers.settings import ClientSettings
    from kraftd.answers.view import ClusterView
    from kraftd.broker_node.directories.damaged_logs import DamagedLogs
    from kraftd.broker_node.events import PartitionRead
    from kraftd.broker_node.own_requests import OwnRequests
    from kraftd.broker_node.partitions.produces import Produces
    from kraftd.broker_node.partitions.replicas import Hosted, Replicas
    from kraftd.broker_node.producer_ids import ProducerIds
    from kraftd.broker_node.topic_creation import TopicCreation
    from kraftd.metadata.image import Image
    from kraftd.partition.effects import AppendBatches
    from kraftd.requests.boundary import Boundary
    from kraftd.requests.call import Call
    from kraftd.requests.outbox import Outbox


NO_LEADER = -1


def leader_of(view: ClusterView, topic: str, index: int) -> int | None:
    """The live leader of a partition, NO_LEADER without one, None if there is no such partition."""
    image = view.image
    state = image.partition(image.topic_id(topic), index)
    if state is None:
        return None
    broker = image.brokers.get(state.leader)
    return NO_LEADER if broker is None or broker.fenced else state.leader


class CoordinatingNode(Protocol):
    """What a coordinator's driver uses of its node."""

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
    def settings(self) -> ClientSettings: ...
    @property
    def produces(self) -> Produces: ...
    @property
    def own_requests(self) -> OwnRequests: ...
    @property
    def producer_ids(self) -> ProducerIds: ...
    @property
    def damaged_logs(self) -> DamagedLogs: ...
    @property
    def topic_creation(self) -> TopicCreation: ...
    @property
    def wall_ms(self) -> int: ...

    def guarded(self, call: Call, work: Callable[[], None]) -> bool: ...
    def append(self, hosted: Hosted, append: AppendBatches) -> None: ...
    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None: ...
    def go_on(self, slices: Slices) -> None: ...
    def go_on_later(self, slices: Slices) -> None: ...


class Coordination:
    """Drives a coordinator; `node` performs what it wants. `topic` is the coordinator's, `content` what it
    keeps, for the log. `base_sequence` is that of its batches, as Kafka's coordinator writes it. codec: with
    which its records are compressed, by Kafka's number.
    """

    topic: ClassVar[str]
    content: ClassVar[str]
    base_sequence: ClassVar[int] = 0

    def __init__(self, node: CoordinatingNode, coordinator: Shards[Any], codec: int = 0) -> None:
        self._shards = coordinator
        self.unsent: Mapping[int, object] = coordinator.unsent  # what requests and events have written
        self._codec = codec
        self._node = node
        self._batches: dict[tuple[int, int], int] = {}  # ids by partition and base offset, until written
        self.load_times = Recent()  # how long each partition took to load, in milliseconds
        self._followed: tuple[int, int, int] | None = None  # the image and the features, as they were last
        self._performers: dict[type, Callable[[Any], None]] = {
            Respond: self._respond,
            RespondAgain: lambda effect: self._node.boundary.answer_as_before(effect.token),
            AppendRecords: self._append,
            AppendMarker: self._append_marker,
            ReadRecords: self._read,
            ScheduleLoading: lambda effect: self._node.go_on(self._load_later(effect)),
            PartitionLoaded: self._loaded,
            PartitionFailed: self._failed,
        }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._shards!r}>"

    # -- requests

    def new_call(self, call: Call) -> CoordinatorCall:
        """A request as the coordinator sees it."""
        call.settled = True
        self.follow_image()
        coordinator_call = CoordinatorCall(call, call.version, call.client_id, f"/{call.host}")
        boundary = self._node.boundary
        if boundary.has_authorizer:
            coordinator_call.allows = partial(boundary.allows, call)
            coordinator_call.allows_quietly = partial(boundary.allows_quietly, call)
        return coordinator_call

    def _respond(self, effect: Respond) -> None:
        call: Call = effect.token
        again = effect.again
        if again is not None:
            call.again = lambda: again(self._node.wall_ms)
        if effect.varied is not None:
            call.varied = Varied(effect.varied.places, partial(self._take_varied, effect.varied))
        self._node.guarded(call, partial(self.answer, call, effect.response))

    def answer(self, call: Call, response: Any) -> None:
        """Answer a call."""
        self._node.boundary.answer(call, response)

    def _take_varied(self, varied: Any, call: Call, longs: Sequence[int], integers: Sequence[int]) -> bool:
        call.settled = True
        try:
            taken: bool = varied.take(call, longs, integers, self._node.wall_ms)
        except Exception as error:
            call.settled = False
            self._node.boundary.guard(call, error)
            return True
        return taken

    def follow_image(self) -> None:
        """Take what the coordinator needs to know of the image, if it has changed."""
        view = self._node.view
        image, (levels, features_offset) = view.image, view.finalized_features
        seen = image.offset, image.epoch, features_offset
        if seen != self._followed:
            self._followed = seen
            self.image_changed(image, levels)

    def image_changed(self, image: Image, levels: Mapping[str, int]) -> None:
        """Take what the coordinator needs to know of another image, or of other levels of features."""
        topic = image.topic_named(self.topic)
        if topic is not None:
            self._shards.partition_count = len(topic.partitions)
        limit = self._node.replicas.configs.of(self.topic).partition.max_message_bytes
        self._shards.limit_batches(limit)

    # -- driving

    def flush(self) -> None:
        """Append what requests and events have written."""
        while self._shards.unsent:
            self.perform(self._shards.flush(self._node.wall_ms))

    def deadline_ms(self) -> int | None:
        """When `run_due` has work, by the node's time; None for never."""
        due_ms = self._shards.deadline_ms()
        return None if due_ms is None else due_ms - self._node.wall_ms + self._node.now_ms

    def clock_moved(self, moved_ms: int) -> None:
        """The wall clock was set: what waits goes on waiting for as long as before."""
        self._shards.clock_moved(moved_ms)

    def run_due(self) -> None:
        """Perform what is due."""
        due_ms = self._shards.deadline_ms()
        if due_ms is not None and due_ms <= self._node.wall_ms:
            self.follow_image()
            self.perform(self._shards.tick(self._node.wall_ms))

    def step(self, event: Event) -> None:
        self.perform(self._shards.step(event, self._node.wall_ms))

    def perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._performers[type(effect)](effect)

    # -- partitions

    def has_begun(self, index: int) -> bool:
        """Return whether this broker coordinates a partition of the topic, or loads it."""
        return index in self._shards.shards

    def leadership_changed(self, index: int, hosted: Hosted | None) -> None:
        """A partition of the topic may have another leader, or be gone."""
        self.follow_image()
        partition = None if hosted is None else hosted.partition
        if partition is not None and partition.is_leader:
            self.step(
                PartitionElected(
                    index, partition.leader_epoch, partition.log_start_offset, partition.next_offset
                )
            )
            self.step(HighWatermarkAdvanced(index, partition.high_watermark))
        else:
            self.step(PartitionResigned(index))

    def high_watermark_moved(self, index: int, offset: int) -> None:
        """The high watermark of a partition of the topic moved."""
        self.step(HighWatermarkAdvanced(index, offset))

    def append_ended(self, index: int, base_offset: int, error: ErrorCode | None) -> None:
        """An append to a partition of the topic ended."""
        batch_id = self._batches.pop((index, base_offset), None)
        if batch_id is None:
            return
        if error is None:
            self.step(RecordsAppended(index, batch_id))
        else:
            self.step(AppendFailed(index, batch_id, error))

    def _append(self, effect: AppendRecords) -> None:
        time_ms = effect.timestamp_ms
        data = build_records_batch(
            [(time_ms, key, value, ()) for key, value in effect.records],
            attributes=self._codec | (TRANSACTIONAL if effect.producer_id >= 0 else 0),
            producer_id=effect.producer_id,
            producer_epoch=effect.producer_epoch,
            base_sequence=self.base_sequence,
        )
        self._append_batch(effect, data, len(effect.records), guard=effect.guard)

    def _append_marker(self, effect: AppendMarker) -> None:
        data = build_end_marker(
            effect.producer_id,
            effect.producer_epoch,
            is_commit=effect.is_commit,
            coordinator_epoch=effect.coordinator_epoch,
            timestamp_ms=effect.timestamp_ms,
        )
        self._append_batch(effect, data, 1, transaction_version=effect.transaction_version)

    def _append_batch(
        self,
        effect: AppendRecords | AppendMarker,
        data: bytearray,
        count: int,
        *,
        guard: int = 0,
        transaction_version: int = LEGACY_TRANSACTIONS,
    ) -> None:
        hosted = self._node.replicas.get(self.topic, effect.partition)
        partition = None if hosted is None else hosted.partition
        if hosted is None or partition is None:
            self.step(AppendFailed(effect.partition, effect.batch_id, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        if partition.next_offset != effect.base_offset:  # another client has written into the topic
            failed = effect.partition, effect.batch_id, ErrorCode.NOT_COORDINATOR
            self.step(AppendFailed(*failed, partition.log_end_offset))
            return
        self._node.replicas.refresh_config(hosted)
        produced = partition.append_own(
            data, ACKS_ALL, self._node.wall_ms, transaction_version=transaction_version, guard=guard
        )
        if isinstance(produced, ProduceRefusal):
            hosted.traffic.refused(produced, len(data))
            self.step(AppendFailed(effect.partition, effect.batch_id, produced.error))
            return
        assert produced.append is not None
        hosted.traffic.appended(len(data), count)
        self._batches[effect.partition, produced.base_offset] = effect.batch_id
        self._node.append(hosted, produced.append)

    # -- loading

    def _read(self, effect: ReadRecords) -> None:
        self._node.outbox.emit(
            ReadPartition(self.topic, effect.partition, effect.offset, effect.max_bytes, effect.leader_epoch)
        )

    def partition_read(self, event: PartitionRead) -> None:
        """Records of a partition of the topic, or why there are none."""
        hosted = self._node.replicas.get(self.topic, event.partition)
        partition = None if hosted is None else hosted.partition
        marks = 0 if partition is None else partition.high_watermark
        self.step(
            RecordsRead(event.partition, event.leader_epoch, event.data, marks, event.error, event.is_damaged)
        )

    def _load_later(self, effect: ScheduleLoading) -> Slices:
        yield
        self.step(LoadingDue(effect.partition, effect.leader_epoch))

    def _loaded(self, effect: PartitionLoaded) -> None:
        self.load_times.record(effect.took_ms, self._node.wall_ms)
        if effect.record_count:
            self._node.outbox.log(
                "info",
                f"{self.content} loaded",
                partition=f"{self.topic}-{effect.partition}",
                records=effect.record_count,
                **{self.content.replace(" ", "_"): effect.count},
            )

    def _failed(self, effect: PartitionFailed) -> None:
        hosted = self._node.replicas.get(self.topic, effect.partition)
        given_up = (
            effect.is_damaged
            and hosted is not None
            and self._node.damaged_logs.give_up(hosted, effect.reason)
        )
        self._node.outbox.log(
            "error",
            f"{self.content} could not be loaded",
            partition=f"{self.topic}-{effect.partition}",
            why=effect.reason,
            then="another replica is to lead the partition, which is offline here" if given_up else None,
        )
