"""The node of a broker, without IO: its life with the controllers, its partitions, its clients' answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kraftd.answers.client_fetches import ClientFetches
from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.log_source import METADATA_KEY, LogSource
from kraftd.answers.node import AnsweringNode
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.broker_node.client_quotas import AnyFetchResponse, ClientQuotas
from kraftd.broker_node.coordination.late_coordinators import LateCoordinators
from kraftd.broker_node.coordination.verification import Verifications
from kraftd.broker_node.directories.assignments import DirectoryAssignments
from kraftd.broker_node.directories.cordoning import Cordoning
from kraftd.broker_node.directories.damaged_logs import DamagedLogs
from kraftd.broker_node.directories.log_moves import LogMoves
from kraftd.broker_node.directories.log_questions import LogQuestions
from kraftd.broker_node.effects import AppendToLog, BrokerFailed
from kraftd.broker_node.events import (
    AppendsEnded,
    DirectoriesDescribed,
    LogNotOpened,
    LogsFailed,
    LogsLoaded,
    LogsOpened,
    LogTruncated,
    OffsetsFound,
    RecordsExpired,
    WriteEnded,
)
from kraftd.broker_node.fetching.fetchers import ReplicaFetchers
from kraftd.broker_node.fetching.followed import FetchSettings
from kraftd.broker_node.fetching.ports import NodePorts
from kraftd.broker_node.hosting import Hosting
from kraftd.broker_node.lifecycle import Broker, BrokerLifecycle, BrokerState
from kraftd.broker_node.own_requests import HEARTBEATS, OwnRequests
from kraftd.broker_node.partitions.isr_changes import IsrChanges
from kraftd.broker_node.partitions.live_configs import LiveConfigs
from kraftd.broker_node.partitions.partition_source import PartitionSource
from kraftd.broker_node.partitions.produces import Produces
from kraftd.broker_node.partitions.record_deletions import RecordDeletions
from kraftd.broker_node.partitions.replicas import Hosted, Replicas
from kraftd.broker_node.partitions.sent_records import SentRecords
from kraftd.broker_node.partitions.topic_configs import TopicConfigs
from kraftd.broker_node.producer_ids import ProducerIds
from kraftd.broker_node.replication_quotas import ReplicationQuotas
from kraftd.broker_node.topic_creation import TopicCreation
from kraftd.configdef.node import NodeConfig
from kraftd.configdef.replica_selector import RACK_AWARE
from kraftd.fetch.session_cache import SessionCache
from kraftd.ground.destination import Destination
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.metadata.metadata_version import allows_cordoned_directories
from kraftd.partition.effects import AppendBatches, LowWatermarkMoved, MarksMoved, ProposeIsr
from kraftd.partition.partition import FOLLOWER, Partition
from kraftd.requests.call import Call
from kraftd.requests.events import FramesReceived
from kraftd.requests.registry import Registry
from kraftd.security.authorizer import Authorizer
from kraftd.types import METADATA_TOPIC, Uuid
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.group_coordination import GroupCoordination

_ROUND = AppendsEnded(())
LIFECYCLE_REQUEST = -1  # the id of a SendToNode of the lifecycle; those of calls count from 1


class BrokerNode(AnsweringNode):
    """One broker. A step must not call it again."""

    is_broker = True

    def __init__(
        self,
        view: ClusterView,
        settings: ClientSettings,
        registry: Callable[[Any], Registry],
        broker: Broker,
        static: NodeConfig,
        new_session_id: Callable[[], int],
        new_uuid: Callable[[], str],
        authorizer: Authorizer | None = None,
    ) -> None:
        super().__init__(view, settings, registry, authorizer)
        self.wall_ms = view.context.wall_ahead_ms  # the wall clock in this step, for what is stored
        self.fault_of_stores: Callable[[dict[str, str]], str | None] = lambda dynamic: None
        self.lifecycle = life = BrokerLifecycle(broker, self.outbox)
        self.sole_deadline_ms = lambda of: life.next_beat_ms if of.request_id == LIFECYCLE_REQUEST else None
        configs = TopicConfigs(static, view.node_id, view.context)
        self.replicas = Replicas(view, configs, self.outbox)
        self.quotas = ClientQuotas(view.context, static, lambda: self.now_ms)
        self.boundary.quotas = self.quotas
        self.produces = Produces(
            self.boundary, self.replicas, self.missing_partition, self.current_leaders, self.quotas.produced
        )
        self.replication_quotas = ReplicationQuotas(configs, static, lambda: self.now_ms)
        self.records_sent = SentRecords(self.replicas, self.replication_quotas, self.topic_name).count
        self.deletions = RecordDeletions(self.boundary, self.outbox)
        self.source = PartitionSource(
            view,
            self.boundary,
            self.replicas,
            LogSource(view, self.boundary),
            lambda: self.lifecycle.broker_epoch,
            self.replication_quotas,
            selects_by_rack=static.value("replica.selector.class") == RACK_AWARE,
        )
        self.cordoning = Cordoning(configs, static, self.outbox)
        self.log_questions = LogQuestions(self.outbox, self.guarded)
        self.own_requests = OwnRequests(view, self.outbox, settings.request_timeout_ms)
        self.producer_ids = ProducerIds(self.ask_controller, lambda: self.identity)
        assignments = DirectoryAssignments(self.ask_controller, lambda: self.identity, self.become_ready)
        self.directory_assignments, begun = assignments, self.log_questions.moves_begun
        self.log_moves = LogMoves(view, self.outbox, self.replicas, assignments, self.cordoning, begun)
        self.damaged_logs = DamagedLogs(view, self.replicas, assignments, self.on_leadership)
        self.isr_changes = IsrChanges(
            self.ask_controller,
            lambda: self.identity,
            self.follow_up,
            lambda text, error: self.outbox.log("warning", text, error=error),
            lambda: self.now_ms,
            static.integer("replica.lag.time.max.ms"),
        )
        self.fetchers = ReplicaFetchers(static.settings(FetchSettings), NodePorts(self, static))
        self._live_configs = LiveConfigs(view, static, self.outbox, self.fetchers.resize)
        wait_ms, limits = settings.request_timeout_ms, settings.session_limits
        self.topic_creation = TopicCreation(static, self.ask_controller, self.outbox, wait_ms)
        self.coordinators = LateCoordinators(self, static, new_uuid)
        self.serves_consumer_groups = self.coordinators.serve_consumer_groups
        self.serves_share_groups = self.coordinators.serve_share_groups
        self.verifications = Verifications(self, static)
        self.client_fetches = ClientFetches(self, self.source, self.source.take, limits, new_session_id)
        self._has_failed = self._was_unfenced = False
        self._growing: dict[Hosted, AppendToLog] = {}  # the last effects of this list, so many in all
        self._grown: list[Effect] = []
        self._grown_count = 0
        self._were_plain = False  # by the last requests
        self._deadline_count = 0  # before them
        self._controller: Destination | None = None  # the active one, when the metadata last moved
        self._hosting = Hosting(self)
        self.directory_errors: dict[str, str] = {}  # of log directories that failed, by path
        self.handlers |= self._of_logs() | self.log_moves.handlers() | self.coordinators.handlers()

    def _of_logs(self) -> dict[type, Callable[..., None]]:
        return {
            LogsLoaded: self._on_logs_loaded,
            LogsOpened: self._on_logs_opened,
            LogNotOpened: self._on_log_not_opened,
            LogTruncated: self._on_log_truncated,
            LogsFailed: self._on_logs_failed,
            AppendsEnded: self._on_appends_ended,
            RecordsExpired: lambda event: self.replicas.expired(event.topic, event.partition),
            OffsetsFound: self.log_questions.offsets_found,
            DirectoriesDescribed: self.log_questions.directories_described,
        }

    @property
    def groups(self) -> GroupCoordination:
        return self.coordinators.groups

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        ahead_ms = self.view.context.wall_ahead_ms
        has_moved = ahead_ms != self.wall_ms - self.now_ms
        self.now_ms, self.wall_ms = now_ms, now_ms + ahead_ms
        if has_moved:
            self.coordinators.follow_clock(ahead_ms)
        self.handlers[type(event)](event)
        self.coordinators.end_step(event, now_ms, self._next_slice.schedule)
        effects = self.outbox.effects
        if not effects or type(effects[-1]) is not AppendToLog:  # else AppendsEnded is the next event
            self.directory_assignments.send(now_ms)
            self.isr_changes.send()
            self.fetchers.send()
            self._communicate()
        return self.outbox.take()

    def keep_time(self, now_ms: int) -> None:
        """Note the time of a round that takes no step."""
        self.wall_ms += now_ms - self.now_ms
        self.now_ms = now_ms

    def end_round(self) -> bool:
        """End one; return whether there is more to perform."""
        self.coordinators.end_step(_ROUND, self.now_ms, self._next_slice.schedule)
        return bool(self.outbox.effects or self._after_answers)

    def _on_frames(self, event: FramesReceived) -> None:
        produces, fetches = self.produces, self.client_fetches
        self._deadline_count, before = produces.deadline_count, produces.handled_count + fetches.at_once_count
        super()._on_frames(event)
        self._were_plain = produces.handled_count + fetches.at_once_count - before == len(event.frames)

    @property
    def made_nothing_due(self) -> bool:
        return self._were_plain and self.produces.deadline_count == self._deadline_count

    def deadlines_ms(self) -> list[int | None]:
        return [
            self.lifecycle.deadline_ms(),
            self.client_fetches.deadline_ms(),
            self.produces.deadline_ms(),
            self.deletions.deadline_ms(),
            self.isr_changes.deadline_ms(),
            self.fetchers.deadline_ms(),
            self.own_requests.deadline_ms(),
            self.coordinators.deadline_ms(),
            self.verifications.deadline_ms(),
            self.directory_assignments.deadline_ms(),
            self.replication_quotas.deadline_ms(),
            *super().deadlines_ms(),
        ]

    def on_deadline(self) -> None:
        self.client_fetches.run_due()
        for one in (self.produces, self.deletions, self.own_requests):
            one.run_due(self.now_ms)
        self.go_on(self.isr_changes.check())
        self.go_on(self.isr_changes.rejoin())
        self.coordinators.run_due()
        self.verifications.run_due(self.now_ms)
        for key in self.replication_quotas.take_held():
            self.client_fetches.changed(key)
        super().on_deadline()

    @property
    def identity(self) -> tuple[int, int]:
        """The id and the epoch of this broker."""
        return self.view.node_id, self.lifecycle.broker_epoch

    @property
    def is_ready(self) -> bool:
        """Return whether the metadata is known, and this run of the broker was unfenced once, as in Kafka.

        Until then clients wait: a librdkafka that is given no broker may never ask again.
        """
        if not self._was_unfenced and self.view.is_loaded:
            own = self.view.image.brokers.get(self.view.node_id)
            self._was_unfenced = own is not None and (own.epoch, own.fenced) == (self.identity[1], False)
        return self._was_unfenced

    @property
    def session_cache(self) -> SessionCache:
        return self.client_fetches.parked.sessions.cache

    # -- what handlers ask

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The topic of an id; None while it is unknown."""
        topic = self.view.image.topic(topic_id)
        return None if topic is None else topic.name

    def missing_partition(self, topic: str, index: int) -> ErrorCode:
        """The error for a partition without a log here."""
        image = self.view.image
        exists = topic == METADATA_TOPIC or image.partition(image.topic_id(topic), index) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def has_taken(self, hosted: Hosted) -> bool:
        """Return whether a partition had records before in this step: then its configs are looked up."""
        return self.outbox.effects is self._grown and hosted in self._growing

    def append(self, hosted: Hosted, append: AppendBatches) -> None:
        """Have a batch written, together with others for the same log, unless another effect came between."""
        effects, growing = self.outbox.effects, self._growing
        if effects is not self._grown or len(effects) != self._grown_count:
            self._grown = effects
            growing.clear()
        together = growing.get(hosted)
        if together is None:
            growing[hosted] = together = AppendToLog(hosted.topic, hosted.index, [])
            effects.append(together)
        together.appends.append(append)
        self._grown_count = len(effects)

    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None:
        """Perform what a partition wants: on its log, and for what waits here."""
        partition = hosted.partition
        follows = partition is not None and partition.role is FOLLOWER
        if follows and len(effects) == 1 and type(effects[0]) is MarksMoved:
            self.replicas.moved.add(hosted)  # nothing waits for a partition that is not led
            self.on_marks_moved(hosted, effects[0])
            return
        for effect in self.replicas.perform(hosted, effects):
            if type(effect) is MarksMoved:
                self.produces.replicated(hosted)
                self.on_marks_moved(hosted, effect)
            elif isinstance(effect, ProposeIsr):
                self.isr_changes.propose(hosted, effect)
            elif isinstance(effect, LowWatermarkMoved):
                self.deletions.moved(hosted)

    def on_marks_moved(self, hosted: Hosted, marks: MarksMoved) -> None:
        """The high watermark or the last stable offset of a partition moved."""
        self.client_fetches.marks_moved((hosted.topic, hosted.index))
        self.coordinators.marks_moved(hosted, marks.high_watermark)

    def took(self, elapsed_ns: int) -> None:
        self.quotas.took(elapsed_ns)
        self.coordinators.took(elapsed_ns)

    def exceeds_quota(self, call: Call, answer: AnyFetchResponse, records: Sequence[Buffer]) -> bool:
        """Charge the answer to a fetch; return whether it has to go without its records."""
        return self.quotas.are_set and self.quotas.consumed(call, answer, records)

    def ask_controller(self, message: Message, then: Callable[[Message | None], None]) -> None:
        """Ask the active controller for this broker itself."""
        self.own_requests.send(message, then, self.now_ms)

    def create_missing(self, call: Call, topic: str) -> bool:
        return self.topic_creation.create_for(call, topic, self.boundary)

    # -- the life of the broker

    def on_started(self) -> None:
        self.lifecycle.start(self.now_ms)
        self.isr_changes.start()

    def on_stop_requested(self) -> None:
        self.lifecycle.stop(self.now_ms)

    @property
    def has_ended(self) -> bool:
        return self.lifecycle.has_ended

    def on_answered(self, event: Answered) -> None:
        if event.request_id == LIFECYCLE_REQUEST:
            self.lifecycle.answered(event.message, self.now_ms)
            if not self._hosting.has_begun:
                self._hosting.follow_metadata()
        elif not self.own_requests.answered(event.request_id, event.message, self.now_ms):
            super().on_answered(event)

    def become_ready(self) -> None:
        """Be ready to serve once the metadata is known, and the logs of all hosted partitions are open."""
        self.produces.log_waits.release(self.now_ms)
        waits = self.replicas.opening_count or self.directory_assignments.has_found_again
        if self.view.is_loaded and self._hosting.has_begun and not waits:
            self.lifecycle.ready(self.now_ms)

    def _communicate(self) -> None:
        """Send what the lifecycle has to say, if the active controller is known."""
        lifecycle = self.lifecycle
        if not lifecycle.is_due(self.now_ms):
            return
        view = self.view
        if not view.is_loaded and view.applied_end_offset < view.high_watermark:
            lifecycle.wait_for_metadata(self.now_ms)
        committed_end = min(view.applied_end_offset, view.high_watermark)
        request = lifecycle.due_request(committed_end - 1, self.now_ms)
        if request is not None and (destination := self._active_controller()) is not None:
            self.outbox.emit(SendToNode(LIFECYCLE_REQUEST, destination, request, channel=HEARTBEATS))
        elif request is not None:
            lifecycle.postpone(self.now_ms)
        if lifecycle.failure is not None and not self._has_failed:
            self._has_failed = True
            self.outbox.emit(BrokerFailed(lifecycle.failure))

    def _active_controller(self) -> Destination | None:
        """The active controller; None while it is not known, or is this node's and not active yet."""
        view, found = self.view, self.view.controller_destination()
        return None if found is not None and found.node_id == view.node_id and not view.is_active else found

    # -- metadata

    def passes_over_commit(self) -> bool:
        """Return whether only records without content were committed since the metadata was followed."""
        return (
            self._hosting.has_followed()
            and self.lifecycle.state is BrokerState.RUNNING
            and not self.waits_for_commits
            and not self.client_fetches.parked.watching(METADATA_KEY)
        )

    def on_metadata_moved(self) -> None:
        super().on_metadata_moved()
        self.lifecycle.metadata_moved(self.view.image, self.now_ms)
        if (found := self._active_controller()) != self._controller:
            self._controller = found
            if found is not None:
                self.lifecycle.controller_found(self.now_ms)
        self.client_fetches.changed(METADATA_KEY)
        self._cordon()
        self._live_configs.refresh()
        self._hosting.follow_metadata()
        self._hosting.note_followed()

    def _cordon(self) -> None:
        """Follow what `cordoned.log.dirs` names."""
        if allows_cordoned_directories(self.view.image.metadata_version) and self.cordoning.refresh():
            self.lifecycle.directories_cordoned(self.cordoning.directory_ids, self.now_ms)

    def _on_logs_loaded(self, event: LogsLoaded) -> None:
        self.cordoning.loaded(event.directories)
        self._cordon()
        self._hosting.logs_loaded(event.topic_ids)

    def topics_deleted(self, topics: list[tuple[str, Uuid]]) -> None:
        """Forget what is known of topics that are gone."""
        for name, _ in topics:
            if name not in self.view.image.topic_names():
                self.replicas.traffic.forget(name)
        self.coordinators.topics_deleted(topics)

    def on_leadership(self, before: Hosted | None, hosted: Hosted | None) -> None:
        """A partition may be led by another broker, or be gone: what waits for it is answered."""
        changed = before if hosted is None else hosted
        if changed is not None:
            self.fetchers.follow((changed.topic_id, changed.index), hosted)
            self.isr_changes.changed(changed)
            self.produces.replicated(changed)
            self.deletions.moved(changed)
            self.client_fetches.changed((changed.topic, changed.index))
            self.coordinators.leadership_changed(changed, hosted)
            if hosted is None:
                self.log_moves.forget(changed)

    # -- logs

    def _on_logs_opened(self, event: LogsOpened) -> None:
        for one in event.logs:
            effects = self.replicas.opened(one, self.now_ms)
            if (hosted := self.replicas.get(one.topic, one.partition)) is not None:
                self.damaged_logs.opened(hosted, one)
                self.follow_up(hosted, effects)
                self.on_leadership(None, hosted)
                self.client_fetches.changed(hosted.topic_id)
        self.become_ready()

    def _on_log_not_opened(self, event: LogNotOpened) -> None:
        self.damaged_logs.not_opened(event)
        self.become_ready()

    def _on_log_truncated(self, event: LogTruncated) -> None:
        hosted = self.replicas.get(event.topic, event.partition)
        if hosted is not None and hosted.log is event.log:  # else of a log before
            self.follow_up(hosted, self.replicas.truncated(hosted, event, self.now_ms))
            self.fetchers.truncated((hosted.topic_id, hosted.index))
            self.on_leadership(hosted, hosted)

    def _on_logs_failed(self, event: LogsFailed) -> None:
        self.damaged_logs.failed(event.partitions, event.errors)
        self.directory_errors = event.errors
        self.lifecycle.directories_failed(event.directory_ids, self.now_ms)

    def _on_appends_ended(self, event: AppendsEnded) -> None:
        if event.took_ms:
            self.fetchers.wrote(event.took_ms)
        self._growing.clear()
        led: dict[Hosted, list[Effect]] = {}  # readers get all that was appended at once
        for one in event.writes:
            topic, index, error = one.topic, one.partition, one.error
            hosted = self.replicas.get(topic, index)
            if hosted is None or hosted.partition is None:
                error = error or ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif hosted.partition.role is FOLLOWER:
                self._fetched_ended(hosted, hosted.partition, one)
                continue
            elif error is None:
                moved = hosted.partition.appended(one.appends[-1].end_offset, self.now_ms)
                led[hosted] = moved or led.get(hosted, moved)
            else:
                hosted.partition.append_failed(one.appends[0].base_offset)
            coordinator = self.coordinators.of_topic(topic)
            for append in one.appends:
                if coordinator is not None:
                    coordinator.append_ended(index, append.base_offset, error)
                self.produces.written(topic, index, append.base_offset, error)
        for hosted, effects in led.items():
            self.follow_up(hosted, effects)
            if hosted.partition is not None and hosted.partition.followers:
                self.client_fetches.grown((hosted.topic, hosted.index))

    def _fetched_ended(self, hosted: Hosted, partition: Partition, one: WriteEnded) -> None:
        """Handle the outcome of the write of records that were fetched from a leader."""
        if one.error is not None:
            partition.append_failed(one.appends[0].base_offset)
        key = hosted.topic_id, hosted.index
        for append in one.appends:
            if effects := self.fetchers.append_ended(key, append.end_offset, one.error):
                self.follow_up(hosted, effects)

    def on_connection_closed(self, connection_id: int) -> None:
        super().on_connection_closed(connection_id)
        for one in (self.client_fetches, self.coordinators):
            one.connection_closed(connection_id)

    def __repr__(self) -> str:
        return f"<BrokerNode {self.view.node_id}, {self.lifecycle!r}, {self.replicas!r}>"
