"""C3 to C10 of committed records: each against the image before it, each batch as a whole."""

from __future__ import annotations

from typing import Any

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.metadata.features import ELR_VERSION
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import METADATA_VERSION
from kraftd.metadata.state import (
    BROKER_RESOURCE,
    RECOVERING,
    TOPIC_RESOURCE,
    BrokerState,
    PartitionState,
)
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.processes.mirror import Entry
from kraftd.simulation.protocols import World
from kraftd.wire.record_frame import VersionedRecord

BOOTSTRAP = "Bootstrap records"

# Facts of Apache Kafka 4.3.1's MetadataVersion: the level from which a record is written, and its version.
VERSIONS: dict[str, tuple[tuple[int, int], ...]] = {
    "RegisterBrokerRecord": ((7, 1), (8, 2), (17, 3), (30, 4)),
    "BrokerRegistrationChangeRecord": ((7, 1), (17, 2), (30, 3)),
    "PartitionRecord": ((7, 0), (17, 1), (23, 2)),
    "PartitionChangeRecord": ((7, 0), (17, 1), (23, 2)),
    "RegisterControllerRecord": ((15, 0),),
    "BeginTransactionRecord": ((13, 0),),
    "EndTransactionRecord": ((13, 0),),
    "AbortTransactionRecord": ((13, 0),),
    "UserScramCredentialRecord": ((11, 0),),
    "RemoveUserScramCredentialRecord": ((11, 0),),
    "DelegationTokenRecord": ((14, 0),),
    "RemoveDelegationTokenRecord": ((14, 0),),
    "ClearElrRecord": ((23, 0),),
}
_ANY = ((7, 0),)


def highest_version(name: str, level: int) -> int:
    """The highest version in which a record may be written at a metadata.version; -1 for not at all."""
    return max((version for first, version in VERSIONS.get(name, _ANY) if first <= level), default=-1)


class RecordChecker(Checker):
    """Gets each committed record in order, in its batch, and again when it is applied (see Replayed)."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.broker_epochs: dict[int, int] = {}  # the newest committed one, also of removed brokers
        self.level: int | None = None  # metadata.version, by the records so far
        self._level_before: int | None = None  # before the open transaction
        self._transaction: tuple[int, int] | None = None  # begin and epoch of the open one
        self._transaction_name: str | None = None
        self.configs: dict[str, set[str]] = {}  # every committed value of each config of the whole cluster
        self._bootstraps = 0
        self._first_level: int | None = None  # that of the bootstrap records
        self._topic_ids: set[bytes] = set()
        self.next_producer_id = -1
        self._before: Any = None
        # In this batch, of one decision or several: the brokers that joined an ISR before they were active,
        # and the changes.
        self._joined: list[tuple[int, str]] = []
        self._partitions_changed = self._brokers_changed = False
        self._applied: dict[type, Any] = {
            RegisterBrokerRecord: self._registered,
            UnregisterBrokerRecord: self._broker_changed,
            FenceBrokerRecord: self._broker_changed,
            UnfenceBrokerRecord: self._broker_changed,
            BrokerRegistrationChangeRecord: self._broker_changed,
            PartitionRecord: self._partition_changed,
            PartitionChangeRecord: self._partition_changed,
            TopicRecord: self._topic_created,
            ProducerIdsRecord: self._producer_ids,
            ConfigRecord: self._configured,
        }

    @property
    def image(self) -> Image:
        newest = self.world.reference.newest
        assert newest is not None
        image: Image = newest.image
        return image

    # --- as it is written ---

    def batch_begins(self, entry: Entry) -> None:
        self._joined.clear()
        self._partitions_changed = self._brokers_changed = False

    def record(self, record: VersionedRecord, offset: int, epoch: int) -> None:
        """C8, C9, C10 of a record in the log."""
        message = record.message
        kind = type(message)
        if self._transaction is not None and epoch != self._transaction[1]:
            if kind is not AbortTransactionRecord:
                self.fail(
                    "C8",
                    f"offset {offset} of epoch {epoch}: {message!r} inside of {self._transaction}",
                )
            self.world.trace.kinds["transaction aborted by the next leader"] += 1
        if isinstance(message, FeatureLevelRecord) and message.name == METADATA_VERSION:
            self._set_level(message.feature_level, offset)
        level = self.level
        if level is not None and record.version > highest_version(kind.__name__, level):
            self.fail("C9", f"offset {offset}: {kind.__name__} v{record.version} at metadata.version {level}")
        if isinstance(message, BeginTransactionRecord):
            self._begin(message, offset, epoch)
        elif kind is EndTransactionRecord or kind is AbortTransactionRecord:
            self._end(offset, took_effect=kind is EndTransactionRecord)

    def _set_level(self, level: int, offset: int) -> None:
        if self._first_level is None:
            self._first_level = level
        if self.level == level != self._first_level:
            pass  # two equal requests: as in Apache Kafka, the second writes a record too
        elif self.level is None or self.level == level:
            if self._transaction is None:
                self._bootstrapped(offset)
        elif self.level > level:
            self.fail("C9", f"offset {offset}: metadata.version from {self.level} back to {level}")
        else:
            self.world.trace.kinds["metadata.version upgraded"] += 1
        self.level = level

    def _begin(self, message: BeginTransactionRecord, offset: int, epoch: int) -> None:
        if self._transaction is not None:
            self.fail("C8", f"offset {offset}: a transaction in that of {self._transaction}")
        self._transaction, self._transaction_name = (offset, epoch), message.name
        self._level_before = self.level

    def _end(self, offset: int, *, took_effect: bool) -> None:
        if self._transaction is None:
            self.fail("C8", f"offset {offset}: the end of no transaction")
        if not took_effect:
            self.level = self._level_before
            self.world.trace.kinds["transaction aborted"] += 1
        elif self._transaction_name == BOOTSTRAP:
            self._bootstrapped(offset)
        else:
            self.world.trace.kinds["transaction committed"] += 1
        self._transaction = None

    def _bootstrapped(self, offset: int) -> None:
        self._bootstraps += 1
        if self._bootstraps > 1:
            self.fail("C10", f"offset {offset}: the bootstrap records a second time")

    # --- as it takes effect ---

    def applying(self, message: Any, offset: int) -> None:
        image = self.image
        kind = type(message)
        if kind is PartitionRecord or kind is PartitionChangeRecord:
            self._before = image.partition(message.topic_id, message.partition_id)
        elif kind is TopicRecord:
            if image.topic_named(message.name) is not None:
                self.fail("C7", f"offset {offset}: there is a topic {message.name} already")
            if message.topic_id in self._topic_ids:
                self.fail("C7", f"offset {offset}: {message!r} has the id of another")
        elif kind is RemoveTopicRecord and image.topic(message.topic_id) is None:
            self.fail("C7", f"offset {offset}: {message!r} of no topic")

    def applied(self, message: Any, offset: int) -> None:
        then = self._applied.get(type(message))
        if then is not None:
            then(message, offset)

    def _registered(self, message: RegisterBrokerRecord, offset: int) -> None:
        before = self.broker_epochs.get(message.broker_id, -1)
        if message.broker_epoch < before:
            self.fail("C3", f"offset {offset}: {message!r} after epoch {before}")
        self.broker_epochs[message.broker_id] = message.broker_epoch
        self._brokers_changed = True

    def _broker_changed(self, message: Any, offset: int) -> None:
        broker_id = message.id if hasattr(message, "id") else message.broker_id
        epoch = message.epoch if hasattr(message, "epoch") else message.broker_epoch
        if epoch != self.broker_epochs.get(broker_id):
            self.fail("C3", f"offset {offset}: {message!r}, its epoch is {self.broker_epochs.get(broker_id)}")
        self._brokers_changed = True

    def _topic_created(self, message: TopicRecord, offset: int) -> None:
        self._topic_ids.add(message.topic_id)
        topic = self.image.topic_named(message.name)
        if topic is None or topic.id != message.topic_id or self.image.topic(message.topic_id) is not topic:
            self.fail("C7", f"offset {offset}: {message!r} is found as {topic!r}")

    def _configured(self, message: ConfigRecord, offset: int) -> None:
        if message.resource_type == BROKER_RESOURCE and not message.resource_name and message.value:
            self.configs.setdefault(message.name, set()).add(message.value)

    def _producer_ids(self, message: ProducerIdsRecord, offset: int) -> None:
        if message.next_producer_id <= self.next_producer_id:
            self.fail("C6", f"offset {offset}: {message!r} after {self.next_producer_id}")
        self.next_producer_id = message.next_producer_id

    def _partition_changed(self, message: Any, offset: int) -> None:
        """C4 of one change; which replicas may lead and join is checked at the end of the batch."""
        before, after = self._before, self.image.partition(message.topic_id, message.partition_id)
        where = f"offset {offset}: {before!r} to {after!r}"
        assert after is not None
        if not set(after.isr) <= set(after.replicas):
            self.fail("C4", f"{where}: the ISR is not among the replicas")
        if after.leader >= 0 and after.leader not in after.isr:
            self.fail("C4", f"{where}: the leader is not in the ISR")
        if before is not None:
            if after.partition_epoch != before.partition_epoch + 1:
                self.fail("C4", f"{where}: the partition epoch")
            is_other = after.leader != before.leader
            if after.leader_epoch < before.leader_epoch + is_other:
                self.fail("C4", f"{where}: the leader epoch")
            is_clean = after.leader in before.isr or after.leader in before.elr
            if before.leader >= 0 and before.adding_replicas and not after.adding_replicas:
                is_clean |= after.leader in before.adding_replicas  # it joins the ISR, which ends the move
            if is_other and after.leader >= 0 and not is_clean and after.leader_recovery_state != RECOVERING:
                self.fail("C4", f"{where}: elected uncleanly, but not recorded as such")
        topic = self.image.topic(message.topic_id)
        self._check_elr(where, before, after, "" if topic is None else topic.name)
        for one in after.isr:
            if (before is None or one not in before.isr) and not _is_active(self.image.brokers.get(one)):
                self._joined.append((one, where))
        self._partitions_changed = True
        self.world.traffic.replicas.partition_changed(message.topic_id, message.partition_id, before, after)

    def _check_elr(
        self, where: str, before: PartitionState | None, after: PartitionState, topic: str
    ) -> None:
        """KIP-966: an eligible replica was once in the ISR, is not now, and its broker has not registered
        anew since.
        """
        elr = set(after.elr)
        if not self.image.features.get(ELR_VERSION):
            if not after.isr or (elr and before is None):
                self.fail("C5", f"{where}: no ISR, or an ELR without the feature")
            return
        # As at Apache Kafka, a replica that a reassignment removes stays in the ELR; it cannot be elected.
        removed = set() if before is None else {*before.replicas, *before.elr} - set(after.replicas)
        if elr & set(after.isr) or not elr <= set(after.replicas) | removed:
            self.fail("C5", f"{where}: the ELR")
        if elr and before is not None and not elr <= set(before.isr) | set(before.elr):
            self.fail("C5", f"{where}: the ELR has a member that was in neither ISR nor ELR")
        least = min(_min_insync_replicas(self.image, topic), len(after.replicas))
        if elr and len(after.isr) >= least:
            self.fail("C5", f"{where}: an ELR beside an ISR of {len(after.isr)}, {least} are enough")
        if not after.isr and not elr and not after.last_known_elr:
            self.fail("C5", f"{where}: no member is left")

    def batch_ends(self, entry: Entry) -> None:
        """C5, after the whole batch: a batch holds whole decisions."""
        image = self.image
        brokers = image.brokers
        for broker_id, where in self._joined:
            if not _is_active(brokers.get(broker_id)):
                self.fail("C5", f"{where}: {brokers.get(broker_id)!r} joins the ISR")
        if not (self._partitions_changed or self._brokers_changed):
            return
        for topic in image.topics.values():
            for index, state in topic.partitions.items():
                if state.leader < 0:
                    continue
                broker = brokers.get(state.leader)
                if not _is_active(broker):
                    self.fail("C5", f"{entry}: {broker!r} leads {topic.name}-{index} {state!r}")

    def is_stale(self, broker_id: int, epoch: int) -> bool:
        """Return whether a later registration of that broker is committed."""
        return epoch < self.broker_epochs.get(broker_id, -1)

    def __repr__(self) -> str:
        return f"<RecordChecker at metadata.version {self.level}>"


def _is_active(broker: BrokerState | None) -> bool:
    return broker is not None and not (broker.fenced or broker.in_controlled_shutdown)


def _min_insync_replicas(image: Image, topic: str) -> int:
    key = "min.insync.replicas"
    return int(image.config(TOPIC_RESOURCE, topic).get(key, image.config(BROKER_RESOURCE, "").get(key, "1")))
