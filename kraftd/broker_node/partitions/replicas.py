"""The partitions that a broker hosts: opened, led, followed and removed as the committed metadata says.

    replicas.apply(change)             # a partition is new, has another leader, or is gone
    replicas.opened(event)             # its log is open: from now on it serves
    partition = replicas.get(topic, index)

A partition whose log is not open yet is unknown here; the newest metadata about it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.answers.view import ClusterView
from kraftd.broker_node.effects import AppendToLog, DeleteLog, OfPartition, OpenLog, SetLog
from kraftd.broker_node.events import LogNotOpened, LogOpened, LogTruncated, LogView
from kraftd.broker_node.partitions.produce_answers import ProduceAnswers
from kraftd.broker_node.partitions.topic_configs import TopicConfig, TopicConfigs
from kraftd.broker_node.partitions.traffic import TopicTraffic, Traffic
from kraftd.ground.effect import Effect
from kraftd.metadata.replica_changes import ReplicaChange
from kraftd.metadata.state import PartitionState
from kraftd.partition.effects import AppendBatches, LowWatermarkMoved, MarksMoved, ProposeIsr, TruncateLog
from kraftd.partition.partition import Partition
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.types import DIRECTORY_UNASSIGNED, Uuid

TopicPartition = tuple[str, int]
# What the node itself follows up; everything else is for the log.
OF_NODE = (MarksMoved, LowWatermarkMoved, ProposeIsr)


class Hosted:
    """One hosted partition. `partition` and `log` are None until its log is open, or where it cannot be.
    While the log is truncated, the partition stays a follower, whatever the metadata says.
    """

    __slots__ = (
        "answers",
        "config",
        "index",
        "is_truncating",
        "log",
        "partition",
        "state",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self, topic: str, index: int, topic_id: Uuid, state: PartitionState, traffic: TopicTraffic
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.state = state
        self.traffic = traffic
        self.config: TopicConfig | None = None
        self.partition: Partition | None = None
        self.log: LogView | None = None
        self.is_truncating = False
        self.answers: dict[int, ProduceAnswers] | None = None  # to Produce requests, by their version

    def answers_like(self, call: Call) -> ProduceAnswers:
        """The answers to Produce requests for this partition alone, in the version of a call of them."""
        answers = self.answers
        if answers is None:
            answers = self.answers = {}
        found = answers.get(call.version)
        if found is None:
            found = answers[call.version] = ProduceAnswers(call)
        return found

    @property
    def replication_factor(self) -> int:
        """How many replicas it has, as Kafka counts them: without those that are being added."""
        return len(self.state.replicas) - len(self.state.adding_replicas)

    @property
    def is_under_replicated(self) -> bool:
        """Return whether this broker leads the partition, and its ISR has fewer members than that."""
        partition = self.partition
        if partition is None or not partition.is_leader:
            return False
        return len(partition.isr.committed) < self.replication_factor

    def __repr__(self) -> str:
        return f"<Hosted {self.topic}-{self.index} {self.partition or 'whose log is not open'}>"


class RegisteredBrokers:
    """The brokers of the image, as partitions ask for them."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def alive_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a broker that is registered and not fenced, else None."""
        broker = self._view.image.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_shutting_down(self, broker_id: int) -> bool:
        """Return whether a broker is in controlled shutdown."""
        broker = self._view.image.brokers.get(broker_id)
        return broker is not None and broker.in_controlled_shutdown

    def __repr__(self) -> str:
        return f"<RegisteredBrokers {len(self._view.image.brokers)}>"


class Replicas:
    """The hosted partitions, by topic and index. `opening_count`: logs that are not open yet.

    `offline`: why the logs of some cannot be used. `moved`: those whose high watermark or log may differ from
    the last checkpoint of them. `preferred`: directories of logs that are to be made later.
    """

    def __init__(self, view: ClusterView, configs: TopicConfigs, outbox: Outbox) -> None:
        self.configs = configs
        self.opening_count = 0
        self.moved: set[Hosted] = set()
        self.traffic = Traffic()
        self.offline: dict[TopicPartition, str] = {}
        self.preferred: dict[TopicPartition, Uuid | None] = {}
        self._view = view
        self._outbox = outbox
        self._brokers = RegisteredBrokers(view)
        self._hosted: dict[TopicPartition, Hosted] = {}

    def __len__(self) -> int:
        return len(self._hosted)

    def __iter__(self) -> Iterator[Hosted]:
        return iter(self._hosted.values())

    def __repr__(self) -> str:
        return f"<Replicas {len(self)} partitions, {self.opening_count} logs not open>"

    def get(self, topic: str, index: int) -> Hosted | None:
        """A partition whose log is open, or could not be opened."""
        found = self._hosted.get((topic, index))
        return None if found is None or found.partition is None else found

    def leads_without_log(self, key: TopicPartition) -> bool:
        """Return whether this broker is to lead a partition whose log is not open yet."""
        found = self._hosted.get(key)
        return found is not None and found.partition is None and found.state.leader == self._view.node_id

    def led_count(self) -> int:
        """How many partitions this broker leads by the metadata that it has applied."""
        return self._view.image.led_count(self._view.node_id)

    # -- metadata

    def begin(self, key: TopicPartition, change: ReplicaChange) -> None:
        """Open the log of a partition at a start, or delete it if the partition went meanwhile."""
        if change.state is None:
            self._outbox.emit(DeleteLog(*key))
        else:
            self._open(key, change, change.state)

    def apply(self, change: ReplicaChange, now_ms: int) -> list[Effect]:
        """Follow a committed change; returns what the node has to follow up itself."""
        key = change.topic, change.partition
        hosted = self._hosted.get(key)
        if hosted is not None and (change.state is None or hosted.topic_id != change.topic_id):
            if change.state is None and hosted.topic_id != change.topic_id:
                return []  # of a former topic of that name
            self._remove(key, hosted)
            hosted = None
        if change.state is None:
            return []
        if hosted is None:
            self._open(key, change, change.state)
            return []
        hosted.state = change.state
        return self._follow(hosted, now_ms)

    def _open(self, key: TopicPartition, change: ReplicaChange, state: PartitionState) -> None:
        self._hosted[key] = Hosted(*key, change.topic_id, state, self.traffic.of(change.topic))
        self.opening_count += 1
        directory_id = self.preferred.pop(key, None) or state.directory(self._view.node_id)
        in_isr = self._view.node_id in state.isr
        is_new = state.partition_epoch == 0 or (directory_id == DIRECTORY_UNASSIGNED and not in_isr)
        self._outbox.emit(OpenLog(*key, change.topic_id, directory_id, is_new))

    def _follow(self, hosted: Hosted, now_ms: int) -> list[Effect]:
        if hosted.partition is None or hosted.is_truncating:
            return []
        return self.perform(hosted, hosted.partition.follow_metadata(hosted.state, now_ms))

    def _remove(self, key: TopicPartition, hosted: Hosted) -> None:
        del self._hosted[key]
        self.offline.pop(key, None)
        if hosted.partition is None:
            self.opening_count -= 1
        else:
            hosted.partition.go_offline()
        self.moved.add(hosted)
        self._outbox.emit(DeleteLog(*key))

    # -- logs

    def opened(self, event: LogOpened, now_ms: int) -> list[Effect]:
        """Serve a partition from now on. A log that is not wanted any more was deleted in between."""
        hosted = self._hosted.get((event.topic, event.partition))
        if hosted is None or hosted.topic_id != event.topic_id or hosted.log is not None:
            return []
        if hosted.partition is None:  # else the disk had no room for the log before
            self.opening_count -= 1
        hosted.log = event.log
        hosted.config = self.configs.of(event.topic)
        hosted.partition = Partition(
            hosted.topic,
            hosted.index,
            self._view.node_id,
            hosted.config.partition,
            self._brokers,
            event.log.epochs,
            log_start_offset=event.log.log_start,
            log_end_offset=event.log.log_end,
            high_watermark=event.high_watermark,
            producers=event.producers,
        )
        self.moved.add(hosted)
        # A log that a start found was opened before this broker knew the configs of its topic.
        self._outbox.emit(SetLog(event.topic, event.partition, hosted.config.log))
        return self._follow(hosted, now_ms)

    def truncated(self, hosted: Hosted, event: LogTruncated, now_ms: int) -> list[Effect]:
        """Go on after a truncation, with the newest metadata."""
        assert hosted.partition is not None
        hosted.is_truncating = False
        effects = hosted.partition.truncated(event.log.log_start, event.log.log_end, event.producers)
        return self.perform(hosted, effects) + self._follow(hosted, now_ms)

    def not_opened(self, event: LogNotOpened) -> None:
        """A partition without a log: it is offline."""
        hosted = self._hosted.get((event.topic, event.partition))
        if hosted is None or hosted.topic_id != event.topic_id or hosted.partition is not None:
            return
        self.opening_count -= 1
        hosted.config = self.configs.of(event.topic)
        hosted.partition = Partition(
            hosted.topic,
            hosted.index,
            self._view.node_id,
            hosted.config.partition,
            self._brokers,
            NO_EPOCHS,
        )
        hosted.partition.go_offline()
        self.offline[event.topic, event.partition] = event.reason

    def failed(self, key: TopicPartition, reason: str) -> None:
        """The log of a partition cannot be used any more, maybe as its directory failed."""
        hosted = self._hosted.get(key)
        if hosted is not None and hosted.partition is not None:
            hosted.partition.go_offline()
            hosted.log = None
            self.moved.add(hosted)
            self.offline[key] = reason

    def expired(self, topic: str, index: int) -> None:
        """Retention has moved the start of a partition's log."""
        hosted = self.get(topic, index)
        if hosted is not None and hosted.partition is not None and hosted.log is not None:
            self.perform(hosted, hosted.partition.move_log_start(hosted.log.log_start))

    def refresh_config(self, hosted: Hosted) -> TopicConfig:
        """Let a partition and its log follow changed configs of the topic; returns these."""
        config = self.configs.of(hosted.topic)
        if config is not hosted.config and hosted.partition is not None:
            before, hosted.config = hosted.config, config
            hosted.partition.config = config.partition
            if before is None or config.log != before.log:
                self._outbox.emit(SetLog(hosted.topic, hosted.index, config.log))
        return config

    def perform(self, hosted: Hosted, effects: list[Effect]) -> list[Effect]:
        """Emit a partition's effects on its log; returns the others."""
        if not effects:
            return effects
        own: list[Effect] = []
        for effect in effects:
            if type(effect) in OF_NODE:
                self.moved.add(hosted)
                own.append(effect)
            elif type(effect) is AppendBatches:
                self._outbox.effects.append(AppendToLog(hosted.topic, hosted.index, [effect]))
            else:
                hosted.is_truncating |= type(effect) is TruncateLog
                self._outbox.emit(OfPartition(hosted.topic, hosted.index, effect))
        return own


class _NoEpochs:
    """The epochs of a log that is not there."""

    entries: list[tuple[int, int]] = []  # noqa: RUF012
    latest: int | None = None

    def end_offset_for(self, epoch: int, log_end: int) -> None:
        return None

    def epoch_of(self, offset: int) -> int | None:
        return None


NO_EPOCHS = _NoEpochs()
